//===- MemoryPlanner.cpp - Offsets for buffers that live for a while ------===//
//
// Greedy by size with best fit: the heuristic that TensorFlow Lite and others
// settled on, within a few percent of the least on neural networks.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/MemoryPlanner.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <numeric>

using namespace pipewright;

namespace {

/// What is placed already, sorted by offset.
struct Placed {
  int64_t offset;
  int64_t end;
  const BufferLife *life;
};

} // namespace

static bool overlapInTime(const BufferLife &a, const BufferLife &b) {
  return a.begin <= b.end && b.begin <= a.end;
}

/// The start of the smallest gap between the buffers that live at the same
/// time as `life`, or the end of the last of them.
static int64_t bestFit(llvm::ArrayRef<Placed> placed, const BufferLife &life,
                       int64_t alignment) {
  int64_t best = -1, bestGap = 0, top = 0;
  for (const Placed &other : placed) {
    if (!overlapInTime(*other.life, life))
      continue;
    int64_t gap = other.offset - top;
    if (gap >= life.bytes && (best < 0 || gap < bestGap)) {
      best = top;
      bestGap = gap;
    }
    top = std::max<int64_t>(top, llvm::alignTo(other.end, alignment));
  }
  return best < 0 ? top : best;
}

MemoryPlan pipewright::planMemory(llvm::ArrayRef<BufferLife> lives,
                                  int64_t alignment) {
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    if (lives[a].bytes != lives[b].bytes)
      return lives[a].bytes > lives[b].bytes;
    if (lives[a].begin != lives[b].begin)
      return lives[a].begin < lives[b].begin;
    return a < b;
  });

  MemoryPlan plan;
  plan.offsets.resize(lives.size());
  std::vector<Placed> placed;
  placed.reserve(lives.size());
  for (size_t index : order) {
    const BufferLife &life = lives[index];
    if (life.bytes == 0)
      continue;
    int64_t offset = bestFit(placed, life, alignment);
    Placed entry{offset, offset + life.bytes, &life};
    placed.insert(llvm::upper_bound(placed, entry,
                                    [](const Placed &a, const Placed &b) {
                                      return a.offset < b.offset;
                                    }),
                  entry);
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, entry.end);
  }
  return plan;
}

int64_t pipewright::leastBytes(llvm::ArrayRef<BufferLife> lives,
                               int64_t alignment) {
  std::map<int64_t, int64_t> changes;
  for (const BufferLife &life : lives) {
    int64_t bytes = llvm::alignTo(life.bytes, alignment);
    changes[life.begin] += bytes;
    changes[life.end + 1] -= bytes;
  }
  int64_t now = 0, most = 0;
  for (auto [point, change] : changes)
    most = std::max(most, now += change);
  return most;
}
