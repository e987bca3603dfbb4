//===- Prediction.h - When the tasks of a step run --------------*- C++ -*-===//
//
// The one prediction: what is printed, drawn and written to files is this, and
// what is compared to choose a schedule is this, too.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_PREDICTION_H
#define PIPEWRIGHT_PASSES_STEP_PREDICTION_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

struct Prediction {
  /// With the tasks that the model has no need of.
  schedules::Schedule order;
  /// The tensors between stages, in training.
  std::vector<schedules::StageEdge> edges;
  schedules::TaskCosts costs;
  schedules::Simulation simulation;
};

/// Simulates the training step of a module with programs of ranks, scheduled or
/// allocated, on a machine with a core (or GPU) for each rank. Measured times
/// of the module have the last word. Fails, with a diagnostic, where the
/// module's programs are not whole.
mlir::FailureOr<Prediction> predictStep(mlir::ModuleOp module,
                                        const Stages &stages,
                                        const MachineModel &machine);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_PREDICTION_H
