//===- MemoryPlanner.cpp - Offsets for buffers that live for a while ------===//
//
// Greedy with best fit: by size, as TensorFlow Lite and others do (Pisarchyk
// and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020),
// and where that is not the least, in other orders, too.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MemoryPlanner.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

using namespace pipewright;

namespace {

struct Placed {
  int64_t offset;
  int64_t end;
  int64_t firstPoint;
  int64_t lastPoint;

  bool isBefore(const Placed &other) const {
    return std::tie(offset, firstPoint) <
           std::tie(other.offset, other.firstPoint);
  }
};

/// What is placed already, by offset and then by time, in blocks that know when
/// anything of theirs lives. Schedules use an offset again and again, so nearly
/// all blocks are elsewhere in time; and where many buffers live at a time,
/// they lie side by side, so most other blocks can be taken as one buffer.
/// Without them, placing the buffers of 50,000 micro-batches would look at each
/// pair.
class PlacedBuffers {
public:
  explicit PlacedBuffers(int64_t alignment) : alignment(alignment) {}

  void add(const Placed &entry);

  /// Calls `visit` with begin and end of those that live between two points,
  /// lowest offset first. Some without a gap between them may come as one.
  template <typename Visit>
  void forEachAlive(int64_t firstPoint, int64_t lastPoint, Visit visit) {
    auto isAlive = [&](const auto &other) {
      return other.firstPoint <= lastPoint && firstPoint <= other.lastPoint;
    };
    looked += static_cast<int64_t>(blocks.size());
    for (const Block &block : blocks) {
      if (!isAlive(block))
        continue;
      if (block.allFrom <= lastPoint && firstPoint <= block.allUntil &&
          block.isSolid(alignment)) {
        visit(block.entries.front().offset, block.end);
        continue;
      }
      looked += static_cast<int64_t>(block.entries.size());
      for (const Placed &entry : block.entries)
        if (isAlive(entry))
          visit(entry.offset, entry.end);
    }
  }

  /// How many blocks and buffers were looked at so far.
  int64_t numLooked() const { return looked; }

private:
  struct Block {
    std::vector<Placed> entries;
    int64_t firstPoint = std::numeric_limits<int64_t>::max();
    int64_t lastPoint = std::numeric_limits<int64_t>::min();
    /// All entries live, each at some time of any range that meets this one.
    int64_t allFrom = std::numeric_limits<int64_t>::min();
    int64_t allUntil = std::numeric_limits<int64_t>::max();
    int64_t end = 0;

    /// No entry begins behind the end of those before it.
    bool isSolid(int64_t alignment) const;
    /// Puts an entry where it belongs.
    void insert(const Placed &entry);

  private:
    void note(const Placed &entry);

    mutable std::optional<bool> solid;
  };
  static constexpr size_t maxInBlock = 1024;

  void split(size_t index);

  int64_t alignment;
  int64_t looked = 0;
  std::vector<Block> blocks;
};

} // namespace

bool PlacedBuffers::Block::isSolid(int64_t alignment) const {
  if (solid)
    return *solid;
  solid = true;
  int64_t top = entries.front().offset;
  for (const Placed &entry : entries) {
    *solid &= entry.offset <= top;
    top = std::max<int64_t>(top, llvm::alignTo(entry.end, alignment));
  }
  return *solid;
}

void PlacedBuffers::Block::note(const Placed &entry) {
  firstPoint = std::min(firstPoint, entry.firstPoint);
  lastPoint = std::max(lastPoint, entry.lastPoint);
  allFrom = std::max(allFrom, entry.firstPoint);
  allUntil = std::min(allUntil, entry.lastPoint);
  end = std::max(end, entry.end);
  solid.reset();
}

void PlacedBuffers::Block::insert(const Placed &entry) {
  entries.insert(llvm::upper_bound(entries, entry,
                                   [](const Placed &a, const Placed &b) {
                                     return a.isBefore(b);
                                   }),
                 entry);
  note(entry);
}

