//===- PolicyTests.cpp - What every policy promises -------------*- C++ -*-===//
//
// Properties over all policies and sizes, the policies' own orders, and what
// they refuse.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/WorkOrder.h"

#include <algorithm>
#include <set>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

static std::string namesOf(const std::vector<Task> &tasks) {
  std::string names;
  for (const Task &task : tasks)
    names += (names.empty() ? "" : " ") + task.name();
  return names;
}

TEST(Policy, EverySizePassesTheChecker) {
  std::set<std::pair<const Policy *, int64_t>> full;
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    EXPECT_EQ("", messageOf(checkSchedule(valueOf(policy.build(options)))));
    if (options.microBatches == 4 * options.ranks)
      full.insert({&policy, options.ranks});
  });
  // A policy that refuses everything would pass all tests of this kind.
  for (const Policy *policy : allPolicies())
    for (int64_t ranks : {2, 4, 8})
      EXPECT_TRUE(full.count({policy, ranks}))
          << policy->name().str() << " on " << ranks << " ranks";
}

TEST(Policy, StepTimeIsTheFormula) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    for (UnitTimes times :
         {UnitTimes{1, 1, 1}, UnitTimes{1, .5, .5}, UnitTimes{1, 1.5, 1},
          UnitTimes{1, .75, 2}, UnitTimes{2, .25, .5}}) {
      TaskCosts costs = costsOf(schedule, times);
      Simulation simulation = valueOf(simulateWithMoves(schedule, costs, {}));
      if (auto expected = policy.stepTime(options, times)) {
        EXPECT_NEAR(*expected, simulation.globalStepTime, 1e-9);
      }
      if (auto expected = policy.spanTime(options, times)) {
        EXPECT_NEAR(*expected, simulation.spanStepTime, 1e-9);
      }
    }
  });
}

TEST(Policy, InFlightBoundHolds) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    Simulation simulation =
        valueOf(simulateWithMoves(schedule, costsOf(schedule, {}), {}));
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      EXPECT_GE(policy.maxInFlight(options, rank),
                simulation.ranks[rank].peakInFlight);
  });
}

TEST(Policy, InFlightBoundIsReached) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    // A policy that plans with times has no formula and may need less.
    if (options.microBatches != 4 * options.ranks ||
        !policy.stepTime(options, {}))
      return;
    Schedule schedule = valueOf(policy.build(options));
    Simulation simulation =
        valueOf(simulateWithMoves(schedule, costsOf(schedule, {}), {}));
    int64_t bound = 0, peak = 0;
    for (int64_t rank = 0; rank < options.ranks; ++rank) {
      bound = std::max(bound, policy.maxInFlight(options, rank));
      peak = std::max(peak, simulation.ranks[rank].peakInFlight);
    }
    EXPECT_EQ(bound, peak);
  });
}

TEST(Policy, WeightGradientsOfAStageAscend) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    EXPECT_TRUE(sumsAscending(valueOf(policy.build(options))));
  });
}

TEST(Policy, SaysWhetherItSplitsBackwards) {
  std::set<const Policy *> splitting;
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    for (const std::vector<Task> &tasks : schedule.order)
      for (const Task &task : tasks)
        if (task.kind == TaskKind::WeightGradient)
          splitting.insert(&policy);
  });
  for (const Policy *policy : allPolicies())
    EXPECT_EQ(policy->splitsBackward(), splitting.count(policy) == 1)
        << policy->name().str();
}

TEST(Policy, UpdatesComeLast) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    if (schedule.forwardOnly || schedule.weightRule != WeightRule::Synchronous)
      return;
    for (const std::vector<Task> &tasks : schedule.order) {
      size_t updates = schedule.stages / options.ranks;
      for (size_t i = 0; i < tasks.size(); ++i)
        EXPECT_EQ(i + updates >= tasks.size(),
                  tasks[i].kind == TaskKind::Update);
    }
  });
}

TEST(Policy, TextsAreThere) {
  for (const Policy *policy : allPolicies()) {
    EXPECT_FALSE(policy->summary().empty());
    EXPECT_FALSE(policy->paper().empty());
    EXPECT_FALSE(policy->bubbleFormula().empty());
    EXPECT_FALSE(policy->memoryFormula().empty());
    EXPECT_EQ("", messageOf(policy->build(policy->example())));
  }
}

