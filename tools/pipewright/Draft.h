//===- Draft.h - What a plan that is only compared comes to -----*- C++ -*-===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAFT_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAFT_H

#include "passes/schedules/Simulator.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
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
  /// By stage of the model: the most bytes that a rank with it, or with its
  /// second copy, takes beyond its limit, which `limitOf` says; 0 where it is
  /// within.
  llvm::SmallVector<int64_t> beyondLimit(
      llvm::function_ref<std::optional<int64_t>(int64_t)> limitOf) const;

  /// Seconds; infinite where there is no such plan, or it does not fit.
  double step = std::numeric_limits<double>::infinity();
  /// Of these, what transfers alone take.
  double exposed = 0;
  /// Whether memory ruled out others that may be faster.
  bool isLimited = false;
  /// With those of a second copy of the model.
  int64_t stages = 0;
  std::vector<Rank> ranks;
  /// Where stages are; -1 where that is not known. Those of a second copy of
  /// the model stand behind those of the first.
  std::vector<int64_t> rankOfStage;
  int64_t stagesOfModel = 0;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAFT_H
