//===- Indices.cuh - Indices that their table has not ----------*- C++ -*-===//
//
// No kernel reads or writes outside of a table, whatever the data. What is
// found instead is noted once; the host looks at the end of the step.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/builtin/Prelude.cuh"

using pipewright::runtime::IndexFault;

/// In [0, size).
__device__ inline bool isInside(int64_t index, int64_t size) {
  return static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
}

/// The first one of a step stays. The host reads all of it after the step.
__device__ inline void noteFault(IndexFault *fault, IndexFault::Kind kind,
                                 int64_t index, int64_t size) {
  if (__nvvm_atom_cas_gen_i(&fault->kind, IndexFault::None, kind) !=
      IndexFault::None)
    return;
  fault->index = index;
  fault->size = size;
}

/// The row, or 0 in place of one that the table has not.
__device__ inline int64_t rowInside(int64_t row, int32_t rows) {
  return isInside(row, rows) ? row : 0;
}

/// One thread for each label.
extern "C" __global__ void check_labels(const int64_t *labels, int64_t count,
                                        int64_t classes, int64_t ignored,
                                        IndexFault *fault) {
  const int64_t i = globalIndex();
  if (i >= count)
    return;
  const int64_t label = labels[i];
  if (!isInside(label, classes) && label != ignored)
    noteFault(fault, IndexFault::Label, label, classes);
}
