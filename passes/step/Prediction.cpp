//===- Prediction.cpp - When the tasks of a step run ----------------------===//
//
// See Prediction.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/Prediction.h"

#include "passes/step/ProgramWorks.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

FailureOr<Prediction>
pipewright::pipe::predictStep(ModuleOp module, const Stages &stages,
                              const MachineModel &machine) {
  FailureOr<schedules::Schedule> order =
      readSchedule(module, stages, StepMode::train);
  if (failed(order))
    return failure();
  Prediction prediction;
  prediction.order = std::move(*order);
  prediction.edges = stages.edges(StepMode::train);
  prediction.costs = stages.costs(StepMode::train, machine);
  llvm::Expected<schedules::Simulation> simulation =
      schedules::simulate(prediction.order, prediction.costs, prediction.edges,
                          readWorks(module, stages, prediction.order.ranks));
  if (!simulation)
    return module.emitError(llvm::toString(simulation.takeError()));
  prediction.simulation = std::move(*simulation);
  return prediction;
}
