//===- NNFloatFormat.h - Floats of 8 bits ----------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNFLOATFORMAT_H
#define PIPEWRIGHT_DIALECTS_NN_NNFLOATFORMAT_H

#include "dialects/nn/NNOps.h"

#include "llvm/ADT/APFloat.h"

namespace pipewright::nn {

const llvm::fltSemantics &semanticsOf(FloatFormat format);

/// The largest finite number of the format.
float largestOf(FloatFormat format);

/// What `nn.fake_quantize` makes of a number.
float fakeQuantize(float x, FloatFormat format, bool saturates);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNFLOATFORMAT_H
