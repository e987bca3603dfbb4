//===- PlanChoice.h - The fastest of all plans ------------------*- C++ -*-===//
//
// What `--schedule auto` means for a model: of all schedules that may be chosen
// and all numbers of stages, the plan with the shortest predicted step; of
// equal ones, the one that keeps least. What a memory limit forbids is no plan.
// The steps that are compared are the very ones that plans print. Stages are
// made only for candidates that, by estimates of stages, may be the fastest.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H

#include "tools/pipewright/Draft.h"
#include "tools/pipewright/ModelStages.h"
#include "tools/pipewright/Options.h"

#include <string>

namespace pipewright::tool {

/// Steps that differ by less are equal: sums of the same times in another order
/// differ in their last digits.
inline bool isShorterStep(double a, double b) { return a < b * (1 - 1e-9); }

/// In the reason why no plan was chosen where each takes too long.
inline constexpr llvm::StringLiteral kNoneIsFaster =
    "no schedule has a shorter step";

/// Puts the best plan's schedule, halves of backwards and stages into the
/// options, where they ask for a choice and one has a shorter step than
/// `stepToBeat`. `imported` is at the import level, with all attributes, and
/// stays as it is. Returns why nothing was chosen where memory or the step to
/// beat is the reason. Where no plan is possible the options stay: compiling
/// with them says why.
/// `draft` becomes what the best plan comes to; none where nothing was chosen.
Refusal choosePlan(mlir::ModuleOp imported, CompileOptions &options,
                   double stepToBeat, StagedModels &known,
                   std::optional<Draft> &draft);

/// One of the schedules to choose from.
struct ScheduleBound {
  /// As --schedule takes it.
  std::string schedule;
  bool splitsBackward = false;
  int64_t stages = 0;
  /// No plan of it with the cut of the options has a shorter one.
  double step = 0;
};

/// Those that have names, with the shortest bounds first, under options that
/// ask for a choice.
llvm::SmallVector<ScheduleBound> schedulesByBound(mlir::ModuleOp imported,
                                                  const CompileOptions &options,
                                                  StagedModels &known);

/// What is known of the fastest plan before any is made.
struct StepEstimate {
  /// No plan has a shorter step; infinite where none is possible.
  double least = 0;
  /// The same of plans that recompute or share more, which leaves more memory.
  double leastOfMore = 0;
  /// Whether `least` is what one of the schedules takes.
  bool isSimulated = false;
  /// Seconds of the forwards of a micro-batch, one after the other.
  double pass = 0;
  /// What it is expected to take, where `isSimulated`.
  double expected = 0;
  /// Where none is possible: why, as far as that is known.
  Refusal why;
};

/// Looks at schedules as `choosePlan` does, or at the one that was given, by
/// estimates of stages, until one was simulated or none takes less than
/// `enough`.
StepEstimate estimateStep(mlir::ModuleOp imported,
                          const CompileOptions &options, double enough,
                          StagedModels &known);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_PLANCHOICE_H
