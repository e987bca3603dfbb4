//===- Pooling.h - Max and average pooling by library calls ----*- C++ -*-===//
//
// Images are NCHW, or with the channels last NHWC.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_POOLING_H
#define PIPEWRIGHT_RUNTIME_CALLS_POOLING_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

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

  PIPEWRIGHT_FIELDS(n, c, h, w, oh, ow, kh, kw, strideH, strideW, padTop,
                    padLeft, padBottom, padRight, dilationH, dilationW,
                    countIncludePad, channelsLast, type)
};

/// `window` gets row * kw + column inside the window of the first maximum, one
/// unsigned byte per output: at most 256 positions. May be absent.
template <class AnyRank>
void maxPool(AnyRank &rank, const PoolingShape &shape, Buffer x, Buffer y,
             Buffer window);
template <class AnyRank>
void maxPoolBackward(AnyRank &rank, const PoolingShape &shape, Buffer dy,
                     Buffer window, Buffer dx);
template <class AnyRank>
void averagePool(AnyRank &rank, const PoolingShape &shape, Buffer x, Buffer y);
template <class AnyRank>
void averagePoolBackward(AnyRank &rank, const PoolingShape &shape, Buffer dy,
                         Buffer dx);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_POOLING_H
