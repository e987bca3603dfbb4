//===- AllocatedBodies.h - Symbolic runs of planned bodies ------*- C++ -*-===//
//
// The part of `pipe-verify-allocated` that runs stage bodies, and the memory
// that it shares with the part that runs rank programs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ALLOCATEDBODIES_H
#define PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ALLOCATEDBODIES_H

#include "passes/planning/RangeMap.h"
#include "passes/step/BodyBuffers.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <vector>

namespace pipewright::pipe {

/// Values by number, each with the place it was written to.
class SymbolicMemory {
public:
  void write(mlir::Value value, BufferAttr buffer) {
    auto [known, isNew] = numbers.insert({value, values.size()});
    if (isNew)
      values.push_back(value);
    buffers[value] = buffer;
    spaceOf(buffer).set(buffer.getOffset(), buffer.getBytes(), known->second);
  }

  /// The value is that of `source`, or a part of it, in the bytes of `buffer`.
  void alias(mlir::Value value, mlir::Value source, BufferAttr buffer) {
    // A copy: an insertion moves what the map refers to.
    int64_t number = numbers.at(source);
    numbers[value] = number;
    buffers[value] = buffer;
  }

  bool isKnown(mlir::Value value) const { return buffers.contains(value); }
  BufferAttr bufferOf(mlir::Value value) const { return buffers.lookup(value); }

  /// Fails, with a diagnostic at `reader`, where other data was written over
  /// the value.
  mlir::LogicalResult read(mlir::Operation *reader, mlir::Value value);

private:
  RangeMap<int64_t> &spaceOf(BufferAttr buffer) {
    return spaces[{buffer.getSpace(), buffer.getIndex()}];
  }

  /// The number of the value that was last written to each byte.
  std::map<std::pair<BufferSpace, int64_t>, RangeMap<int64_t>> spaces;
  llvm::DenseMap<mlir::Value, int64_t> numbers;
  llvm::DenseMap<mlir::Value, BufferAttr> buffers;
  /// By number; the first one stands for bytes that nobody has written.
  std::vector<mlir::Value> values = {mlir::Value()};
};

/// Whether two buffers share bytes.
bool overlap(BufferAttr a, BufferAttr b);

/// What an op writes must not touch what it reads, nor the rest of what it
/// writes: it reads and writes at the same time.
mlir::LogicalResult verifyDisjoint(mlir::Operation *op,
                                   llvm::ArrayRef<BufferAttr> reads,
                                   llvm::ArrayRef<BufferAttr> writes);

/// One rank's arena as the ops in it describe it.
struct RankArena {
  ArenaOp op;
  /// What no task may write: weights, gradients, states.
  std::vector<std::pair<mlir::Operation *, BufferAttr>> fixed;

  /// Fails where `writer` writes into the fixed part.
  mlir::LogicalResult verifyWrite(mlir::Operation *writer, BufferAttr buffer);

  /// Null where the stage has no copy of the weight.
  PlaceOp placeOf(mlir::FlatSymbolRefAttr weight, llvm::StringRef stage) {
    for (auto place : op.getBody()->getOps<PlaceOp>())
      if (place.getWeightAttr() == weight && place.getStage() == stage)
        return place;
    return PlaceOp();
  }

  /// Null where a stage has nothing to train.
  OptimizerOp optimizerOf(llvm::StringRef stage) {
    for (auto optimizer : op.getBody()->getOps<OptimizerOp>())
      if (optimizer.getStage() == stage)
        return optimizer;
    return OptimizerOp();
  }

  /// Whether tasks are told where weights are that the stage updates: these,
  /// or their bf16 copies.
  bool isTold(nn::ParameterOp read, StageOp stage, mlir::Operation *body) {
    PlaceOp place = placeOf(read.getWeightAttr(), stage.getSymName());
    OptimizerOp optimizer = optimizerOf(stage.getSymName());
    return place && place.isUpdated() && optimizer &&
           optimizer.isTold(llvm::isa<EvaluateOp>(body));
  }

  /// Where a body of a stage finds a weight: at a distance from where the task
  /// is told that they are; otherwise in its place. Null where the stage has no
  /// such copy of it.
  BufferAttr readOf(nn::ParameterOp read, StageOp stage,
                    mlir::Operation *body) {
    PlaceOp place = placeOf(read.getWeightAttr(), stage.getSymName());
    if (!place)
      return BufferAttr();
    BufferAttr buffer = read.isWorkingCopy()
                            ? place.getRounded().value_or(BufferAttr())
                            : place.getBuffer();
    if (!buffer || !isTold(read, stage, body))
      return buffer;
    return BufferAttr::get(
        buffer.getContext(), BufferSpace::weights, 0,
        buffer.getOffset() -
            optimizerOf(stage.getSymName()).getNewest().getOffset(),
        buffer.getBytes());
  }

  BufferAttr gradientOf(mlir::FlatSymbolRefAttr weight, llvm::StringRef stage) {
    PlaceOp place = placeOf(weight, stage);
    return place ? place.getGradient().value_or(BufferAttr()) : BufferAttr();
  }
};

/// Runs one body once.
class BodyVerifier {
public:
  BodyVerifier(StageOp stage, mlir::Operation *body, RankArena &arena)
      : stage(stage), body(body), arena(arena) {}

  mlir::LogicalResult verify();
  /// The ranges of the arena that the body writes, joined where they touch.
  std::vector<BufferAttr> arenaWrites() const;

private:
  mlir::LogicalResult verifyOp(mlir::Operation &op);
  mlir::LogicalResult verifyBounds(mlir::Operation &op, mlir::Value result,
                                   BufferAttr buffer);
  mlir::LogicalResult verifyReturn();

  StageOp stage;
  mlir::Operation *body;
  RankArena &arena;
  SymbolicMemory memory;
  std::vector<BufferAttr> written;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ALLOCATEDBODIES_H
