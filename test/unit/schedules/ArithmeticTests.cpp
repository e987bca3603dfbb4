//===- ArithmeticTests.cpp - What a schedule computes -----------*- C++ -*-===//
//
// Executes schedules task by task on a model of one weight per stage, and
// compares the trained weights with plain sequential programs: bit by bit
// where the definition promises it.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Dependences.h"

#include <algorithm>
#include <cmath>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

//===----------------------------------------------------------------------===//
// The model: y = w x + x^2 / 8 in each stage, the loss is half the square of
// what the last stage's output differs from a target
//===----------------------------------------------------------------------===//

namespace {

constexpr double learningRate = 0.01;

/// By stage of the model: what the update before the last has left, and what
/// the last has.
struct Weights {
  std::vector<double> previous, current;

  static Weights initial(int64_t stages) {
    std::vector<double> weights(stages);
    for (int64_t stage = 0; stage < stages; ++stage)
      weights[stage] = 0.5 + 1. / (3 + stage);
    return {weights, weights};
  }
};

} // namespace

static double inputOf(int64_t microBatch) {
  return 0.3 + 1. / (7 + microBatch);
}
static double targetOf(int64_t microBatch) { return 0.1 * (microBatch % 3); }
static double forward(double weight, double x) {
  return weight * x + x * x / 8;
}
static double inputGradient(double weight, double x, double gradient) {
  return gradient * (weight + x / 4);
}
static double weightGradient(double x, double gradient) { return gradient * x; }

/// Of a micro-batch that goes through all stages and back at once, with the
/// given weights.
static std::vector<double> gradientsOf(int64_t microBatch,
                                       llvm::ArrayRef<double> weights) {
  std::vector<double> inputs;
  double x = inputOf(microBatch);
  for (double weight : weights) {
    inputs.push_back(x);
    x = forward(weight, x);
  }
  double gradient = x - targetOf(microBatch);
  std::vector<double> gradients(weights.size());
  for (size_t stage = weights.size(); stage-- > 0;) {
    gradients[stage] = weightGradient(inputs[stage], gradient);
    gradient = inputGradient(weights[stage], inputs[stage], gradient);
  }
  return gradients;
}

namespace {

/// One step of a schedule, task by task.
class Execution {
public:
  /// The step's micro-batch 0 has the data of `firstMicroBatch`.
  Execution(const Schedule &schedule, const Weights &start,
            int64_t firstMicroBatch = 0)
      : schedule(schedule), firstMicroBatch(firstMicroBatch),
        perCopy(schedule.stages / schedule.copies),
        inputs(schedule.stages * schedule.microBatches), outputs(inputs.size()),
        gradients(inputs.size()) {
    for (int32_t stage = 0; stage < schedule.stages; ++stage) {
      weights.push_back(
          {start.previous[stage % perCopy], start.current[stage % perCopy]});
      versions.push_back(weightVersions(schedule, stage));
    }
    sums.assign(schedule.stages, std::vector<double>(schedule.updates));
  }

  Weights run() {
    Dependences dependences = llvm::cantFail(Dependences::build(schedule, {}));
    llvm::cantFail(dependences.run([&](int32_t rank, int64_t position) {
      execute(schedule.order[rank][position]);
    }));
    Weights result;
    for (int32_t stage = 0; stage < perCopy; ++stage) {
      if (schedule.copies == 2)
        update(stage, sums[stage][0] + sums[stage + perCopy][0]);
      result.previous.push_back(*(weights[stage].end() - 2));
      result.current.push_back(weights[stage].back());
    }
    return result;
  }

private:
  int64_t at(int32_t stage, int32_t microBatch) const {
    return stage * schedule.microBatches + microBatch;
  }
  double weightOf(const Task &task) const {
    return weights[task.stage][versions[task.stage][task.microBatch] + 1];
  }
  void update(int32_t stage, double sum) {
    int64_t count = schedule.microBatches / schedule.updates;
    weights[stage].push_back(weights[stage].back() -
                             learningRate * (sum / count));
  }

