//===- RunningStatistics.h - What forwards leave behind ---------*- C++ -*-===//
//
// The states that a stage's forward writes, such as the running mean and
// variance of a batch normalization.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_RUNNINGSTATISTICS_H
#define PIPEWRIGHT_PASSES_STEP_RUNNINGSTATISTICS_H

#include "dialects/pipe/PipeDialect.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace pipewright::pipe {

/// The states that one forward of a stage writes, by weight, with what is left
/// in them of their old value; nothing where that is not known. Kernels must
/// have been formed.
llvm::MapVector<mlir::StringAttr, std::optional<double>>
decaysOf(StageOp stage);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_RUNNINGSTATISTICS_H
