//===- MemoryPlannerTests.cpp - Offsets of buffers, and who wrote last ----===//
//
// The planner against drawn cases and against properties on random lives; the
// shadow memory that judges it against an array with one entry per byte.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MemoryPlanner.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

using namespace pipewright;

TEST(MemoryPlanner, NothingNeedsNothing) {
  EXPECT_EQ(0, planMemory({}, 64).bytes);
  BufferLife empty[] = {{0, 5, 0}, {0, 5, 0}};
  MemoryPlan plan = planMemory(empty, 64);
  EXPECT_EQ(0, plan.bytes);
  EXPECT_EQ((std::vector<int64_t>{0, 0}), plan.offsets);
}

TEST(MemoryPlanner, BuffersInTurnShareBytes) {
  BufferLife lives[] = {{0, 1, 100}, {2, 3, 100}, {4, 4, 50}};
  MemoryPlan plan = planMemory(lives, 64);
  EXPECT_EQ((std::vector<int64_t>{0, 0, 0}), plan.offsets);
  EXPECT_EQ(100, plan.bytes);
}

TEST(MemoryPlanner, TheEndBelongsToTheLife) {
  // What is read and what is written at one point must not share bytes.
  BufferLife lives[] = {{0, 2, 10}, {2, 3, 10}};
  MemoryPlan plan = planMemory(lives, 64);
  EXPECT_EQ((std::vector<int64_t>{0, 64}), plan.offsets);
  EXPECT_EQ(74, plan.bytes);
}

TEST(MemoryPlanner, TheSmallestGapIsTaken) {
  // Between the two that live on are gaps of 128 and, above, of 64 bytes.
  BufferLife lives[] = {{0, 9, 300}, {0, 4, 128}, {0, 9, 120},
                        {0, 4, 64},  {0, 9, 60},  {5, 9, 50}};
  MemoryPlan plan = planMemory(lives, 64);
  EXPECT_EQ((std::vector<int64_t>{0, 320, 448, 576, 640, 576}), plan.offsets);
}

TEST(MemoryPlanner, BuffersTakeTurnsSeveralTimes) {
  // The first two are in use in turn, the third with each of them once.
  BufferTurns buffers[] = {{{{0, 1}, {4, 5}}, 100},
                           {{{2, 3}, {6, 7}}, 60},
                           {{{1, 2}}, 80},
                           {{}, 40},
                           {{{0, 9}}, 0}};
  MemoryPlan plan = planTurns(buffers, 64);
  EXPECT_EQ((std::vector<int64_t>{0, 0, 128, 0, 0}), plan.offsets);
  EXPECT_EQ(208, plan.bytes);
}

TEST(MemoryPlanner, OneTurnIsALife) {
  BufferLife lives[] = {{0, 9, 300}, {0, 4, 128}, {0, 9, 120},
                        {0, 4, 64},  {0, 9, 60},  {5, 9, 50}};
  std::vector<BufferTurns> buffers;
  for (const BufferLife &life : lives)
    buffers.push_back({{{life.begin, life.end}}, life.bytes});
  EXPECT_EQ(planMemory(lives, 64).offsets, planTurns(buffers, 64).offsets);
}

TEST(MemoryPlanner, LeastBytesIsTheLargestSum) {
  BufferLife lives[] = {{0, 2, 64}, {1, 3, 100}, {3, 4, 64}};
  EXPECT_EQ(64 + 128, leastBytes(lives, 64));
}

static std::vector<BufferLife> randomLives(std::mt19937 &random) {
  std::uniform_int_distribution<int64_t> begins(0, 50), lengths(0, 20),
      sizes(0, 1000);
  std::vector<BufferLife> lives(60);
  for (BufferLife &life : lives) {
    life.begin = begins(random);
    life.end = life.begin + lengths(random);
    life.bytes = sizes(random);
  }
  return lives;
}

