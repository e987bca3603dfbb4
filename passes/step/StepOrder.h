//===- StepOrder.h - The order that the IR says -----------------*- C++ -*-===//
//
// Reads the order of tasks of each rank out of `pipe.step` (block order and
// the stages' ranks) or out of `pipe.rank`, as plain data.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_STEPORDER_H
#define PIPEWRIGHT_PASSES_STEP_STEPORDER_H

#include "passes/step/Stages.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <tuple>

namespace pipewright::pipe {

/// The op of each task of one step. The micro-batch of an update is its number.
class TaskIndex {
public:
  void add(const Stages &stages, TaskOp task);
  /// Null where the step has no such task.
  TaskOp lookup(const schedules::Task &task) const {
    return lookup(task.kind, task.stage, task.microBatch);
  }
  TaskOp lookup(schedules::TaskKind kind, int32_t stage,
                int64_t microBatch) const;

private:
  llvm::DenseMap<std::tuple<unsigned, int32_t, int64_t>, TaskOp> tasks;
};

/// The task of the schedules folder that an op stands for.
schedules::Task plainTask(const Stages &stages, TaskOp task);

/// By rank that has any: its tasks of a step, in their order.
std::map<int32_t, llvm::SmallVector<TaskOp>>
tasksOfRanks(StepOp step, const Stages &stages,
             llvm::ArrayRef<int32_t> rankOfStage);

/// The number of ranks: the module's attribute, or what the stages need.
int64_t numRanks(mlir::ModuleOp module, llvm::ArrayRef<int32_t> rankOfStage);

/// The order of each rank in a step of the given mode. Fails where a stage has
/// no rank or the module has no such step.
mlir::FailureOr<schedules::Schedule>
readSchedule(mlir::ModuleOp module, const Stages &stages, StepMode mode);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_STEPORDER_H
