//===- RankTests.cpp - Updates, replicas and groups of a rank -------------===//

#include "runtime/core/ProcessName.h"
#include "runtime/train/WeightFiles.h"
#include "test/unit/runtime/OneRank.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

using namespace pipewright::runtime;

namespace {

/// A program whose step has two updates, of two micro-batches each.
struct TwoUpdates {
  TwoUpdates() : world(1), transport(world, 0), rank(program, transport) {}

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

static void run(const Program &program,
                const std::function<void(Rank &)> &body) {
  nameProcessesBy(program.mesh());
  ThreadWorld world(program.mesh().size());
  std::vector<std::thread> threads;
  for (int64_t process = 0; process < program.mesh().size(); ++process)
    threads.emplace_back([&, process] {
      ThreadTransport transport(world, process);
      Rank rank(program, transport);
      body(rank);
    });
  for (std::thread &thread : threads)
    thread.join();
  nameProcessesBy(Mesh());
}

/// What each of 2 x 3 processes does, as threads.
static void runSix(const std::function<void(Rank &)> &body) {
  Program program;
  program.replicas = 3;
  program.microBatches = 4;
  program.groups = {{.axis = Axis::Data}, {.ranks = {1, 0}}};
  program.ranks.resize(2);
  const char *const names[] = {"v", "w"};
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    program.ranks[r].arenaBytes = 128;
    program.ranks[r].tensors = {
        {.name = names[r], .buffer = {0, 12}, .shape = "3"}};
  }
  run(program, body);
}

/// Two stages of rank 0 and one of rank 1 have the same weight.
TEST(Rank, TellsOfCopiesThatDiffer) {
  Program program;
  program.ranks.resize(2);
  for (RankProgram &rank : program.ranks) {
    rank.arenaBytes = 64;
    rank.tensors = {{.name = "w", .buffer = {0, 12}, .shape = "3"}};
  }
  program.ranks[0].tensors.push_back(
      {.name = "w", .buffer = {16, 12}, .shape = "3"});
  const char *const why =
      ": a machine that computes otherwise, or a mistake in the program";
  run(program, [&](Rank &rank) {
    EXPECT_EQ(weightTrouble(rank), "");
    rank.data<float>({16, 12})[0] = 1;
    EXPECT_EQ(weightTrouble(rank),
              std::string("rank 0 has two weights 'w' that differ") + why);
    rank.data<float>({0, 12})[0] = 1;
    EXPECT_EQ(weightTrouble(rank), "");
    if (rank.number() == 1)
      rank.data<float>({0, 12})[0] = 2;
    EXPECT_EQ(weightTrouble(rank),
              std::string("rank 1 has another weight 'w' than rank 0") + why);
  });
}

TEST(Rank, TalksToTheRanksOfItsReplica) {
  runSix([](Rank &rank) {
    const int64_t process = rank.transport().rank();
    EXPECT_EQ(rank.number(), process / 3);
    EXPECT_EQ(rank.replica(), process % 3);
    EXPECT_EQ(rank.numberInBatch(1), 4 * (process % 3) + 1);
    const Buffer own = {0, 4}, other = {64, 4};
    *rank.data<float>(own) = static_cast<float>(process);
    const int64_t peer = 1 - rank.number();
    rank.postReceive(peer, other);
    rank.postSend(peer, own);
    rank.waitReceive(peer);
    rank.waitSend(peer);
    EXPECT_EQ(*rank.data<float>(other), 3 * peer + rank.replica());
  });
}

/// A message to the other rank; to each other replica its part of two numbers,
/// and the rank's own sum. The third replica has no part. Barriers do not
/// count.
TEST(Rank, CountsWhatItSends) {
  runSix([](Rank &rank) {
    const Buffer range = {0, 8}, scratch = {64, 16}, other = {96, 4};
    rank.takeSent();
    const int64_t peer = 1 - rank.number();
    rank.postReceive(peer, other);
    rank.postSend(peer, Buffer{0, 4});
    rank.waitReceive(peer);
    rank.waitSend(peer);
    rank.allReduce(0, ElementType::F32, range, scratch);
    rank.waitCollective();
    rank.transport().barrier();
    EXPECT_EQ(rank.takeSent(), (Traffic{5, rank.replica() < 2 ? 16 : 12}));
    EXPECT_EQ(rank.takeSent(), Traffic());
  });
}

TEST(Rank, TellsHowLongItWaitsForItsGroups) {
  runSix([](Rank &rank) {
    const Buffer range = {0, 8}, scratch = {64, 16};
    EXPECT_EQ(rank.takeCollectiveWait(), 0);
    rank.allReduce(0, ElementType::F32, range, scratch);
    rank.waitCollective();
    EXPECT_GT(rank.takeCollectiveWait(), 0);
    EXPECT_EQ(rank.takeCollectiveWait(), 0);
  });
}

/// Gradients of stages with memory of their own are copied at the first update,
/// others at their stage's; a step that updated nothing changes nothing.
TEST(Rank, CopiesGradientsBeforeTheirMemoryIsOthers) {
  Program program;
  program.ranks.resize(1);
  program.ranks[0].arenaBytes = 64;
  program.ranks[0].tensors = {
      {.name = "a", .buffer = {0, 4}, .role = Role::Gradient},
      {.name = "b", .buffer = {8, 4}, .role = Role::Gradient, .stage = 1},
      {.name = "c", .buffer = {8, 4}, .role = Role::Gradient, .stage = 0}};
  program.optimizer.gradientScale = 0.5;
  run(program, [](Rank &rank) {
    float *const values = rank.data<float>({0, 16});
    rank.captureGradients();
    rank.captureGradients();
    values[0] = 2;
    values[2] = 4;
    rank.task("U", 1, 0);
    values[0] = 0;
    values[2] = 6;
    EXPECT_TRUE(rank.gradients().empty());
    rank.task("U", 0, 0);
    values[2] = 0;
    const std::vector<std::vector<float>> expected = {{1}, {2}, {3}};
    EXPECT_EQ(rank.gradients(), expected);
    rank.task("U", 0, 0);
    EXPECT_EQ(rank.gradients(), expected);
  });
}

TEST(Rank, AddsUpWithItsReplicasAndWithinThem) {
  runSix([](Rank &rank) {
    const Buffer range = {0, 8}, scratch = {64, 16};
    rank.data<float>(range)[0] = static_cast<float>(rank.replica() + 1);
    rank.data<float>(range)[1] = static_cast<float>(rank.number());
    rank.allReduce(0, ElementType::F32, range, scratch);
    rank.waitCollective();
    EXPECT_EQ(rank.data<float>(range)[0], 6);
    EXPECT_EQ(rank.data<float>(range)[1], 3 * rank.number());
    rank.allReduce(1, ElementType::F32, range, scratch);
    rank.waitCollective();
    EXPECT_EQ(rank.data<float>(range)[0], 12);
    EXPECT_EQ(rank.data<float>(range)[1], 3);
    rank.data<float>(range)[0] = static_cast<float>(rank.replica());
    rank.broadcast(0, ElementType::F32, range, 2);
    rank.waitCollective();
    EXPECT_EQ(rank.data<float>(range)[0], 2);
  });
}

/// Two statistics of stage 0 and one of stage 1 take in a number of each
/// micro-batch; a fourth one does not change.
TEST(Rank, MakesOneOfRunningStatistics) {
  Program program;
  program.replicas = 3;
  program.microBatches = 4;
  program.groups.push_back({.axis = Axis::Data});
  program.ranks.resize(1);
  program.ranks[0].arenaBytes = 128;
  auto state = [](const char *name, int64_t offset, float decay,
                  int64_t stage) {
    return TensorInfo{.name = name,
                      .buffer = {offset, 8},
                      .shape = "2",
                      .role = Role::State,
                      .decay = decay,
                      .stage = stage};
  };
  program.ranks[0].tensors = {
      state("half", 0, 0.5f, 0), state("most", 16, 0.9f, 0),
      state("none", 32, 0.0f, 1), state("frozen", 48, 1.0f, -1)};
  auto numberOf = [](int64_t microBatch, int64_t i) {
    return static_cast<float>(microBatch * microBatch % 7) + 0.25f * i;
  };
  run(program, [&](Rank &rank) {
    double expected[4][2];
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t i = 0; i < 2; ++i)
        expected[t][i] =
            rank.data<float>(program.ranks[0].tensors[t].buffer)[i] =
                10.0f - t - 3 * i;
    for (int64_t step = 0; step < 2; ++step) {
      rank.beginStatistics();
      for (int64_t t = 0; t < 3; ++t) {
        const TensorInfo &tensor = program.ranks[0].tensors[t];
        for (int64_t i = 0; i < 2; ++i) {
          float &own = rank.data<float>(tensor.buffer)[i];
          for (int64_t m = 0; m < program.microBatches; ++m)
            own = tensor.decay * own + numberOf(rank.numberInBatch(m), i);
          for (int64_t m = 0; m < program.batchMicroBatches(); ++m)
            expected[t][i] = tensor.decay * expected[t][i] + numberOf(m, i);
        }
      }
      rank.mergeStatistics(1);
      rank.mergeStatistics(0);
      for (int64_t t = 0; t < 4; ++t)
        for (int64_t i = 0; i < 2; ++i)
          EXPECT_NEAR(rank.data<float>(program.ranks[0].tensors[t].buffer)[i],
                      expected[t][i], 2e-6 * std::fabs(expected[t][i]));
    }
    EXPECT_EQ(weightTrouble(rank), "");
  });
}

