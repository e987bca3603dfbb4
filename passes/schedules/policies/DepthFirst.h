//===- DepthFirst.h - Groups of micro-batches, loop by loop -----*- C++ -*-===//
//
// The order in which the depth-first schedules (interleaved 1F1B, interleaved
// zero bubble, forward-only) run a rank's forwards: a group of consecutive
// micro-batches through the rank's first stage, the same group through its
// second, ..., then the next group. Backwards go through the same table with
// the stages reversed. Groups of P are Megatron's default; a single group of
// all M is breadth-first.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_DEPTHFIRST_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_DEPTHFIRST_H

#include "passes/schedules/Policy.h"

#include <algorithm>

namespace pipewright::schedules {

class DepthFirst {
public:
  /// A forward, or the backward of loop `loops - 1 - loop`.
  struct Step {
    int32_t loop, microBatch;
  };

  DepthFirst(const ScheduleOptions &options)
      : ranks(options.ranks), loops(options.stages / options.ranks),
        microBatches(options.microBatches), group(groupOf(options)) {}

  /// What the user gave as `group`; else the smallest one, from the number of
  /// ranks on, that the micro-batches allow. That is the number of ranks if it
  /// divides them (Megatron's default), and M / (M / P) where PyTorch has a
  /// schedule.
  static int64_t groupOf(const ScheduleOptions &options);
  /// Megatron's conditions: a group has at least as many micro-batches as there
  /// are ranks (or all, if they are fewer), and so has a shorter last group.
  static llvm::Error checkGroup(const Policy &policy,
                                const ScheduleOptions &options);

  int64_t numSteps() const { return loops * microBatches; }
  /// What all ranks together take for these steps. With fewer micro-batches
  /// than ranks, each loop but the last waits for the first one to come round.
  int64_t numSlots() const {
    return (loops - 1) * std::max(microBatches, ranks) + microBatches + ranks -
           1;
  }
  Step operator[](int64_t step) const;

  Task forward(int64_t step, int32_t rank) const {
    Step at = (*this)[step];
    return Task::forward(at.loop * ranks + rank, at.microBatch);
  }
  Task backward(TaskKind kind, int64_t step, int32_t rank) const {
    Step at = (*this)[step];
    return {kind, static_cast<int32_t>((loops - 1 - at.loop) * ranks + rank),
            at.microBatch};
  }

  const int64_t ranks, loops, microBatches, group;
};

/// A policy that trains in these groups.
class DepthFirstPolicy : public Policy {
public:
  ScheduleOptions example() const override { return {2, 4, 4}; }
  int64_t defaultLoops() const override { return 2; }
  llvm::ArrayRef<PolicyParameter> parameters() const override;

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_DEPTHFIRST_H