void PlacedBuffers::split(size_t index) {
  const std::vector<Placed> all = std::move(blocks[index].entries);
  const size_t middle = all.size() / 2;
  Block halves[2];
  for (auto [number, entry] : llvm::enumerate(all))
    halves[number < middle ? 0 : 1].insert(entry);
  blocks[index] = std::move(halves[0]);
  blocks.insert(blocks.begin() + index + 1, std::move(halves[1]));
}

void PlacedBuffers::add(const Placed &entry) {
  if (blocks.empty())
    blocks.emplace_back();
  // The last block that begins no later.
  auto after = std::partition_point(
      blocks.begin() + 1, blocks.end(),
      [&](const Block &block) { return !entry.isBefore(block.entries[0]); });
  Block &block = after[-1];
  block.insert(entry);
  if (block.entries.size() > maxInBlock)
    split(after - 1 - blocks.begin());
}

/// The start of the smallest gap between the buffers that live at the same
/// time as `life`, or the end of the last of them.
static int64_t bestFit(PlacedBuffers &placed, const BufferLife &life,
                       int64_t alignment) {
  int64_t best = -1, bestGap = 0, top = 0;
  placed.forEachAlive(life.begin, life.end, [&](int64_t begin, int64_t end) {
    int64_t gap = begin - top;
    if (gap >= life.bytes && (best < 0 || gap < bestGap)) {
      best = top;
      bestGap = gap;
    }
    top = std::max<int64_t>(top, llvm::alignTo(end, alignment));
  });
  return best < 0 ? top : best;
}

/// Adds to `looked` what was looked at.
static MemoryPlan place(llvm::ArrayRef<BufferLife> lives,
                        llvm::ArrayRef<size_t> order, int64_t alignment,
                        int64_t &looked) {
  MemoryPlan plan;
  plan.offsets.resize(lives.size());
  PlacedBuffers placed(alignment);
  for (size_t index : order) {
    const BufferLife &life = lives[index];
    if (life.bytes == 0)
      continue;
    int64_t offset = bestFit(placed, life, alignment);
    int64_t end = offset + life.bytes;
    placed.add({offset, end, life.begin, life.end});
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, end);
  }
  looked += placed.numLooked();
  return plan;
}

MemoryPlan pipewright::placeBuffers(llvm::ArrayRef<BufferLife> lives,
                                    llvm::ArrayRef<size_t> order,
                                    int64_t alignment) {
  int64_t looked = 0;
  return place(lives, order, alignment, looked);
}

