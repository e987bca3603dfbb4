//===- OpCosts.h - What each op of a model comes to -------------*- C++ -*-===//
//
// What the staged level makes of an op of the model, in all bodies of its
// stage: known for each op of one cut, it says about what any other cut costs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_OPCOSTS_H
#define PIPEWRIGHT_PASSES_STEP_OPCOSTS_H

#include "passes/planning/MachineModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <vector>

namespace pipewright {

/// Of one op and a micro-batch.
struct OpCost {
  /// Seconds in tasks of each kind. Both halves are known where the model has
  /// them, next to the whole backward.
  double forward = 0, backward = 0, inputGradient = 0, weightGradient = 0,
         recompute = 0;
  /// What backwards keep of its results, and what W keeps behind I.
  double keptBytes = 0, weightKeptBytes = 0;
};

/// Notes in the location of each op of the model's function its number, in
/// their order. Returns how many there are; 0 where there is no model.
int64_t numberOps(mlir::ModuleOp imported);

/// By number, of a module at the staged level. Code that stands for several ops
/// is shared out evenly; what stands for none is left out.
std::vector<OpCost> costsOfOps(mlir::ModuleOp staged, int64_t ops,
                               const MachineModel &machine);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_STEP_OPCOSTS_H
