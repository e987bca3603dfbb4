//===- VerifyAllocated.cpp - The contract of the allocated level ----------===//
//
// Runs every program symbolically: a memory that knows who wrote which bytes
// last. Nothing here knows how the plan was made; a wrong life, a wrong offset
// and a missing copy all show as a read that finds another value.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/ShadowMemory.h"
#include "passes/pipe/BodyBuffers.h"
#include "passes/pipe/Passes.h"
#include "passes/pipe/Stages.h"

#include "llvm/ADT/STLExtras.h"

#include <array>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEVERIFYALLOCATED
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// Values by number, each with the place it was written to.
class SymbolicMemory {
public:
  /// `where` gets the diagnostics of reads that find something else.
  void write(Value value, BufferAttr buffer) {
    auto [known, isNew] = numbers.insert({value, values.size()});
    if (isNew)
      values.push_back(value);
    buffers[value] = buffer;
    spaceOf(buffer).write(buffer.getOffset(), buffer.getBytes(),
                          known->second);
  }

  /// The value is that of `source`, and in the same bytes.
  void alias(Value value, Value source) {
    numbers[value] = numbers.at(source);
    buffers[value] = buffers.at(source);
  }

  bool isKnown(Value value) const { return buffers.contains(value); }
  BufferAttr bufferOf(Value value) const { return buffers.lookup(value); }

  LogicalResult read(Operation *reader, Value value) {
    BufferAttr buffer = buffers.at(value);
    int64_t number = numbers.at(value);
    int64_t found = spaceOf(buffer).read(buffer.getOffset(),
                                         buffer.getBytes(), number);
    if (found == number)
      return success();
    InFlightDiagnostic diagnostic = reader->emitOpError("reads ")
                                    << buffer << " after other data was "
                                    << "written there";
    if (found != ShadowMemory::kNothing && values[found])
      if (Operation *writer = values[found].getDefiningOp())
        diagnostic.attachNote(writer->getLoc()) << "by this op";
    return failure();
  }

private:
  ShadowMemory &spaceOf(BufferAttr buffer) {
    return spaces[{buffer.getSpace(), buffer.getIndex()}];
  }

  std::map<std::pair<BufferSpace, int64_t>, ShadowMemory> spaces;
  llvm::DenseMap<Value, int64_t> numbers;
  llvm::DenseMap<Value, BufferAttr> buffers;
  std::vector<Value> values;
};

} // namespace

static bool overlap(BufferAttr a, BufferAttr b) {
  return a.getSpace() == b.getSpace() && a.getIndex() == b.getIndex() &&
         a.getOffset() < b.getOffset() + b.getBytes() &&
         b.getOffset() < a.getOffset() + a.getBytes();
}

