//===- NNFloatFormat.cpp - Floats of 8 bits -------------------------------===//

#include "dialects/nn/NNFloatFormat.h"

#include <cmath>

using llvm::APFloat;

namespace pipewright::nn {

const llvm::fltSemantics &semanticsOf(FloatFormat format) {
  switch (format) {
  case FloatFormat::E4M3FN:
    return APFloat::Float8E4M3FN();
  case FloatFormat::E4M3FNUZ:
    return APFloat::Float8E4M3FNUZ();
  case FloatFormat::E5M2:
    return APFloat::Float8E5M2();
  case FloatFormat::E5M2FNUZ:
    return APFloat::Float8E5M2FNUZ();
  }
  llvm_unreachable("no other format");
}

static float toFloat(APFloat value) {
  bool inexact;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToFloat();
}

float largestOf(FloatFormat format) {
  return toFloat(APFloat::getLargest(semanticsOf(format)));
}

float fakeQuantize(float x, FloatFormat format, bool saturates) {
  if (std::isnan(x))
    return x;
  APFloat value(x);
  bool inexact;
  value.convert(semanticsOf(format), APFloat::rmNearestTiesToEven, &inexact);
  if (value.isFinite())
    return toFloat(value);
  if (saturates)
    return std::copysign(largestOf(format), x);
  return value.isInfinity() ? std::copysign(INFINITY, x) : NAN;
}

} // namespace pipewright::nn
