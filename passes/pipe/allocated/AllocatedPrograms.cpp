//===- AllocatedPrograms.cpp - Symbolic runs of planned programs ----------===//

#include "passes/pipe/allocated/AllocatedPrograms.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// Ranges of the arena that are in use while what was posted is under way.
class RangesInUse {
public:
  struct Use {
    int64_t number;
    Value posted;
    BufferAttr buffer;
  };

  void add(Value posted, BufferAttr buffer) {
    longest = std::max(longest, buffer.getBytes());
    uses[posted] =
        ranges.insert({buffer.getOffset(), {next++, posted, buffer}});
  }
  void remove(Value posted) {
    auto found = uses.find(posted);
    if (found == uses.end())
      return;
    ranges.erase(found->second);
    uses.erase(found);
  }
  BufferAttr lookup(Value posted) const {
    auto found = uses.find(posted);
    return found == uses.end() ? BufferAttr() : found->second->second.buffer;
  }
  /// The one that was posted first of those that share bytes with a buffer.
  const Use *firstIn(BufferAttr buffer) const {
    const Use *first = nullptr;
    auto last = ranges.lower_bound(buffer.getOffset() + buffer.getBytes());
    for (auto range = ranges.upper_bound(buffer.getOffset() - longest);
         range != last; ++range)
      if (overlap(range->second.buffer, buffer) &&
          (!first || range->second.number < first->number))
        first = &range->second;
    return first;
  }

private:
  /// By offset.
  using Ranges = std::multimap<int64_t, Use>;
  Ranges ranges;
  llvm::DenseMap<Value, Ranges::iterator> uses;
  int64_t longest = 0, next = 0;
};

class ProgramBuffersVerifier {
public:
  ProgramBuffersVerifier(RankArena &arena, const BodyWrites &bodyWrites,
                         const Stages &stages)
      : arena(arena), bodyWrites(bodyWrites), stages(stages) {}

  LogicalResult verify(RankOp program);

private:
  LogicalResult verifyOp(Operation &op);
  /// The buffers of an op's results: given, or found through a transfer.
  FailureOr<SmallVector<BufferAttr>> writesOf(Operation &op);
  LogicalResult verifyInArena(Operation &op, BufferAttr buffer, bool isFixed);
  FailureOr<int64_t> scratchOf(CollectiveOp op);
  LogicalResult verifyResume(ResumeOp resume);
  LogicalResult verifyVersion(TaskOp task);
  LogicalResult verifyUnderWay(Operation &op, ArrayRef<BufferAttr> reads,
                               ArrayRef<BufferAttr> writes);
  LogicalResult verifyNextStep(RankOp program);

  RankArena &arena;
  const BodyWrites &bodyWrites;
  const Stages &stages;
  SymbolicMemory memory;
  /// By stage and by offset of the arena: which version of the weights is
  /// there; and the first task that read version -1 from a slot.
  std::map<std::string, std::map<int64_t, int64_t>> versions;
  std::map<std::string, std::map<int64_t, TaskOp>> before;
  /// Posted and not yet waited for: what is being sent, and where what others
  /// send goes.
  RangesInUse sending, receiving;
};

} // namespace

LogicalResult ProgramBuffersVerifier::verify(RankOp program) {
  for (Operation &op : *program.getBody())
    if (failed(verifyOp(op)))
      return failure();
  return verifyNextStep(program);
}

