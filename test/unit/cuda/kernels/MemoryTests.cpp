//===- MemoryTests.cpp - Fills, copies, sums and dropout on GPUs ----------===//

#include "test/unit/cuda/kernels/TwoRanks.h"

using namespace pipewright::runtime;

TEST(DeviceMemory, ZeroFillAndCopyAnyNumberOfBytes) {
  for (const int64_t size : {4, 36, 4096, 5000}) {
    TwoRanks test;
    const Buffer zeroed = test.bytes(size), odd = test.bytes(size + 3);
    const Buffer filled = test.floats(size), from = test.floats(size);
    const Buffer to = test.floats(size + 5);
    test.run([&](auto &rank) {
      zero(rank, zeroed);
      zero(rank, odd);
      fill(rank, 1.5f, filled);
      copy(rank, from, to);
      zero(rank, Buffer{});
    });
    for (const Buffer buffer : {zeroed, odd, filled, from, to})
      EXPECT_TRUE(test.same(buffer)) << size;
  }
}

TEST(DeviceMemory, AccumulateWholePacksAndTheRest) {
  for (const int64_t size : {1, 3, 4, 1023, 1024, 4099}) {
    TwoRanks test;
    const Buffer from = test.floats(size), to = test.floats(size);
    const Buffer odd = test.floats(size + 1);
    test.run([&](auto &rank) {
      accumulate(rank, from, to);
      accumulate(rank, from, TwoRanks::odd(odd, 4));
    });
    EXPECT_TRUE(test.same(to)) << size;
    EXPECT_TRUE(test.same(odd)) << size;
  }
}

TEST(DeviceMemory, SetValuesOfOneByteToManyChunks) {
  for (const int64_t size : {1, 3, 1024, 1025, 5000}) {
    std::vector<char> table(size);
    for (int64_t i = 0; i < size; ++i)
      table[i] = static_cast<char>(7 * i + i / 100);
    TwoRanks test;
    const Buffer to = test.bytes(size), next = test.bytes(64);
    test.run([&](auto &rank) { setValues(rank, table.data(), to); });
    EXPECT_TRUE(test.same(to)) << size;
    EXPECT_TRUE(test.same(next)) << size;
  }
}

TEST(DeviceDropout, FactorsAreThoseOfTheCpu) {
  for (const int64_t size : {1, 2, 7, 1024, 4095}) {
    TwoRanks test;
    const Buffer x = test.floats(size), y = test.floats(size);
    const Buffer odd = test.floats(size + 1);
    test.run([&](auto &rank) {
      dropout(rank, {.elements = size, .rate = 0.3f, .id = 5}, 2, x, y);
      // In place, and not at a multiple of 16 bytes.
      const Buffer part = TwoRanks::odd(odd, 4);
      dropout(rank, {.elements = size, .rate = 0.9f, .id = 6}, 1, part, part);
    });
    EXPECT_TRUE(test.same(y)) << size;
    EXPECT_TRUE(test.same(odd)) << size;
  }
}

TEST(DeviceDropout, RoundsBf16AsTheCpuDoes) {
  TwoRanks test;
  const int64_t size = 1001;
  const Buffer x = test.narrow(size), y = test.narrow(size);
  test.run([&](auto &rank) {
    dropout(
        rank,
        {.elements = size, .rate = 0.3f, .id = 5, .type = ElementType::BF16}, 2,
        x, y);
  });
  EXPECT_TRUE(test.same(y));
}

TEST(DeviceDropout, EveryStepDrawsAnew) {
  TwoRanks test;
  const Buffer x = test.floats(400), y = test.floats(400);
  const auto drop = [&](auto &rank) {
    dropout(rank, {.elements = 400, .rate = 0.5f, .id = 1}, 0, x, y);
  };
  test.run(drop);
  const auto before = test.onGpu(y);
  test.cpu.rank.beginStep(4, 0.1f);
  test.gpu->beginStep(4, 0.1f);
  // A graph was captured in step 3; what it replays must see step 4.
  test.run(drop);
  EXPECT_TRUE(test.same(y));
  EXPECT_NE(before, test.onGpu(y));
}
