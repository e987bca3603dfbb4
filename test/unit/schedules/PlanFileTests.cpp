//===- PlanFileTests.cpp - Plans as JSON, files as policies -----*- C++ -*-===//
//
// What is written is read back as it was; what is wrong is named by its path;
// whatever a file says, the reader answers.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/files/FilePolicy.h"
#include "passes/schedules/files/PlanFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

std::string textOf(const PlanFile &plan) {
  return llvm::formatv("{0:2}", planToJson(plan));
}

/// Everything that a file can say, of a policy with 2 ranks.
PlanFile fullPlan() {
  PlanFile plan;
  plan.schedule = buildSchedule("1f1b", 2, 2, 3);
  plan.edges = {{0, 1, 1024}, {0, 1, 8, /*hasGradient=*/false}};
  TaskCosts costs = TaskCosts::uniform(2, 1.5, 0.1);
  costs.stages[1].stashBytes = 4096;
  costs.stages[1].weightStashBytes = 512;
  costs.stages[1].keptBytes = 256;
  costs.stages[0].update = 0.25;
  costs.linkLatency = 1e-6;
  costs.links[{1, 0}] = {2e-6, 1e9};
  costs.hosts =
      Hosts::of(2, {.pipe = 4, .data = 3, .map = runtime::ProcessMap::Pairs},
                {1e-5, 2e8});
  costs.pairFactor = 0.75;
  Simulation simulation = valueOf(simulate(plan.schedule, costs, plan.edges));
  plan.lists = valueOf(orderMessages(plan.schedule, costs, plan.edges));
  plan.times = simulation.times;
  plan.costs = costs;
  return plan;
}

void expectEqual(const PlanFile &a, const PlanFile &b) {
  EXPECT_EQ(a.schedule.ranks, b.schedule.ranks);
  EXPECT_EQ(a.schedule.stages, b.schedule.stages);
  EXPECT_EQ(a.schedule.microBatches, b.schedule.microBatches);
  EXPECT_EQ(a.schedule.rankOfStage, b.schedule.rankOfStage);
  EXPECT_EQ(a.schedule.copies, b.schedule.copies);
  EXPECT_EQ(a.schedule.updates, b.schedule.updates);
  EXPECT_EQ(a.schedule.weightRule, b.schedule.weightRule);
  EXPECT_EQ(a.schedule.forwardOnly, b.schedule.forwardOnly);
  ASSERT_EQ(a.schedule.order, b.schedule.order);
  for (auto [x, y] : llvm::zip(a.schedule.order, b.schedule.order))
    for (auto [first, second] : llvm::zip(x, y))
      EXPECT_EQ(first.overlapsNext, second.overlapsNext);
  EXPECT_EQ(a.lists, b.lists);
  // The text is the same to the last digit.
  EXPECT_EQ(textOf(a), textOf(b));
}

TEST(PlanFile, IsReadAsItWasWritten) {
  PlanFile plan = fullPlan();
  PlanFile again = valueOf(parsePlan(textOf(plan), "plan.json"));
  expectEqual(plan, again);
  ASSERT_EQ(again.edges.size(), 2u);
  EXPECT_FALSE(again.edges[1].hasGradient);
  ASSERT_TRUE(again.costs);
  EXPECT_EQ(again.costs->stages[1].stashBytes, 4096);
  EXPECT_EQ(again.costs->stages[1].keptBytes, 256);
  EXPECT_EQ(again.costs->linkBetween(1, 0).bandwidth, 1e9);
  EXPECT_TRUE(std::isinf(again.costs->linkBetween(0, 1).bandwidth));
  EXPECT_EQ(again.times[1][0].start, plan.times[1][0].start);
}

TEST(PlanFile, OfEveryPolicyIsReadAsItWasWritten) {
  for (const Policy *policy : allPolicies()) {
    ScheduleOptions options = policy->example();
    SCOPED_TRACE(policy->name().str());
    PlanFile plan;
    plan.schedule = valueOf(policy->build(options));
    if (plan.schedule.order.empty())
      return;
    expectEqual(plan, valueOf(parsePlan(textOf(plan), "plan.json")));
  }
}

TEST(PlanFile, SaysWhichTasksStagesLack) {
  PlanFile plan = fullPlan();
  plan.schedule.stageTasks = {{.backward = false}, {.update = false}};
  EXPECT_NE(textOf(plan).find(R"("backward": [)"), std::string::npos);
  PlanFile again = valueOf(parsePlan(textOf(plan), "plan.json"));
  EXPECT_EQ(textOf(plan), textOf(again));
  EXPECT_FALSE(again.schedule.tasksOf(0).backward);
  EXPECT_TRUE(again.schedule.tasksOf(0).update);
  EXPECT_TRUE(again.schedule.tasksOf(1).backward);
  EXPECT_FALSE(again.schedule.tasksOf(1).update);
}

