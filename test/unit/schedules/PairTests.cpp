//===- PairTests.cpp - One reading of overlapped pairs ----------*- C++ -*-===//
//
// Random schedules with random pairs, read by the checker, both simulators and
// the memory checks, and by a plain fixed point over the definition of a pair:
// it starts when the needs of both are met, and ends with both.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/ChannelSimulator.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"

#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

/// Starts and ends, by rank and position; negative until known.
class PlainTimes {
public:
  PlainTimes(const Schedule &schedule, const TaskCosts &costs)
      : schedule(schedule), costs(costs), times(schedule.ranks) {
    for (int64_t rank = 0; rank < schedule.ranks; ++rank)
      times[rank].assign(schedule.order[rank].size(), {-1, -1});
  }

  /// False where some task can never start.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t rank = 0; rank < schedule.ranks; ++rank)
        for (size_t i = 0; i < times[rank].size(); ++i)
          moved |= times[rank][i].end < 0 && start(rank, i);
    }
    for (const auto &each : times)
      for (const TaskTime &time : each)
        if (time.end < 0)
          return false;
    return true;
  }
  const std::vector<std::vector<TaskTime>> &all() const { return times; }

private:
  /// When a kind of task was done, -1 if it was not.
  double endOf(std::initializer_list<TaskKind> kinds, int stage, int m) const {
    int rank = schedule.rankOfStage[stage];
    for (size_t i = 0; i < schedule.order[rank].size(); ++i) {
      const Task &task = schedule.order[rank][i];
      for (TaskKind kind : kinds)
        if (task == Task{kind, stage, m})
          return times[rank][i].end;
    }
    return -1;
  }
  /// When all that a task needs is there, -1 if it is not.
  double readyOf(const Task &task) const {
    double ready = 0;
    auto need = [&](std::initializer_list<TaskKind> kinds, int stage, int m) {
      double end = endOf(kinds, stage, m);
      bool isLocal =
          schedule.rankOfStage[stage] == schedule.rankOfStage[task.stage];
      if (end < 0)
        ready = -1;
      else if (ready >= 0)
        ready = std::max(ready, end + (isLocal ? 0 : costs.linkLatency));
    };
    int stage = task.stage, m = task.microBatch;
    auto gradients = {TaskKind::Backward, TaskKind::InputGradient};
    if (task.kind == TaskKind::Forward && stage > 0)
      need({TaskKind::Forward}, stage - 1, m);
    if (task.producesGradient()) {
      need({TaskKind::Forward}, stage, m);
      if (stage + 1 < schedule.stages)
        need(gradients, stage + 1, m);
    }
    if (task.kind == TaskKind::WeightGradient)
      need(gradients, stage, m);
    if (task.kind == TaskKind::Update)
      for (int of = 0; of < schedule.microBatches; ++of)
        need({TaskKind::Backward, TaskKind::WeightGradient}, stage, of);
    return ready;
  }
  bool start(int64_t rank, size_t i) {
    const std::vector<Task> &tasks = schedule.order[rank];
    double free = i == 0 ? 0 : times[rank][i - 1].end;
    double ready = readyOf(tasks[i]), seconds = costs.secondsOf(tasks[i]);
    bool isPair = tasks[i].overlapsNext;
    if (isPair) {
      double other = readyOf(tasks[i + 1]);
      ready = other < 0 || ready < 0 ? -1 : std::max(ready, other);
      seconds = (seconds + costs.secondsOf(tasks[i + 1])) * costs.pairFactor;
    }
    if (free < 0 || ready < 0)
      return false;
    double begin = std::max(free, ready);
    for (int n = 0; n <= isPair; ++n)
      times[rank][i + n] = {begin, begin + seconds};
    return true;
  }

  const Schedule &schedule;
  const TaskCosts &costs;
  std::vector<std::vector<TaskTime>> times;
};

/// A good schedule whose neighbours overlap here and there.
Schedule randomPairs(std::mt19937 &random) {
  const char *policies[] = {"1f1b",  "gpipe",     "interleaved", "zb-v",
                            "zb-h1", "dualpipev", "v-half",      "zb-2p"};
  const char *policy = policies[random() % std::size(policies)];
  int64_t ranks = 2 + random() % 3;
  bool isLooped = policy[0] == 'i' || policy[0] == 'v' || policy[0] == 'd' ||
                  llvm::StringRef(policy) == "zb-v";
  Schedule schedule = buildSchedule(policy, ranks, ranks * (1 + isLooped),
                                    2 * ranks * (1 + random() % 2));
  int each = 2 + random() % 6;
  for (std::vector<Task> &tasks : schedule.order)
    for (size_t i = 0; i + 1 < tasks.size(); ++i) {
      bool isAfterPair = i > 0 && tasks[i - 1].overlapsNext;
      if (isAfterPair)
        tasks[i].overlapsNext = false;
      else if (tasks[i + 1].kind != TaskKind::Update && random() % each == 0)
        tasks[i].overlapsNext = true;
    }
  return schedule;
}