/// What an op writes must not touch what it reads, nor the rest of what it
/// writes: it reads and writes at the same time.
static LogicalResult verifyDisjoint(Operation *op,
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

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

namespace {

/// One rank's arena as the ops in it describe it.
struct RankArena {
  ArenaOp op;
  /// What no task may write: weights, gradients, states.
  std::vector<std::pair<Operation *, BufferAttr>> fixed;

  BufferAttr weightOf(FlatSymbolRefAttr weight, StringRef stage) {
    for (auto place : op.getBody()->getOps<PlaceOp>())
      if (place.getWeightAttr() == weight && place.getStage() == stage)
        return place.getBuffer();
    return BufferAttr();
  }

  BufferAttr gradientOf(FlatSymbolRefAttr weight, StringRef stage) {
    for (auto place : op.getBody()->getOps<PlaceOp>())
      if (place.getWeightAttr() == weight && place.getStage() == stage)
        return place.getGradient().value_or(BufferAttr());
    return BufferAttr();
  }
};

class BodyVerifier {
public:
  BodyVerifier(StageOp stage, Operation *body, RankArena &arena)
      : stage(stage), body(body), arena(arena) {}

  LogicalResult verify();
  /// The ranges of the arena that the body writes, joined where they touch.
  std::vector<BufferAttr> arenaWrites() const;

private:
  LogicalResult verifyOp(Operation &op);
  LogicalResult verifyBounds(Operation &op, Value result, BufferAttr buffer);
  LogicalResult verifyReturn();

  StageOp stage;
  Operation *body;
  RankArena &arena;
  SymbolicMemory memory;
  std::vector<BufferAttr> written;
};

} // namespace

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
      return op.emitOpError("expects '") << PipeDialect::kBuffers
                                         << "' with one buffer per result";
    if (failed(verifyBounds(op, result, buffer)))
      return failure();
    if (auto read = dyn_cast<nn::ParameterOp>(op)) {
      BufferAttr place =
          arena.weightOf(read.getWeightAttr(), stage.getSymName());
      if (buffer != place)
        return op.emitOpError("expects the weight's place, but got ")
               << buffer;
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
    if (isa<nn::ViewOpInterface>(op)) {
      if (buffer != reads.front())
        return op.emitOpError("expects the buffer of what it views, ")
               << reads.front() << ", but got " << buffer;
      memory.alias(result, op.getOperand(0));
      continue;
    }
    if (buffer.getSpace() == BufferSpace::input)
      return op.emitOpError("writes ") << buffer << ", an operand of its task";
    if (buffer.getSpace() == BufferSpace::arena) {
      for (auto [owner, range] : arena.fixed)
        if (overlap(buffer, range)) {
          InFlightDiagnostic diagnostic =
              op.emitOpError("writes ") << buffer
                                        << ", which overlaps the fixed part";
          diagnostic.attachNote(owner->getLoc()) << "here: " << range;
          return failure();
        }
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
  if (results.getStash().empty())
    return success();
  StashLayout layout(stage);
  for (auto [number, value] : llvm::enumerate(results.getStash())) {
    auto expected =
        BufferAttr::get(context, BufferSpace::stash, 0,
                        layout.offsets[number], bytesOf(value));
    if (memory.bufferOf(value) != expected)
      return results.emitOpError("expects stash value ")
             << number << " in " << expected << ", but it is in "
             << memory.bufferOf(value);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

/// Arena ranges that the bodies of a stage write, by kind of task.
using BodyWrites = std::map<std::pair<std::string, TaskKind>,
                            std::vector<BufferAttr>>;

class ProgramBuffersVerifier {
public:
  ProgramBuffersVerifier(RankArena &arena, const BodyWrites &bodyWrites)
      : arena(arena), bodyWrites(bodyWrites) {}

  LogicalResult verify(RankOp program);

private:
  LogicalResult verifyOp(Operation &op);
  /// The buffers of an op's results: given, or found through a transfer.
  FailureOr<SmallVector<BufferAttr>> writesOf(Operation &op);
  LogicalResult verifyInArena(Operation &op, BufferAttr buffer, bool isFixed);

  RankArena &arena;
  const BodyWrites &bodyWrites;
  SymbolicMemory memory;
  /// Posted and not yet waited for.
  llvm::MapVector<Value, BufferAttr> sending, receiving;
};

} // namespace

LogicalResult ProgramBuffersVerifier::verify(RankOp program) {
  for (Operation &op : *program.getBody())
    if (failed(verifyOp(op)))
      return failure();
  return success();
}

LogicalResult ProgramBuffersVerifier::verifyInArena(Operation &op,
                                                    BufferAttr buffer,
                                                    bool isFixed) {
  if (buffer.getSpace() != BufferSpace::arena ||
      buffer.getOffset() + buffer.getBytes() >
          static_cast<int64_t>(arena.op.getBytes()))
    return op.emitOpError("expects buffers within the arena of ")
           << arena.op.getBytes() << " bytes, but got " << buffer;
  if (isFixed)
    return success();
  for (auto [owner, range] : arena.fixed)
    if (overlap(buffer, range)) {
      InFlightDiagnostic diagnostic = op.emitOpError("writes ")
                                      << buffer
                                      << ", which overlaps the fixed part";
      diagnostic.attachNote(owner->getLoc()) << "here: " << range;
      return failure();
    }
  return success();
}

FailureOr<SmallVector<BufferAttr>>
ProgramBuffersVerifier::writesOf(Operation &op) {
  ArrayAttr given;
  SmallVector<int64_t> sizes;
  if (auto input = dyn_cast<InputOp>(op)) {
    given = input.getBuffersAttr();
    sizes.push_back(bytesOf(input.getResult()));
  } else if (auto post = dyn_cast<PostReceiveOp>(op)) {
    given = post.getBuffersAttr();
    sizes.push_back(byteSize(
        cast<PendingType>(post.getResult().getType()).getTensor()));
  } else if (auto task = dyn_cast<TaskOp>(op)) {
    given = task.getBuffersAttr();
    for (Value result : task.getResults()) {
      if (isa<RankedTensorType>(result.getType()))
        sizes.push_back(bytesOf(result));
      else if (isa<StashType>(result.getType()))
        sizes.push_back(StashLayout(SymbolTable::lookupNearestSymbolFrom<
                                        StageOp>(op.getParentOp(),
                                                 task.getStageAttr()))
                            .bytes);
    }
  } else if (isa<GradientOfOp, WeightOfOp>(op)) {
    given = op.getAttrOfType<ArrayAttr>("buffers");
    sizes.push_back(bytesOf(op.getResult(0)));
  } else {
    return SmallVector<BufferAttr>();
  }
  if (!given && !sizes.empty())
    return op.emitOpError("has no buffers; run pipe-plan-memory");
  SmallVector<BufferAttr> buffers;
  if (given)
    llvm::append_range(buffers, given.getAsRange<BufferAttr>());
  if (buffers.size() != sizes.size())
    return op.emitOpError("expects ")
           << sizes.size() << " buffers, but got " << buffers.size();
  for (auto [buffer, size] : llvm::zip(buffers, sizes)) {
    if (buffer.getBytes() != size)
      return op.emitOpError("expects a buffer of ")
             << size << " bytes, but got " << buffer;
    if (failed(verifyInArena(op, buffer, isa<GradientOfOp, WeightOfOp>(op))))
      return failure();
  }
  return buffers;
}

LogicalResult ProgramBuffersVerifier::verifyOp(Operation &op) {
  if (auto wait = dyn_cast<WaitSendOp>(op)) {
    auto post = wait.getPending().getDefiningOp<PostSendOp>();
    sending.erase(wait.getPending());
    // Still the value that was posted: nobody wrote over it meanwhile.
    return memory.read(&op, post.getValue());
  }
  if (auto wait = dyn_cast<WaitReceiveOp>(op)) {
    BufferAttr buffer = receiving.lookup(wait.getPending());
    receiving.erase(wait.getPending());
    memory.write(wait.getResult(), buffer);
    return success();
  }

  SmallVector<BufferAttr> reads;
  for (Value operand : op.getOperands()) {
    if (!memory.isKnown(operand))
      continue; // Sums and updates have no bytes of their own.
    if (failed(memory.read(&op, operand)))
      return failure();
    reads.push_back(memory.bufferOf(operand));
  }
  FailureOr<SmallVector<BufferAttr>> writes = writesOf(op);
  if (failed(writes))
    return failure();

  // What a body writes besides: its workspace.
  SmallVector<BufferAttr> all = *writes;
  if (auto task = dyn_cast<TaskOp>(op)) {
    auto found = bodyWrites.find({task.getStage().str(), task.getKind()});
    if (found != bodyWrites.end()) {
      for (BufferAttr scratch : found->second) {
        for (BufferAttr buffer : llvm::concat<BufferAttr>(reads, *writes))
          if (overlap(scratch, buffer))
            return op.emitOpError("has a body that writes ")
                   << scratch << ", which overlaps " << buffer
                   << " of the task";
        all.push_back(scratch);
        memory.write(Value(), scratch);
      }
    }
  }
  // Views are in bytes that exist already.
  bool isView = isa<GradientOfOp, WeightOfOp>(op);
  if (!isView && failed(verifyDisjoint(&op, reads, *writes)))
    return failure();
  for (auto &[pending, target] : receiving)
    for (BufferAttr buffer : llvm::concat<BufferAttr>(reads, all))
      if (overlap(target, buffer)) {
        InFlightDiagnostic diagnostic =
            op.emitOpError("uses ")
            << buffer << " while a transfer writes " << target;
        diagnostic.attachNote(pending.getLoc()) << "posted here";
        return failure();
      }
  if (!isView)
    for (auto &[pending, source] : sending)
      for (BufferAttr buffer : all)
        if (overlap(source, buffer)) {
          InFlightDiagnostic diagnostic =
              op.emitOpError("writes ")
              << buffer << " while a transfer reads " << source;
          diagnostic.attachNote(pending.getLoc()) << "posted here";
          return failure();
        }

  if (auto post = dyn_cast<PostSendOp>(op)) {
    sending[post.getResult()] = reads.front();
    return success();
  }
  if (auto post = dyn_cast<PostReceiveOp>(op)) {
    receiving[post.getResult()] = writes->front();
    memory.write(post.getResult(), writes->front());
    return success();
  }
  size_t next = 0;
  for (Value result : op.getResults())
    if (next < writes->size())
      memory.write(result, (*writes)[next++]);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

class VerifyAllocated
    : public pipe::impl::PipeVerifyAllocatedBase<VerifyAllocated> {
public:
  using PipeVerifyAllocatedBase::PipeVerifyAllocatedBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<Stages> stages = Stages::read(getOperation());
    if (failed(stages) || failed(stages->ranks()))
      return signalPassFailure();
    int64_t arenas = 0;
    for (ArenaOp arena : getOperation().getOps<ArenaOp>()) {
      ++arenas;
      if (failed(verifyRank(arena, *stages)))
        signalPassFailure();
    }
    for (RankOp program : getOperation().getOps<RankOp>())
      if (static_cast<int64_t>(program.getRank()) >= arenas) {
        program.emitOpError("has no pipe.arena");
        signalPassFailure();
      }
  }

private:
  /// Ranges of the fixed part: none may overlap, except that a flat range of
  /// an optimizer consists of places.
  static LogicalResult collectFixed(RankArena &arena) {
    auto add = [&](Operation *op, BufferAttr buffer) -> LogicalResult {
      for (auto [owner, range] : arena.fixed)
        if (overlap(range, buffer)) {
          InFlightDiagnostic diagnostic =
              op->emitOpError("has ") << buffer << ", which overlaps " << range;
          diagnostic.attachNote(owner->getLoc()) << "here";
          return failure();
        }
      arena.fixed.push_back({op, buffer});
      return success();
    };
    for (auto place : arena.op.getBody()->getOps<PlaceOp>()) {
      if (failed(add(place, place.getBuffer())))
        return failure();
      if (std::optional<BufferAttr> gradient = place.getGradient())
        if (failed(add(place, *gradient)))
          return failure();
    }
    for (auto optimizer : arena.op.getBody()->getOps<OptimizerOp>()) {
      for (auto state : optimizer.getStates().getAsRange<BufferAttr>()) {
        if (state.getBytes() != optimizer.getWeights().getBytes())
          return optimizer.emitOpError("expects states of the size of ")
                 << optimizer.getWeights() << ", but got " << state;
        if (failed(add(optimizer, state)))
          return failure();
      }
      if (failed(add(optimizer, optimizer.getHyper())) ||
          failed(verifyFlat(arena, optimizer)))
        return failure();
    }
    return success();
  }

  /// Weight and gradient of every owned parameter lie at the same distance
  /// from the begin of their flat ranges.
  static LogicalResult verifyFlat(RankArena &arena, OptimizerOp optimizer) {
    for (auto place : arena.op.getBody()->getOps<PlaceOp>()) {
      if (place.getStage() != optimizer.getStage() || !place.getOwner() ||
          !place.getGradient())
        continue;
      int64_t weight =
          place.getBuffer().getOffset() - optimizer.getWeights().getOffset();
      int64_t gradient = place.getGradient()->getOffset() -
                         optimizer.getGradients().getOffset();
      if (weight != gradient || weight < 0 ||
          weight + place.getBuffer().getBytes() >
              optimizer.getWeights().getBytes())
        return place.emitOpError("lies at ")
               << weight << " of its stage's weights and at " << gradient
               << " of its gradients, which the optimizer takes for one";
    }
    return success();
  }

  LogicalResult verifyRank(ArenaOp op, const Stages &stages) {
    RankArena arena{op, {}};
    if (failed(collectFixed(arena)))
      return failure();
    BodyWrites writes;
    for (int32_t number = 0; number < stages.size(); ++number) {
      StageOp stage = stages[number];
      if (*stage.getRank() != op.getRank())
        continue;
      for (Operation *body : bodiesOf(stage)) {
        BodyVerifier verifier(stage, body, arena);
        if (failed(verifier.verify()))
          return failure();
        TaskKind kind = isa<ForwardOp>(body)    ? TaskKind::forward
                        : isa<BackwardOp>(body) ? TaskKind::backward
                                                : TaskKind::evaluate;
        writes[{stage.getSymName().str(), kind}] = verifier.arenaWrites();
      }
    }
    for (RankOp program : getOperation().getOps<RankOp>())
      if (program.getRank() == op.getRank() &&
          failed(ProgramBuffersVerifier(arena, writes).verify(program)))
        return failure();
    return success();
  }
};

} // namespace
