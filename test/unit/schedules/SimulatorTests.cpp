//===- SimulatorTests.cpp - Times, bubbles and their causes -----*- C++ -*-===//
//
// Against closed formulas. Figures of an independent event simulation are in
// VerificationTableTests.cpp.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;
using runtime::ProcessMap;

TEST(Simulator, SpanIsTheLongestRank) {
  Simulation simulation =
      valueOf(simulate(buildSchedule("gpipe", 2, 2, 1), TaskCosts::uniform(2)));
  // rank 0 | F0       B0
  // rank 1 |    F0 B0
  EXPECT_EQ(4, simulation.globalStepTime);
  EXPECT_EQ(4, simulation.spanStepTime);
  EXPECT_EQ(0.5, simulation.ranks[1].bubbleFraction);
  EXPECT_EQ(2, simulation.ranks[0].busySeconds);

  TaskCosts late = TaskCosts::uniform(2);
  late.stages[1].update = 5;
  simulation = valueOf(simulate(buildSchedule("gpipe", 2, 2, 1), late));
  EXPECT_EQ(8, simulation.globalStepTime);
  EXPECT_EQ(7, simulation.spanStepTime);
}

TEST(Simulator, IdleIntervalsNameTheirCause) {
  TaskCosts costs = TaskCosts::uniform(2);
  costs.linkLatency = 0.5;
  Simulation simulation =
      valueOf(simulate(buildSchedule("gpipe", 2, 2, 1), costs));
  ASSERT_EQ(3u, simulation.idle.size());

  // The gradient is computed from 2.5 to 3.5 and is there at 4.
  const IdleInterval &backward = simulation.idle[0];
  EXPECT_EQ("rank 0 waits at B0.0 for B1.0 on rank 1", backward.describe());
  EXPECT_EQ(1, backward.start);
  EXPECT_EQ(4, backward.end);
  EXPECT_EQ(0.5, backward.transferSeconds);

  const IdleInterval &forward = simulation.idle[1];
  EXPECT_EQ("rank 1 waits at F1.0 for F0.0 on rank 0", forward.describe());
  EXPECT_EQ(1.5, forward.end);

  EXPECT_EQ("rank 1 waits for rank 0 to end the step",
            simulation.idle[2].describe());
  EXPECT_EQ(3.5, simulation.idle[2].start);
  EXPECT_EQ(5, simulation.idle[2].end);
}

/// F0 B0 U0 F1 B1 U1, and a sum over replicas before each update: both take as
/// long as two tasks.
TEST(Simulator, SumsOfReplicasMayStandBetweenTasks) {
  TaskCosts costs = TaskCosts::uniform(1);
  costs.linkBandwidth = 4;
  Schedule schedule = buildSchedule("pipedream", 1, 1, 2);
  ASSERT_EQ(6u, schedule.order[0].size());
  std::vector<Work> sums = {
      {CollectiveKind::AllReduce, "a", 8, {{0, 2, 2}}, 2},
      {CollectiveKind::AllReduce, "b", 8, {{0, 5, 5}}, 2}};
  Simulation simulation = valueOf(simulate(schedule, costs, {}, sums));
  ASSERT_EQ(2u, simulation.works.size());
  EXPECT_EQ(2, simulation.works[0].time.start);
  EXPECT_EQ(4, simulation.works[0].time.end);
  EXPECT_EQ(4, simulation.times[0][2].start);
  EXPECT_EQ(4, simulation.times[0][3].start);
  EXPECT_EQ(6, simulation.works[1].time.start);
  EXPECT_EQ(8, simulation.globalStepTime);
  EXPECT_EQ(4, simulation.exposedSeconds);
  EXPECT_EQ(4, simulation.longestWorkWait());
  ASSERT_EQ(2u, simulation.idle.size());
  EXPECT_EQ(0, simulation.idle[0].work);
  EXPECT_EQ(1, simulation.idle[1].work);
  EXPECT_EQ(8, simulation.idle[1].end);
  // One that is begun a task before it is waited for runs beside that.
  sums[0].members[0] = {0, 1, 2};
  simulation = valueOf(simulate(schedule, costs, {}, sums));
  EXPECT_EQ(1, simulation.works[0].time.start);
  EXPECT_EQ(3, simulation.times[0][2].start);
  EXPECT_EQ(3, simulation.exposedSeconds);
}

/// Of a backward that is run in parts, the last quarter is left when the sum
/// begins.
TEST(Simulator, SumsMayBeginInsideATask) {
  TaskCosts costs = TaskCosts::uniform(1, 1, 4);
  costs.stages[0].update = 1;
  costs.linkBandwidth = 4;
  Schedule schedule = buildSchedule("gpipe", 1, 1, 1);
  std::vector<Work> sums = {
      {CollectiveKind::AllReduce, "a", 8, {{0, 2, 2, 0.75}}, 2},
      {CollectiveKind::AllReduce, "b", 8, {{0, 2, 2, 0.25}}, 2},
      {CollectiveKind::AllReduce, "c", 4, {{0, 2, 2}}, 2}};
  Simulation simulation = valueOf(simulate(schedule, costs, {}, sums));
  EXPECT_EQ(2, simulation.works[0].time.start);
  EXPECT_EQ(4, simulation.works[0].time.end);
  EXPECT_EQ(4, simulation.works[1].time.start);
  EXPECT_EQ(6, simulation.works[1].time.end);
  EXPECT_EQ(6, simulation.works[2].time.start);
  EXPECT_EQ(7, simulation.times[0][2].start);
  EXPECT_EQ(2, simulation.exposedSeconds);
  ASSERT_EQ(1u, simulation.idle.size());
  EXPECT_EQ(2, simulation.idle[0].work);
}

TEST(Simulator, WorksRunBesideTasksUntilItsWait) {
  TaskCosts costs = TaskCosts::uniform(2);
  costs.stages[0].update = costs.stages[1].update = 1;
  costs.linkBandwidth = 4;
  // Behind the backwards of rank 0 (0 to 4) and rank 1 (1 to 3). All-reduces of
  // two move half of their bytes twice.
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  Work first = {CollectiveKind::AllReduce, "a", 8, {{0, 2, 2}, {1, 2, 2}}};
  Work second = {CollectiveKind::Broadcast, "b", 4, {{1, 3, 3}, {0, 3, 3}}};
  Simulation simulation =
      valueOf(simulate(schedule, costs, {}, {first, second}));
  ASSERT_EQ(2u, simulation.works.size());
  EXPECT_EQ(4, simulation.works[0].time.start);
  EXPECT_EQ(6, simulation.works[0].time.end);
  EXPECT_EQ(6, simulation.times[0][2].start);
  EXPECT_EQ(6, simulation.times[1][2].start);
  // Behind both updates, and the step ends with it.
  EXPECT_EQ(7, simulation.works[1].time.start);
  EXPECT_EQ(8, simulation.works[1].time.end);
  EXPECT_EQ(8, simulation.globalStepTime);
  // Without them the updates end at 5.
  EXPECT_EQ(3, simulation.exposedSeconds);
  EXPECT_EQ(3, simulation.ranks[0].workWaitSeconds);
  EXPECT_EQ(4, simulation.ranks[1].workWaitSeconds);

  // Both wait for the rank that comes last.
  std::vector<std::string> waits;
  for (const IdleInterval &idle : simulation.idle)
    if (idle.next.kind == TaskKind::Update && !idle.atEndOfStep)
      waits.push_back(idle.describe());
  EXPECT_EQ((std::vector<std::string>{"rank 0 waits at U0 for B0.0 on rank 0",
                                      "rank 1 waits at U1 for B0.0 on rank 0"}),
            waits);
}

// Against lists of processes as the order is described.
TEST(Simulator, ProcessesFillHostsInTheOrderOfTheirNumbers) {
  using Process = std::pair<int64_t, int64_t>; // Rank, replica.
  for (int64_t ranks = 1; ranks <= 9; ++ranks)
    for (int64_t replicas = 1; replicas <= 9; ++replicas)
      for (int64_t processes = 1; processes <= 20; ++processes)
        for (const ProcessMap map : runtime::allProcessMaps) {
          std::vector<Process> all;
          if (map == ProcessMap::Replicas)
            for (int64_t rank = 0; rank < ranks; ++rank)
              for (int64_t replica = 0; replica < replicas; ++replica)
                all.push_back({rank, replica});
          else
            for (int64_t replica = 0; replica < replicas; ++replica)
              for (int64_t low = 0, high = ranks - 1, i = 0; i < ranks; ++i)
                all.push_back(
                    {map == ProcessMap::Pairs && i % 2 ? high-- : low++,
                     replica});
          std::map<Process, int64_t> host;
          for (size_t i = 0; i < all.size(); ++i)
            host[all[i]] = static_cast<int64_t>(i) / processes;
          const Hosts hosts =
              Hosts::of(processes, {ranks, replicas, 1, map}, {0, 2});
          bool cross = false;
          for (int64_t from = 0; from < ranks; ++from) {
            for (int64_t to = 0; to < ranks; ++to) {
              bool apart = false;
              for (int64_t replica = 0; replica < replicas; ++replica)
                apart |= host[{from, replica}] != host[{to, replica}];
              EXPECT_EQ(apart, hosts.areApart(static_cast<int32_t>(from),
                                              static_cast<int32_t>(to)));
            }
            for (int64_t replica = 1; replica < replicas; ++replica)
              cross |= host[{from, replica}] != host[{from, 0}];
          }
          EXPECT_EQ(cross, hosts.replicasCross());
        }
}

TEST(Simulator, HopsBetweenHostsTakeTheNetwork) {
  // Two pipelines of three ranks on hosts of four: places 0 to 2 and 3 to 5.
  const LinkCosts network = {0, 2};
  Hosts hosts = Hosts::of(4, {3, 2, 1, ProcessMap::Pipelines}, network);
  EXPECT_TRUE(hosts.areApart(0, 1)); // Of the second pipeline.
  EXPECT_FALSE(hosts.areApart(1, 2));
  EXPECT_TRUE(hosts.replicasCross());
  // All fit on one host.
  EXPECT_EQ(0, Hosts::of(8, {3, 2}, network).processes);
  EXPECT_FALSE(Hosts::of(8, {3, 2}, network).areApart(0, 2));
  EXPECT_FALSE(Hosts::of(8, {3, 2}, network).replicasCross());

  // F0 0 to 1; 8 bytes take 2 within a host and 4 between two.
  TaskCosts costs = TaskCosts::uniform(2);
  costs.linkBandwidth = 4;
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  std::vector<StageEdge> edges = {{0, 1, 8, false}};
  EXPECT_EQ(3, valueOf(simulate(schedule, costs, edges)).times[1][0].start);
  costs.hosts = Hosts::of(1, {2, 2}, network);
  EXPECT_EQ(5, valueOf(simulate(schedule, costs, edges)).times[1][0].start);
  // Replicas move half of their bytes twice.
  std::vector<Work> sums = {
      {CollectiveKind::AllReduce, "a", 8, {{0, 2, 2}}, 2}};
  Simulation simulation = valueOf(simulate(schedule, costs, edges, sums));
  EXPECT_EQ(4, simulation.works[0].time.end - simulation.works[0].time.start);
  // A link with costs of its own has those.
  costs.links[{0, 1}] = {0, 8};
  EXPECT_EQ(2, valueOf(simulate(schedule, costs, edges)).times[1][0].start);
}

/// A message of no edge takes its link's time, behind what is on that, and a
/// work that needs it begins when it is there.
TEST(Simulator, WorksOnLinksTakeTheTimeOfTheirLink) {
  TaskCosts costs = TaskCosts::uniform(2);
  costs.stages[0].update = costs.stages[1].update = 1;
  costs.linkBandwidth = 4;
  costs.linkLatency = 0.5;
  // F0 0 to 1, F1 from 1.5 to 2.5, B1 to 3.5; the gradient has no bytes.
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  Work sent;
  sent.name = "a";
  sent.bytes = 8;
  sent.on = Resource::Link;
  sent.members = {{1, 2, 2}, {0, 2, 2}};
  Work sum;
  sum.name = "b";
  sum.bytes = 8;
  sum.members = {{0, 2, 2}};
  sum.replicas = 2;
  sum.needs = {0};
  Simulation simulation = valueOf(simulate(schedule, costs, {}, {sent, sum}));
  // Rank 0's backward ends at 5; then 2 for the bytes and the latency.
  EXPECT_EQ(5, simulation.works[0].time.start);
  EXPECT_EQ(7.5, simulation.works[0].time.end);
  // Half of the bytes, twice, with a latency each.
  EXPECT_EQ(7.5, simulation.works[1].time.start);
  EXPECT_EQ(10.5, simulation.works[1].time.end);
  EXPECT_EQ(10.5, simulation.times[0][2].start);
  EXPECT_EQ(7.5, simulation.times[1][2].start);
}

