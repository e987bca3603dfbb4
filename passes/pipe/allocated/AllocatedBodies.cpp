//===- AllocatedBodies.cpp - Symbolic runs of planned bodies --------------===//
//
// See AllocatedBodies.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/allocated/AllocatedBodies.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

LogicalResult SymbolicMemory::read(Operation *reader, Value value) {
  BufferAttr buffer = buffers.at(value);
  int64_t number = numbers.at(value);
  int64_t found = number;
  spaceOf(buffer).visit(buffer.getOffset(), buffer.getBytes(),
                        [&](int64_t, int64_t, int64_t written) {
                          if (found == number)
                            found = written;
                        });
  if (found == number)
    return success();
  InFlightDiagnostic diagnostic = reader->emitOpError("reads ")
                                  << buffer << " after other data was "
                                  << "written there";
  if (values[found])
    if (Operation *writer = values[found].getDefiningOp())
      diagnostic.attachNote(writer->getLoc()) << "by this op";
  return failure();
}

bool pipewright::pipe::overlap(BufferAttr a, BufferAttr b) {
  return a.getSpace() == b.getSpace() && a.getIndex() == b.getIndex() &&
         a.getOffset() < b.getOffset() + b.getBytes() &&
         b.getOffset() < a.getOffset() + a.getBytes();
}

LogicalResult pipewright::pipe::verifyDisjoint(Operation *op,
                                               ArrayRef<BufferAttr> reads,
                                               ArrayRef<BufferAttr> writes) {
  for (auto [number, write] : llvm::enumerate(writes)) {
    for (BufferAttr read : reads)
      if (overlap(read, write))
        return op->emitOpError("writes ")
               << write << ", which overlaps " << read << " that it reads";
    for (BufferAttr other : writes.take_front(number))
      if (overlap(other, write))
        return op->emitOpError("writes ")
               << write << " and " << other << ", which overlap";
  }
  return success();
}

LogicalResult RankArena::verifyWrite(Operation *writer, BufferAttr buffer) {
  for (auto [owner, range] : fixed)
    if (overlap(buffer, range)) {
      InFlightDiagnostic diagnostic = writer->emitOpError("writes ")
                                      << buffer
                                      << ", which overlaps the fixed part";
      diagnostic.attachNote(owner->getLoc()) << "here: " << range;
      return failure();
    }
  return success();
}

LogicalResult BodyVerifier::verify() {
  for (auto [argument, buffer] :
       llvm::zip(blockOf(body).getArguments(), argumentBuffers(body)))
    memory.write(argument, buffer);
  for (Operation &op : blockOf(body))
    if (failed(verifyOp(op)))
      return failure();
  return verifyReturn();
}

std::vector<BufferAttr> BodyVerifier::arenaWrites() const {
  std::vector<BufferAttr> sorted = written, joined;
  llvm::sort(sorted, [](BufferAttr a, BufferAttr b) {
    return a.getOffset() < b.getOffset();
  });
  for (BufferAttr next : sorted) {
    int64_t end = next.getOffset() + next.getBytes();
    int64_t begin = next.getOffset();
    if (!joined.empty()) {
      BufferAttr last = joined.back();
      if (begin <= alignedSize(last.getOffset() + last.getBytes())) {
        begin = last.getOffset();
        end = std::max(end, last.getOffset() + last.getBytes());
        joined.pop_back();
      }
    }
    joined.push_back(BufferAttr::get(next.getContext(), BufferSpace::arena,
                                     begin, end - begin));
  }
  return joined;
}

LogicalResult BodyVerifier::verifyBounds(Operation &op, Value result,
                                         BufferAttr buffer) {
  if (buffer.getBytes() != bytesOf(result))
    return op.emitOpError("expects a buffer of ")
           << bytesOf(result) << " bytes, but got " << buffer;
  if (buffer.getSpace() != BufferSpace::arena)
    return success();
  if (buffer.getOffset() + buffer.getBytes() >
      static_cast<int64_t>(arena.op.getBytes()))
    return op.emitOpError("has ")
           << buffer << ", which ends beyond the arena of "
           << arena.op.getBytes() << " bytes";
  return success();
}

LogicalResult BodyVerifier::verifyOp(Operation &op) {
  SmallVector<BufferAttr> reads, writes;
  for (Value operand : op.getOperands()) {
    // What was added in place is part of the gradient already.
    if (addedInPlace(rootOf(operand)))
      continue;
    if (failed(memory.read(&op, operand)))
      return failure();
    reads.push_back(memory.bufferOf(operand));
  }
  for (Value result : op.getResults()) {
    BufferAttr buffer = bufferOf(result);
    if (!buffer)
      return op.emitOpError("expects '")
             << PipeDialect::kBuffers << "' with one buffer per result";
    if (failed(verifyBounds(op, result, buffer)))
      return failure();
    if (auto read = dyn_cast<nn::ParameterOp>(op)) {
      BufferAttr place = arena.readOf(read, stage, body);
      // A task is told of one place, of what the stage reads.
      OptimizerOp optimizer = arena.optimizerOf(stage.getSymName());
      if (arena.isTold(read, stage, body) && !read.isWorkingCopy() &&
          optimizer.getRounded())
        return op.emitOpError("reads a trained weight in f32, but tasks of its "
                              "stage are told where bf16 copies are");
      if (buffer != place)
        return op.emitOpError("expects the weight's place, but got ") << buffer;
      memory.write(result, buffer);
      continue;
    }
    if (nn::AccumulateGradientOp sum = addedInPlace(rootOf(result))) {
      BufferAttr place =
          arena.gradientOf(sum.getWeightAttr(), stage.getSymName());
      if (buffer != place)
        return op.emitOpError("expects the place of the gradient that it adds "
                              "to, but got ")
               << buffer;
      continue;
    }
    if (seesBytes(&op)) {
      BufferAttr expected = bufferOfView(&op, reads.front());
      if (buffer != expected)
        return op.emitOpError("expects the buffer of what it views, ")
               << expected << ", but got " << buffer;
      memory.alias(result, op.getOperand(0), buffer);
      continue;
    }
    if (buffer.getSpace() == BufferSpace::input ||
        buffer.getSpace() == BufferSpace::weights)
      return op.emitOpError("writes ")
             << buffer << ", "
             << (buffer.getSpace() == BufferSpace::input
                     ? "an operand of its task"
                     : "weights that others read");
    if (buffer.getSpace() == BufferSpace::arena) {
      if (failed(arena.verifyWrite(&op, buffer)))
        return failure();
      written.push_back(buffer);
    }
    writes.push_back(buffer);
    memory.write(result, buffer);
  }
  return verifyDisjoint(&op, reads, writes);
}

/// Whatever the task's consumers read must be there when the body ends.
LogicalResult BodyVerifier::verifyReturn() {
  ReturnOp results = returnOf(body);
  MLIRContext *context = body->getContext();
  for (auto [number, value] : llvm::enumerate(results.getValues())) {
    auto expected = BufferAttr::get(context, BufferSpace::output, number, 0,
                                    bytesOf(value));
    if (memory.bufferOf(value) != expected)
      return results.emitOpError("expects result ")
             << number << " in " << expected << ", but it is in "
             << memory.bufferOf(value);
  }
  const SmallVector<BufferAttr> stash = stashBuffers(body);
  for (auto [number, value] : llvm::enumerate(results.getStash())) {
    const BufferAttr expected = stash[number];
    if (memory.bufferOf(value) != expected)
      return results.emitOpError("expects stash value ")
             << number << " in " << expected << ", but it is in "
             << memory.bufferOf(value);
  }
  return success();
}
