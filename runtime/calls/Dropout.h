//===- Dropout.h - Dropout by counter-based random numbers -----*- C++ -*-===//
//
// The same call with the gradient in place of x is its own derivative.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_DROPOUT_H
#define PIPEWRIGHT_RUNTIME_CALLS_DROPOUT_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

namespace pipewright::runtime {

struct DropoutShape {
  int64_t elements = 0;
  float rate = 0;
  /// Which dropout of the model: part of the counter.
  int64_t id = 0;
  /// Of x and y: F32 or BF16.
  ElementType type = ElementType::F32;

  PIPEWRIGHT_FIELDS(elements, rate, id, type)
};

/// y may be x.
template <class AnyRank>
void dropout(AnyRank &rank, const DropoutShape &shape, int64_t microBatch,
             Buffer x, Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_DROPOUT_H