TEST(Simulator, IdleAndBusyFillTheStep) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, 1.7);
    costs.linkLatency = 0.3;
    costs.pairFactor = 0.9;
    costs.stages[0].forward = 2;
    Simulation simulation = valueOf(simulate(schedule, costs));
    std::vector<double> filled(options.ranks);
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      filled[rank] = simulation.ranks[rank].busySeconds;
    for (const IdleInterval &idle : simulation.idle) {
      EXPECT_GT(idle.end, idle.start);
      filled[idle.rank] += idle.end - idle.start;
    }
    for (double seconds : filled)
      EXPECT_NEAR(simulation.globalStepTime, seconds, 1e-9);
  });
}

/// `F0.0 on rank 0 from 0 to 1`, one step a line.
static std::string textOf(const std::vector<PathStep> &path) {
  std::string text;
  for (const PathStep &step : path)
    text += step.describe() + "\n";
  return text;
}

TEST(Simulator, CriticalPathExplainsTheEndOfARank) {
  TaskCosts costs = TaskCosts::uniform(2);
  costs.linkLatency = 0.5;
  Schedule schedule = buildSchedule("gpipe", 2, 2, 2);
  Simulation simulation = valueOf(simulate(schedule, costs));
  // rank 0 | F0 F1            B0 B1
  // rank 1 |    F0 F1 B0 B1
  EXPECT_EQ("F0.0 on rank 0 from 0 to 1\n"
            "F1.0 on rank 1 from 1.5 to 2.5, 0.5 after its message was "
            "sent\n"
            "F1.1 on rank 1 from 2.5 to 3.5\n"
            "B1.0 on rank 1 from 3.5 to 4.5\n"
            "B0.0 on rank 0 from 5 to 6, 0.5 after its message was "
            "sent\n"
            "B0.1 on rank 0 from 6 to 7\n"
            "U0 on rank 0 from 7 to 7\n",
            textOf(simulation.criticalPath(schedule, 0)));
  EXPECT_EQ(6u, simulation.criticalPath(schedule, 1).size());
}

TEST(Simulator, CriticalPathsHaveNoGaps) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    if (options.microBatches > 2 * options.ranks)
      return;
    Schedule schedule = valueOf(policy.build(options));
    TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, 1.7);
    costs.linkLatency = 0.3;
    costs.linkBandwidth = 20;
    costs.pairFactor = 0.9;
    std::vector<StageEdge> edges =
        linearEdges(schedule.stages, 8, schedule.copies);
    Simulation simulation = valueOf(simulate(schedule, costs, edges));
    for (int32_t rank = 0; rank < options.ranks; ++rank) {
      std::vector<PathStep> path = simulation.criticalPath(schedule, rank);
      ASSERT_FALSE(path.empty());
      EXPECT_EQ(0, path[0].time.start);
      EXPECT_EQ(rank, path.back().rank);
      EXPECT_EQ(simulation.times[rank].back().end, path.back().time.end);
      for (size_t i = 0; i < path.size(); ++i) {
        const PathStep &step = path[i];
        EXPECT_EQ(schedule.order[step.rank][step.position], step.task);
        if (i == 0)
          continue;
        EXPECT_EQ(path[i - 1].rank != step.rank, step.transferSeconds > 0);
        EXPECT_NEAR(path[i - 1].time.end + step.transferSeconds,
                    step.time.start, 1e-12);
      }
    }
  });
}

TEST(Simulator, NothingComesBeforeAWorkThatBeginsTheStep) {
  TaskCosts costs = TaskCosts::uniform(1);
  costs.linkBandwidth = 4;
  Schedule schedule = buildSchedule("gpipe", 1, 1, 1);
  std::vector<Work> gathers = {
      {CollectiveKind::AllReduce, "a", 8, {{0, 0, 0}}, 2}};
  Simulation simulation = valueOf(simulate(schedule, costs, {}, gathers));
  EXPECT_EQ(0, simulation.works[0].time.start);
  ASSERT_EQ(1u, simulation.idle.size());
  EXPECT_FALSE(simulation.idle[0].hasCause());
  EXPECT_EQ("rank 0 waits at F0.0 for what begins with the step",
            simulation.idle[0].describe());
  EXPECT_EQ("F0.0 on rank 0 from 2 to 3, 2 after its message was sent\n"
            "B0.0 on rank 0 from 3 to 4\n"
            "U0 on rank 0 from 4 to 4\n",
            textOf(simulation.criticalPath(schedule, 0)));
}

