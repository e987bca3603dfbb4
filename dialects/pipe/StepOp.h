//===- StepOp.h - What ops of a step say about themselves -------*- C++ -*-===//
//
// The vocabulary of StepOpInterface: what a value stands for, which bytes an
// op uses, and what an op may ask about the module around it. Passes and code
// generation ask ops in these words and keep no lists of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_STEPOP_H
#define PIPEWRIGHT_DIALECTS_PIPE_STEPOP_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace pipewright::pipe {

class StageOp;
enum class TaskKind : uint32_t;

/// What ops ask about the module around them.
class StepContext {
public:
  /// Null where the module has no such stage.
  virtual StageOp stageOf(mlir::FlatSymbolRefAttr name) const = 0;
  /// The place of a stage among all stages, as people count them; -1 where the
  /// module has no such stage.
  virtual int32_t numberOf(mlir::FlatSymbolRefAttr stage) const = 0;
  /// The stages that hold a weight, in their order: the owner comes first.
  virtual llvm::SmallVector<mlir::FlatSymbolRefAttr>
  holdersOf(mlir::FlatSymbolRefAttr weight) const = 0;

protected:
  ~StepContext() = default;
};

/// What a value of a step stands for. Its producer says so, and each consumer
/// says what it takes the value for: steps and rank programs are right when
/// the two agree everywhere, also across a transfer.
struct Content {
  enum class Kind {
    /// A model input; `name` says which.
    Input,
    /// Result `index` of the forward or evaluation of `stage`.
    Result,
    /// The gradient of that result.
    Gradient,
    /// What the forward of `stage` keeps; `index` is the kind of task for which
    /// the range is, see `StashType`.
    Stash,
    /// The same of what its `pipe.recompute` hands over.
    Recomputed,
    /// What an input gradient of `stage` keeps for the weight gradient.
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
  mlir::FlatSymbolRefAttr stage;
  int64_t index = 0;
  int64_t microBatch = 0;
  llvm::StringRef name;

  bool operator==(const Content &other) const = default;
  /// `output 0 of stage '@s1', micro-batch 2`
  std::string describe() const;
};

/// Where the bytes of a result are.
struct ResultBytes {
  enum class Kind {
    /// Nowhere: sums of gradients and updates have none.
    None,
    /// In bytes of its own, which `pipe-plan-memory` finds.
    Own,
    /// In those of the op's first operand, which are in use as long as the
    /// result is: what is being sent, what was received.
    OfOperand,
    /// It has none, but its op needs bytes of its own until the wait for it:
    /// what other ranks send to be added.
    Scratch,
    /// In the place of `weight`, or of its gradient, in the op's stage.
    Weight,
    Gradient,
  };

  Kind kind = Kind::None;
  mlir::FlatSymbolRefAttr weight = {};

  /// Whether the op's `buffers` say where it is.
  bool isPlanned() const {
    return kind != Kind::None && kind != Kind::OfOperand;
  }
};

/// Bytes that an op reads or writes, in its own terms. What is written may be
/// read, too.
struct ByteUse {
  enum class Kind {
    /// Those of `value`, an operand or a result.
    Value,
    /// The copies of `weight` in `stage`.
    Weight,
    /// Its gradient; null means those of all that the optimizer of the stage
    /// updates.
    Gradient,
    /// All weights that the optimizer of `stage` updates, their bf16 copies,
    /// and
    /// what a replica keeps of both, where that lies apart.
    Weights,
    Rounded,
    Home,
    /// All that the body of a task uses while the task runs it.
    Body,
    /// All that the optimizer of the op's stage works with, and the place
    /// where an update keeps the old version.
    Optimizer,
  };

  Kind kind = Kind::Value;
  bool writes = false;
  mlir::Value value = {};
  mlir::FlatSymbolRefAttr weight = {};
  /// Null: the op's.
  mlir::FlatSymbolRefAttr stage = {};

  static ByteUse read(mlir::Value value) {
    return {Kind::Value, /*writes=*/false, value};
  }
  static ByteUse write(mlir::Value value) {
    return {Kind::Value, /*writes=*/true, value};
  }
};

using ByteUses = llvm::SmallVector<ByteUse, 2>;

/// Fails, with a diagnostic, where an op does not say what it does in a step.
llvm::LogicalResult verifyStepOps(mlir::Block &block);

/// F, B, I, W, R, U, or E for `evaluate`, as people name tasks.
llvm::StringRef letterOf(TaskKind kind);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_DIALECTS_PIPE_STEPOP_H
