//===- AssignStreams.cpp - Work on streams, ordered by events -------------===//
//
// Finds out what each op does to the arena and on which stream, has
// passes/planning say who waits for whom, and writes that down as events.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/ArenaAccesses.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEASSIGNSTREAMS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// One rank's program.
class ProgramStreams {
public:
  ProgramStreams(RankOp program, const Stages &stages, ArenaOp arena)
      : program(program), accesses(stages, arena),
        arenaBytes(static_cast<int64_t>(arena.getBytes())) {}

  LogicalResult assign();

private:
  LogicalResult collect();
  LogicalResult verifyOver(StepOpInterface post, Operation *user);
  void write();

  RankOp program;
  ArenaAccesses accesses;
  int64_t arenaBytes;
  /// Numbers of streams, in the order in which they are used.
  llvm::MapVector<StreamAttr, size_t> streams;
  /// Parallel: the ops that run on streams, what they do, and for whom each
  /// has to wait.
  std::vector<StepOpInterface> ops;
  std::vector<StreamWork> works;
  std::vector<std::vector<size_t>> waits;
};

} // namespace

/// Takes away what an earlier run has assigned.
static void eraseEvents(RankOp program) {
  for (Operation &op : llvm::make_early_inc_range(*program.getBody())) {
    if (isa<RecordEventOp, WaitEventOp>(op))
      op.erase();
    else if (auto step = cast<StepOpInterface>(op); step.isAsynchronous())
      step.removeRecordedEvent();
  }
}

/// On one line of bytes, where the host's memory is behind the arena.
static std::vector<ByteRange> rangesOf(ArrayRef<BufferAttr> buffers,
                                       int64_t arenaBytes) {
  std::vector<ByteRange> ranges;
  for (BufferAttr buffer : buffers)
    ranges.push_back(
        {buffer.getOffset() +
             (buffer.getSpace() == BufferSpace::host ? arenaBytes : 0),
         buffer.getBytes()});
  return ranges;
}

LogicalResult ProgramStreams::collect() {
  for (auto op : program.getBody()->getOps<StepOpInterface>()) {
    FailureOr<Accesses> found = accesses.of(op);
    if (failed(found))
      return failure();
    if (found->reads.empty() && found->writes.empty())
      continue;
    size_t stream =
        streams.insert({op.getWorkStream(), streams.size()}).first->second;
    ops.push_back(op);
    works.push_back({stream, rangesOf(found->reads, arenaBytes),
                     rangesOf(found->writes, arenaBytes)});
  }
  return success();
}

/// The plan was proved free of deadlock with a rank that waits for a transfer
/// or a collective where the first use of its result stands, a wait. A stream
/// must not wait for it earlier.
LogicalResult ProgramStreams::verifyOver(StepOpInterface post,
                                         Operation *user) {
  for (Operation *wait : post->getResult(0).getUsers())
    if (wait->isBeforeInBlock(user))
      return success();
  InFlightDiagnostic diagnostic = user->emitOpError(
      "shares bytes with a transfer that the program has not waited for");
  diagnostic.attachNote(post->getLoc()) << "posted here";
  return diagnostic;
}

void ProgramStreams::write() {
  std::vector<bool> isWaitedFor(ops.size());
  for (const std::vector<size_t> &of : waits)
    for (size_t work : of)
      isWaitedFor[work] = true;

  OpBuilder builder(program.getContext());
  std::vector<int64_t> events(ops.size());
  int64_t next = 0;
  for (auto [number, op] : llvm::enumerate(ops)) {
    StreamAttr stream = op.getWorkStream();
    builder.setInsertionPoint(op);
    for (size_t work : waits[number])
      WaitEventOp::create(builder, op->getLoc(), events[work], stream);
    builder.setInsertionPointAfter(op);
    if (op.isAsynchronous())
      op.setRecordedEvent(events[number] = next++);
    else if (isWaitedFor[number])
      RecordEventOp::create(builder, op->getLoc(), events[number] = next++,
                            stream);
  }
}

LogicalResult ProgramStreams::assign() {
  eraseEvents(program);
  if (failed(collect()))
    return failure();
  waits = planWaits(works);
  for (auto [op, of] : llvm::zip(ops, waits))
    for (size_t work : of)
      if (ops[work].isAsynchronous() && failed(verifyOver(ops[work], op)))
        return failure();
  write();
  return success();
}

namespace {

class AssignStreams : public pipe::impl::PipeAssignStreamsBase<AssignStreams> {
public:
  using PipeAssignStreamsBase::PipeAssignStreamsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    for (RankOp program : module.getOps<RankOp>()) {
      FailureOr<ArenaOp> arena = arenaOf(program);
      if (failed(arena) ||
          failed(ProgramStreams(program, *stages, *arena).assign()))
        return signalPassFailure();
    }
  }
};

} // namespace