TEST(MemoryPlanner, NoOverlapAlignedAndRepeatable) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<BufferLife> lives = randomLives(random);
    MemoryPlan plan = planMemory(lives, 64);
    EXPECT_EQ(plan.offsets, planMemory(lives, 64).offsets);
    int64_t end = 0;
    for (size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(0, plan.offsets[i] % 64);
      if (lives[i].bytes == 0)
        continue;
      end = std::max(end, plan.offsets[i] + lives[i].bytes);
      for (size_t j = 0; j < i; ++j) {
        bool inTime =
            lives[i].begin <= lives[j].end && lives[j].begin <= lives[i].end;
        bool inSpace = plan.offsets[i] < plan.offsets[j] + lives[j].bytes &&
                       plan.offsets[j] < plan.offsets[i] + lives[i].bytes;
        EXPECT_FALSE(inTime && inSpace && lives[j].bytes > 0);
      }
    }
    EXPECT_EQ(end, plan.bytes);
    EXPECT_LE(plan.bytes, 2 * leastBytes(lives, 64));
  }
}

/// The definition: each buffer into the smallest gap between all that live at
/// the same time.
/// No two at a time in one place, as few places as promised, and each one free
/// for the longest time.
TEST(MemoryPlanner, BuffersOfASizeTakeTheirPlacesInTurns) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const int64_t bytes = 1 + random() % 200, spare = random() % 4;
    std::vector<BufferLife> lives = randomLives(random), units = lives;
    for (BufferLife &life : lives)
      life.bytes = bytes;
    for (BufferLife &unit : units)
      unit.bytes = 1;
    const MemoryPlan plan = planInTurns(lives, spare, 64);
    std::set<int64_t> places(plan.offsets.begin(), plan.offsets.end());
    EXPECT_EQ(std::min<int64_t>(leastBytes(units, 1) + spare, lives.size()),
              static_cast<int64_t>(places.size()));
    for (size_t a = 0; a < lives.size(); ++a) {
      EXPECT_EQ(0, plan.offsets[a] % 64);
      EXPECT_LE(plan.offsets[a] + bytes, plan.bytes);
      for (size_t b = 0; b < a; ++b)
        EXPECT_TRUE(plan.offsets[a] != plan.offsets[b] ||
                    lives[a].end < lives[b].begin ||
                    lives[b].end < lives[a].begin);
    }
  }
  // One at a time, two spare: the third one that follows has its place.
  const MemoryPlan plan =
      planInTurns({{0, 1, 8}, {2, 3, 8}, {4, 5, 8}, {6, 7, 8}}, 2, 64);
  EXPECT_EQ((std::vector<int64_t>{0, 64, 128, 0}), plan.offsets);
  EXPECT_EQ(136, plan.bytes);
  EXPECT_EQ(0, planInTurns({}, 2, 64).bytes);
}

/// The largest ones first.
static std::vector<size_t> bySize(const std::vector<BufferLife> &lives) {
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-lives[a].bytes, lives[a].begin, a) <
           std::tuple(-lives[b].bytes, lives[b].begin, b);
  });
  return order;
}

