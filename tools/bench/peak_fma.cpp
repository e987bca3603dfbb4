//===- peak_fma.cpp - What one core can do at the moment ------------------===//
//
// Prints the float32 fused multiply-add rate of the calling core in GFLOP/s.
// Shared machines drift by tens of percent: a figure without this probe beside
// it says little. Independent accumulators hide the latency of the unit.
//
//===----------------------------------------------------------------------===//

#include <chrono>
#include <cstdio>

using Clock = std::chrono::steady_clock;

int main() {
  constexpr int kAccumulators = 16, kLanes = 16, kRounds = 4000000;
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
  Vector sums[kAccumulators] = {};
  Vector factor, addend;
  for (int lane = 0; lane < kLanes; ++lane) {
    factor[lane] = 0.999f;
    addend[lane] = 1e-3f * lane;
  }
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Clock::time_point begin = Clock::now();
    for (int round = 0; round < kRounds; ++round)
      for (Vector &sum : sums)
        sum = sum * factor + addend;
    double seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    double rate = 2e-9 * kRounds * kAccumulators * kLanes / seconds;
    best = rate > best ? rate : best;
  }
  float keep = 0;
  for (const Vector &sum : sums)
    keep += sum[0];
  std::printf("%.1f\n", best + 0 * keep);
}
