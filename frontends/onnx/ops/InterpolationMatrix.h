//===- InterpolationMatrix.h - Weights of an interpolation ------*- C++ -*-===//
//
// An element of an interpolated dimension is a sum of elements of the input
// with weights that depend on sizes only. Pure arithmetic, in double.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_INTERPOLATIONMATRIX_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_INTERPOLATIONMATRIX_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace pipewright::frontend {

enum class Interpolation { Nearest, Linear, Cubic };

/// ONNX's coordinate_transformation_mode: which place of the input an element
/// of the result lies on.
enum class Coordinates {
  HalfPixel,
  HalfPixelSymmetric,
  PyTorchHalfPixel,
  TfHalfPixelForNearest,
  AlignCorners,
  Asymmetric,
  /// tf_crop_and_resize: the part of the input that the stretch says.
  Crop
};

/// ONNX's nearest_mode.
enum class Rounding { PreferFloor, PreferCeil, Floor, Ceil };

struct InterpolationOptions {
  Interpolation mode = Interpolation::Nearest;
  Coordinates coordinates = Coordinates::HalfPixel;
  Rounding rounding = Rounding::PreferFloor;
  double cubicCoefficient = -0.75;
  /// Places outside of the input have no weight; else they are the border.
  bool excludesOutside = false;
  /// Widens linear and cubic weights where the result is smaller.
  bool antialias = false;
};

/// One dimension that goes from one size to another, both at least 1. The scale
/// may be another than their quotient, which was rounded then. `begin` and
/// `end` are the part of the input that is taken: 0 is its first element, 1 its
/// last.
struct Stretch {
  int64_t from, to;
  double scale;
  double begin = 0, end = 1;

  bool operator==(const Stretch &) const = default;
  bool isIdentity() const {
    return from == to && scale == 1 && begin == 0 && end == 1;
  }
};

/// Whether element `row` of the result lies outside of the input, where it
/// takes a part that reaches further.
bool isBeyondInput(const InterpolationOptions &options, const Stretch &stretch,
                   int64_t row);

/// The element of the input that element `row` of the result is, in mode
/// nearest.
int64_t nearestColumn(const InterpolationOptions &options,
                      const Stretch &stretch, int64_t row);

/// Fills in the weights of all elements of the input in element `row` of the
/// result. `weights` has `stretch.from` elements.
void interpolationRow(const InterpolationOptions &options,
                      const Stretch &stretch, int64_t row,
                      llvm::MutableArrayRef<double> weights);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_INTERPOLATIONMATRIX_H
