//===- ProductTimeTests.cpp - How long a matrix product takes -------------===//

#include "passes/planning/NamedMachines.h"
#include "passes/planning/ProductTime.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace pipewright;

/// The rate was chosen to fit all of them together; each of them tests shapes.
/// Products of a step of GPT-2 124M in bf16 as 2 x 32 on an H200, as `train
/// --profile` measured them (doc/gpu-results.md), with their calls and
/// milliseconds; `atEnd` are the bytes that they read and write beside their
/// two factors.
TEST(ProductTime, IsThatOfMeasuredProducts) {
  struct Measured {
    ProductSize size;
    double atEnd, calls, milliseconds;
  };
  const int64_t m = 32768;
  auto bytesOf = [](int64_t rows, int64_t columns, int64_t each) {
    return static_cast<double>(rows * columns * each);
  };
  const Measured all[] = {
      {{1, m, 3072, 768}, bytesOf(m, 3072, 4), 24, 8.192},
      {{1, m, 3072, 768}, bytesOf(m, 3072, 4), 24, 8.023},
      {{1, m, 50304, 768}, bytesOf(m, 50304, 2), 2, 7.420},
      {{1, m, 768, 50304}, bytesOf(m, 768, 2), 2, 6.259},
      {{1, 50304, 768, m}, bytesOf(50304, 768, 8), 2, 6.217},
      {{1, 768, 3072, m}, bytesOf(768, 3072, 8), 24, 5.475},
      {{1, 3072, 768, m}, bytesOf(768, 3072, 8), 24, 5.279},
      {{1, m, 768, 3072}, bytesOf(m, 768, 2), 24, 5.250},
      {{1, m, 768, 3072}, bytesOf(m, 768, 2), 24, 5.184},
      {{1, 2304, 768, m}, bytesOf(2304, 768, 8), 24, 4.817},
      {{1, m, 2304, 768}, bytesOf(m, 2304, 2), 24, 4.713},
      {{1, m, 768, 2304}, bytesOf(m, 768, 2), 24, 4.051},
      {{1, 768, 768, m}, bytesOf(768, 768, 8), 24, 1.720},
      {{1, m, 768, 768}, bytesOf(m, 768, 2), 24, 1.638},
      {{1, m, 768, 768}, bytesOf(m, 768, 2), 24, 1.630}};
  const MachineModel machine = *machineNamed("h200-bf16");
  double predicted = 0, measured = 0;
  for (const auto &[size, atEnd, calls, milliseconds] : all) {
    const double seconds = secondsOfProduct(size, machine) +
                           atEnd / machine.bandwidth + machine.secondsPerCall;
    const double of = milliseconds * 1e-3 / calls;
    EXPECT_NEAR(seconds, of, 0.12 * of)
        << size.m << " x " << size.n << " x " << size.k;
    predicted += calls * seconds;
    measured += calls * of;
  }
  EXPECT_NEAR(predicted, measured, 0.01 * measured);
}

TEST(ProductTime, IsNoLessThanTheRateAllows) {
  const MachineModel machine = *machineNamed("h100-bf16");
  for (int64_t batch : {1, 3})
    for (int64_t m : {1, 64, 127, 129, 4096})
      for (int64_t n : {1, 64, 1000, 16384})
        for (int64_t k : {1, 511, 1024, 100000}) {
          const ProductSize size = {batch, m, n, k};
          const double seconds = secondsOfProduct(size, machine);
          EXPECT_GE(seconds, (1 - 1e-9) * size.flops() / machine.matmulFlops);
        }
}

/// One tile more than processors takes twice as long.
TEST(ProductTime, CountsWaves) {
  MachineModel machine = *machineNamed("h100-bf16");
  machine.processors = 4;
  const double whole = secondsOfProduct({1, 4 * 256, 256, 512}, machine);
  EXPECT_NEAR(whole, 2.0 * 4 * 256 * 256 * 512 / machine.matmulFlops,
              1e-9 * whole);
  const double more = secondsOfProduct({1, 4 * 256 + 1, 256, 512}, machine);
  EXPECT_GT(more, 1.1 * whole);
  // Where there are few, sums are split.
  const double few = secondsOfProduct({1, 128, 256, 1 << 20}, machine);
  EXPECT_LT(few, 0.3 * 2.0 * 128 * 256 * (1 << 20) /
                     (machine.matmulFlops / machine.processors));
}

TEST(ProductTime, IsANumberForAnyNumberOfProcessors) {
  MachineModel machine;
  for (double processors : {2.0, 1e9, 1e300}) {
    machine.processors = processors;
    const double seconds = secondsOfProduct({1, 512, 512, 512}, machine);
    EXPECT_TRUE(std::isfinite(seconds) && seconds > 0) << processors;
  }
}

TEST(ProductTime, IsOfOneRateWhereNothingIsShared) {
  const MachineModel machine;
  for (int64_t m : {1, 100, 5000}) {
    const ProductSize size = {2, m, 30, 7};
    EXPECT_EQ(secondsOfProduct(size, machine),
              size.flops() / machine.matmulFlops);
  }
}
