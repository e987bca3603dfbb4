//===- MessageOrderTests.cpp - Posts and waits in a safe order --*- C++ -*-===//
//
// One list compared whole, to show the form; then safety for all policies,
// sizes, costs and edges.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"

#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

/// `F0.0`, `post send f0.1 to 1`: forward or gradient, edge, micro-batch.
static std::string textOf(const std::vector<RankInstruction> &list) {
  std::string text;
  for (const RankInstruction &instruction : list) {
    const char *words[] = {"", "post send ", "post receive ", "wait send ",
                           "wait receive "};
    if (instruction.kind == InstructionKind::Task) {
      text += instruction.task.name() + "\n";
      continue;
    }
    const Transfer &transfer = instruction.transfer;
    text += words[static_cast<int>(instruction.kind)];
    text += transfer.kind == TransferKind::Forward ? "f" : "g";
    text += std::to_string(transfer.edge) + "." +
            std::to_string(transfer.microBatch) + " rank " +
            std::to_string(instruction.peer) + "\n";
  }
  return text;
}

static void expectSafe(const Schedule &schedule, const TaskCosts &costs,
                       llvm::ArrayRef<StageEdge> edges) {
  using enum ChannelLayout;
  for (ChannelLayout layout : {Link, Direction, Rank}) {
    InstructionLists lists =
        valueOf(orderMessages(schedule, costs, edges, layout));
    EXPECT_EQ("", messageOf(checkInstructions(lists, Channels{layout})));
    EXPECT_EQ("", messageOf(checkDataFlow(schedule, lists, edges)));
  }
}

TEST(MessageOrder, SendsOverlapWithTheNextTask) {
  InstructionLists lists = valueOf(
      orderMessages(buildSchedule("1f1b", 2, 2, 2), TaskCosts::uniform(2)));
  EXPECT_EQ(R"(F0.0
post send f0.0 rank 1
F0.1
post send f0.1 rank 1
post receive g0.0 rank 1
wait send f0.0 rank 1
wait receive g0.0 rank 1
B0.0
post receive g0.1 rank 1
wait send f0.1 rank 1
wait receive g0.1 rank 1
B0.1
U0
)",
            textOf(lists[0]));
  EXPECT_EQ(R"(post receive f0.0 rank 0
post receive f0.1 rank 0
wait receive f0.0 rank 0
F1.0
B1.0
post send g0.0 rank 0
wait receive f0.1 rank 0
F1.1
wait send g0.0 rank 0
B1.1
post send g0.1 rank 0
U1
wait send g0.1 rank 0
)",
            textOf(lists[1]));
}

TEST(MessageOrder, ReceivesOverlapEvenIfNoLatencyIsPredicted) {
  // Every rank starts a task when its predecessor ends one. In between, the
  // receive has to be posted a task ahead of its use.
  InstructionLists lists = valueOf(
      orderMessages(buildSchedule("gpipe", 3, 3, 6), TaskCosts::uniform(3)));
  std::string text = textOf(lists[1]);
  EXPECT_NE(std::string::npos, text.find("post receive f0.3 rank 0\n"
                                         "wait send f1.0 rank 2\n"
                                         "wait receive f0.2 rank 0\n"
                                         "F1.2\n"))
      << text;
}

TEST(MessageOrder, SameRankNeedsNoTransfer) {
  InstructionLists lists = valueOf(
      orderMessages(buildSchedule("gpipe", 1, 3, 2), TaskCosts::uniform(3)));
  for (const RankInstruction &instruction : lists[0])
    EXPECT_EQ(InstructionKind::Task, instruction.kind);
}

TEST(MessageOrder, CarriesBytes) {
  std::vector<StageEdge> edges = {{0, 1, 64}, {0, 1, 16, false}};
  InstructionLists lists = valueOf(orderMessages(
      buildSchedule("gpipe", 2, 2, 1), TaskCosts::uniform(2), edges));
  int64_t sent[2] = {0, 0};
  for (int rank : {0, 1})
    for (const RankInstruction &instruction : lists[rank])
      if (instruction.kind == InstructionKind::PostSend)
        sent[rank] += instruction.bytes;
  EXPECT_EQ(80, sent[0]);
  EXPECT_EQ(64, sent[1]);
}

TEST(MessageOrder, IsSafeForAllPoliciesAndSizes) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    expectSafe(schedule, TaskCosts::uniform(schedule.stages), {});
    TaskCosts slowLinks = TaskCosts::uniform(schedule.stages, 1, 2);
    slowLinks.linkLatency = 3;
    expectSafe(schedule, slowLinks, {});
  });
}

