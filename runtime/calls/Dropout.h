//===- Dropout.h - Which elements a dropout drops ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_DROPOUT_H
#define PIPEWRIGHT_RUNTIME_CALLS_DROPOUT_H

#include "runtime/calls/Fields.h"

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

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_DROPOUT_H
