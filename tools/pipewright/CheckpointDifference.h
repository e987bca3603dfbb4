//===- CheckpointDifference.h - Where two sets of tensors differ *- C++ -*-===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECKPOINTDIFFERENCE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECKPOINTDIFFERENCE_H

#include "runtime/io/WeightSource.h"

namespace pipewright::tool {

/// Prints a line for each tensor that only one of them has, or that is not the
/// same in both: type, shape, or how many elements differ and by how much.
/// Throws an Error where anything differs.
void showDifference(const runtime::WeightSource &left,
                    const runtime::WeightSource &right);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECKPOINTDIFFERENCE_H
