//===- MatmulTests.cpp - Matrix products on GPUs --------------------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"

#include <dlfcn.h>

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
  if (!hasBFloat16Products())
    GTEST_SKIP() << "this CPU has none for oneDNN";
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

namespace {
/// Links whose transfers wait on the GPU.
class OccupyingLinks final : public NoLinks {
public:
  explicit OccupyingLinks(int64_t held) : held(held) {}
  int64_t multiprocessorsHeld() const override { return held; }

private:
  const int64_t held;
};
} // namespace

/// What the double says of the latest product.
static int32_t askDouble(const char *name) {
  const auto function = reinterpret_cast<int32_t (*)()>(
      dlsym(dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD), name));
  return function ? function() : -1;
}

/// How many multiprocessors a product takes beside links that hold some.
static int32_t multiprocessorsBeside(int64_t held) {
  const MatmulShape s = {.m = 16, .n = 16, .k = 16};
  TwoRanks test(1 << 20, Float32Mode::Full, {},
                std::make_unique<OccupyingLinks>(held));
  const Buffer a = test.floats(256), b = test.floats(256), y = test.floats(256);
  prepareMatmul(*test.gpu, s);
  test.runOnGpu([&](DeviceRank &rank) { matmul(rank, s, a, b, y); });
  // As if there were no links: other algorithms give other bits.
  EXPECT_EQ(askDouble("pipewrightCublasLtChosenFor"), 0);
  return askDouble("pipewrightCublasLtRunOn");
}

/// Of the double's 132.
TEST(DeviceMatmulDouble, LeavesWhatTransfersHold) {
  EXPECT_EQ(multiprocessorsBeside(16), 116);
  EXPECT_EQ(multiprocessorsBeside(120), 66);
  EXPECT_EQ(multiprocessorsBeside(0), 0);
}

/// GELU by tanh, and its derivative.
static double geluOf(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}
static double geluSlope(double x) {
  return (geluOf(x + 1e-5) - geluOf(x - 1e-5)) / 2e-5;
}

/// One product with an epilogue, against plain loops. `shift`: elements by
/// which the bias misses a multiple of 16 bytes.
static void checkEpilogue(MatmulEpilogue epilogue, ElementType type,
                          int64_t shift = 0) {
  const MatmulShape s = {.m = 6,
                         .n = 16,
                         .k = 8,
                         .transposeA = epilogue == MatmulEpilogue::BiasGradient,
                         .type = type,
                         .result = type};
  const bool isBF16 = type == ElementType::BF16;
  TwoRanks test;
  const Buffer a = test.numbers(s.m * s.k, type);
  const Buffer b = test.numbers(s.k * s.n, type);
  const Buffer y = test.numbers(s.m * s.n, type);
  const Buffer bias =
      TwoRanks::odd(test.numbers(s.n + shift, type), shift * byteWidth(type));
  const Buffer aux = test.numbers(s.m * s.n, type);
  auto read = [&](Buffer buffer) { return test.cpuFloats(buffer, type); };
  const auto av = read(a), bv = read(b), auxBefore = read(aux);
  auto biasExpected = read(bias);
  auto auxExpected = auxBefore;
  std::vector<float> expected(s.m * s.n);
  std::vector<double> sums(s.n);
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double value = 0;
      for (int64_t k = 0; k < s.k; ++k)
        value += double(av[s.transposeA ? k * s.m + i : i * s.k + k]) *
                 bv[k * s.n + j];
      const int64_t at = i * s.n + j;
      switch (epilogue) {
      case MatmulEpilogue::Bias:
        value += biasExpected[j];
        break;
      case MatmulEpilogue::BiasGelu:
        value += biasExpected[j];
        auxExpected[at] = static_cast<float>(value);
        value = geluOf(value);
        break;
      case MatmulEpilogue::GeluGradient:
      case MatmulEpilogue::GeluBiasGradient:
        value *= geluSlope(auxBefore[at]);
        break;
      default:
        break;
      }
      sums[j] += value;
      expected[at] = static_cast<float>(value);
    }
  if (epilogue == MatmulEpilogue::GeluBiasGradient)
    biasExpected.assign(sums.begin(), sums.end());
  if (epilogue == MatmulEpilogue::BiasGradient)
    for (int64_t j = 0; j < s.n; ++j) {
      biasExpected[j] = 0;
      for (int64_t k = 0; k < s.k; ++k)
        biasExpected[j] += bv[k * s.n + j];
    }
  prepareMatmul(*test.gpu, s, epilogue);
  test.runOnGpu(
      [&](auto &rank) { matmul(rank, s, epilogue, a, b, y, bias, aux); });
  const double tolerance = isBF16 ? 1e-2 : 1e-5;
  EXPECT_TRUE(agree(test.gpuFloats(y, type), expected, tolerance));
  EXPECT_TRUE(agree(test.gpuFloats(bias, type), biasExpected, tolerance));
  EXPECT_TRUE(agree(test.gpuFloats(aux, type), auxExpected, tolerance));
}

TEST(DeviceMatmul, Epilogues) {
  for (const auto type : {ElementType::F32, ElementType::BF16})
    for (const auto epilogue :
         {MatmulEpilogue::Bias, MatmulEpilogue::BiasGelu,
          MatmulEpilogue::GeluGradient, MatmulEpilogue::GeluBiasGradient,
          MatmulEpilogue::BiasGradient}) {
      SCOPED_TRACE(static_cast<int>(epilogue));
      checkEpilogue(epilogue, type);
    }
}

TEST(DeviceMatmul, EpiloguesOfPartsOfBuffers) {
  checkEpilogue(MatmulEpilogue::Bias, ElementType::F32, 1);
  checkEpilogue(MatmulEpilogue::BiasGelu, ElementType::F32, 1);
  checkEpilogue(MatmulEpilogue::Bias, ElementType::BF16, 3);
}

/// cuBLASLt 13.1 has one for batches, too.
TEST(DeviceMatmul, SaysThatTheDoubleHasNoSuchEpilogue) {
  TwoRanks test;
  const std::string message = errorOf([&] {
    prepareMatmul(*test.gpu, {.batch = 4, .m = 8, .n = 8, .k = 8},
                  MatmulEpilogue::Bias);
  });
  EXPECT_TRUE(contains(message, "cuBLASLt has no algorithm for a product of 4 "
                                "of 8 x 8 x 8 with its epilogue on "));
  EXPECT_TRUE(contains(message, "; compile with --epilogues none"));
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
