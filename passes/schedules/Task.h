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
  /// Zero for an update, which belongs to no micro-batch.
  int32_t microBatch = 0;

  static Task forward(int32_t stage, int32_t microBatch) {
    return {TaskKind::Forward, stage, microBatch};
  }
  static Task backward(int32_t stage, int32_t microBatch) {
    return {TaskKind::Backward, stage, microBatch};
  }
  static Task update(int32_t stage) { return {TaskKind::Update, stage, 0}; }

  bool operator==(const Task &other) const = default;

  /// True for the kinds that produce the gradient of the stage's inputs.
  bool producesGradient() const {
    return kind == TaskKind::Backward || kind == TaskKind::InputGradient;
  }

  /// `F0.3`: forward of stage 0, micro-batch 3. `U2`: update of stage 2.
  std::string name() const;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_TASK_H
