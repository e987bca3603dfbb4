//===- TwoWaySteps.cpp - The eight steps of DualPipe ------------*- C++ -*-===//
//
// See TwoWaySteps.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/TwoWaySteps.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

/// Appends tasks; each kind takes the micro-batches of either way one after
/// the other.
class StepWriter {
public:
  explicit StepWriter(const TwoWaySteps &steps) : ways{steps.near, steps.far} {}

  enum Side { Near, Far };

  void forward(Side way) {
    tasks.push_back(Task::forward(ways[way].stage,
                                  ways[way].firstMicroBatch + forwards[way]++));
  }
  void backward(Side way) {
    tasks.push_back(Task::backward(ways[way].stage, nextBackward(way)));
  }
  /// I now, W when `weightGradient` comes to it.
  void inputGradient(Side way) {
    int32_t stage = ways[way].stage, microBatch = nextBackward(way);
    tasks.push_back(Task::inputGradient(stage, microBatch));
    postponed.push_back(Task::weightGradient(stage, microBatch));
  }
  void weightGradient() { tasks.push_back(postponed[nextPostponed++]); }
  void overlappedPair(Side ofForward, Side ofBackward) {
    forward(ofForward);
    tasks.back().overlapsNext = true;
    backward(ofBackward);
  }

  std::vector<Task> tasks;

private:
  int32_t nextBackward(Side way) {
    return ways[way].firstMicroBatch + backwards[way]++;
  }

  TwoWaySteps::Direction ways[2];
  int32_t forwards[2] = {}, backwards[2] = {};
  std::vector<Task> postponed;
  size_t nextPostponed = 0;
};

} // namespace

std::vector<Task> TwoWaySteps::order() const {
  constexpr StepWriter::Side Near = StepWriter::Near, Far = StepWriter::Far;
  StepWriter writer(*this);
  // 1, 2: fill the pipeline, first with the near stage alone.
  for (int32_t i = 0; i < 2 * toTurn; ++i)
    writer.forward(Near);
  for (int32_t i = 0; i <= fromStart; ++i) {
    writer.forward(Near);
    writer.forward(Far);
  }
  // 3: the first gradients pass on at once.
  for (int32_t i = 0; i < toTurn; ++i) {
    writer.inputGradient(Far);
    writer.weightGradient();
    writer.forward(Far);
  }
  // 4: one way's forward with the other's backward. At the turn the first
  // forward is waited for, and would be done later as one of a pair.
  for (int32_t i = 0; i < microBatches - 2 * toTurn - fromStart - 1; ++i) {
    if (i == 0 && toTurn == 0) {
      writer.forward(Near);
      writer.backward(Far);
    } else {
      writer.overlappedPair(Near, Far);
    }
    writer.overlappedPair(Far, Near);
  }
  // 5, 6: no near forward is left, then no forward at all. From half-way on,
  // weight gradients are postponed to fill the end.
  for (int32_t i = 0; i < toTurn; ++i) {
    writer.backward(Far);
    writer.overlappedPair(Far, Near);
  }
  for (int32_t i = 0; i <= 2 * fromStart + 1; ++i) {
    StepWriter::Side way = i % 2 == 0 ? Far : Near;
    if (i <= fromStart)
      writer.backward(way);
    else
      writer.inputGradient(way);
  }
  // 7, 8: the last near gradients, and what was postponed.
  for (int32_t i = 0; i < toTurn; ++i) {
    writer.weightGradient();
    writer.inputGradient(Near);
  }
  for (int32_t i = 0; i <= fromStart; ++i)
    writer.weightGradient();
  return std::move(writer.tasks);
}

double pipewright::schedules::bubbleOfTwoWaySteps(int64_t ranks,
                                                  const UnitTimes &times) {
  if (ranks == 0)
    return 0;
  double fill =
      std::max(2 * ranks * times.forward,
               (ranks - 1) * times.forward + ranks * times.inputGradient);
  return fill +
         ranks * std::max(0.0, times.inputGradient - times.weightGradient);
}
