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

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace pipewright::schedules {

struct ScheduleOptions {
  int64_t ranks = 1;
  int64_t stages = 1;
  int64_t microBatches = 1;
};

class Policy {
public:
  virtual ~Policy() = default;

  /// As the user types it: `1f1b`.
  virtual llvm::StringRef name() const = 0;
  virtual llvm::StringRef summary() const = 0;
  virtual llvm::StringRef paper() const = 0;
  /// In terms of P ranks, M micro-batches, v stages per rank, tF and tB.
  virtual llvm::StringRef bubbleFormula() const = 0;
  virtual llvm::StringRef memoryFormula() const = 0;
  /// The options whose timetable shows the idea best.
  virtual ScheduleOptions example() const { return {4, 4, 4}; }

  /// Whether the order holds I and W tasks instead of B.
  virtual bool splitsBackward() const { return false; }

  /// Step time when every forward of a stage takes `forward` and every
  /// backward `backward`, and links take no time. Updates not counted.
  virtual double stepTime(const ScheduleOptions &options, double forward,
                          double backward) const = 0;
  /// An upper bound, reached when links take no time, of the number of (stage,
  /// micro-batch) pairs whose forward is done or running and whose backward
  /// is not done, on one rank at one time.
  virtual int64_t maxInFlight(const ScheduleOptions &options,
                              int64_t rank) const = 0;

  /// Where the stages go. Fails on combinations that the policy does not
  /// allow, so the partition pass can ask before any task exists.
  llvm::Expected<Placement> place(const ScheduleOptions &options) const;

  /// The whole schedule: placement, order, and one update per stage at the
  /// end of its rank's order.
  llvm::Expected<Schedule> build(const ScheduleOptions &options) const;

protected:
  /// What `place` and `build` call once counts are known to be positive.
  virtual llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const = 0;
  /// The tasks of one rank in order, without updates.
  virtual std::vector<Task> orderOfRank(const Schedule &schedule,
                                        int32_t rank) const = 0;

  /// For policies with one stage per rank: also accepts any number of stages
  /// on a single rank, which is how a cut is compared with its unpipelined
  /// run.
  llvm::Expected<Placement>
  placeOneStagePerRank(const ScheduleOptions &options) const;
};

/// All policies, built in ones first.
llvm::ArrayRef<const Policy *> allPolicies();

/// Adds a policy from outside of this folder; it must live as long as the
/// process. A second one of the same name hides the first.
void registerPolicy(const Policy &policy);

/// Fails with the near matches, or with all names when none is near.
llvm::Expected<const Policy *> findPolicy(llvm::StringRef name);

/// The built-in policies, one per file.
const Policy &gpipePolicy();
const Policy &oneFOneBPolicy();
const Policy &breadthFirstPolicy();

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICY_H