TEST(PlanFile, StandsInsideOfAnother) {
  PlanFile plan = fullPlan();
  llvm::json::Object outer{{"model", "m.onnx"},
                           {scheduleKey, planToJson(plan)}};
  std::string text = llvm::formatv("{0}", llvm::json::Value(std::move(outer)));
  expectEqual(plan, valueOf(parsePlan(text, "plan.json")));
}

TEST(PlanFile, ReadsPairsUpdatesAndExtraTransfers) {
  PlanFile plan = valueOf(parsePlan(
      R"({"version": 1, "ranks": 2, "stages": 2, "micro_batches": 2,
          "placement": [0, 1], "updates": 2, "weights": "newest",
          "order": [["F0.0", "F0.1&B0.0", "U0", "B0.1", "U0.1"],
                    ["F1.0", "B1.0", "U1", "F1.1", "B1.1", "U1.1"]],
          "instructions": [["F0.0", "send F0.0", "send X3.0 rank 1 bytes 64"],
                           ["receive F0.0"]]})",
      "plan.json"));
  EXPECT_EQ(plan.schedule.weightRule, WeightRule::Newest);
  EXPECT_TRUE(plan.schedule.order[0][1].overlapsNext);
  EXPECT_EQ(plan.schedule.order[0][2], Task::backward(0, 0));
  EXPECT_EQ(plan.schedule.order[0][5], Task::update(0, 1));
  EXPECT_EQ(plan.lists[0][1],
            RankInstruction::message(InstructionKind::PostSend,
                                     {TransferKind::Forward, 0, 0}, 1, 0));
  EXPECT_EQ(plan.lists[0][2],
            RankInstruction::message(InstructionKind::PostSend,
                                     Transfer::ofWork(3), 1, 64));
  PlanFile again = valueOf(parsePlan(textOf(plan), "again.json"));
  EXPECT_EQ(again.lists, plan.lists);
}

std::string errorOf(std::string from, std::string to) {
  std::string text =
      R"({"version": 1, "ranks": 2, "stages": 2, "micro_batches": 1,
          "placement": [0, 1],
          "order": [["F0.0", "B0.0", "U0"], ["F1.0", "B1.0", "U1"]],
          "edges": [{"from": 0, "to": 1, "bytes": 8}],
          "costs": {"stages": [{"forward": 1}, {"forward": 2}]},
          "instructions": [["F0.0"], ["receive F0.0"]],
          "times": [[[0, 1], [3, 4], [4, 4]], [[1, 2], [2, 3], [3, 3]]]})";
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return messageOf(parsePlan(text, "plan.json"));
}