TEST(Rank, TellsOfReplicasWithOtherWeights) {
  runSix([](Rank &rank) {
    EXPECT_EQ(weightTrouble(rank), "");
    // Ranks of one replica have different weights anyway.
    rank.data<float>({0, 12})[0] = static_cast<float>(rank.number());
    EXPECT_EQ(weightTrouble(rank), "");
    if (rank.transport().rank() == 5)
      rank.data<float>({0, 12})[2] = 1;
    EXPECT_EQ(
        weightTrouble(rank),
        "rank 1 of replica 2 has another weight 'w' than rank 1 of replica "
        "0: a machine that computes otherwise, or a mistake in the "
        "program");
  });
}

//===----------------------------------------------------------------------===//
// Clipping
//===----------------------------------------------------------------------===//

/// Three ranks with gradients of different sizes; the middle one has none.
static Program clippingProgram() {
  Program program;
  program.optimizer.scalars = {{StepScalar::LearningRate},
                               {StepScalar::GradientScale}};
  program.optimizer.gradientScale = 0.5f;
  program.optimizer.clipNorm = 2;
  auto gradient = [](const char *name, int64_t offset, int64_t numbers) {
    TensorInfo tensor;
    tensor.name = name;
    tensor.role = Role::Gradient;
    tensor.buffer = {offset, numbers * int64_t{sizeof(float)}};
    return tensor;
  };
  for (int64_t rank = 0; rank < 3; ++rank) {
    program.ranks.push_back({});
    program.ranks.back().arenaBytes = 1024;
  }
  program.ranks[0].tensors = {gradient("b", 0, 33), gradient("d", 256, 1)};
  program.ranks[2].tensors = {gradient("a", 0, 16), gradient("c", 64, 7)};
  return program;
}