/// The version that a task reads is in the bytes that it is told.
LogicalResult ProgramBuffersVerifier::verifyVersion(TaskOp task) {
  OptimizerOp optimizer = arena.optimizerOf(task.getStage());
  if (!optimizer)
    return success();
  const bool isEvaluation = task.getKind() == TaskKind::evaluate;
  std::optional<BufferAttr> weights = task.getWeights();
  if (task.getKind() != TaskKind::update && !isEvaluation &&
      optimizer.getVersions() && !weights)
    return task.emitOpError("has no weights; run pipe-plan-memory");
  if (weights && !optimizer.mayBeRead(*weights))
    return task.emitOpError("names ")
           << *weights << ", where no version of its weights is";
  if (isEvaluation || optimizer.getOtherRanges())
    return success();
  auto &found = versions[task.getStage().str()];
  int64_t newestAt = optimizer.getNewest().getOffset();
  int64_t at = weights ? weights->getOffset() : newestAt;
  if (task.getKind() == TaskKind::update) {
    if (weights)
      found[at] = found[newestAt];
    ++found[newestAt];
    return success();
  }
  if (!task.getVersion())
    return success();
  auto version = static_cast<int64_t>(*task.getVersion());
  // What the last step left there is known at the end of this one.
  if (version == -1 && !found.contains(at) && at != newestAt) {
    found[at] = version;
    before[task.getStage().str()][at] = task;
  }
  if (!found.contains(at) && at == newestAt)
    found[at] = 0;
  if (!found.contains(at) || found[at] != version) {
    InFlightDiagnostic diagnostic = task.emitOpError("expects version ")
                                    << version << " of its weights at offset "
                                    << at << ", but finds ";
    if (found.contains(at))
      diagnostic << "version " << found[at];
    else
      diagnostic << "none";
    return diagnostic;
  }
  return success();
}

/// A step begins with what the one before it left.
LogicalResult ProgramBuffersVerifier::verifyNextStep(RankOp program) {
  for (auto &[stage, tasks] : before) {
    OptimizerOp optimizer = arena.optimizerOf(stage);
    auto &found = versions[stage];
    int64_t newest = found[optimizer.getNewest().getOffset()];
    for (auto &[at, task] : tasks)
      if (found[at] != newest - 1)
        return task.emitOpError("reads at offset ")
               << at << " what the last update of a step overwrote, "
               << "but a step leaves version " << found[at] << " of " << newest
               << " there";
  }
  return success();
}

LogicalResult ProgramBuffersVerifier::verifyInArena(Operation &op,
                                                    BufferAttr buffer,
                                                    bool isFixed) {
  auto move = dyn_cast<MoveOp>(op);
  if (move && move.isToHost()) {
    if (buffer.getSpace() != BufferSpace::host ||
        buffer.getOffset() + buffer.getBytes() >
            static_cast<int64_t>(arena.op.getHostBytes()))
      return op.emitOpError("expects a buffer within ")
             << arena.op.getHostBytes() << " bytes of the host, but got "
             << buffer;
    return success();
  }
  if (buffer.getSpace() != BufferSpace::arena ||
      buffer.getOffset() + buffer.getBytes() >
          static_cast<int64_t>(arena.op.getBytes()))
    return op.emitOpError("expects buffers within the arena of ")
           << arena.op.getBytes() << " bytes, but got " << buffer;
  return isFixed ? success() : arena.verifyWrite(&op, buffer);
}