/// The most pairs of stage and micro-batch, and bytes, on a rank: all forwards
/// that have begun, but for what ended in an earlier task or pair.
std::pair<int64_t, int64_t> plainPeaks(const std::vector<Task> &tasks,
                                       const TaskCosts &costs) {
  int64_t pairs = 0, bytes = 0, maxPairs = 0, maxBytes = 0;
  for (size_t i = 0; i < tasks.size();) {
    size_t end = i + 1 + tasks[i].overlapsNext;
    int64_t endedPairs = 0, endedBytes = 0;
    for (; i < end; ++i) {
      int64_t stash = costs.stages[tasks[i].stage].stashBytes;
      if (tasks[i].kind == TaskKind::Forward) {
        ++pairs;
        bytes += stash;
      }
      // I keeps all for W.
      if (tasks[i].endsStash()) {
        ++endedPairs;
        endedBytes += stash;
      }
    }
    maxPairs = std::max(maxPairs, pairs);
    maxBytes = std::max(maxBytes, bytes);
    pairs -= endedPairs;
    bytes -= endedBytes;
  }
  return {maxPairs, maxBytes};
}

TEST(Pairs, CheckerAndSimulatorsReadThemAlike) {
  std::mt19937 random(13);
  int good = 0, bad = 0;
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Schedule schedule = randomPairs(random);
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    for (StageCosts &stage : costs.stages) {
      // Sums of these are exact.
      stage.forward = 1 + random() % 4;
      stage.inputGradient = 1 + random() % 4;
      stage.weightGradient = 1 + random() % 4;
      stage.backward = stage.inputGradient + stage.weightGradient;
      stage.stashBytes = 1 + random() % 9;
    }
    costs.linkLatency = random() % 3;
    costs.pairFactor = 0.75;
    PlainTimes plain(schedule, costs);
    bool runs = plain.run();
    ++(runs ? good : bad);
    EXPECT_EQ(runs, messageOf(checkSchedule(schedule)).empty());
    llvm::Expected<Simulation> simulation = simulate(schedule, costs);
    EXPECT_EQ(runs, bool(simulation));
    if (!simulation) {
      llvm::consumeError(simulation.takeError());
      continue;
    }
    InstructionLists lists = valueOf(orderMessages(schedule, costs));
    EXPECT_EQ("", messageOf(checkDataFlow(schedule, lists)));
    ChannelSimulation queued = valueOf(simulateInstructions(
        lists, costs, {ChannelLayout::Link, Buffering::infinite()}));
    std::vector<int64_t> limits;
    for (int64_t rank = 0; rank < schedule.ranks; ++rank) {
      for (size_t i = 0; i < plain.all()[rank].size(); ++i) {
        const TaskTime &expected = plain.all()[rank][i];
        EXPECT_EQ(expected.start, simulation->times[rank][i].start);
        EXPECT_EQ(expected.end, simulation->times[rank][i].end);
        EXPECT_EQ(expected.start, queued.times[rank][i].start);
        EXPECT_EQ(expected.end, queued.times[rank][i].end);
      }
      auto [pairs, bytes] = plainPeaks(schedule.order[rank], costs);
      EXPECT_EQ(pairs, simulation->ranks[rank].peakInFlight);
      EXPECT_EQ(bytes, simulation->ranks[rank].peakStashBytes);
      limits.push_back(bytes);
    }
    EXPECT_EQ("", messageOf(checkMemory(schedule, costs, limits)));
    --limits[random() % limits.size()];
    EXPECT_NE("", messageOf(checkMemory(schedule, costs, limits)));
  }
  EXPECT_GT(good, 50);
  EXPECT_GT(bad, 50);
}

TEST(Pairs, ListsOverlapWhatTheScheduleOverlaps) {
  Schedule schedule = buildSchedule("dualpipev", 2, 4, 8);
  TaskCosts costs = TaskCosts::uniform(4);
  InstructionLists lists = valueOf(orderMessages(schedule, costs));
  for (RankInstruction &instruction : lists[0])
    if (instruction.task.overlapsNext) {
      instruction.task.overlapsNext = false;
      std::string message = messageOf(checkDataFlow(schedule, lists));
      EXPECT_NE(std::string::npos,
                message.find(" alone, but its schedule says together with "))
          << message;
      return;
    }
  ADD_FAILURE() << "no pair";
}

} // namespace