//===----------------------------------------------------------------------===//
// Pairs, links, copies, updates
//===----------------------------------------------------------------------===//

/// Two ranks; rank 0 runs its second forward together with its first backward.
static Schedule pairedSchedule() {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 2);
  schedule.order[0] = {Task::forward(0, 0), Task::forward(0, 1),
                       Task::backward(0, 0), Task::backward(0, 1),
                       Task::update(0)};
  schedule.order[0][1].overlapsNext = true;
  schedule.order[1] = {Task::forward(1, 0), Task::backward(1, 0),
                       Task::forward(1, 1), Task::backward(1, 1),
                       Task::update(1)};
  return schedule;
}

TEST(Simulator, PairsStartWithTheNeedsOfBoth) {
  Schedule schedule = pairedSchedule();
  TaskCosts costs = TaskCosts::uniform(2);
  costs.pairFactor = 0.75;
  costs.stages[0].stashBytes = 10;
  Simulation simulation = valueOf(simulate(schedule, costs));
  // rank 0 | F0       F1&B0          B1
  // rank 1 |    F0 B0       F1 B1
  EXPECT_EQ(3, simulation.times[0][1].start);
  EXPECT_EQ(3, simulation.times[0][2].start);
  EXPECT_EQ(4.5, simulation.times[0][1].end);
  EXPECT_EQ(4.5, simulation.times[0][2].end);
  EXPECT_EQ(7.5, simulation.globalStepTime);
  EXPECT_EQ(3.5, simulation.ranks[0].busySeconds);
  // The stash of B0 is still there while F1 makes its own.
  EXPECT_EQ(20, simulation.ranks[0].peakStashBytes);
  EXPECT_EQ(2, simulation.ranks[0].peakInFlight);

  // The forward could have started, but waits for what its partner waits for.
  ASSERT_FALSE(simulation.idle.empty());
  EXPECT_EQ("rank 0 waits at B0.0 for B1.0 on rank 1",
            simulation.idle[0].describe());
  EXPECT_EQ(2, simulation.idle[0].nextPosition);
  EXPECT_EQ(1, simulation.idle[0].causePosition);
  EXPECT_EQ("F0.0 on rank 0 from 0 to 1\n"
            "F1.0 on rank 1 from 1 to 2\n"
            "B1.0 on rank 1 from 2 to 3\n"
            "B0.0 on rank 0 from 3 to 4.5\n"
            "F1.1 on rank 1 from 4.5 to 5.5\n"
            "B1.1 on rank 1 from 5.5 to 6.5\n"
            "B0.1 on rank 0 from 6.5 to 7.5\n"
            "U0 on rank 0 from 7.5 to 7.5\n",
            textOf(simulation.criticalPath(schedule, 0)));
}

TEST(Simulator, LinksHaveTheirOwnCosts) {
  TaskCosts costs = TaskCosts::uniform(3);
  costs.linkLatency = 1;
  costs.links[{1, 2}] = {0.25, 16};
  std::vector<StageEdge> edges = linearEdges(3, 8);
  Simulation simulation =
      valueOf(simulate(buildSchedule("gpipe", 3, 3, 1), costs, edges));
  EXPECT_EQ(2, simulation.times[1][0].start);
  EXPECT_EQ(3 + 0.5 + 0.25, simulation.times[2][0].start);
  // The way back is another link.
  EXPECT_EQ(5.75 + 1, simulation.times[1][1].start);
}

TEST(Simulator, WeightGradientsKeepWhatTheyNeed) {
  Schedule schedule;
  schedule.ranks = schedule.stages = 1;
  schedule.microBatches = 2;
  schedule.rankOfStage = {0};
  schedule.order = {{Task::forward(0, 0), Task::inputGradient(0, 0),
                     Task::forward(0, 1), Task::inputGradient(0, 1),
                     Task::weightGradient(0, 0), Task::weightGradient(0, 1),
                     Task::update(0)}};
  auto peakWith = [&](int64_t weightStash) {
    TaskCosts costs = TaskCosts::uniform(1);
    costs.stages[0].stashBytes = 100;
    costs.stages[0].weightStashBytes = weightStash;
    return valueOf(simulate(schedule, costs)).ranks[0].peakStashBytes;
  };
  EXPECT_EQ(200, peakWith(-1));
  EXPECT_EQ(130, peakWith(30));
  EXPECT_EQ(100, peakWith(0));
  // I leaves more than it found: 120 + 120.
  EXPECT_EQ(240, peakWith(120));
}