/// Those with the largest `key` first; of equal ones the largest buffers, then
/// those that begin first.
template <typename Key>
static std::vector<size_t> orderBy(llvm::ArrayRef<BufferLife> lives, Key key) {
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  auto rank = [&](size_t index) {
    const BufferLife &life = lives[index];
    return std::tuple(-key(life), -life.bytes, life.begin, index);
  };
  llvm::sort(order, [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return order;
}

namespace {

/// An order to place buffers in, and the plan that it gives.
struct Trial {
  std::vector<size_t> order;
  MemoryPlan plan;
};

} // namespace

/// Places the buffer that ends highest first.
static void promoteHighest(Trial &trial, llvm::ArrayRef<BufferLife> lives) {
  auto highest = llvm::find_if(trial.order, [&](size_t index) {
    return trial.plan.offsets[index] + lives[index].bytes == trial.plan.bytes;
  });
  if (highest != trial.order.end())
    std::rotate(trial.order.begin(), highest, highest + 1);
}

MemoryPlan pipewright::planMemory(llvm::ArrayRef<BufferLife> lives,
                                  int64_t alignment) {
  auto bytesOf = [](const BufferLife &life) {
    return static_cast<double>(life.bytes);
  };
  auto lengthOf = [](const BufferLife &life) {
    return static_cast<double>(life.end - life.begin + 1);
  };
  auto areaOf = [&](const BufferLife &life) {
    return bytesOf(life) * lengthOf(life);
  };
  auto beginOf = [](const BufferLife &life) {
    return static_cast<double>(-life.begin);
  };
  const int64_t least = leastBytes(lives, alignment);
  auto isLeast = [&](const MemoryPlan &plan) {
    return static_cast<int64_t>(llvm::alignTo(plan.bytes, alignment)) <= least;
  };
  // Blocks and buffers looked at: so many take some twenty milliseconds.
  constexpr int64_t mostLooked = int64_t(1) << 24, mostRounds = 40;
  int64_t looked = 0;
  std::vector<Trial> trials;
  auto tryOrder = [&](std::vector<size_t> order) {
    if (!trials.empty() && (isLeast(trials.back().plan) || looked > mostLooked))
      return;
    MemoryPlan plan = place(lives, order, alignment, looked);
    trials.push_back({std::move(order), std::move(plan)});
  };
  tryOrder(orderBy(lives, bytesOf));
  tryOrder(orderBy(lives, areaOf));
  tryOrder(orderBy(lives, lengthOf));
  tryOrder(orderBy(lives, beginOf));
  auto isSmaller = [](const Trial &a, const Trial &b) {
    return a.plan.bytes < b.plan.bytes;
  };
  MemoryPlan best = llvm::min_element(trials, isSmaller)->plan;
  for (int64_t round = 0; round < mostRounds; ++round)
    for (Trial &trial : trials) {
      if (isLeast(best) || looked > mostLooked / 8)
        return best;
      promoteHighest(trial, lives);
      trial.plan = place(lives, trial.order, alignment, looked);
      if (trial.plan.bytes < best.bytes)
        best = trial.plan;
    }
  return best;
}

MemoryPlan pipewright::planInTurns(llvm::ArrayRef<BufferLife> lives,
                                   int64_t spare, int64_t alignment) {
  MemoryPlan plan;
  plan.offsets.resize(lives.size());
  if (lives.empty())
    return plan;
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(lives[a].begin, a) < std::pair(lives[b].begin, b);
  });
  // Where the last one in each place ends.
  std::vector<int64_t> ends;
  auto step = static_cast<int64_t>(
      llvm::alignTo(lives.front().bytes, std::max<int64_t>(alignment, 1)));
  const int64_t places = std::min<int64_t>(mostInUse(lives) + spare,
                                           static_cast<int64_t>(lives.size()));
  for (size_t index : order) {
    auto place = std::min_element(ends.begin(), ends.end());
    if (static_cast<int64_t>(ends.size()) < places)
      place = ends.insert(ends.end(), 0);
    *place = lives[index].end;
    plan.offsets[index] = (place - ends.begin()) * step;
    plan.bytes = std::max(plan.bytes, plan.offsets[index] + lives[index].bytes);
  }
  return plan;
}

static bool meet(const BufferTurns &a, const BufferTurns &b) {
  return llvm::any_of(a.turns, [&](const BufferTurns::Turn &turn) {
    return llvm::any_of(b.turns, [&](const BufferTurns::Turn &other) {
      return turn.begin <= other.end && other.begin <= turn.end;
    });
  });
}

MemoryPlan pipewright::planTurns(llvm::ArrayRef<BufferTurns> buffers,
                                 int64_t alignment) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return buffers[a].bytes != buffers[b].bytes
               ? buffers[a].bytes > buffers[b].bytes
               : a < b;
  });
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  for (auto [number, index] : llvm::enumerate(order)) {
    if (buffers[index].bytes == 0)
      continue;
    PlacedBuffers together(alignment);
    for (size_t other : llvm::ArrayRef(order).take_front(number))
      if (buffers[other].bytes > 0 && meet(buffers[index], buffers[other]))
        together.add({plan.offsets[other],
                      plan.offsets[other] + buffers[other].bytes, 0, 0});
    const int64_t offset =
        bestFit(together, {0, 0, buffers[index].bytes}, alignment);
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + buffers[index].bytes);
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

int64_t pipewright::mostInUse(llvm::ArrayRef<BufferLife> lives) {
  std::vector<BufferLife> units(lives);
  for (BufferLife &unit : units)
    unit.bytes = 1;
  return leastBytes(units, 1);
}
