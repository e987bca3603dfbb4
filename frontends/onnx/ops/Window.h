//===- Window.h - Sliding windows of Conv and pooling ----------*- C++ -*-===//
//
// ONNX's spellings of a window (1-D to 3-D, explicit or automatic pads, ceil
// mode) as what nn knows: two dimensions, explicit pads, floor. Pools of
// volumes are pools of planes, and of depths then; convolutions see the planes
// that a window covers as so many channels.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_WINDOW_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_WINDOW_H

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

struct Window {
  Shape kernel, strides, dilations;
  /// Where each dimension begins (top, left), then where each ends.
  Shape pads;
  /// The same without what ceil mode adds at the end.
  Shape ownPads;
};

/// Reads all of a node's window but auto_pad and ceil_mode, for as many
/// dimensions as input 0, of rank 3 to 5, has behind its channels.
llvm::FailureOr<Window> readGivenWindow(NodeContext &n, Shape kernel);
/// Makes a window of one dimension one of two.
void makeTwoDimensional(Window &window);

/// Reads a node's window, of two or three dimensions. `kernel` is the filter's
/// size, which kernel_shape must agree with; empty where kernel_shape alone
/// gives it.
llvm::FailureOr<Window> readWindow(NodeContext &n, Shape kernel);

/// The last two dimensions of a window, and the first of three with a second
/// of size 1.
Window planeOf(const Window &window);
Window depthOf(const Window &window);
/// Fails where a window covers more planes than are worth a channel each.
llvm::LogicalResult expectFewPlanes(NodeContext &n, const Window &window);

/// What `pool` makes of images, for the node's input `x` of rank 3 to 5: of
/// planes, and of what is left of them along the depth.
mlir::Value
poolEach(NodeContext &n, mlir::Value x, const Window &window,
         llvm::function_ref<mlir::Value(mlir::Value, const Window &)> pool);

/// [N, C, L] as [N, C, 1, L]; rank 4 stays.
mlir::Value asImage(NodeContext &n, mlir::Value x);
/// Undoes asImage for results of a node whose input 0 had rank 3.
mlir::Value fromImage(NodeContext &n, mlir::Value x);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_WINDOW_H
