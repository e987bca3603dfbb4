//===- PlanFile.h - A schedule and all about it, as JSON --------*- C++ -*-===//
//
// The format that says everything that this folder can: copies, updates,
// versions of weights, edges that skip stages, costs, messages, predicted
// times. README.md of this folder describes it field by field.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANFILE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANFILE_H

#include "passes/schedules/Instruction.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <vector>

namespace pipewright::schedules {

struct PlanFile {
  Schedule schedule;
  /// Empty: stage s feeds stage s+1.
  std::vector<StageEdge> edges;
  std::optional<TaskCosts> costs;
  /// What each rank does, messages included; empty: not said.
  InstructionLists lists;
  /// Parallel to the order; empty: not said.
  std::vector<std::vector<TaskTime>> times;
  /// Collectives, in the order of each rank, and messages of no edge, and when
  /// they are predicted to run.
  std::vector<TimedWork> timedWorks = {};

  /// Copies of all ranks, by what these do together.
  int64_t replicas() const;
  /// What of them a simulation takes.
  std::vector<Work> works() const;
};

llvm::json::Value planToJson(const PlanFile &plan);

/// The key under which `plan.json` of an output folder has such an object.
inline constexpr llvm::StringLiteral scheduleKey = "schedule_plan";

/// Reads such an object, or one that has it under `scheduleKey`. Fails with
/// `FILE: order[1][5]: expects ..., found ...`. Every value is in its range;
/// whether the order can run is the checker's question.
llvm::Expected<PlanFile> parsePlan(llvm::StringRef text,
                                   llvm::StringRef fileName);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANFILE_H
