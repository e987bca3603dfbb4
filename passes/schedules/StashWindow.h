//===- StashWindow.h - Micro-batches that keep their stash ------*- C++ -*-===//
//
// A stage may keep the stashes of some micro-batches and compute those of
// others again (R tasks): of each window of as many as are in flight the first
// few, which is Megatron's num_microbatches_with_partial_activation_checkpoints
// (Korthikanti et al., MLSys 2023, appendix C), or of all the last one, as
// GPipe has it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_STASHWINDOW_H
#define PIPEWRIGHT_PASSES_SCHEDULES_STASHWINDOW_H

#include <cstdint>
#include <vector>

namespace pipewright::schedules {

struct Schedule;
struct TaskCosts;

struct StashWindow {
  /// How many of each window keep their stash. 0: all micro-batches of the
  /// stage are treated alike.
  int64_t count = 0;
  /// The micro-batches of a window; 0: not decided yet.
  int64_t size = 0;
  /// The last ones of a window keep theirs, not the first ones.
  bool isLast = false;

  /// False for all while the size is not decided.
  bool keeps(int64_t microBatch) const {
    if (size == 0)
      return false;
    const int64_t place = microBatch % size;
    return isLast ? place >= size - count : place < count;
  }
  bool operator==(const StashWindow &other) const = default;
};

/// By stage, the most micro-batches between the start of the forward and the
/// end of what needs its stash last.
std::vector<int64_t> stagesInFlight(const Schedule &schedule);

/// The windows of all stages with their sizes, which follow from the order: the
/// micro-batches of a stage that are in flight, or, where the last ones keep
/// their stashes, all that the stage works on.
std::vector<StashWindow> sizedWindows(const Schedule &schedule,
                                      const TaskCosts &costs);

/// Writes into a schedule whose forwards its order computes again. Tasks that
/// it has no stage or micro-batch for are no business of this.
void noteRecomputes(Schedule &schedule);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STASHWINDOW_H