TEST(MessageOrder, IsSafeForAnyCostsAndSkipConnections) {
  std::mt19937 random(1);
  auto below = [&](int limit) {
    return static_cast<int32_t>(random() % limit);
  };
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    if (options.microBatches > 2 * options.ranks)
      return;
    Schedule schedule = valueOf(policy.build(options));
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    // Many zeros: equal times are where an order could go wrong.
    for (StageCosts &stage : costs.stages) {
      stage.forward = below(4);
      stage.backward = below(4);
      stage.inputGradient = below(3);
      stage.weightGradient = below(3);
      stage.update = below(2);
    }
    costs.linkLatency = below(3);
    costs.pairFactor = 0.5 * below(3);
    std::vector<StageEdge> edges =
        linearEdges(schedule.stages, 8, schedule.copies);
    int32_t each = static_cast<int32_t>(schedule.stages / schedule.copies);
    for (int i = 0; each > 1 && i < 4; ++i) {
      int32_t to = 1 + below(each - 1), copy = below(schedule.copies) * each;
      edges.push_back({copy + below(to), copy + to, below(100), below(2) == 0});
    }
    expectSafe(schedule, costs, edges);
  });
}

TEST(MessageOrder, RefusesWhatCannotRun) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  TaskCosts costs = TaskCosts::uniform(2);
  costs.stages[0].forward = -1;
  EXPECT_EQ("expects task times of at least 0, but got -1.00 for stage 0",
            messageOf(orderMessages(schedule, costs)));
  std::swap(schedule.order[0][0], schedule.order[0][1]);
  EXPECT_EQ("rank 0 runs B0.0 before F0.0, which it needs",
            messageOf(orderMessages(schedule, TaskCosts::uniform(2))));
}

/// The same order for a model whose first stages no gradient reaches, and whose
/// last stage has no weights.
static Schedule withoutTasks(Schedule schedule, int32_t frozen) {
  schedule.stageTasks.resize(schedule.stages);
  for (int32_t stage = 0; stage < frozen; ++stage)
    schedule.stageTasks[stage] = {.backward = false, .update = false};
  schedule.stageTasks.back().update = false;
  for (std::vector<Task> &order : schedule.order) {
    llvm::erase_if(order, [&](const Task &task) {
      const StageTasks has = schedule.tasksOf(task.stage);
      return task.kind == TaskKind::Update    ? !has.update
             : task.kind == TaskKind::Forward ? false
                                              : !has.backward;
    });
    for (Task &task : order)
      task.overlapsNext = false;
  }
  return schedule;
}

TEST(MessageOrder, StagesMayLackTasks) {
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    Schedule whole = valueOf(policy.build(options));
    if (whole.copies > 1 || whole.forwardOnly || whole.stages < 2)
      return;
    for (int32_t frozen : {1, static_cast<int32_t>(whole.stages - 1)}) {
      Schedule schedule = withoutTasks(whole, frozen);
      std::vector<StageEdge> edges = linearEdges(schedule.stages, 8);
      for (StageEdge &edge : edges)
        edge.hasGradient = edge.to >= frozen;
      TaskCosts costs = TaskCosts::uniform(schedule.stages);
      EXPECT_NE("", messageOf(simulate(schedule, costs, edges)));
      for (StageEdge &edge : edges)
        edge.hasGradient = edge.from >= frozen;
      expectSafe(schedule, costs, edges);
      Simulation simulation = valueOf(simulate(schedule, costs, edges));
      EXPECT_LE(simulation.globalStepTime,
                valueOf(simulate(whole, costs, edges)).globalStepTime);
    }
  });
}

TEST(MessageOrder, TellsOfTasksThatAStageLacks) {
  Schedule schedule = buildSchedule("1f1b", 2, 2, 2);
  schedule.stageTasks = {{.backward = false}, {}};
  StageEdge edge = {0, 1, 8, /*hasGradient=*/false};
  EXPECT_EQ("rank 0 runs B0.0, which the model does not have of this stage",
            messageOf(simulate(schedule, TaskCosts::uniform(2), edge)));
  schedule.stageTasks = {{}, {.backward = false}};
  edge.hasGradient = true;
  EXPECT_EQ("edge 0 has a gradient, but stage 1 has no backward",
            messageOf(simulate(schedule, TaskCosts::uniform(2), edge)));
}
