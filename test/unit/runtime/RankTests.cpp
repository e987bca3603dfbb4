//===- RankTests.cpp - What changes from update to update -----------------===//

#include "test/unit/runtime/OneRank.h"

using namespace pipewright::runtime;

namespace {

/// A program whose step has two updates, of two micro-batches each.
struct TwoUpdates {
  TwoUpdates() : world(1), transport(world, 0), rank(program, 0, transport) {}

  static Program make() {
    Program program;
    program.microBatches = 4;
    program.updates = 2;
    program.optimizer.scalars = {{StepScalar::LearningRate},
                                 {StepScalar::BiasCorrection, 0.5f}};
    program.ranks.push_back({});
    program.ranks[0].arenaBytes = 64;
    return program;
  }

  const Program program = make();
  ThreadWorld world;
  ThreadTransport transport;
  Rank rank;
};

} // namespace

TEST(Rank, EachUpdateHasItsOwnHyperParameters) {
  TwoUpdates test;
  test.rank.beginStep(3, {0.1f, 0.2f});
  const int64_t version = test.rank.weightVersion();
  // Updates 6 and 7 of the run: 1 / (1 - 0.5^7) and 1 / (1 - 0.5^8).
  EXPECT_FLOAT_EQ(test.rank.hyper()[0], 0.1f);
  EXPECT_FLOAT_EQ(test.rank.hyper()[1], 128.0f / 127);
  test.rank.beginUpdate(1);
  EXPECT_FLOAT_EQ(test.rank.hyper()[0], 0.2f);
  EXPECT_FLOAT_EQ(test.rank.hyper()[1], 256.0f / 255);
  EXPECT_GT(test.rank.weightVersion(), version);
}

TEST(Rank, LossesAreThoseOfEachUpdate) {
  TwoUpdates test;
  const Buffer loss = {0, 4};
  for (int64_t m = 0; m < 4; ++m) {
    *test.rank.data<float>(loss) = static_cast<float>(m + 1);
    test.rank.reportLoss(m, loss);
  }
  const auto losses = test.rank.takeLosses();
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0], (std::pair<double, int64_t>(3, 2)));
  EXPECT_EQ(losses[1], (std::pair<double, int64_t>(7, 2)));
  EXPECT_EQ(test.rank.takeLoss(), (std::pair<double, int64_t>(0, 0)));
}
