//===- BodyBuffers.h - Where a stage body finds its values ------*- C++ -*-===//
//
// The conventions between a task and the body that it runs: which argument is
// which operand, where the fields of a stash lie, and what a planned value's
// buffer is. Shared by planning, verification and code generation.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_BODYBUFFERS_H
#define PIPEWRIGHT_PASSES_STEP_BODYBUFFERS_H

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "dialects/pipe/StashNumbers.h"

namespace pipewright::pipe {

/// The fields of a stash or a handover, one after the other, each aligned.
struct StashLayout {
  llvm::SmallVector<int64_t> offsets;
  /// The end of the last field; 0 where nothing is stashed.
  int64_t bytes = 0;

  explicit StashLayout(mlir::ValueRange fields);
  /// Lays out a value of type `!pipe.stash` or `!pipe.handover`.
  StashLayout(StageOp stage, mlir::Type type);
};

/// The index of what is kept as a value of that type in buffers of space
/// `stash`; none of others.
std::optional<int64_t> stashNumber(mlir::Type type);

/// Where the values of a body's stash lie, in their order.
llvm::SmallVector<BufferAttr> stashBuffers(mlir::Operation *body);

/// The bodies of a stage that tasks of `programs` run, in their order. A
/// schedule that splits backwards may leave the whole ones alone.
llvm::SmallVector<mlir::Operation *>
bodiesRunBy(StageOp stage, llvm::ArrayRef<RankOp> programs);

inline mlir::Block &blockOf(mlir::Operation *body) {
  return body->getRegion(0).front();
}
inline ReturnOp returnOf(mlir::Operation *body) {
  return llvm::cast<ReturnOp>(blockOf(body).getTerminator());
}

/// Bytes of a value of tensor type.
inline int64_t bytesOf(mlir::Value value) {
  return byteSize(llvm::cast<mlir::RankedTensorType>(value.getType()));
}

/// One buffer per argument of a body, in space `input` (the number of the
/// task's operand) or `stash`.
llvm::SmallVector<BufferAttr> argumentBuffers(mlir::Operation *body);

/// Where a value of a planned body lies: an argument by convention, a result
/// by its op's `pipe.buffers`. Null where the body is not planned.
BufferAttr bufferOf(mlir::Value value);

/// Whether the result of `op` is bytes of its operand: all, or a part.
bool seesBytes(mlir::Operation *op);

/// The value that `value` is the bytes of, or some of them: views and subviews
/// are seen through.
mlir::Value rootOf(mlir::Value value);

/// The place of what `seesBytes` in the place of its operand.
BufferAttr bufferOfView(mlir::Operation *view, BufferAttr operand);

/// The op that adds a product to a gradient, where the library call or the
/// kernel that makes the product adds by itself, because nothing else reads it.
/// Such a value has no bytes of its own: its buffer is the gradient's. Null for
/// all others.
nn::AccumulateGradientOp addedInPlace(mlir::Value product);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_BODYBUFFERS_H
