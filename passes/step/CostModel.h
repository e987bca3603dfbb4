//===- CostModel.h - How long tasks take on a machine -----------*- C++ -*-===//
//
// Times from operation counts and bytes: by them schedules are decided, for the
// machine that the module names, and predicted, for a machine that is given.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_COSTMODEL_H
#define PIPEWRIGHT_PASSES_STEP_COSTMODEL_H

#include "dialects/pipe/PipeDialect.h"
#include "passes/planning/MachineModel.h"
#include "passes/schedules/Simulator.h"

namespace pipewright {

/// Counts of one body of a stage.
struct BodyWork {
  int64_t flops = 0;
  double seconds = 0;
};

/// The work of a body, or a part of one: nn ops, or launches of kernels whose
/// bodies are in the module; `kernels` are those that were found before.
BodyWork workOf(llvm::iterator_range<mlir::Block::iterator> body,
                const MachineModel &machine,
                mlir::SymbolTableCollection &kernels);
inline BodyWork workOf(mlir::Region &body, const MachineModel &machine,
                       mlir::SymbolTableCollection &kernels) {
  return workOf(body.front(), machine, kernels);
}

/// What a micro-batch keeps on the rank of a stage between forward and
/// backward: the stash, and inputs and outputs that gradients read.
llvm::SmallVector<mlir::Value> keptForBackward(pipe::StageOp stage);
/// Between I and W: what W reads of these, of the handover, and outputs in
/// place of the gradients received.
llvm::SmallVector<mlir::Value> keptForWeights(pipe::StageOp stage);
/// Fills in the bytes of both.
void countKeptBytes(pipe::StageOp stage, schedules::StageCosts &costs);

/// The figures of a machine without a name, as `#pipe.program` has them.
mlir::DictionaryAttr machineAttribute(const MachineModel &machine,
                                      mlir::MLIRContext *context);

/// The machine that a module's schedule is decided for; fails, with a
/// diagnostic, where its name is not known or a figure is missing.
mlir::FailureOr<MachineModel> machineOf(mlir::ModuleOp module);

/// What the rank of a stage computes with. Stage `number` is on the rank that
/// `rankOfStage` says, where that is not empty, else on its own; one that has
/// none yet is where stages go round and round.
MachineModel machineOfStage(const MachineModel &machine, pipe::StageOp stage,
                            int64_t number,
                            llvm::ArrayRef<int32_t> rankOfStage);

/// Links between the ranks that a module is for, and which hosts these are on;
/// no stages.
schedules::TaskCosts costsOfLinks(mlir::ModuleOp module,
                                  const MachineModel &machine);

/// Which micro-batches of a stage keep their stash while R tasks make those of
/// others again.
schedules::StashWindow stashWindowOf(pipe::StageOp stage);

/// Times of each stage's tasks, none of them zero, and what is kept between
/// them; of updates only the products of matrices that they make. In evaluation
/// only forwards have a meaning. Stages are where machineOfStage says.
schedules::TaskCosts predictCosts(mlir::ModuleOp module,
                                  const MachineModel &machine,
                                  pipe::StepMode mode = pipe::StepMode::train,
                                  llvm::ArrayRef<int32_t> rankOfStage = {});

/// The least step time where all ranks of all replicas share so many cores:
/// that of the simulation, which has one for each, or all their work on these.
double secondsOnCores(const schedules::Simulation &simulation, int64_t replicas,
                      int64_t cores);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_STEP_COSTMODEL_H