TEST(Simulator, EvaluationKeepsNothing) {
  Schedule schedule;
  schedule.ranks = schedule.stages = 1;
  schedule.microBatches = 2;
  schedule.rankOfStage = {0};
  schedule.forwardOnly = true;
  schedule.order = {{Task::forward(0, 0), Task::forward(0, 1)}};
  TaskCosts costs = TaskCosts::uniform(1);
  costs.stages[0].stashBytes = 100;
  Simulation simulation = valueOf(simulate(schedule, costs));
  EXPECT_EQ(2, simulation.globalStepTime);
  EXPECT_EQ(0, simulation.ranks[0].peakStashBytes);
  EXPECT_EQ(0, simulation.ranks[0].peakInFlight);
}

TEST(Simulator, LinkCarriesOneMessageAtATime) {
  TaskCosts costs = TaskCosts::uniform(2);
  costs.linkBandwidth = 10;
  std::vector<StageEdge> edges = {{0, 1, 20}, {0, 1, 10, false}};
  Simulation simulation =
      valueOf(simulate(buildSchedule("gpipe", 2, 2, 1), costs, edges));
  // F0.0 ends at 1; 2 s and 1 s one after the other; one gradient of 2 s.
  EXPECT_EQ(4, simulation.times[1][0].start);
  EXPECT_EQ(8, simulation.times[0][1].start);
}

TEST(Simulator, SkipConnectionsAreWaitedFor) {
  Schedule schedule = buildSchedule("1f1b", 3, 3, 1);
  // Only stage 0 feeds stage 2, so stages 1 and 2 run side by side.
  std::vector<StageEdge> edges = {{0, 1, 0}, {0, 2, 0}};
  Simulation simulation =
      valueOf(simulate(schedule, TaskCosts::uniform(3), edges));
  EXPECT_EQ(1, simulation.times[2][0].start);
  EXPECT_EQ(4, simulation.globalStepTime);
}

TEST(Simulator, SplitBackwardKeepsItsStashUntilW) {
  Schedule schedule;
  schedule.ranks = schedule.stages = 1;
  schedule.microBatches = 2;
  schedule.rankOfStage = {0};
  auto task = [](TaskKind kind, int32_t m) { return Task{kind, 0, m}; };
  schedule.order = {
      {task(TaskKind::Forward, 0), task(TaskKind::Recompute, 0),
       task(TaskKind::InputGradient, 0), task(TaskKind::Forward, 1),
       task(TaskKind::InputGradient, 1), task(TaskKind::WeightGradient, 0),
       task(TaskKind::WeightGradient, 1), Task::update(0)}};
  TaskCosts costs = TaskCosts::uniform(1, 1, 2);
  costs.stages[0].stashBytes = 100;
  Simulation simulation = valueOf(simulate(schedule, costs));
  EXPECT_EQ(7, simulation.globalStepTime);
  EXPECT_EQ(200, simulation.ranks[0].peakStashBytes);
  EXPECT_EQ(2, simulation.ranks[0].peakInFlight);
}

TEST(Simulator, RefusesWrongCosts) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  auto refusal = [&](auto change) {
    TaskCosts costs = TaskCosts::uniform(2);
    change(costs);
    return messageOf(simulate(schedule, costs));
  };
  EXPECT_EQ("expects the costs of 2 stages, but got 3",
            refusal([](TaskCosts &costs) { costs.stages.resize(3); }));
  EXPECT_EQ("expects task times of at least 0, but got -1.00 for stage 1",
            refusal([](TaskCosts &costs) { costs.stages[1].backward = -1; }));
  EXPECT_EQ("expects a stash of at least 0 bytes, but got -5 for stage 0",
            refusal([](TaskCosts &costs) { costs.stages[0].stashBytes = -5; }));
  EXPECT_EQ("expects a link latency of at least 0, but got -0.50",
            refusal([](TaskCosts &costs) { costs.linkLatency = -0.5; }));
  EXPECT_EQ("expects a link bandwidth above 0, but got 0.00",
            refusal([](TaskCosts &costs) { costs.linkBandwidth = 0; }));
}
