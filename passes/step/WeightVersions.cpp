//===- WeightVersions.cpp - Which version of the weights is where ---------===//
//
// One walk over a rank's program. A slot is free again after the last task that
// reads the version in it; a new version takes the first free one.
//
//===----------------------------------------------------------------------===//

#include "passes/step/WeightVersions.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

class Planner {
public:
  Planner(RankOp program, FlatSymbolRefAttr stage, int64_t updates)
      : updates(updates) {
    for (auto task : program.getBody()->getOps<TaskOp>())
      if (task.getStageAttr() == stage &&
          (task.getVersion() || task.getKind() == TaskKind::update))
        tasks.push_back(task);
    for (auto [point, task] : llvm::enumerate(tasks))
      if (task.getVersion())
        lastUse[versionOf(task)] = point;
  }

  FailureOr<WeightVersions> plan() {
    // The step begins with what the last one left: the newest version, and the
    // one before it where any task reads that.
    if (lastUse.contains(before))
      keep(before, 0);
    for (auto [point, task] : llvm::enumerate(tasks)) {
      LogicalResult done = task.getKind() == TaskKind::update
                               ? addUpdate(task, point)
                               : addRead(task);
      if (failed(done))
        return failure();
    }
    return std::move(result);
  }

private:
  static constexpr int64_t before = -1;

  static int64_t versionOf(TaskOp task) {
    return static_cast<int64_t>(*task.getVersion());
  }

  /// Takes a slot for a version at a point of the program.
  int64_t keep(int64_t version, int64_t point) {
    int64_t slot = 0;
    while (llvm::any_of(slots, [&](const auto &held) {
      return held.second == slot && lastUse.lookup(held.first) >= point;
    }))
      ++slot;
    slots[version] = slot;
    result.slots = std::max(result.slots, slot + 1);
    return slot;
  }

  LogicalResult addUpdate(TaskOp task, int64_t point) {
    int64_t old = newest++;
    bool isRead = lastUse.contains(old) && lastUse.lookup(old) > point;
    // The next step's version -1.
    bool goesOn = lastUse.contains(before) && newest == updates;
    if (!isRead && !goesOn)
      return success();
    int64_t slot = keep(old, point);
    if (goesOn && slot != 0)
      return task.emitOpError("expects the slot of version -1 to be free for "
                              "the next step, but it holds a version that is "
                              "read later");
    result.slotOf[task] = slot;
    return success();
  }

  LogicalResult addRead(TaskOp task) {
    int64_t version = versionOf(task);
    if (version > newest)
      return task.emitOpError("reads version ")
             << version << " of its weights, but only " << newest
             << (newest == 1 ? " update comes" : " updates come")
             << " before it";
    if (version == newest)
      return success();
    auto held = slots.find(version);
    if (held == slots.end())
      return task.emitOpError("reads version ")
             << version << " of its weights, which is no longer there after "
             << newest << " updates";
    result.slotOf[task] = held->second;
    return success();
  }

  int64_t updates;
  SmallVector<TaskOp> tasks;
  /// By version: the last task that reads it.
  llvm::DenseMap<int64_t, int64_t> lastUse;
  /// By version that is or was kept.
  llvm::DenseMap<int64_t, int64_t> slots;
  int64_t newest = 0;
  WeightVersions result;
};

} // namespace

FailureOr<WeightVersions>
pipewright::pipe::planWeightVersions(RankOp program, FlatSymbolRefAttr stage,
                                     int64_t updates) {
  return Planner(program, stage, updates).plan();
}
