//===- Labels.h - Labels that a loss may have ------------------*- C++ -*-===//
//
// Data is checked before a step where a model reads it as it is. Labels that it
// computes are seen by this call first, which comes in front of the loss.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_LABELS_H
#define PIPEWRIGHT_RUNTIME_CALLS_LABELS_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

namespace pipewright::runtime {

/// labels[count], each in [0, classes) or `ignored`.
struct LabelShape {
  int64_t count = 0;
  int64_t classes = 0;
  int64_t ignored = 0;

  PIPEWRIGHT_FIELDS(count, classes, ignored)
};

/// Refuses other labels: at once on a CPU, at the end of the step on a GPU.
template <class AnyRank>
void checkLabels(AnyRank &rank, const LabelShape &shape, Buffer labels);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_LABELS_H