/// Number i of a gradient.
static float gradientAt(int64_t i) { return static_cast<float>(i % 7 - 3); }

/// The norm that each rank finds, and what its updates multiply gradients by.
static std::vector<std::pair<double, float>> clip(const Program &program,
                                                  float scale, double largest) {
  std::vector<std::pair<double, float>> found(3);
  run(program, [&](Rank &rank) {
    rank.beginStep(0, 0.1f);
    rank.setClipNorm(largest);
    for (const TensorInfo &tensor : rank.program().tensors)
      for (int64_t i = 0; i < tensor.buffer.bytes / 4; ++i)
        rank.data<float>(tensor.buffer)[i] = scale * gradientAt(i);
    rank.clipGradients();
    EXPECT_FLOAT_EQ(rank.hyper()[0], 0.1f);
    found[rank.number()] = {rank.gradientNorm(), rank.hyper()[1]};
  });
  return found;
}

TEST(Rank, ClipsByTheNormOfAllRanks) {
  const Program program = clippingProgram();
  double squares = 0;
  for (const int64_t numbers : {33, 1, 16, 7})
    for (int64_t i = 0; i < numbers; ++i)
      squares += double{gradientAt(i)} * gradientAt(i);
  const double norm = std::sqrt(squares) / 2;
  for (const auto &[found, factor] : clip(program, 1, 2)) {
    EXPECT_DOUBLE_EQ(found, norm);
    EXPECT_FLOAT_EQ(factor, static_cast<float>(0.5 * 2 / (norm + 1e-6)));
  }
  // Below what is allowed nothing is scaled, and zeros divide by nothing.
  for (const auto &[found, factor] : clip(program, 1, 2 * norm))
    EXPECT_EQ(factor, 0.5f);
  for (const auto &[found, factor] : clip(program, 0, 2)) {
    EXPECT_EQ(found, 0);
    EXPECT_EQ(factor, 0.5f);
  }
  // Squares that float32 has no numbers for.
  for (const auto &[found, factor] : clip(program, 1e30f, 2)) {
    EXPECT_NEAR(found / (norm * 1e30f), 1, 1e-7);
    EXPECT_NEAR(factor / (1 / (norm * 1e30f)), 1, 1e-6);
  }
}