TEST(GPipe, RunsForwardsThenBackwardsAscending) {
  EXPECT_EQ("F1.0 F1.1 F1.2 B1.0 B1.1 B1.2 U1",
            namesOf(buildSchedule("gpipe", 2, 2, 3).order[1]));
}

TEST(GPipe, OneRankRunsStageByStage) {
  EXPECT_EQ("F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1 U0 U1",
            namesOf(buildSchedule("gpipe", 1, 2, 2).order[0]));
}

TEST(OneFOneB, LastStageAlternatesForwardAndBackward) {
  Schedule schedule = buildSchedule("1f1b", 2, 2, 3);
  EXPECT_EQ("F0.0 F0.1 B0.0 F0.2 B0.1 B0.2 U0", namesOf(schedule.order[0]));
  EXPECT_EQ("F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 U1", namesOf(schedule.order[1]));
}

TEST(OneFOneB, OneRankTakesEachMicroBatchThereAndBack) {
  EXPECT_EQ("F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1 U0 U1",
            namesOf(buildSchedule("1f1b", 1, 2, 2).order[0]));
}

TEST(BreadthFirst, RunsLoopByLoop) {
  EXPECT_EQ("F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1 U0 U2",
            namesOf(buildSchedule("breadth-first", 2, 4, 2).order[0]));
}

/// A policy with parameters keeps what all policies promise, at all sizes.
static void expectPromises(llvm::StringRef text, int64_t loops) {
  PolicyChoice choice = valueOf(choosePolicy(text));
  int cases = 0;
  for (int64_t ranks : {1, 2, 3, 4})
    for (int64_t m = 1; m <= 4 * ranks; ++m) {
      ScheduleOptions options = choice.with({ranks, ranks * loops, m});
      if (!messageOf(choice->build(options)).empty())
        continue;
      SCOPED_TRACE(text.str() + ", " + std::to_string(ranks) + " ranks, " +
                   std::to_string(m) + " micro-batches");
      Schedule schedule = valueOf(choice->build(options));
      EXPECT_EQ("", messageOf(checkSchedule(schedule)));
      for (UnitTimes times : {UnitTimes{1, 1, 1}, UnitTimes{1, .75, 2}}) {
        Simulation simulation =
            valueOf(simulate(schedule, costsOf(schedule, times)));
        if (auto expected = choice->stepTime(options, times)) {
          EXPECT_NEAR(*expected, simulation.globalStepTime, 1e-9);
        }
        for (int64_t rank = 0; rank < ranks; ++rank)
          EXPECT_GE(choice->maxInFlight(options, rank),
                    simulation.ranks[rank].peakInFlight);
      }
      ++cases;
    }
  EXPECT_GT(cases, 8) << text.str();
}

TEST(Parameters, KeepThePromises) {
  expectPromises("gpipe:descending", 1);
  expectPromises("breadth-first:descending", 2);
  expectPromises("breadth-first:groups=2", 2);
  expectPromises("breadth-first:groups=2:descending", 4);
  expectPromises("interleaved:group=3", 2);
  expectPromises("interleaved:group=5", 4);
  expectPromises("interleaved-zb:group=3", 2);
  expectPromises("interleaved-zb:group=5", 4);
}

TEST(Parameters, SayWhetherSumsAscend) {
  auto ascends = [](llvm::StringRef text) {
    PolicyChoice choice = valueOf(choosePolicy(text));
    return sumsAscending(valueOf(
        choice->build(choice.with({2, choice->defaultLoops() * 2, 4}))));
  };
  EXPECT_TRUE(ascends("gpipe"));
  EXPECT_TRUE(ascends("gpipe:descending=0"));
  EXPECT_FALSE(ascends("gpipe:descending"));
  EXPECT_FALSE(ascends("breadth-first:descending"));
  EXPECT_FALSE(ascends("breadth-first:groups=2"));
  EXPECT_TRUE(ascends("breadth-first:groups=4"));
  EXPECT_TRUE(ascends("interleaved:group=2"));
}

TEST(GPipe, DescendsIfAskedTo) {
  EXPECT_EQ("F1.0 F1.1 F1.2 B1.2 B1.1 B1.0 U1",
            namesOf(buildSchedule("gpipe:descending", 2, 2, 3).order[1]));
}

TEST(BreadthFirst, DescendsIfAskedTo) {
  EXPECT_EQ(
      "F0.0 F0.1 F2.0 F2.1 B2.1 B2.0 B0.1 B0.0 U0 U2",
      namesOf(buildSchedule("breadth-first:descending", 2, 4, 2).order[0]));
}

TEST(BreadthFirst, GroupsTakeEverySecondMicroBatch) {
  EXPECT_EQ("F1.0 F1.2 F3.0 F3.2 B3.0 B3.2 B1.0 B1.2 "
            "F1.1 F1.3 F3.1 F3.3 B3.1 B3.3 B1.1 B1.3 U1 U3",
            namesOf(buildSchedule("breadth-first:groups=2", 2, 4, 4).order[1]));
}

TEST(EagerOneFOneB, RunsTwiceAsFarAhead) {
  Schedule schedule = buildSchedule("eager-1f1b", 2, 2, 4);
  EXPECT_EQ("F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3 U0",
            namesOf(schedule.order[0]));
  EXPECT_EQ("F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3 U1",
            namesOf(schedule.order[1]));
}

TEST(Interleaved, OneRankTakesEachMicroBatchThroughAllStages) {
  EXPECT_EQ("F0.0 F1.0 B1.0 F0.1 B0.0 F1.1 B1.1 B0.1 U0 U1",
            namesOf(buildSchedule("interleaved", 1, 2, 2).order[0]));
}

TEST(Interleaved, TheDefaultGroupIsTheSmallestThatWorks) {
  auto order = [](llvm::StringRef policy, int64_t microBatches) {
    return namesOf(buildSchedule(policy, 4, 8, microBatches).order[0]);
  };
  EXPECT_EQ(order("interleaved:group=4", 8), order("interleaved", 8));
  // PyTorch's: M / (M / P), where it is whole.
  EXPECT_EQ(order("interleaved:group=5", 10), order("interleaved", 10));
  EXPECT_EQ(order("interleaved:group=3", 3), order("interleaved", 3));
  // PyTorch has none; Megatron allows 6 + 5.
  EXPECT_EQ(order("interleaved:group=6", 11), order("interleaved", 11));
}

TEST(Interleaved, RefusesGroupsThatStall) {
  auto refusal = [](llvm::StringRef text, int64_t microBatches) {
    PolicyChoice choice = valueOf(choosePolicy(text));
    return messageOf(choice->build(choice.with({4, 8, microBatches})));
  };
  EXPECT_EQ("interleaved needs a last group that is full or has at least as "
            "many micro-batches as there are ranks, but 10 micro-batches in "
            "groups of 4 leave 2 for 4 ranks; use group=5",
            refusal("interleaved:group=4", 10));
  EXPECT_EQ("interleaved-zb needs a group of 4 (ranks, or all micro-batches) "
            "to 8 (micro-batches), but got group=2",
            refusal("interleaved-zb:group=2", 8));
  EXPECT_EQ("interleaved needs a group of 4 (ranks, or all micro-batches) to "
            "8 (micro-batches), but got group=0",
            refusal("interleaved:group=0", 8));
  EXPECT_EQ("interleaved needs a group of 3 (ranks, or all micro-batches) to "
            "3 (micro-batches), but got group=4",
            refusal("interleaved:group=4", 3));
}

TEST(ZBH1, WeightGradientsAreAsLateAsTheRank) {
  Schedule schedule = buildSchedule("zb-h1", 3, 3, 3);
  EXPECT_EQ("F0.0 F0.1 F0.2 I0.0 W0.0 I0.1 W0.1 I0.2 W0.2 U0",
            namesOf(schedule.order[0]));
  EXPECT_EQ("F1.0 F1.1 I1.0 F1.2 I1.1 W1.0 I1.2 W1.1 W1.2 U1",
            namesOf(schedule.order[1]));
  EXPECT_EQ("F2.0 I2.0 F2.1 I2.1 F2.2 I2.2 W2.0 W2.1 W2.2 U2",
            namesOf(schedule.order[2]));
}

TEST(ZBH1, SplitsOnOneRankToo) {
  for (llvm::StringRef name : {"zb-h1", "zb-h2"})
    EXPECT_EQ("F0.0 F1.0 I1.0 W1.0 I0.0 W0.0 U0 U1",
              namesOf(buildSchedule(name, 1, 2, 1).order[0]));
}

TEST(ZBH2, WeightGradientsAreTwiceAsLate) {
  Schedule schedule = buildSchedule("zb-h2", 2, 2, 4);
  EXPECT_EQ("F0.0 F0.1 F0.2 I0.0 W0.0 F0.3 I0.1 W0.1 I0.2 W0.2 I0.3 W0.3 U0",
            namesOf(schedule.order[0]));
  EXPECT_EQ("F1.0 I1.0 F1.1 I1.1 F1.2 I1.2 W1.0 F1.3 I1.3 W1.1 W1.2 W1.3 U1",
            namesOf(schedule.order[1]));
}

TEST(ForwardOnly, HasNeitherBackwardsNorUpdates) {
  EXPECT_EQ("F1.0 F1.1 F3.0 F3.1 F1.2 F1.3 F3.2 F3.3",
            namesOf(buildSchedule("forward-only", 2, 4, 4).order[1]));
  EXPECT_FALSE(valueOf(findPolicy("forward-only"))->trains());
}

TEST(Policy, RefusesImpossibleCombinations) {
  auto refusal = [](llvm::StringRef policy, int64_t ranks, int64_t stages,
                    int64_t microBatches) {
    return messageOf(
        valueOf(findPolicy(policy))->build({ranks, stages, microBatches}));
  };
  EXPECT_EQ("1f1b needs exactly 1 stage per rank, but got 8 stages on 4 "
            "ranks; use interleaved or --loops 1",
            refusal("1f1b", 4, 8, 4));
  EXPECT_EQ("gpipe needs exactly 1 stage per rank, but got 3 stages on 4 "
            "ranks; use as many ranks as stages",
            refusal("gpipe", 4, 3, 4));
  EXPECT_EQ("breadth-first needs ranks x loops stages, but got 6 stages on 4 "
            "ranks",
            refusal("breadth-first", 4, 6, 4));
  EXPECT_EQ("zb-h1 needs exactly 1 stage per rank, but got 8 stages on 4 "
            "ranks; use interleaved or --loops 1",
            refusal("zb-h1", 4, 8, 4));
  EXPECT_EQ("interleaved needs ranks x loops stages, but got 6 stages on 4 "
            "ranks",
            refusal("interleaved", 4, 6, 4));
  EXPECT_EQ("gpipe needs at least 1 of micro-batches, but got 0",
            refusal("gpipe", 4, 4, 0));
  EXPECT_EQ("1f1b needs at least 1 of ranks, but got -2",
            refusal("1f1b", -2, 4, 1));
  EXPECT_EQ("breadth-first needs at least 1 of stages, but got 0",
            refusal("breadth-first", 1, 0, 1));
  EXPECT_EQ("4 stages and 1000000000000 micro-batches make a schedule too "
            "large to write out",
            refusal("gpipe", 4, 4, 1000000000000));
}

TEST(Policy, RefusesImpossibleParameters) {
  auto refusal = [](llvm::StringRef text) {
    PolicyChoice choice = valueOf(choosePolicy(text));
    return messageOf(choice->build(choice.with({2, 2, 4})));
  };
  EXPECT_EQ("parameter 'descending' of schedule 'gpipe' expects 0 or 1, but "
            "got 2",
            refusal("gpipe:descending=2"));
  EXPECT_EQ("breadth-first needs a number of groups that divides the "
            "micro-batches, but got 3 groups of 4 micro-batches",
            refusal("breadth-first:groups=3"));
  EXPECT_EQ("breadth-first needs a number of groups that divides the "
            "micro-batches, but got 0 groups of 4 micro-batches",
            refusal("breadth-first:groups=0"));
}