TEST(PlanFile, ErrorsNameThePath) {
  EXPECT_EQ(errorOf("1", "1"), "");
  struct Case {
    const char *from, *to, *error;
  };
  for (auto [from, to, error] : {
           Case{R"("version": 1)", R"("version": 2)",
                "plan.json: version: expects 1, found 2"},
           Case{R"("version": 1, )", "", "plan.json: lacks 'version'"},
           Case{R"("ranks": 2)", R"("ranks": 0)",
                "plan.json: ranks: expects a whole number from 1 to 16777216, "
                "found 0"},
           Case{R"("ranks": 2)", R"("ranks": "two")",
                "plan.json: ranks: expects a whole number from 1 to 16777216, "
                "found \"two\""},
           Case{"[0, 1]", "[0, 7]",
                "plan.json: placement[1]: expects a whole number from 0 to 1, "
                "found 7"},
           Case{"[0, 1]", "[0]",
                "plan.json: placement: expects one entry for each of 2 "
                "stages, found 1"},
           Case{R"("order")", R"("without": {"update": [2]}, "order")",
                "plan.json: without.update[0]: expects a whole number from 0 "
                "to 1, found 2"},
           Case{R"("order")", R"("without": {"loss": []}, "order")",
                "plan.json: without: does not know the key 'loss'; expects "
                "forward, backward, update"},
           Case{R"("B1.0")", R"("X1.0")",
                "plan.json: order[1][1]: expects a task such as F0.3 (one of "
                "F, B, I, W, R, the stage, the micro-batch) or U0, found "
                "'X1.0'"},
           Case{R"("B1.0")", R"("B1.5")",
                "plan.json: order[1][1]: 'B1.5', but there are 2 stages and 1 "
                "micro-batches"},
           Case{R"("B1.0")", "17",
                "plan.json: order[1][1]: expects a task such as \"F0.3\", "
                "found 17"},
           Case{R"("B1.0")", R"("B1.0&U1")",
                "plan.json: order[1][1]: 'B1.0&U1' overlaps an update; "
                "expects two tasks of micro-batches"},
           Case{R"("U0")", R"("U0.1")",
                "plan.json: order[0][2]: 'U0.1', but there are 2 stages and 1 "
                "updates"},
           Case{R"("micro_batches": 1)", R"("micro_batches": 100)",
                "plan.json: order: expects a task or more for each of 2 "
                "stages and 100 micro-batches, found 6 in all"},
           Case{R"("placement")", R"("copies": 3, "placement")",
                "plan.json: copies: expects a whole number from 1 to 2, found "
                "3"},
           Case{R"("placement")", R"("updates": 2, "placement")",
                "plan.json: expects copies and updates that divide stages and "
                "micro-batches, found 1 copies and 2 updates of 2 stages and "
                "1 micro-batches"},
           Case{R"("placement")", R"("weights": "old", "placement")",
                "plan.json: weights: expects \"synchronous\", \"newest\" or "
                "\"delayed-by-one\", found \"old\""},
           Case{R"("placement")", R"("placment")",
                "plan.json: does not know the key 'placment'; expects "
                "version, ranks, stages, micro_batches, copies, updates, "
                "weights, forward_only, placement, without, order, edges, "
                "costs, instructions, times, works"},
           Case{R"("to": 1)", R"("to": 0)",
                "plan.json: edges[0].to: expects a whole number from 1 to 1, "
                "found 0"},
           Case{R"("from": 0)", R"("from": 1)",
                "plan.json: edges[0].from: expects a whole number from 0 to "
                "0, found 1"},
           Case{R"("bytes": 8)", R"("bytes": -8)",
                "plan.json: edges[0].bytes: expects a whole number from 0 to "
                "1099511627776, found -8"},
           Case{R"({"forward": 2})", R"({"forward": -2})",
                "plan.json: costs.stages[1].forward: expects a number from "
                "0 to 1E+09, found -2"},
           Case{R"({"forward": 2})", R"({"forward": 1e308})",
                "plan.json: costs.stages[1].forward: expects a number from "
                "0 to 1E+09, found 1e+308"},
           Case{R"(, {"forward": 2})", "",
                "plan.json: costs.stages: expects one entry for each of 2 "
                "stages, found 1"},
           Case{R"("receive F0.0")", R"("send F0.0")",
                "plan.json: instructions[1][0]: 'send F0.0', but rank 1 is "
                "not at that end of edge 0"},
           Case{R"("receive F0.0")", R"("send X0.0 rank 1 bytes 8")",
                "plan.json: instructions[1][0]: expects another of 2 ranks "
                "and no negative size, found 'send X0.0 rank 1 bytes 8'"},
           Case{R"("receive F0.0")", R"("receive Q0.0")",
                "plan.json: instructions[1][0]: expects a task, or a message "
                "such as \"send F2.3\" (send, receive, wait-send or "
                "wait-receive; F, G or X, the edge, the micro-batch), found "
                "\"receive Q0.0\""},
           Case{"[3, 4]", "[4, 3]",
                "plan.json: times[0][1]: expects an end after the start, "
                "found [4,3]"},
           Case{", [3, 4]", "",
                "plan.json: times[0]: expects one entry for each of 3 tasks, "
                "found 2"},
       })
    EXPECT_EQ(errorOf(from, to), error);
  EXPECT_EQ(messageOf(parsePlan("[1]", "plan.json")),
            "plan.json: expects an object, found [1]");
  EXPECT_EQ(
      messageOf(parsePlan(R"({"schedule_plan": {"version": 1}})", "plan.json")),
      "plan.json: schedule_plan: lacks 'ranks'");
  EXPECT_NE(messageOf(parsePlan("{", "plan.json")), "");
  EXPECT_EQ(messageOf(parsePlan(std::string(100000, '['), "plan.json")),
            "plan.json: its lists are nested more than 64 deep");
}

TEST(PlanFile, BrokenFilesGetAnAnswer) {
  std::string good = textOf(fullPlan());
  constexpr char bytes[] = "0123456789[]{}:,\".-eFBUGX& truefalsn";
  std::mt19937 random(11);
  auto below = [&](size_t end) { return random() % end; };
  int64_t read = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = good;
    for (size_t changes = 1 + below(3); changes-- > 0;) {
      size_t at = below(text.size());
      char byte = bytes[below(sizeof(bytes) - 1)];
      if (below(3) == 0)
        text.erase(at, 1 + below(8));
      else if (below(2) == 0)
        text.insert(at, 1, byte);
      else
        text[at] = byte;
    }
    llvm::Expected<PlanFile> plan = parsePlan(text, "plan.json");
    if (!plan) {
      std::string error = llvm::toString(plan.takeError());
      EXPECT_EQ(error.rfind("plan.json: ", 0), 0u) << error;
      ++refused;
      continue;
    }
    ++read;
    llvm::consumeError(checkSchedule(plan->schedule, plan->edges));
    if (!plan->lists.empty()) {
      llvm::consumeError(
          checkDataFlow(plan->schedule, plan->lists, plan->edges));
      llvm::consumeError(checkInstructions(plan->lists));
    }
  }
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 1000);
}

