//===- Policy.h - A named way to order tasks --------------------*- C++ -*-===//
//
// A policy is one file of this folder: where the stages go, whether the
// backward is split, and the order of each rank. The registry below is the
// only list of them: pass options, the driver's help, the property tests and
// the documentation all read it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICY_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICY_H

#include "passes/schedules/Placement.h"
#include "passes/schedules/Schedule.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::schedules {

/// A number that the user may give a policy: `interleaved:group=8`. The default
/// is what the policy's own description says; a parameter named alone, as in
/// `gpipe:descending`, is 1.
struct PolicyParameter {
  llvm::StringLiteral name;
  llvm::StringLiteral summary;
};

class BuiltSchedules;

struct ScheduleOptions {
  int64_t ranks = 1;
  /// The stages of the model, that is of one copy of it.
  int64_t stages = 1;
  int64_t microBatches = 1;
  /// What the user gave, by name.
  std::vector<std::pair<std::string, int64_t>> parameters = {};
  /// For policies that plan with times: predicted or measured costs of the
  /// placed stages (null: every task takes the same time) and the tensors
  /// between them (empty: a chain).
  const TaskCosts *costs = nullptr;
  llvm::ArrayRef<StageEdge> edges = {};
  /// The share of its stashes that a rank may have on its host (HostMoves.h).
  double offload = 0;
  /// The costs of stages on these ranks, where ranks are not alike, in place of
  /// `costs` for policies that choose a placement.
  std::function<TaskCosts(llvm::ArrayRef<int32_t>)> costsAt = nullptr;
  /// For policies that compare others: what of them was built with these costs
  /// and edges.
  BuiltSchedules *built = nullptr;

  int64_t parameter(llvm::StringRef name, int64_t otherwise) const;
};

/// Seconds per task when all stages are alike.
struct UnitTimes {
  double forward = 1;
  double inputGradient = 1;
  double weightGradient = 1;

  double backward() const { return inputGradient + weightGradient; }
};

class Policy {
public:
  virtual ~Policy() = default;

  /// As the user types it: `1f1b`.
  virtual llvm::StringRef name() const = 0;
  virtual llvm::StringRef summary() const = 0;
  virtual llvm::StringRef paper() const = 0;
  /// In terms of P ranks, M micro-batches, v stages per rank, and the times tF,
  /// tB, tI, tW of one rank's whole share of the model.
  virtual llvm::StringRef bubbleFormula() const = 0;
  virtual llvm::StringRef memoryFormula() const = 0;
  /// The options whose timetable shows the idea best.
  virtual ScheduleOptions example() const { return {4, 4, 4}; }
  virtual llvm::ArrayRef<PolicyParameter> parameters() const { return {}; }
  /// Stages per rank when the user says nothing.
  virtual int64_t defaultLoops() const { return 1; }
  /// Whether it stands for the best of all: whoever has the model should
  /// compare the plans of all schedules that `canBeChosen` says yes to, with
  /// several numbers of loops when the user says nothing, and keep the fastest.
  virtual bool isChoice() const { return false; }
  /// Whether its order depends on the times in its options.
  virtual bool plansWithTimes() const { return isChoice(); }

  /// The policy that makes the same schedule of these options, where it has
  /// several names: one for all of these.
  virtual const Policy &maker(const ScheduleOptions &options) const {
    return *this;
  }

  /// Whether some backwards are I and W tasks instead of B.
  virtual bool splitsBackward() const { return false; }
  /// Copies of the model's weights.
  virtual int64_t copies() const { return 1; }
  virtual WeightRule weightRule() const { return WeightRule::Synchronous; }
  /// Updates per step.
  virtual int64_t updates(const ScheduleOptions &options) const { return 1; }
  /// The most stashes that a rank keeps at a time, where some are moved to
  /// other ranks (StashMoves.h); none where they stay.
  virtual std::optional<int64_t>
  stashLimit(const ScheduleOptions &options) const {
    return std::nullopt;
  }
  /// Whether ranks send stashes to others: some would keep more.
  bool movesStashes(const ScheduleOptions &options) const {
    const std::optional<int64_t> limit = stashLimit(options);
    return limit && *limit < std::min(options.ranks, options.microBatches);
  }
  /// Which tasks stages have, where not all; by stage.
  virtual llvm::ArrayRef<StageTasks> stageTasks() const { return {}; }
  /// False for policies that only evaluate.
  virtual bool trains() const { return true; }

