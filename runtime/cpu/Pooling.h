//===- Pooling.h - Max and average pooling ---------------------*- C++ -*-===//
//
// Own loops: memory-bound, and the window position is an i8 of plain layout.
// Images are NCHW, or with the channels last NHWC.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_POOLING_H
#define PIPEWRIGHT_RUNTIME_CPU_POOLING_H

#include "runtime/core/Rank.h"

namespace pipewright::runtime {

struct PoolingShape {
  int64_t n = 0, c = 0, h = 0, w = 0;
  /// Output size, as inference gave it.
  int64_t oh = 0, ow = 0;
  int64_t kh = 1, kw = 1;
  int64_t strideH = 1, strideW = 1;
  int64_t padTop = 0, padLeft = 0, padBottom = 0, padRight = 0;
  int64_t dilationH = 1, dilationW = 1;
  /// Average only: padding counts as zeros (else only real elements count).
  bool countIncludePad = false;
  /// Channels are neighbours in memory: they lie last.
  bool channelsLast = false;
  /// Of x and y and their gradients: F32 or BF16.
  ElementType type = ElementType::F32;
};

/// `window` gets row * kw + column inside the window of the first maximum, one
/// unsigned byte per output: at most 256 positions. May be absent.
void maxPool(Rank &rank, const PoolingShape &shape, Buffer x, Buffer y,
             Buffer window);
void maxPoolBackward(Rank &rank, const PoolingShape &shape, Buffer dy,
                     Buffer window, Buffer dx);
void averagePool(Rank &rank, const PoolingShape &shape, Buffer x, Buffer y);
void averagePoolBackward(Rank &rank, const PoolingShape &shape, Buffer dy,
                         Buffer dx);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_POOLING_H