  void execute(const Task &task) {
    int64_t here = at(task.stage, task.microBatch);
    bool isFirst = task.stage % perCopy == 0;
    bool isLast = (task.stage + 1) % perCopy == 0;
    switch (task.kind) {
    case TaskKind::Forward:
      inputs[here] = isFirst ? inputOf(firstMicroBatch + task.microBatch)
                             : outputs[at(task.stage - 1, task.microBatch)];
      outputs[here] = forward(weightOf(task), inputs[here]);
      if (isLast)
        gradients[here] =
            outputs[here] - targetOf(firstMicroBatch + task.microBatch);
      return;
    case TaskKind::Backward:
    case TaskKind::InputGradient:
      if (!isFirst)
        gradients[at(task.stage - 1, task.microBatch)] =
            inputGradient(weightOf(task), inputs[here], gradients[here]);
      if (task.kind == TaskKind::InputGradient)
        return;
      [[fallthrough]];
    case TaskKind::WeightGradient:
      sums[task.stage][schedule.updateOf(task.microBatch)] +=
          weightGradient(inputs[here], gradients[here]);
      return;
    case TaskKind::Update:
      // With two copies, whoever makes the program adds their gradients.
      if (schedule.copies == 1)
        update(task.stage, sums[task.stage][task.microBatch]);
      return;
    case TaskKind::Recompute:
      return;
    }
  }

  const Schedule &schedule;
  int64_t firstMicroBatch;
  int64_t perCopy;
  /// By stage and micro-batch; gradients are those of the outputs.
  std::vector<double> inputs, outputs, gradients;
  /// By stage, from the version before the step's first on.
  std::vector<std::vector<double>> weights;
  std::vector<std::vector<int32_t>> versions;
  /// By stage and update.
  std::vector<std::vector<double>> sums;
};

} // namespace

//===----------------------------------------------------------------------===//
// Synchronous policies
//===----------------------------------------------------------------------===//

/// Plain training: the mean gradient of all micro-batches, in their order.
static std::vector<double> trainPlainly(int64_t microBatches,
                                        std::vector<double> weights) {
  std::vector<double> sums(weights.size());
  for (int64_t m = 0; m < microBatches; ++m) {
    std::vector<double> gradients = gradientsOf(m, weights);
    for (size_t stage = 0; stage < weights.size(); ++stage)
      sums[stage] += gradients[stage];
  }
  for (size_t stage = 0; stage < weights.size(); ++stage)
    weights[stage] -= learningRate * (sums[stage] / microBatches);
  return weights;
}

TEST(Arithmetic, SynchronousPoliciesTrainAsOneRankDoes) {
  int exact = 0, rounded = 0;
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    if (!policy.trains() || policy.weightRule() != WeightRule::Synchronous)
      return;
    Schedule schedule = valueOf(policy.build(options));
    Weights start = Weights::initial(options.stages);
    std::vector<double> trained = Execution(schedule, start).run().current;
    std::vector<double> expected =
        trainPlainly(options.microBatches, start.current);
    bool isExact = sumsAscending(schedule) && policy.copies() == 1;
    (isExact ? exact : rounded)++;
    for (int64_t stage = 0; stage < options.stages; ++stage)
      if (isExact)
        EXPECT_EQ(expected[stage], trained[stage]);
      else
        EXPECT_NEAR(expected[stage], trained[stage], 1e-14);
  });
  EXPECT_GT(exact, 300);
  EXPECT_GT(rounded, 10);
}

//===----------------------------------------------------------------------===//
// Stale weights
//===----------------------------------------------------------------------===//

