//===- Convolution.h - Sizes of 2-D convolutions ----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_CONVOLUTION_H
#define PIPEWRIGHT_RUNTIME_CALLS_CONVOLUTION_H

#include "runtime/calls/Fields.h"

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

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_CONVOLUTION_H