  /// The global step time when every stage takes `times` and links take no
  /// time, updates not counted; none where no formula is stated for these
  /// options. A formula is exact.
  virtual std::optional<double> stepTime(const ScheduleOptions &options,
                                         const UnitTimes &times) const {
    return std::nullopt;
  }
  /// The same of the span: the longest rank from its own first start.
  virtual std::optional<double> spanTime(const ScheduleOptions &options,
                                         const UnitTimes &times) const {
    return std::nullopt;
  }
  /// An upper bound of the number of (stage, micro-batch) pairs on one rank
  /// between the start of the forward and the end of the backward (of W, where
  /// it is split), whatever tasks and links take.
  virtual int64_t maxInFlight(const ScheduleOptions &options,
                              int64_t rank) const = 0;

  /// Where the stages go. Fails on combinations that the policy does not
  /// allow, so the partition pass can ask before any task exists.
  llvm::Expected<Placement> place(const ScheduleOptions &options) const;

  /// The whole schedule: placement, order, and, unless the policy puts updates
  /// into its order itself, one update per stage at the end of its rank's.
  llvm::Expected<Schedule> build(const ScheduleOptions &options) const;

  /// The same in two steps, for schedules too large to hold: everything but
  /// the order, then the tasks of each rank in turn, until one call fails.
  llvm::Expected<Schedule> shape(const ScheduleOptions &options) const;
  llvm::Error
  forEachRank(const Schedule &shape, const ScheduleOptions &options,
              llvm::function_ref<llvm::Error(int32_t, llvm::ArrayRef<Task>)>
                  visit) const;

protected:
  /// What `place` and `build` call once counts are known to be positive and
  /// parameters to be the policy's own. Counts all copies.
  virtual llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const = 0;

  /// The tasks of one rank in order. A policy overrides this one, or the next
  /// if it cannot say the order of a rank by itself. `schedule` has everything
  /// but the order.
  virtual std::vector<Task> orderOfRank(const Schedule &schedule,
                                        const ScheduleOptions &options,
                                        int32_t rank) const {
    return {};
  }
  /// Fills `schedule.order`, which has an empty list for each rank.
  virtual llvm::Error orderRanks(Schedule &schedule,
                                 const ScheduleOptions &options) const;

  /// For policies with one stage per rank: also accepts any number of stages
  /// on a single rank, which is how a cut is compared with its unpipelined
  /// run.
  llvm::Expected<Placement>
  placeOneStagePerRank(const ScheduleOptions &options) const;
  /// For policies with exactly `loops` stages per rank, or with any number if
  /// `loops` is 0; fails with what the policy needs.
  llvm::Error checkLoops(const ScheduleOptions &options, int64_t loops) const;
};

/// Puts an R in front of each backward whose stash has to be computed again by
/// a task of its own, where the order has none; `Policy::build` does so.
void addRecomputes(Schedule &schedule, const TaskCosts &costs);

struct PlanFile;

/// A policy as the user chose it: `interleaved:group=8`.
struct PolicyChoice {
  const Policy *policy = nullptr;
  std::vector<std::pair<std::string, int64_t>> parameters;
  /// Keeps the policy alive where it was read from a file.
  std::shared_ptr<const Policy> owned = nullptr;
  /// What else that file says.
  std::shared_ptr<const PlanFile> file = nullptr;

  const Policy *operator->() const { return policy; }
  const Policy &operator*() const { return *policy; }
  ScheduleOptions with(ScheduleOptions options) const {
    options.parameters = parameters;
    return options;
  }
};

/// `NAME[:PARAMETER[=NUMBER]]...`; fails with near matches of names, or with
/// the parameters there are.
llvm::Expected<PolicyChoice> choosePolicy(llvm::StringRef text);

/// All policies, built in ones first.
llvm::ArrayRef<const Policy *> allPolicies();

/// Adds a policy from outside of this folder; it must live as long as the
/// process. A second one of the same name hides the first.
void registerPolicy(const Policy &policy);

/// Fails with the near matches, or with all names when none is near.
llvm::Expected<const Policy *> findPolicy(llvm::StringRef name);

/// The built-in policies, listed in policies/Policies.def.
#define POLICY(function) const Policy &function();
#include "passes/schedules/policies/Policies.def"
#undef POLICY

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICY_H
