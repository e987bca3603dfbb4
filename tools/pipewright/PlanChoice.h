//===- PlanChoice.h - The fastest of all plans ------------------*- C++ -*-===//
//
// What `--schedule auto` means for a model: of all schedules that may be chosen
// and all numbers of stages, the plan with the shortest predicted step; of
// equal ones, the one that keeps least. What a memory limit forbids is no plan.
// The steps that are compared are the
// very ones that plans print.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H

#include "passes/pipelines/StageEstimates.h"
#include "tools/pipewright/Options.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace pipewright::tool {

/// Steps that differ by less are equal: sums of the same times in another order
/// differ in their last digits.
inline bool isShorterStep(double a, double b) { return a < b * (1 - 1e-9); }

/// Whether an arena has more bytes than its rank may have.
bool isBeyondLimit(pipe::ArenaOp arena, const CompileOptions &options);

/// The bytes of the largest arena of a module at the allocated level.
int64_t fullestArena(mlir::ModuleOp allocated);

/// Why no plan fits whatever the schedule, from what weights, gradients and
/// states take on all ranks, and the largest result of a product on one of
/// them; empty where that does not say so. `imported` is at the import level.
std::string whyNothingFits(mlir::ModuleOp imported,
                           const CompileOptions &options);

/// What was found out of a model, by what for: other plans of it, on the same
/// machine, may need that as well.
struct StagedModel;
struct StagedModels {
  /// As it was cut for some ranks.
  std::map<std::string, std::shared_ptr<const StagedModel>> models;
  std::map<std::string, std::optional<pipe::CutModel>> cuts;
  /// For any ranks.
  std::map<std::string, std::optional<StageEstimates>> estimates;

  void forgetRanks() {
    models.clear();
    cuts.clear();
  }
};

/// In the reason why no plan was chosen where each takes too long.
inline constexpr llvm::StringLiteral kNoneIsFaster =
    "no schedule has a shorter step";

/// Puts the best plan's schedule, halves of backwards and stages into the
/// options, where they ask for a choice and one has a shorter step than
/// `stepToBeat`. `imported` is at the import level, with all attributes, and
/// stays as it is. Returns why nothing was chosen where memory or the step to
/// beat is the reason. Where no plan is possible the options stay: compiling
/// with them says why.
std::string choosePlan(mlir::ModuleOp imported, CompileOptions &options,
                       double stepToBeat, StagedModels &known);

/// The tasks of no plan take less, where a schedule is to be chosen, and stages
/// as estimated: infinite where none fits, or none is below `stepToBeat`; 0
/// where none is to be chosen.
double estimateStep(mlir::ModuleOp imported, const CompileOptions &options,
                    double stepToBeat, StagedModels &known);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H
