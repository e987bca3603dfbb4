//===- MatmulTests.cpp - Matrix products on GPUs --------------------------===//

#include "test/unit/device/kernels/TwoRanks.h"

using namespace pipewright::runtime;

/// `shift`: elements by which operands miss a multiple of 16 bytes.
static void check(const MatmulShape &s, int64_t shift = 0) {
  const double tolerance = s.result == ElementType::BF16 ? 1e-2 : 1e-5;
  TwoRanks test;
  auto operand = [&](int64_t elements, ElementType type) {
    return TwoRanks::odd(test.numbers(elements + shift, type),
                         shift * byteWidth(type));
  };
  const Buffer a = operand(s.batch * s.m * s.k, s.type);
  const Buffer b = operand((s.broadcastB ? 1 : s.batch) * s.k * s.n, s.type);
  const Buffer y = operand(s.batch * s.m * s.n, s.result);
  test.run(
      [&](auto &rank) {
        if constexpr (std::is_same_v<decltype(rank), DeviceRank &>)
          prepareMatmul(rank, s);
      },
      [&](auto &rank) { matmul(rank, s, a, b, y); });
  EXPECT_TRUE(test.near(y, s.result, tolerance));
}

TEST(DeviceMatmul, AllTranspositionsOfOddSizes) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      check({.m = 13, .n = 37, .k = 29, .transposeA = ta, .transposeB = tb});
}

TEST(DeviceMatmul, BatchHasOwnOperands) {
  check({.batch = 5, .m = 7, .n = 17, .k = 9, .transposeB = true});
  check({.batch = 5, .m = 7, .n = 17, .k = 9, .transposeA = true});
}

TEST(DeviceMatmul, BatchSharesTheSecondOperand) {
  check({.batch = 3, .m = 7, .n = 5, .k = 11, .broadcastB = true});
  check({.batch = 3,
         .m = 7,
         .n = 5,
         .k = 11,
         .transposeA = true,
         .broadcastB = true});
}

TEST(DeviceMatmul, AddsToTheResultScaled) {
  check({.m = 8, .n = 16, .k = 32, .alpha = 0.5f, .beta = 1});
  check({.m = 8, .n = 16, .k = 32, .alpha = 2, .beta = 0.25f});
}

TEST(DeviceMatmul, PartsOfBuffers) { check({.m = 8, .n = 16, .k = 32}, 1); }

TEST(DeviceMatmul, Bf16OperandsGiveEitherType) {
  for (const auto result : {ElementType::F32, ElementType::BF16})
    check({.m = 16,
           .n = 24,
           .k = 40,
           .type = ElementType::BF16,
           .result = result});
  check({.m = 16,
         .n = 24,
         .k = 40,
         .transposeA = true,
         .beta = 1,
         .type = ElementType::BF16});
  check({.m = 5, .n = 3, .k = 7, .type = ElementType::BF16}, 1);
}

TEST(DeviceMatmul, RoundsToTf32OnlyIfAsked) {
  const MatmulShape s = {.m = 16, .n = 16, .k = 64};
  double differences[2];
  for (const auto mode : {Float32Mode::Full, Float32Mode::Tf32}) {
    TwoRanks test(1 << 20, mode);
    const Buffer a = test.floats(1024), b = test.floats(1024);
    const Buffer y = test.floats(256);
    prepareMatmul(*test.gpu, s);
    test.run([&](auto &rank) { matmul(rank, s, a, b, y); });
    const auto got = test.gpuFloats(y, ElementType::F32);
    const auto expected = test.cpu.read(y);
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i)
      largest = std::max<double>(largest, std::fabs(got[i] - expected[i]));
    differences[mode == Float32Mode::Tf32] = largest;
  }
  EXPECT_LT(differences[0], 1e-5);
  EXPECT_GT(differences[1], 1e-5);
  EXPECT_LT(differences[1], 1e-1);
}

TEST(DeviceMatmul, SaysWhatWasNotSetUp) {
  TwoRanks test;
  prepareMatmul(*test.gpu, {.m = 2, .n = 2, .k = 2});
  EXPECT_EQ(errorOf([&] {
              matmul(*test.gpu, {.batch = 2, .m = 2, .n = 3, .k = 4}, {0, 64},
                     {64, 96}, {192, 48});
            }),
            "the product of 2 of 2 x 3 x 4 was not set up");
}
