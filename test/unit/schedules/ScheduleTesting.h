//===- ScheduleTesting.h - Shared by the tests of schedules -----*- C++ -*-===//
//
// Unwrapping of llvm::Expected with the message shown, and the sizes that the
// property tests go through.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_SCHEDULES_SCHEDULETESTING_H
#define PIPEWRIGHT_TEST_UNIT_SCHEDULES_SCHEDULETESTING_H

#include "passes/schedules/Policy.h"
#include "passes/schedules/Simulator.h"

#include "gtest/gtest.h"

#include <string>

namespace pipewright::schedules::testing {

/// The message of an error, empty for success.
inline std::string messageOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

template <typename T>
std::string messageOf(llvm::Expected<T> value) {
  return value ? "" : llvm::toString(value.takeError());
}

/// The value, or a failed test and a default one.
template <typename T>
T valueOf(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

/// `policy` may have parameters: `interleaved:group=8`.
inline Schedule buildSchedule(llvm::StringRef policy, int64_t ranks,
                              int64_t stages, int64_t microBatches) {
  PolicyChoice choice = valueOf(choosePolicy(policy));
  return valueOf(choice->build(choice.with({ranks, stages, microBatches})));
}

/// Every placed stage alike.
inline TaskCosts costsOf(const Schedule &schedule, const UnitTimes &times) {
  TaskCosts costs =
      TaskCosts::uniform(schedule.stages, times.forward, times.backward());
  for (StageCosts &stage : costs.stages) {
    stage.inputGradient = times.inputGradient;
    stage.weightGradient = times.weightGradient;
  }
  return costs;
}

/// Calls `visit(policy, options)` for every policy and all sizes that it
/// accepts of 1, 2, 3, 4 and 8 ranks, 1, 2 and 4 loops, and 1 to 4 times
/// `ranks` micro-batches.
template <typename Visit>
void forEachCase(Visit visit) {
  for (const Policy *policy : allPolicies())
    for (int64_t ranks : {1, 2, 3, 4, 8})
      for (int64_t loops : {1, 2, 4}) {
        int64_t stages = ranks * loops;
        for (int64_t m = 1; m <= 4 * ranks; ++m) {
          if (!messageOf(policy->build({ranks, stages, m})).empty())
            continue;
          SCOPED_TRACE(policy->name().str() + ", " + std::to_string(ranks) +
                       " ranks, " + std::to_string(stages) + " stages, " +
                       std::to_string(m) + " micro-batches");
          visit(*policy, ScheduleOptions{ranks, stages, m});
          if (::testing::Test::HasFailure())
            return;
        }
      }
}

} // namespace pipewright::schedules::testing

#endif // PIPEWRIGHT_TEST_UNIT_SCHEDULES_SCHEDULETESTING_H
