//===- Contents.h - What a value of a step stands for -----------*- C++ -*-===//
//
// Each value of a step has one meaning, which its producer says, and each
// operand wants one, which its consumer says. Steps and rank programs are
// right when the two agree everywhere, also across a transfer.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_CONTENTS_H
#define PIPEWRIGHT_PASSES_STEP_CONTENTS_H

#include "passes/step/Stages.h"

#include <optional>
#include <string>

namespace pipewright::pipe {

struct Content {
  enum class Kind {
    /// A model input; `name` says which.
    Input,
    /// Result `index` of the forward or evaluation of `stage`.
    Result,
    /// The gradient of that result.
    Gradient,
    Stash,
    /// What the input gradient of `stage` keeps for the weight gradient.
    Handover,
    /// The weight gradients of `stage`, summed so far.
    Sum,
    /// The gradient of the tied weight `name` in `stage`.
    WeightGradient,
    /// The new value of the tied weight `name`.
    NewWeight,
    Updated,
  };

  Kind kind = Kind::Result;
  int32_t stage = 0;
  int64_t index = 0;
  int64_t microBatch = 0;
  llvm::StringRef name;

  bool operator==(const Content &other) const = default;
  /// `output 0 of stage '@s1', micro-batch 2`
  std::string describe(const Stages &stages) const;
};

/// What `value` is, by the op that makes it; none for received values and for
/// what has no meaning (a gradient that no stage wants, ...).
std::optional<Content> contentOf(const Stages &stages, StepMode mode,
                                 mlir::Value value);

/// What the op of `operand` takes it for; none for posts and waits.
std::optional<Content> contentWantedBy(const Stages &stages, StepMode mode,
                                       mlir::OpOperand &operand);

/// The ops of one step, in any order: every task there is, once; what it
/// reads is what it wants, unless it was received; gradients of a stage summed
/// in ascending order, or in any if the module says so; no gradient of a tied
/// weight forgotten. Reports every
/// violation. `where` is the op that diagnostics about missing tasks name.
mlir::LogicalResult verifyTasks(const Stages &stages, StepMode mode,
                                int64_t microBatches, mlir::Operation *where,
                                llvm::ArrayRef<mlir::Operation *> ops);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_CONTENTS_H