/// What a member gets from the others: their numbers for its part of the range,
/// or, of a root, for all of it. Every part but the last ones has as many
/// numbers as there are members for the whole range, rounded up.
FailureOr<int64_t> ProgramBuffersVerifier::scratchOf(CollectiveOp op) {
  const std::optional<BufferAttr> range = op.getRange(arena.op);
  if (!range)
    return op.emitOpError("is about what its stage has no place for");
  if (!op.isOfGradients())
    return 0;
  // The first replica has the longest part, and all have one program.
  int64_t members = op.countMembers(), number = 0;
  if (!op.getOver().isOfReplicas())
    while (op.getOver().getRanks()[number] !=
           static_cast<int64_t>(arena.op.getRank()))
      ++number;
  int64_t numbers = range->getBytes() / 4;
  if (op.isOfPart())
    numbers /= programOf(op->getParentOfType<ModuleOp>()).replicas;
  // A root gets the whole range from each of them, and nobody else anything.
  if (op.getRoot()) {
    bool isRoot = op.getOver().isOfReplicas() ||
                  *op.getRoot() == static_cast<uint64_t>(arena.op.getRank());
    return isRoot ? (members - 1) * numbers * 4 : 0;
  }
  int64_t longest = numbers / members + (numbers % members != 0);
  int64_t before = std::min(numbers, number * longest);
  int64_t part = std::min(longest, numbers - before);
  return (members - 1) * part * 4;
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
    sizes.push_back(
        byteSize(cast<PendingType>(post.getResult().getType()).getTensor()));
  } else if (auto task = dyn_cast<TaskOp>(op)) {
    given = task.getBuffersAttr();
    for (Value result : task.getResults()) {
      if (isa<RankedTensorType>(result.getType()))
        sizes.push_back(bytesOf(result));
      else if (isa<StashType, HandoverType>(result.getType()))
        sizes.push_back(
            StashLayout(stages.stageOf(task.getStageAttr()), result.getType())
                .bytes);
    }
  } else if (auto move = dyn_cast<MoveOp>(op)) {
    given = move.getBuffersAttr();
    Value stash = move.isToHost() ? move.getValue() : move.getResult();
    sizes.push_back(
        StashLayout(stages.stageOf(move.getStageAttr()), stash.getType())
            .bytes);
  } else if (auto together = dyn_cast<CollectiveOp>(op)) {
    FailureOr<int64_t> scratch = scratchOf(together);
    if (failed(scratch))
      return failure();
    given = together.getBuffersAttr();
    if (together.isOfGradients())
      sizes.push_back(*scratch);
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

/// Nothing uses what others write meanwhile, or writes what others read.
LogicalResult ProgramBuffersVerifier::verifyUnderWay(
    Operation &op, ArrayRef<BufferAttr> reads, ArrayRef<BufferAttr> writes) {
  auto report = [&](StringRef does, BufferAttr buffer, StringRef transfer,
                    BufferAttr used, Value posted) {
    InFlightDiagnostic diagnostic = op.emitOpError(does)
                                    << " " << buffer << " while a " << transfer
                                    << " " << used;
    diagnostic.attachNote(posted.getLoc()) << "posted here";
    return failure();
  };
  for (BufferAttr buffer : llvm::concat<const BufferAttr>(reads, writes))
    if (const RangesInUse::Use *use = receiving.firstIn(buffer))
      return report("uses", buffer,
                    use->posted.getDefiningOp<CollectiveOp>()
                        ? "collective writes"
                        : "transfer writes",
                    use->buffer, use->posted);
  for (BufferAttr buffer : writes)
    if (const RangesInUse::Use *use = sending.firstIn(buffer))
      return report("writes", buffer, "transfer reads", use->buffer,
                    use->posted);
  return success();
}

/// As long as what it makes.
static int64_t bytesOfHeld(HoldOp op, const Stages &stages) {
  Type type = op.getResult().getType();
  if (auto bytes = dyn_cast<RankedTensorType>(type))
    return byteSize(bytes);
  return StashLayout(stages.stageOf(op.getStageAttr()), type).bytes;
}

/// What its task takes is still there, and what that makes is not in use by
/// others; nor is the workspace, whatever else has begun behind the part
/// before.
LogicalResult ProgramBuffersVerifier::verifyResume(ResumeOp resume) {
  TaskOp task = resume.getTask();
  SmallVector<BufferAttr> reads, writes;
  for (Value operand : task->getOperands()) {
    if (!memory.isKnown(operand))
      continue;
    if (failed(memory.read(resume, operand)))
      return failure();
    reads.push_back(memory.bufferOf(operand));
  }
  for (Value result : task->getResults())
    if (memory.isKnown(result)) {
      writes.push_back(memory.bufferOf(result));
      memory.write(result, writes.back());
    }
  auto stage = stages.stageOf(task.getStageAttr());
  auto found = bodyWrites.find(stage.bodyOf(task.getKind()));
  if (found != bodyWrites.end())
    llvm::append_range(writes, found->second);
  return verifyUnderWay(*resume, reads, writes);
}

LogicalResult ProgramBuffersVerifier::verifyOp(Operation &op) {
  if (auto resume = dyn_cast<ResumeOp>(op))
    return verifyResume(resume);
  if (auto wait = dyn_cast<WaitSendOp>(op)) {
    auto post = wait.getPending().getDefiningOp<PostSendOp>();
    sending.remove(wait.getPending());
    // Still the value that was posted: nobody wrote over it meanwhile.
    return memory.read(&op, post.getValue());
  }
  if (auto wait = dyn_cast<WaitReceiveOp>(op)) {
    BufferAttr buffer = receiving.lookup(wait.getPending());
    receiving.remove(wait.getPending());
    memory.write(wait.getResult(), buffer);
    return success();
  }
  if (auto wait = dyn_cast<WaitCollectiveOp>(op)) {
    receiving.remove(wait.getValue());
    return success();
  }
  if (auto wait = dyn_cast<WaitMoveOp>(op)) {
    sending.remove(wait.getValue());
    receiving.remove(wait.getValue());
    // Still what was to be copied, and there.
    if (failed(memory.read(&op, wait.getMove().getValue())))
      return failure();
    return memory.read(&op, wait.getValue());
  }

  SmallVector<BufferAttr> reads;
  for (Value operand : op.getOperands()) {
    if (!memory.isKnown(operand))
      continue; // Sums and updates have no bytes of their own.
    if (failed(memory.read(&op, operand)))
      return failure();
    reads.push_back(memory.bufferOf(operand));
  }
  // It is where it was, as something else.
  if (auto hold = dyn_cast<HoldOp>(op)) {
    int64_t bytes = bytesOfHeld(hold, stages);
    if (reads.front().getBytes() != bytes)
      return op.emitOpError("expects ")
             << bytes << " bytes, but takes " << reads.front();
    memory.write(hold.getResult(), reads.front());
    return success();
  }
  FailureOr<SmallVector<BufferAttr>> writes = writesOf(op);
  if (failed(writes))
    return failure();

  // What a body writes besides: its workspace.
  SmallVector<BufferAttr> all = *writes;
  if (auto task = dyn_cast<TaskOp>(op)) {
    if (failed(verifyVersion(task)))
      return failure();
    auto stage = stages.stageOf(task.getStageAttr());
    auto found = bodyWrites.find(stage.bodyOf(task.getKind()));
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
  if (failed(verifyUnderWay(op, reads, isView ? ArrayRef<BufferAttr>() : all)))
    return failure();

  if (auto post = dyn_cast<PostSendOp>(op)) {
    sending.add(post.getResult(), reads.front());
    return success();
  }
  if (auto post = dyn_cast<PostReceiveOp>(op)) {
    receiving.add(post.getResult(), writes->front());
    memory.write(post.getResult(), writes->front());
    return success();
  }
  if (auto move = dyn_cast<MoveOp>(op)) {
    if (reads.front().getBytes() != writes->front().getBytes())
      return op.emitOpError("expects to copy as many bytes as it takes, but "
                            "takes ")
             << reads.front() << " and makes " << writes->front();
    sending.add(move.getResult(), reads.front());
    receiving.add(move.getResult(), writes->front());
    memory.write(move.getResult(), writes->front());
    return success();
  }
  if (auto together = dyn_cast<CollectiveOp>(op)) {
    for (BufferAttr scratch : *writes) {
      receiving.add(together.getResult(), scratch);
      memory.write(Value(), scratch);
    }
    return success();
  }
  size_t next = 0;
  for (Value result : op.getResults())
    if (next < writes->size())
      memory.write(result, (*writes)[next++]);
  return success();
}

LogicalResult pipewright::pipe::verifyBuffers(RankArena &arena,
                                              const BodyWrites &bodyWrites,
                                              RankOp program,
                                              const Stages &stages) {
  return ProgramBuffersVerifier(arena, bodyWrites, stages).verify(program);
}
