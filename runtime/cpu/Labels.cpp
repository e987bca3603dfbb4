//===- Labels.cpp - Labels that a loss may have ---------------------------===//

#include "runtime/calls/Labels.h"
#include "runtime/calls/Indices.h"
#include "runtime/cpu/Rank.h"

using namespace pipewright::runtime;

template <>
void pipewright::runtime::checkLabels(Rank &rank, const LabelShape &shape,
                                      Buffer labels) {
  const int64_t *label = rank.data<int64_t>(labels);
  for (int64_t i = 0; i < shape.count; ++i)
    if ((label[i] < 0 || label[i] >= shape.classes) &&
        label[i] != shape.ignored)
      failLabel(label[i], shape.classes);
}