TEST(Rank, RefusesGradientsThatAreNoNumbers) {
  const Program program = clippingProgram();
  std::vector<std::string> errors(3);
  run(program, [&](Rank &rank) {
    rank.beginStep(6, 0.1f);
    if (rank.number() == 2)
      rank.data<float>(rank.program().tensors[1].buffer)[6] = NAN;
    try {
      rank.clipGradients();
    } catch (const std::exception &error) {
      errors[rank.number()] = error.what();
    }
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "the gradient of 'c' has values that are no finite "
                     "numbers, at step 7: try a smaller --lr, or look for such "
                     "values in the data; no weights were saved; --on-nan skip "
                     "passes over such steps");
}

// All ranks alike, whoever has the gradient; the next step does not know of it,
// but averages are told of one update less.
TEST(Rank, SkipsGradientsThatAreNoNumbers) {
  Program program = clippingProgram();
  const Table<StepScalar> scalars = {{StepScalar::GradientScale},
                                     {StepScalar::BiasCorrection, 0.5f}};
  program.optimizer.scalars = scalars;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::atomic<int64_t> alike = 0;
    run(program, [&](Rank &rank) {
      rank.setSkipsNan(true);
      rank.beginStep(6, 0.1f);
      EXPECT_FLOAT_EQ(rank.hyper()[1], 1 / (1 - std::pow(0.5f, 7)));
      if (rank.number() == 2)
        rank.data<float>(rank.program().tensors[1].buffer)[6] = bad;
      rank.clipGradients();
      EXPECT_TRUE(std::isnan(rank.hyper()[0]));
      EXPECT_TRUE(std::isnan(rank.gradientNorm()));
      alike +=
          rank.skippedBecause() && rank.skippedBecause() == std::string("c");
      if (rank.number() == 2)
        rank.data<float>(rank.program().tensors[1].buffer)[6] = 0;
      rank.setSkippedUpdates(1);
      rank.beginStep(7, 0.1f);
      EXPECT_FLOAT_EQ(rank.hyper()[1], 1 / (1 - std::pow(0.5f, 7)));
      EXPECT_EQ(rank.skippedBecause(), nullptr);
      rank.clipGradients();
      EXPECT_FALSE(std::isnan(rank.hyper()[0]));
      EXPECT_EQ(rank.skippedBecause(), nullptr);
    });
    EXPECT_EQ(alike, 3);
  }
}

TEST(Rank, AddsSquaresOfAnyNumberOfValues) {
  std::vector<float> values;
  double sum = 0;
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_DOUBLE_EQ(sumOfSquares(values.data(), i), sum);
    values.push_back(gradientAt(i));
    sum += double{values.back()} * values.back();
  }
}