TEST(Registry, UnknownNamesGetNearMatches) {
  auto message = [](llvm::StringRef name) {
    return messageOf(findPolicy(name));
  };
  EXPECT_EQ("unknown schedule 'gpip'; did you mean 'gpipe'?", message("gpip"));
  EXPECT_EQ("unknown schedule 'GPipe'; did you mean 'gpipe' or 'bpipe'?",
            message("GPipe"));
  EXPECT_EQ("unknown schedule 'breadthfirst'; did you mean 'breadth-first'?",
            message("breadthfirst"));
  EXPECT_EQ("unknown schedule '1f1f'; did you mean '1f1b'?", message("1f1f"));
  EXPECT_EQ("unknown schedule '1fb1'; did you mean '1f1b'?", message("1fb1"));
  EXPECT_EQ("unknown schedule 'gippe'; did you mean 'gpipe'?",
            message("gippe"));
  EXPECT_EQ("unknown schedule 'zb-2h'; did you mean 'zb-h2' or 'zb-2p'?",
            message("zb-2h"));
  std::string all;
  for (const Policy *policy : allPolicies())
    all += (all.empty() ? "" : ", ") + policy->name().str();
  EXPECT_EQ("unknown schedule 'terapipes'; expects one of " + all,
            message("terapipes"));
  EXPECT_EQ("unknown schedule ''; expects one of " + all, message(""));
  EXPECT_EQ("unknown schedule 'a'; expects one of " + all, message("a"));
}

namespace {

/// Everything on one rank, one micro-batch after the other; as small as a
/// policy from outside can be.
class Sequential : public Policy {
public:
  explicit Sequential(llvm::StringRef name) : ownName(name) {}
  llvm::StringRef name() const override { return ownName; }
  llvm::StringRef summary() const override { return "no pipeline"; }
  llvm::StringRef paper() const override { return "none"; }
  llvm::StringRef bubbleFormula() const override { return "0"; }
  llvm::StringRef memoryFormula() const override { return "1 stash"; }
  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return options.microBatches * (times.forward + times.backward());
  }
  int64_t maxInFlight(const ScheduleOptions &, int64_t) const override {
    return 1;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (options.stages == 1 && options.ranks == 1)
      return Placement{0};
    return llvm::createStringError("sequential needs 1 stage on 1 rank");
  }
  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    std::vector<Task> order;
    for (int32_t m = 0; m < schedule.microBatches; ++m) {
      order.push_back(Task::forward(0, m));
      order.push_back(Task::backward(0, m));
    }
    return order;
  }

private:
  llvm::StringRef ownName;
};

} // namespace

TEST(Registry, APolicyFromOutsideIsFoundAndMayHideAnother) {
  static const Sequential added("sequential"), replacement("gpipe");
  registerPolicy(added);
  EXPECT_EQ("", messageOf(findPolicy("sequential")));
  size_t count = allPolicies().size();
  registerPolicy(replacement);
  EXPECT_EQ(&replacement, valueOf(findPolicy("gpipe")));
  EXPECT_EQ(count, allPolicies().size());
  registerPolicy(gpipePolicy());
  EXPECT_EQ(&gpipePolicy(), valueOf(findPolicy("gpipe")));
}

TEST(Placement, LinearKeepsNeighboursTogether) {
  EXPECT_EQ(Placement({0, 1, 2}), linearPlacement(3, 3));
  EXPECT_EQ(Placement({0, 0, 0, 1, 1}), linearPlacement(5, 2));
  EXPECT_EQ(Placement({0, 0}), linearPlacement(2, 1));
}

TEST(Placement, LoopGoesRound) {
  EXPECT_EQ(Placement({0, 1, 0, 1}), loopPlacement(4, 2));
}

TEST(Placement, ZigzagTurnsOnOneRank) {
  EXPECT_EQ(Placement({0, 1, 2, 2, 1, 0, 0, 1, 2}), zigzagPlacement(9, 3));
  EXPECT_EQ(Placement({0, 1, 1, 0}), veePlacement(2));
  EXPECT_EQ(Placement({0, 1, 2, 2, 1, 0}), mirrorPlacement(3));
}
