//===- TaskTimes.cpp - Measured times in a module -------------------------===//
//
// See TaskTimes.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/TaskTimes.h"

#include "dialects/pipe/PipeDialect.h"

#include "mlir/IR/Builders.h"

#include <algorithm>

using namespace mlir;

namespace pipewright::pipe {

void setTaskTimes(ModuleOp module,
                  llvm::ArrayRef<schedules::MeasuredTimes> stages) {
  Builder builder(module.getContext());
  SmallVector<Attribute> times;
  for (const schedules::MeasuredTimes &stage : stages)
    times.push_back(builder.getDenseF64ArrayAttr(stage));
  changeProgram(module, [&](ProgramFields &program) {
    program.taskTimes =
        times.empty() ? ArrayAttr() : builder.getArrayAttr(times);
  });
}

LogicalResult verifyTaskTimes(ModuleOp module, int64_t stages) {
  ArrayAttr times = programOf(module).taskTimes;
  if (!times || static_cast<int64_t>(times.size()) == stages)
    return success();
  return module.emitError("has measured times of ")
         << times.size() << " stages in 'task_times', but " << stages
         << " stages";
}

void applyTaskTimes(ModuleOp module, schedules::TaskCosts &costs) {
  ArrayAttr times = programOf(module).taskTimes;
  if (!times)
    return;
  // Never zero: a task that takes no time has no place in a timeline.
  constexpr double least = 1e-7;
  for (auto [number, stage] : llvm::enumerate(costs.stages)) {
    // A second copy of the model takes as long as the first.
    auto attribute = cast<DenseF64ArrayAttr>(times[number % times.size()]);
    schedules::MeasuredTimes measured;
    llvm::copy(attribute.asArrayRef(), measured.begin());
    for (double &seconds : measured)
      if (seconds >= 0)
        seconds = std::max(least, seconds);
    schedules::applyTimes(measured, stage);
  }
}

} // namespace pipewright::pipe
