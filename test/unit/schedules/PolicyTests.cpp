//===- PolicyTests.cpp - What every policy promises -------------*- C++ -*-===//
//
// Properties over all policies and sizes, the policies' own orders, and what
// they refuse.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

static std::string namesOf(const std::vector<Task> &tasks) {
  std::string names;
  for (const Task &task : tasks)
    names += (names.empty() ? "" : " ") + task.name();
  return names;
}

TEST(Policy, EverySizePassesTheChecker) {
  int cases = 0;
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    EXPECT_EQ("", messageOf(checkSchedule(valueOf(policy.build(options)))));
    ++cases;
  });
  EXPECT_GT(cases, 300);
}

TEST(Policy, StepTimeIsTheFormula) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    for (UnitTimes times :
         {UnitTimes{1, 1, 1}, UnitTimes{1, .5, .5}, UnitTimes{1, 1.5, 1}}) {
      TaskCosts costs = costsOf(schedule, times);
      Simulation simulation = valueOf(simulate(schedule, costs));
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
    Simulation simulation = valueOf(simulate(schedule, costsOf(schedule, {})));
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      EXPECT_GE(policy.maxInFlight(options, rank),
                simulation.ranks[rank].peakInFlight);
  });
}

TEST(Policy, WeightGradientsOfAStageAscend) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    if (!policy.sumsAscending(options))
      return;
    Schedule schedule = valueOf(policy.build(options));
    std::vector<int32_t> last(schedule.stages, -1);
    for (const std::vector<Task> &tasks : schedule.order)
      for (const Task &task : tasks)
        if (task.endsStash()) {
          EXPECT_LT(last[task.stage], task.microBatch);
          last[task.stage] = task.microBatch;
        }
  });
}

TEST(Policy, SaysWhetherItSplitsBackwards) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    for (const std::vector<Task> &tasks : schedule.order)
      for (const Task &task : tasks)
        if (task.kind == TaskKind::WeightGradient) {
          EXPECT_TRUE(policy.splitsBackward());
        }
  });
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

TEST(Policy, RefusesImpossibleCombinations) {
  auto refusal = [](llvm::StringRef policy, int64_t ranks, int64_t stages,
                    int64_t microBatches) {
    return messageOf(
        valueOf(findPolicy(policy))->build({ranks, stages, microBatches}));
  };
  EXPECT_EQ("1f1b needs exactly 1 stage per rank, but got 8 stages on 4 "
            "ranks; use breadth-first or --loops 1",
            refusal("1f1b", 4, 8, 4));
  EXPECT_EQ("gpipe needs exactly 1 stage per rank, but got 3 stages on 4 "
            "ranks; use as many ranks as stages",
            refusal("gpipe", 4, 3, 4));
  EXPECT_EQ("breadth-first needs ranks x loops stages, but got 6 stages on 4 "
            "ranks",
            refusal("breadth-first", 4, 6, 4));
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

TEST(Registry, UnknownNamesGetNearMatches) {
  auto message = [](llvm::StringRef name) {
    return messageOf(findPolicy(name));
  };
  EXPECT_EQ("unknown schedule 'gpip'; did you mean 'gpipe'?", message("gpip"));
  EXPECT_EQ("unknown schedule 'GPipe'; did you mean 'gpipe'?",
            message("GPipe"));
  EXPECT_EQ("unknown schedule 'breadthfirst'; did you mean 'breadth-first'?",
            message("breadthfirst"));
  EXPECT_EQ("unknown schedule '1f1f'; did you mean '1f1b'?", message("1f1f"));
  EXPECT_EQ("unknown schedule 'chimera'; expects one of gpipe, 1f1b, "
            "breadth-first",
            message("chimera"));
  EXPECT_EQ("unknown schedule ''; expects one of gpipe, 1f1b, breadth-first",
            message(""));
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
