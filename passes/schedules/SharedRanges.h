//===- SharedRanges.h - Stages that take turns in memory --------*- C++ -*-===//
//
// With ZeRO-2 the stages of a rank take turns in a few ranges for their
// gradients, with ZeRO-3 also for their weights (Rajbhandari et al., "ZeRO:
// Memory Optimizations Toward Training Trillion Parameter Models", SC 2020).
// Who has which range, and when, follows from the order of the rank's tasks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_SHAREDRANGES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_SHAREDRANGES_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <map>
#include <vector>

namespace pipewright::schedules {

/// By stage that shares: the range that it has, or the bytes that it needs.
using RangeOfStage = std::map<int32_t, int64_t>;
using BytesOfStage = std::map<int32_t, int64_t>;

/// Tasks of a stage, none of another stage in the same range between them.
/// Positions are in the order of the rank.
struct RangeTurn {
  int32_t stage = 0;
  /// The tasks that use the range.
  std::vector<int64_t> tasks;
  /// From where on it may be filled: behind the last task that used it before,
  /// and behind the stage's turn before.
  int64_t freed = 0;
  /// The first task of the next stage that uses it; -1: none does.
  int64_t next = -1;
  /// The stage has another turn behind it.
  bool comesBack = false;
};

/// `users` has the stage of each task of a rank that uses a range, and -1 for
/// others; `ranges`, beside it, the range that its stage has then, and -1 where
/// that shares none. Turns are in the order of their first tasks.
std::vector<RangeTurn> turnsOf(llvm::ArrayRef<int32_t> users,
                               llvm::ArrayRef<int64_t> ranges);

/// The ranges of users whose stages have one each.
std::vector<int64_t> rangesOf(llvm::ArrayRef<int32_t> users,
                              const RangeOfStage &ranges);

/// In the order in which stages begin to use them.
RangeOfStage rangesInTurns(llvm::ArrayRef<int32_t> users, int64_t numRanges);

/// The ranges in which the stages of a rank put their weights together.
class WeightRanges {
public:
  /// They share none.
  WeightRanges() = default;
  /// Each has one.
  explicit WeightRanges(RangeOfStage ofStage) : ofStage(std::move(ofStage)) {}
  /// Each of those that have `bytes` takes any range that has `room` for it:
  /// the one whose weights are not read for the longest time, the rule of L. A.
  /// Belady, "A study of replacement algorithms for a virtual-storage
  /// computer", 1966. No other makes fewer gathers where stages are alike.
  WeightRanges(BytesOfStage bytes, std::vector<int64_t> room);

  bool empty() const { return ofStage.empty() && bytes.empty(); }
  bool contains(int32_t stage) const {
    return ofStage.contains(stage) || bytes.contains(stage);
  }
  /// Whether a stage may be in one range now and in another one later.
  bool areAny() const { return !room.empty(); }
  /// For `turnsOf`.
  std::vector<int64_t> of(llvm::ArrayRef<int32_t> users) const;

  friend bool operator==(const WeightRanges &, const WeightRanges &) = default;

private:
  RangeOfStage ofStage;
  BytesOfStage bytes;
  std::vector<int64_t> room;
};

/// Chooses ranges so that these, and the parts that a replica keeps, take less
/// memory than whole weights, and the fewest bytes are gathered; of ways that
/// are alike in this, one where each stage has one range, and the one with the
/// fewest gathers right behind a task that reads what was there before. All
/// ways to give each stage a range are tried if they are few, otherwise stages
/// take ranges in turns; and, if stages `mayMove`, that any takes any in the
/// room of the best of these. Empty where no way that is tried takes less
/// memory.
WeightRanges chooseWeightRanges(llvm::ArrayRef<int32_t> users,
                                const BytesOfStage &bytes, int64_t replicas,
                                int64_t numRanges, bool mayMove);

/// The stages that a rank reads behind its first task, in the order in which it
/// begins to: what these read can be put together beside the tasks before.
std::vector<int32_t> stagesReadLater(llvm::ArrayRef<int32_t> users);

/// Whether stages that take turns with their gradients need less than a range
/// each. One that comes back keeps the part of its replica meanwhile, and what
/// others send to be added to that is there at the end of its turn.
bool savesMemory(llvm::ArrayRef<RangeTurn> turns, const RangeOfStage &ranges,
                 const BytesOfStage &bytes, int64_t replicas);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_SHAREDRANGES_H
