//===- Convolution.h - 2-D convolutions by library calls -------*- C++ -*-===//
//
// What a library decides or packs is made in the rank's setUp and found by
// number in a step. Tensors are plain NCHW and OIHW, or with the channels last
// NHWC and OHWI.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_CONVOLUTION_H
#define PIPEWRIGHT_RUNTIME_CALLS_CONVOLUTION_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

namespace pipewright::runtime {

/// x[n, c, h, w] with w[o, c/groups, kh, kw] gives y[n, o, oh, ow].
struct ConvolutionShape {
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t o = 0, kh = 0, kw = 0;
  int64_t strideH = 1, strideW = 1;
  int64_t padTop = 0, padLeft = 0, padBottom = 0, padRight = 0;
  int64_t dilationH = 1, dilationW = 1;
  int64_t groups = 1;
  /// The weight operand is a weight of the model, so its packed form is kept
  /// for all micro-batches of a step.
  bool keepPackedWeight = false;
  /// x[n, h, w, c] with w[o, kh, kw, c/groups] gives y[n, oh, ow, o].
  bool channelsLast = false;
  /// Of x, w, bias, y and the gradients of x and y: F32 or BF16. dw is f32.
  ElementType type = ElementType::F32;

  int64_t outputHeight() const {
    return (h + padTop + padBottom - dilationH * (kh - 1) - 1) / strideH + 1;
  }
  int64_t outputWidth() const {
    return (w + padLeft + padRight - dilationW * (kw - 1) - 1) / strideW + 1;
  }

  PIPEWRIGHT_FIELDS(n, c, h, w, o, kh, kw, strideH, strideW, padTop, padLeft,
                    padBottom, padRight, dilationH, dilationW, groups,
                    keepPackedWeight, channelsLast, type)
};

enum class ConvolutionDirection { Forward, BackwardData, BackwardWeight };

/// What messages call it.
inline const char *textOf(ConvolutionDirection direction) {
  switch (direction) {
  case ConvolutionDirection::Forward:
    return "forward";
  case ConvolutionDirection::BackwardData:
    return "data gradient";
  case ConvolutionDirection::BackwardWeight:
    break;
  }
  return "weight gradient";
}

/// Called in setUp, once for each number and direction that a step uses.
/// Numbers are small, dense and chosen by the caller; all directions of one
/// number share one shape.
template <class AnyRank>
void prepareConvolutionForward(AnyRank &rank, int64_t number,
                               const ConvolutionShape &shape, bool hasBias);
template <class AnyRank>
void prepareConvolutionBackwardData(AnyRank &rank, int64_t number,
                                    const ConvolutionShape &shape);
template <class AnyRank>
void prepareConvolutionBackwardWeight(AnyRank &rank, int64_t number,
                                      const ConvolutionShape &shape);

/// `bias` has zero bytes where there is none.
template <class AnyRank>
void convolutionForward(AnyRank &rank, int64_t number, Buffer x, Buffer w,
                        Buffer bias, Buffer y);
template <class AnyRank>
void convolutionBackwardData(AnyRank &rank, int64_t number, Buffer dy, Buffer w,
                             Buffer dx);
/// Adds to dw when `accumulate`, overwrites it otherwise.
template <class AnyRank>
void convolutionBackwardWeight(AnyRank &rank, int64_t number, Buffer dy,
                               Buffer x, Buffer dw, bool accumulate = false);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_CONVOLUTION_H