static MemoryPlan planPlainly(const std::vector<BufferLife> &lives) {
  const std::vector<size_t> order = bySize(lives);
  MemoryPlan plan;
  plan.offsets.resize(lives.size());
  for (size_t n = 0; n < order.size(); ++n) {
    const BufferLife &life = lives[order[n]];
    if (life.bytes == 0)
      continue;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t k = 0; k < n; ++k) {
      const BufferLife &other = lives[order[k]];
      int64_t offset = plan.offsets[order[k]];
      if (other.begin <= life.end && life.begin <= other.end)
        taken.emplace_back(offset, offset + other.bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t best = -1, bestGap = 0, top = 0;
    for (auto [begin, end] : taken) {
      if (begin - top >= life.bytes && (best < 0 || begin - top < bestGap)) {
        best = top;
        bestGap = begin - top;
      }
      top = std::max(top, (end + 63) / 64 * 64);
    }
    plan.offsets[order[n]] = best < 0 ? top : best;
    plan.bytes = std::max(plan.bytes, plan.offsets[order[n]] + life.bytes);
  }
  return plan;
}

TEST(MemoryPlanner, AgreesWithItsDefinition) {
  std::mt19937 random(5);
  for (int size : {3, 60, 700, 3000}) {
    std::uniform_int_distribution<int64_t> begins(0, size), lengths(0, 40),
        sizes(0, 9);
    std::vector<BufferLife> lives(size);
    for (BufferLife &life : lives) {
      life.begin = begins(random);
      life.end = life.begin + lengths(random);
      life.bytes = 100 * sizes(random);
    }
    lives[0].end = size;
    MemoryPlan expected = planPlainly(lives),
               plan = placeBuffers(lives, bySize(lives), 64);
    EXPECT_EQ(expected.offsets, plan.offsets);
    EXPECT_EQ(expected.bytes, plan.bytes);
    EXPECT_LE(planMemory(lives, 64).bytes, plan.bytes);
  }
}

TEST(MemoryPlanner, OtherOrdersAreTried) {
  // Beside the third one, two others have room only if the last one, the
  // largest, does not push it up.
  const std::vector<BufferLife> lives = {
      {3, 4, 128}, {3, 5, 128}, {1, 3, 128}, {1, 1, 192}};
  EXPECT_EQ(448, placeBuffers(lives, bySize(lives), 64).bytes);
  EXPECT_EQ(384, leastBytes(lives, 64));
  EXPECT_EQ(384, planMemory(lives, 64).bytes);
  // Far fewer bytes are lost than by size alone, and none is lost to it.
  std::mt19937 random(7);
  double bySizes = 0, planned = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<BufferLife> some = randomLives(random);
    const double least = leastBytes(some, 64);
    const int64_t simple = placeBuffers(some, bySize(some), 64).bytes,
                  best = planMemory(some, 64).bytes;
    EXPECT_LE(best, simple);
    EXPECT_GE(best + 63, least);
    bySizes += simple / least - 1;
    planned += best / least - 1;
  }
  EXPECT_LT(planned, 0.5 * bySizes);
}

TEST(MemoryPlanner, OtherOrdersAreTriedForThousandsOfBuffers) {
  // The four above again and again, so that no few of them placed first help.
  std::vector<BufferLife> lives;
  for (int64_t m = 0; m < 6 * 700; m += 6)
    for (BufferLife life : {BufferLife{3, 4, 128}, BufferLife{3, 5, 128},
                            BufferLife{1, 3, 128}, BufferLife{1, 1, 192}})
      lives.push_back({m + life.begin, m + life.end, life.bytes});
  EXPECT_EQ(448, placeBuffers(lives, bySize(lives), 64).bytes);
  EXPECT_EQ(384, planMemory(lives, 64).bytes);
}

TEST(MemoryPlanner, BuffersOfManyMicroBatchesTakeNoQuadraticTime) {
  // Two stashes at a time, as under 1F1B; each pair of buffers looked at would
  // take a minute.
  std::vector<BufferLife> lives;
  for (int64_t m = 0; m < 300000; ++m)
    lives.push_back({2 * m, 2 * m + 3, 4096});
  EXPECT_EQ(2 * 4096, planMemory(lives, 64).bytes);
}

TEST(MemoryPlanner, ManyBuffersAtATimeTakeNoQuadraticTime) {
  // As what is sent early and received late; the plain way takes a minute.
  auto received = [](int64_t count) {
    std::vector<BufferLife> lives;
    for (int64_t m = 0; m < count; ++m) {
      lives.push_back({m, count + 2 * m, 64});
      lives.push_back({count + 2 * m, count + 2 * m + 1, 16});
    }
    return lives;
  };
  MemoryPlan expected = planPlainly(received(3000)),
             plan = placeBuffers(received(3000), bySize(received(3000)), 64);
  EXPECT_EQ(expected.offsets, plan.offsets);
  EXPECT_EQ(expected.bytes, plan.bytes);
  EXPECT_EQ(100000 * 64 + 16, planMemory(received(100000), 64).bytes);
}
