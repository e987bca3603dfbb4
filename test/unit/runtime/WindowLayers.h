//===- WindowLayers.h - Shapes of pooling and convolutions -----*- C++ -*-===//
//
// Layers that slide windows over images, in few words: what the calls of the
// runtime name side by side goes together here, as in ONNX.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_RUNTIME_WINDOWLAYERS_H
#define PIPEWRIGHT_TEST_UNIT_RUNTIME_WINDOWLAYERS_H

#include "runtime/calls/Convolution.h"
#include "runtime/calls/Pooling.h"

#include <array>

namespace pipewright::runtime {

struct WindowLayer {
  /// Samples, channels, height, width.
  std::array<int64_t, 4> images;
  /// Channels that a convolution gives.
  int64_t outputs = 0;
  /// Vertical, horizontal.
  std::array<int64_t, 2> kernel, strides = {1, 1}, dilations = {1, 1};
  /// Top, left, bottom, right.
  std::array<int64_t, 4> padding = {};
  int64_t groups = 1;
  bool countIncludePad = false, keepPackedWeight = false, channelsLast = false;
  ElementType type = ElementType::F32;

  operator ConvolutionShape() const {
    ConvolutionShape s = {
        .o = outputs, .groups = groups, .keepPackedWeight = keepPackedWeight};
    fill(s);
    return s;
  }
  /// As many windows as there is room for.
  operator PoolingShape() const {
    PoolingShape s = {.countIncludePad = countIncludePad};
    fill(s);
    const ConvolutionShape like = *this;
    s.oh = like.outputHeight();
    s.ow = like.outputWidth();
    return s;
  }

private:
  template <class Shape>
  void fill(Shape &s) const {
    s.n = images[0], s.c = images[1], s.h = images[2], s.w = images[3];
    s.kh = kernel[0], s.kw = kernel[1];
    s.strideH = strides[0], s.strideW = strides[1];
    s.padTop = padding[0], s.padLeft = padding[1];
    s.padBottom = padding[2], s.padRight = padding[3];
    s.dilationH = dilations[0], s.dilationW = dilations[1];
    s.channelsLast = channelsLast;
    s.type = type;
  }
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_UNIT_RUNTIME_WINDOWLAYERS_H
