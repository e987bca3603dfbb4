//===- Dropout.h - Dropout by counter-based random numbers -----*- C++ -*-===//
//
// The same call with the gradient in place of x is its own derivative.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_DROPOUT_H
#define PIPEWRIGHT_RUNTIME_CPU_DROPOUT_H

#include "runtime/calls/Dropout.h"
#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

/// y may be x.
void dropout(Rank &rank, const DropoutShape &shape, int64_t microBatch,
             Buffer x, Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_DROPOUT_H