//===----------------------------------------------------------------------===//
// Files as policies
//===----------------------------------------------------------------------===//

/// A file that goes away with the test.
struct TemporaryFile {
  llvm::SmallString<128> path;
  llvm::FileRemover remover;

  TemporaryFile(llvm::StringRef suffix, llvm::StringRef text) {
    int descriptor = 0;
    std::error_code error = llvm::sys::fs::createTemporaryFile(
        "schedule", suffix, descriptor, path);
    EXPECT_FALSE(error) << error.message();
    remover.setFile(path);
    llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << text;
  }
};

TEST(FilePolicy, BuildsTheOrderOfTheFile) {
  for (const char *policy : {"gpipe", "1f1b", "breadth-first"}) {
    PlanFile plan;
    plan.schedule = buildSchedule(policy, 4, policy[0] == 'b' ? 8 : 4, 6);
    TemporaryFile file("json", textOf(plan));
    PolicyChoice choice = valueOf(chooseSchedule(file.path));
    ASSERT_TRUE(choice.policy);
    EXPECT_EQ(choice->name(), file.path);
    Schedule built = valueOf(choice->build(choice->example()));
    EXPECT_EQ(built.order, plan.schedule.order);
    EXPECT_EQ(built.rankOfStage, plan.schedule.rankOfStage);
    EXPECT_TRUE(sumsAscending(built));
    EXPECT_FALSE(choice->splitsBackward());
    Simulation simulation =
        valueOf(simulate(built, TaskCosts::uniform(built.stages)));
    for (int64_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(choice->maxInFlight(choice->example(), rank),
                simulation.ranks[rank].peakInFlight);
  }
}

TEST(FilePolicy, KnowsWhatItsTasksAre) {
  TemporaryFile file("csv", "0F0,0F1,0I1,0W1,(0F2;0I0)OVERLAP_F_B,0W0,0I2,"
                            "0W2\n");
  PolicyChoice choice = valueOf(chooseSchedule(file.path));
  ASSERT_TRUE(choice.policy);
  EXPECT_TRUE(choice->splitsBackward());
  EXPECT_EQ(choice->maxInFlight(choice->example(), 0), 2);
  Schedule built = valueOf(choice->build(choice->example()));
  EXPECT_FALSE(sumsAscending(built));
  EXPECT_EQ(messageOf(checkSchedule(built)), "");
}

TEST(FilePolicy, RefusesOtherSizes) {
  TemporaryFile file("csv", "0F0,0B0\n1F0,1B0\n");
  std::string path = file.path.str().str();
  PolicyChoice choice = valueOf(chooseSchedule(path));
  ASSERT_TRUE(choice.policy);
  EXPECT_EQ(messageOf(choice->place({4, 4, 8})),
            path + " is a schedule of 2 ranks, 2 stages and 1 micro-batch, "
                   "but got 4 ranks, 4 stages and 8 micro-batches; use "
                   "--ranks 2 --loops 1 --micro-batches 1");
  EXPECT_EQ(messageOf(choice->place({2, 2, 1, {{"group", 2}}})),
            "schedule '" + path + "' has no parameter 'group'; it has none");
}

TEST(FilePolicy, RefusesBrokenFiles) {
  TemporaryFile missing("csv", "0F0,0F1,0B0\n");
  EXPECT_EQ(messageOf(chooseSchedule(missing.path)),
            missing.path.str().str() + ": rank 0 never runs B0.1");
  TemporaryFile json("json", "no json");
  EXPECT_NE(messageOf(chooseSchedule(json.path)).find(": is not JSON: "),
            std::string::npos);
  EXPECT_EQ(messageOf(chooseSchedule("/nowhere/plan.csv")),
            "/nowhere/plan.csv: cannot be read: No such file or directory");
  EXPECT_EQ(messageOf(readScheduleFile("plan.txt")),
            "plan.txt: expects a file that ends in .csv (PyTorch's schedules) "
            "or .json (a plan)");
}

TEST(FilePolicy, OtherNamesAreThoseOfPolicies) {
  EXPECT_EQ(valueOf(chooseSchedule("1f1b")).policy,
            valueOf(choosePolicy("1f1b")).policy);
  EXPECT_NE(messageOf(chooseSchedule("1f2b")), "");
}

} // namespace
