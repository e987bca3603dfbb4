//===- Task.h - One stage at work on one micro-batch ------------*- C++ -*-===//
//
// The vocabulary of all schedules. A task is 12 bytes of plain data, so that
// schedules of millions of tasks stay cheap.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_TASK_H
#define PIPEWRIGHT_PASSES_SCHEDULES_TASK_H

#include <cstdint>
#include <string>

namespace pipewright::schedules {

enum class TaskKind : uint8_t {
  Forward,
  /// Both gradients: of the stage's inputs and of its weights.
  Backward,
  InputGradient,
  WeightGradient,
  /// Runs the forward again, to get back what was not stashed.
  Recompute,
  /// The optimizer on one stage's weights, once per step.
  Update,
};
inline constexpr unsigned numTaskKinds = 6;

/// The letter of a kind: F, B, I, W, R or U.
char letterOf(TaskKind kind);

struct Task {
  TaskKind kind = TaskKind::Forward;
  int32_t stage = 0;
  /// An update has here which of the step's updates it is (Schedule::updates),
  /// zero where there is one.
  int32_t microBatch = 0;
  /// Runs together with the next task of its rank, as one overlapped pair: both
  /// start when the needs of both are met, and end together. A target that
  /// cannot overlap runs them one after the other.
  bool overlapsNext = false;

  static Task forward(int32_t stage, int32_t microBatch) {
    return {TaskKind::Forward, stage, microBatch};
  }
  static Task backward(int32_t stage, int32_t microBatch) {
    return {TaskKind::Backward, stage, microBatch};
  }
  static Task inputGradient(int32_t stage, int32_t microBatch) {
    return {TaskKind::InputGradient, stage, microBatch};
  }
  static Task weightGradient(int32_t stage, int32_t microBatch) {
    return {TaskKind::WeightGradient, stage, microBatch};
  }
  static Task recompute(int32_t stage, int32_t microBatch) {
    return {TaskKind::Recompute, stage, microBatch};
  }
  static Task update(int32_t stage, int32_t number = 0) {
    return {TaskKind::Update, stage, number};
  }

  /// Whether both are the same work; overlapping is not part of it.
  bool operator==(const Task &other) const {
    return kind == other.kind && stage == other.stage &&
           microBatch == other.microBatch;
  }

  /// True for the kinds that produce the gradient of the stage's inputs.
  bool producesGradient() const {
    return kind == TaskKind::Backward || kind == TaskKind::InputGradient;
  }

  /// True for the kinds after which nothing needs the forward's stash.
  bool endsStash() const {
    return kind == TaskKind::Backward || kind == TaskKind::WeightGradient;
  }

  /// `F0.3`: forward of stage 0, micro-batch 3. `U2`: the update of stage 2;
  /// `U2.1` where it is not the step's first.
  std::string name() const;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_TASK_H
