//===- Draft.h - What a plan that is only compared comes to -----*- C++ -*-===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAFT_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAFT_H

#include "passes/schedules/Simulator.h"

#include "mlir/IR/BuiltinOps.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace pipewright::tool {

struct Draft {
  struct Rank {
    /// Of all its tasks.
    double busySeconds = 0;
    int64_t arenaBytes = 0;
    /// What its host keeps of its stashes.
    int64_t hostBytes = 0;
  };

  /// What memory a module takes, at the allocated level or as far as it came.
  static Draft ofMemory(mlir::ModuleOp module);
  /// Adds the step that was predicted for it.
  void setStep(const schedules::Simulation &simulation);

  bool fits() const { return std::isfinite(step); }
  /// Of the fullest rank; the most there is where no memory was planned.
  int64_t mostBytes() const;
  bool usesHosts() const;

  /// Seconds; infinite where there is no such plan, or it does not fit.
  double step = std::numeric_limits<double>::infinity();
  /// Of these, what transfers alone take.
  double exposed = 0;
  /// With those of a second copy of the model.
  int64_t stages = 0;
  std::vector<Rank> ranks;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAFT_H
