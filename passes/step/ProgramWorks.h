//===- ProgramWorks.h - The works of rank programs --------------*- C++ -*-===//
//
// What ranks do together, and what else goes from one to another but the
// tensors of stage edges, where the programs of a training step have it: what
// predictions and plans are made of. The proof (pipe-verify-schedule) reads
// programs anew.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_PROGRAMWORKS_H
#define PIPEWRIGHT_PASSES_STEP_PROGRAMWORKS_H

#include "passes/schedules/Work.h"
#include "passes/step/StepOrder.h"

namespace pipewright::pipe {

/// Each in its place and behind those that it needs, collectives in an order
/// that no rank's program contradicts.
std::vector<schedules::Work> readWorks(mlir::ModuleOp module,
                                       const Stages &stages, int64_t ranks);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_PROGRAMWORKS_H
