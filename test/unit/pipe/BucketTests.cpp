//===- BucketTests.cpp - Who updates which matrix -------------------------===//

#include "passes/step/Buckets.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <random>

using namespace pipewright::pipe;

static double mostOf(const std::vector<double> &work,
                     const std::vector<int64_t> &workerOf, int64_t workers) {
  std::vector<double> given(workers, 0);
  for (auto [piece, worker] : llvm::zip_equal(work, workerOf))
    given.at(worker) += piece;
  return *llvm::max_element(given);
}

/// Of all ways.
static double leastOf(const std::vector<double> &work, int64_t workers) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<int64_t> workerOf(work.size(), 0);
  while (true) {
    least = std::min(least, mostOf(work, workerOf, workers));
    size_t i = 0;
    while (i < work.size() && ++workerOf[i] == workers)
      workerOf[i++] = 0;
    if (i == work.size())
      return least;
  }
}

TEST(ShareOut, IsWithinGrahamsBoundOfTheBest) {
  std::mt19937 random(7);
  double worst = 1;
  for (int round = 0; round < 300; ++round) {
    const int64_t workers = 1 + random() % 4;
    std::vector<double> work(random() % 8);
    for (double &piece : work)
      piece = 1 + random() % 20;
    if (work.empty()) {
      EXPECT_TRUE(shareOut(work, workers).empty());
      continue;
    }
    const double ratio =
        mostOf(work, shareOut(work, workers), workers) / leastOf(work, workers);
    const auto n = static_cast<double>(workers);
    EXPECT_LE(ratio, 4.0 / 3 - 1 / (3 * n) + 1e-12);
    worst = std::max(worst, ratio);
  }
  EXPECT_GT(worst, 1); // The bound was put to a test.
}

TEST(ShareOut, LayersOfATransformerAreEvenOverFourReplicas) {
  // Queries, keys and values; projection; two layers of the perceptron.
  std::vector<double> work;
  for (int layer = 0; layer < 4; ++layer)
    work.insert(work.end(), {14, 6, 18, 18});
  EXPECT_EQ(mostOf(work, shareOut(work, 4), 4), 56);
}
