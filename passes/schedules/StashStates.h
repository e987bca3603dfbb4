//===- StashStates.h - The most that a rank keeps ---------------*- C++ -*-===//
//
// An order keeps the same stashes whatever the sizes of stashes are. Its states
// are found once and priced for every size, without a simulation.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_STASHSTATES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_STASHSTATES_H

#include "passes/schedules/StashMeter.h"

#include <array>
#include <vector>

namespace pipewright::schedules {

class StashStates {
public:
  /// Of tasks alone: stashes do not move.
  static StashStates of(const Schedule &schedule, int32_t rank);

  /// The peak of a StashMeter, in bytes. Of schedules with two copies of the
  /// model, `costs` may have one. Where there are more than `most` states, it
  /// is a lower bound.
  int64_t peakBytes(llvm::ArrayRef<StageCosts> costs) const;

private:
  class Walk;

  static constexpr size_t most = 64;
  using Counts = std::vector<int32_t>;

  void note(const Counts &counts);

  /// The stages that the rank has.
  std::vector<int32_t> stages;
  /// By stage and form, how many there are at a time. No state has as many or
  /// fewer of all than another one.
  std::vector<Counts> states;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STASHSTATES_H