/// PipeDream.cpp's definition: micro-batch m reads, in stage s of P, the
/// weights that micro-batch m - (P-s) has left.
static std::vector<double> trainWithStashedWeights(int64_t microBatches,
                                                   std::vector<double> start) {
  int64_t stages = start.size();
  std::vector<std::vector<double>> weights = {start};
  for (int64_t m = 0; m < microBatches; ++m) {
    std::vector<double> read(stages);
    for (int64_t stage = 0; stage < stages; ++stage)
      read[stage] =
          weights[std::max<int64_t>(0, m - (stages - 1 - stage))][stage];
    std::vector<double> gradients = gradientsOf(m, read);
    weights.push_back(weights.back());
    for (int64_t stage = 0; stage < stages; ++stage)
      weights.back()[stage] -= learningRate * gradients[stage];
  }
  return weights.back();
}

TEST(Arithmetic, PipeDreamIsItsSequentialDefinition) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t microBatches = 1; microBatches <= 4 * ranks; ++microBatches) {
      Schedule schedule =
          buildSchedule("pipedream", ranks, ranks, microBatches);
      Weights weights = Weights::initial(ranks);
      std::vector<double> expected = weights.current;
      for (int step = 0; step < 3; ++step) {
        weights = Execution(schedule, weights).run();
        expected = trainWithStashedWeights(microBatches, expected);
        EXPECT_EQ(expected, weights.current);
      }
    }
}

TEST(Arithmetic, PipeDreamDiffersFromPlainTrainingWhereWeightsAreStale) {
  std::vector<double> start = Weights::initial(4).current, plain = start;
  for (int64_t m = 0; m < 8; ++m) {
    std::vector<double> gradients = gradientsOf(m, plain);
    for (size_t stage = 0; stage < plain.size(); ++stage)
      plain[stage] -= learningRate * gradients[stage];
  }
  std::vector<double> stale = trainWithStashedWeights(8, start);
  for (size_t stage = 0; stage < plain.size(); ++stage)
    EXPECT_GT(std::abs(plain[stage] - stale[stage]), 1e-6);
}

TEST(Arithmetic, PipeDream2BWIsItsSequentialDefinition) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t batches : {1, 2, 3})
      for (int64_t perBatch : {ranks, 2 * ranks + 1}) {
        Schedule schedule =
            buildSchedule("pipedream-2bw:batches=" + std::to_string(batches),
                          ranks, ranks, batches * perBatch);
        Weights weights = Weights::initial(ranks), expected = weights;
        for (int step = 0; step < 3; ++step) {
          weights = Execution(schedule, weights).run();
          // W(t+1) = update(W(t), g(t)) with g(t) the gradient at W(t-1).
          for (int64_t batch = 0; batch < batches; ++batch) {
            std::vector<double> sums(ranks), next = expected.current;
            for (int64_t m = batch * perBatch; m < (batch + 1) * perBatch;
                 ++m) {
              std::vector<double> gradients = gradientsOf(m, expected.previous);
              for (int64_t stage = 0; stage < ranks; ++stage)
                sums[stage] += gradients[stage];
            }
            for (int64_t stage = 0; stage < ranks; ++stage)
              next[stage] -= learningRate * (sums[stage] / perBatch);
            expected = {expected.current, next};
          }
          EXPECT_EQ(expected.previous, weights.previous);
          EXPECT_EQ(expected.current, weights.current);
        }
      }
}

TEST(Arithmetic, WhereStepsOf2BWBeginMakesNoDifference) {
  // Twelve batches in steps of 1, 2, 3 and 12.
  constexpr int64_t ranks = 3, perBatch = 4, total = 12;
  std::vector<Weights> results;
  for (int64_t batches : {1, 2, 3, 12}) {
    Schedule schedule =
        buildSchedule("pipedream-2bw:batches=" + std::to_string(batches), ranks,
                      ranks, batches * perBatch);
    Weights weights = Weights::initial(ranks);
    for (int64_t batch = 0; batch < total; batch += batches)
      weights = Execution(schedule, weights, batch * perBatch).run();
    results.push_back(weights);
  }
  for (const Weights &result : results) {
    EXPECT_EQ(results[0].previous, result.previous);
    EXPECT_EQ(results[0].current, result.current);
  }
}
