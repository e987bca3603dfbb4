//===- InterpolationMatrix.cpp - Weights of an interpolation --------------===//
//
// The formulas of ONNX's Resize.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/InterpolationMatrix.h"

#include <algorithm>
#include <cmath>

namespace pipewright::frontend {

/// Where an element of the result lies among those of the input.
static double sourceOf(Coordinates coordinates, const Stretch &stretch,
                       int64_t row) {
  const auto from = double(stretch.from), to = double(stretch.to);
  const double scale = stretch.scale;
  // The result's size before it was rounded.
  const double width = scale == to / from ? to : scale * from;
  const double halfPixel = (double(row) + 0.5) / scale - 0.5;
  switch (coordinates) {
  case Coordinates::HalfPixel:
    return halfPixel;
  case Coordinates::HalfPixelSymmetric:
    return halfPixel + from / 2 * (1 - to / width);
  case Coordinates::PyTorchHalfPixel:
    return stretch.to > 1 ? halfPixel : 0;
  case Coordinates::TfHalfPixelForNearest:
    return (double(row) + 0.5) / scale;
  case Coordinates::AlignCorners:
    return width > 1 ? double(row) * (from - 1) / (width - 1) : 0;
  case Coordinates::Asymmetric:
    return double(row) / scale;
  case Coordinates::Crop: {
    const double share = to > 1 ? double(row) / (to - 1) : 0.5;
    return (stretch.begin + share * (stretch.end - stretch.begin)) * (from - 1);
  }
  }
  return 0;
}

bool isBeyondInput(const InterpolationOptions &options, const Stretch &stretch,
                   int64_t row) {
  if (options.coordinates != Coordinates::Crop)
    return false;
  const double place = sourceOf(options.coordinates, stretch, row);
  return place < 0 || place > double(stretch.from - 1);
}

static int64_t clampedTo(int64_t size, double place) {
  return int64_t(std::clamp(place, 0.0, double(size - 1)));
}

int64_t nearestColumn(const InterpolationOptions &options,
                      const Stretch &stretch, int64_t row) {
  // Scales are floats: what a place is beside a whole number by is the error of
  // the scale.
  const double place = float(sourceOf(options.coordinates, stretch, row));
  switch (options.rounding) {
  case Rounding::PreferFloor:
    return clampedTo(stretch.from, std::ceil(place - 0.5));
  case Rounding::PreferCeil:
    return clampedTo(stretch.from, std::floor(place + 0.5));
  case Rounding::Floor:
    return clampedTo(stretch.from, std::floor(place));
  case Rounding::Ceil:
    return clampedTo(stretch.from, std::ceil(place));
  }
  return 0;
}

/// The weight of an element at a distance of `x`.
static double weightAt(const InterpolationOptions &options, double x) {
  x = std::abs(x);
  if (options.mode == Interpolation::Linear)
    return std::max(1 - x, 0.0);
  const double a = options.cubicCoefficient;
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

void interpolationRow(const InterpolationOptions &options,
                      const Stretch &stretch, int64_t row,
                      llvm::MutableArrayRef<double> weights) {
  std::fill(weights.begin(), weights.end(), 0.0);
  if (isBeyondInput(options, stretch, row))
    return;
  if (options.mode == Interpolation::Nearest) {
    weights[nearestColumn(options, stretch, row)] = 1;
    return;
  }
  const double narrowing =
      options.antialias ? std::min(stretch.scale, 1.0) : 1.0;
  const double reach =
      (options.mode == Interpolation::Linear ? 1 : 2) / narrowing;
  const double place = sourceOf(options.coordinates, stretch, row);
  double sum = 0;
  for (double at = std::ceil(place - reach); at <= place + reach; ++at) {
    const bool isOutside = at < 0 || at >= double(stretch.from);
    if (isOutside && options.excludesOutside)
      continue;
    const double weight = weightAt(options, (at - place) * narrowing);
    weights[clampedTo(stretch.from, at)] += weight;
    sum += weight;
  }
  if (sum != 0)
    for (double &weight : weights)
      weight /= sum;
}

} // namespace pipewright::frontend
