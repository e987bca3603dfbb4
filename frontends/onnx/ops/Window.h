//===- Window.h - Sliding windows of Conv and pooling ----------*- C++ -*-===//
//
// ONNX's spellings of a window (1-D or 2-D, explicit or automatic pads, ceil
// mode) as the one that nn knows: two dimensions, explicit pads, floor.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_WINDOW_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_WINDOW_H

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

struct Window {
  Shape kernel, strides, dilations;
  /// Top, left, bottom, right.
  Shape pads;
  /// The same without what ceil mode adds at the end.
  Shape ownPads;
};

/// Reads all of a node's window but auto_pad and ceil_mode, for as many
/// dimensions as input 0, of rank 3 or 4, has behind its channels.
llvm::FailureOr<Window> readGivenWindow(NodeContext &n, Shape kernel);
/// Makes a window of one dimension one of two.
void makeTwoDimensional(Window &window);

/// Reads a node's window. `kernel` is the filter's size, which kernel_shape
/// must agree with; empty where kernel_shape alone gives it.
llvm::FailureOr<Window> readWindow(NodeContext &n, Shape kernel);

/// [N, C, L] as [N, C, 1, L]; rank 4 stays.
mlir::Value asImage(NodeContext &n, mlir::Value x);
/// Undoes asImage for results of a node whose input 0 had rank 3.
mlir::Value fromImage(NodeContext &n, mlir::Value x);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_WINDOW_H
