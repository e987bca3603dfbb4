//===- StreamSimulatorTests.cpp - The same without writing it out ---------===//
//
// Equal to the plain simulator to the last bit, for all policies and sizes;
// packed orders; one schedule of a size that shows that memory stays small.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/PackedOrder.h"
#include "passes/schedules/StreamSimulator.h"

#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

static std::vector<Task> unpack(PackedOrder order) {
  std::vector<Task> tasks;
  for (; order.task(); order.advance())
    tasks.push_back(*order.task());
  return tasks;
}

static void expectSame(llvm::ArrayRef<Task> tasks) {
  std::vector<Task> unpacked = unpack(PackedOrder(tasks));
  ASSERT_EQ(tasks.size(), unpacked.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].name(), unpacked[i].name());
    EXPECT_EQ(tasks[i].overlapsNext, unpacked[i].overlapsNext);
  }
}

TEST(PackedOrder, GivesBackAnyTasks) {
  expectSame({});
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Task> tasks(random() % 300);
    int32_t stages = 1 + random() % 100;
    for (Task &task : tasks)
      task = {static_cast<TaskKind>(random() % numTaskKinds),
              static_cast<int32_t>(random() % stages),
              static_cast<int32_t>(random() % 5), random() % 2 == 0};
    expectSame(tasks);
  }
}

TEST(PackedOrder, ShowsTwoTasks) {
  PackedOrder order({Task::forward(0, 0), Task::backward(0, 0)});
  ASSERT_TRUE(order.task() && order.partner());
  EXPECT_EQ("F0.0", order.task()->name());
  EXPECT_EQ("B0.0", order.partner()->name());
  order.advance();
  EXPECT_EQ("B0.0", order.task()->name());
  EXPECT_EQ(nullptr, order.partner());
  order.advance();
  EXPECT_EQ(nullptr, order.task());
}

TEST(PackedOrder, TakesAByteForTasksInSteps) {
  for (const char *policy :
       {"gpipe", "gpipe:descending", "1f1b", "zb-h1", "interleaved",
        "breadth-first", "interleaved-zb", "zb-v", "dualpipe"}) {
    bool isSingle = llvm::StringRef(policy).starts_with("gpipe") ||
                    policy == std::string("1f1b") ||
                    policy == std::string("zb-h1") ||
                    policy == std::string("dualpipe");
    Schedule schedule = buildSchedule(policy, 4, isSingle ? 4 : 8, 1024);
    for (const std::vector<Task> &tasks : schedule.order)
      EXPECT_LT(PackedOrder(tasks).bytes(), 1.1 * tasks.size() + 2000)
          << policy;
  }
}

/// Every figure that both simulators give, to the last bit.
static void expectEqual(const Policy &policy, const ScheduleOptions &options,
                        const TaskCosts &costs,
                        llvm::ArrayRef<StageEdge> edges) {
  Schedule schedule = valueOf(policy.build(options));
  Simulation expected = valueOf(simulate(schedule, costs, edges));
  StreamSimulation actual =
      valueOf(simulateStream(policy, options, costs, edges));
  EXPECT_EQ(expected.globalStepTime, actual.globalStepTime);
  EXPECT_EQ(expected.spanStepTime, actual.spanStepTime);
  ASSERT_EQ(expected.ranks.size(), actual.ranks.size());
  for (size_t rank = 0; rank < actual.ranks.size(); ++rank) {
    const RankSummary &a = expected.ranks[rank], &b = actual.ranks[rank];
    EXPECT_EQ(a.busySeconds, b.busySeconds);
    EXPECT_EQ(a.bubbleFraction, b.bubbleFraction);
    EXPECT_EQ(a.peakStashBytes, b.peakStashBytes);
    EXPECT_EQ(a.peakInFlight, b.peakInFlight);
  }
}

TEST(StreamSimulator, EqualsTheSimulator) {
  std::mt19937 random(3);
  auto below = [&](int limit) {
    return static_cast<int32_t>(random() % limit);
  };
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    if (options.microBatches > 2 * options.ranks)
      return;
    Schedule schedule = valueOf(policy.shape(options));
    TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, 1.7);
    for (StageCosts &stage : costs.stages) {
      stage.forward = 0.3 * below(4);
      stage.stashBytes = below(100);
      stage.weightStashBytes = below(120) - 1;
    }
    costs.linkLatency = 0.1 * below(3);
    costs.linkBandwidth = 70;
    costs.pairFactor = 0.8;
    std::vector<StageEdge> edges =
        linearEdges(schedule.stages, 8, schedule.copies);
    int32_t each = static_cast<int32_t>(schedule.stages / schedule.copies);
    if (each > 2)
      edges.push_back({below(2), each - 1, 4, below(2) == 0});
    expectEqual(policy, options, costs, edges);
  });
}

TEST(StreamSimulator, TurnsKeepMessagesFew) {
  PolicyChoice policy = valueOf(choosePolicy("gpipe"));
  StreamSimulation simulation = valueOf(
      simulateStream(*policy, {8, 8, 20000}, TaskCosts::uniform(8, 1, 2)));
  EXPECT_EQ(8 * (2 * 20000 + 1), simulation.tasks);
  EXPECT_EQ(3 * (20000 + 7), simulation.globalStepTime);
  EXPECT_LT(simulation.peakMessages, 2000);
  EXPECT_LT(simulation.orderBytes, simulation.tasks + 10000);
}

namespace {

/// One stage on each rank; rank 0 wants a gradient before it has sent
/// everything that the next rank wants first.
class Stuck final : public Policy {
public:
  llvm::StringRef name() const override { return "stuck"; }
  llvm::StringRef summary() const override { return ""; }
  llvm::StringRef paper() const override { return ""; }
  llvm::StringRef bubbleFormula() const override { return ""; }
  llvm::StringRef memoryFormula() const override { return ""; }
  int64_t maxInFlight(const ScheduleOptions &, int64_t) const override {
    return 2;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    return placeOneStagePerRank(options);
  }
  std::vector<Task> orderOfRank(const Schedule &, const ScheduleOptions &,
                                int32_t rank) const override {
    std::vector<Task> order = {Task::forward(rank, 0), Task::forward(rank, 1),
                               Task::backward(rank, 0),
                               Task::backward(rank, 1)};
    if (rank == 0)
      std::swap(order[1], order[2]);
    return order;
  }
};

} // namespace

TEST(StreamSimulator, RefusesAsTheOthersDo) {
  Stuck policy;
  ScheduleOptions options{2, 2, 2};
  std::string expected =
      messageOf(checkSchedule(valueOf(policy.build(options))));
  EXPECT_TRUE(llvm::StringRef(expected).starts_with("deadlock: rank 0"));
  EXPECT_EQ(expected,
            messageOf(simulateStream(policy, options, TaskCosts::uniform(2))));
  // The policy has orders for two micro-batches only.
  EXPECT_EQ(
      "rank 0 never runs F0.2",
      messageOf(simulateStream(policy, {2, 2, 3}, TaskCosts::uniform(2))));
  EXPECT_EQ("expects the costs of 2 stages, but got 1",
            messageOf(simulateStream(policy, options, TaskCosts::uniform(1))));
  EXPECT_EQ(
      "stuck needs at least 1 of ranks, but got 0",
      messageOf(simulateStream(policy, {0, 2, 2}, TaskCosts::uniform(2))));
}
