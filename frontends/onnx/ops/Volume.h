//===- Volume.h - Convolutions beyond two dimensions -----------*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_VOLUME_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_VOLUME_H

#include "frontends/onnx/ops/Window.h"

namespace pipewright::frontend {

/// The planes of volume x [N, C, D, H, W] as images [N * D', C * k, H, W]: the
/// k planes that a window of depth k covers are channels one behind the other,
/// as those of a filter [O, C, k, ...] are.
mlir::Value stackPlanes(NodeContext &n, mlir::Value x, const Window &window);

/// Images [N * D, ...] of volumes of N samples as volumes [N, ..., D, H, W].
mlir::Value volumeOf(NodeContext &n, mlir::Value images, int64_t samples);

/// x [A, k, L, R] added up to [A, size, R]: element `i` of k of place `l` of L
/// is at l * stride + i * dilation - low.
mlir::Value overlapAdd(NodeContext &n, mlir::Value x, int64_t size,
                       int64_t stride, int64_t dilation, int64_t low,
                       int64_t high);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_VOLUME_H
