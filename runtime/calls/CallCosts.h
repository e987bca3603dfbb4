//===- CallCosts.h - What library calls must do ----------------*- C++ -*-===//
//
// For profiles: a name that tells the shape, the arithmetic, and the bytes of
// all operands and results.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_CALLCOSTS_H
#define PIPEWRIGHT_RUNTIME_CALLS_CALLCOSTS_H

#include "runtime/calls/Attention.h"
#include "runtime/calls/Convolution.h"
#include "runtime/calls/Matmul.h"
#include "runtime/trace/Profile.h"

namespace pipewright::runtime {

CallCost costOf(const MatmulShape &shape,
                MatmulEpilogue epilogue = MatmulEpilogue::None);
CallCost costOf(const ConvolutionShape &shape, ConvolutionDirection direction);
CallCost costOf(const AttentionShape &shape, bool backward);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_CALLCOSTS_H
