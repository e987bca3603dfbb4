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
  ProgramStreams(RankOp program, ArenaAccesses accesses)
      : program(program), accesses(std::move(accesses)) {}

  LogicalResult assign();

private:
  LogicalResult collect();
  LogicalResult verifyTransferOver(Operation *post, Operation *user);
  void write();

  RankOp program;
  ArenaAccesses accesses;
  /// Numbers of streams, in the order in which they are used.
  llvm::MapVector<StreamAttr, size_t> streams;
  /// Parallel: the ops that run on streams, what they do, and for whom each
  /// has to wait.
  std::vector<Operation *> ops;
  std::vector<StreamWork> works;
  std::vector<std::vector<size_t>> waits;
};

} // namespace

static StreamAttr streamOf(Operation *op) {
  if (auto post = dyn_cast<PostSendOp>(op))
    return StreamAttr::sendTo(op->getContext(), post.getPeer());
  if (auto post = dyn_cast<PostReceiveOp>(op))
    return StreamAttr::receiveFrom(op->getContext(), post.getPeer());
  return StreamAttr::compute(op->getContext());
}

/// Takes away what an earlier run has assigned.
static void eraseEvents(RankOp program) {
  for (Operation &op : llvm::make_early_inc_range(*program.getBody())) {
    if (isa<RecordEventOp, WaitEventOp>(op))
      op.erase();
    else if (auto post = dyn_cast<PostSendOp>(op))
      post.removeEventAttr();
    else if (auto post = dyn_cast<PostReceiveOp>(op))
      post.removeEventAttr();
  }
}

static std::vector<ByteRange> rangesOf(ArrayRef<BufferAttr> buffers) {
  std::vector<ByteRange> ranges;
  for (BufferAttr buffer : buffers)
    ranges.push_back({buffer.getOffset(), buffer.getBytes()});
  return ranges;
}

LogicalResult ProgramStreams::collect() {
  for (Operation &op : *program.getBody()) {
    FailureOr<Accesses> found = accesses.of(&op);
    if (failed(found))
      return failure();
    if (found->reads.empty() && found->writes.empty())
      continue;
    size_t stream =
        streams.insert({streamOf(&op), streams.size()}).first->second;
    ops.push_back(&op);
    works.push_back({stream, rangesOf(found->reads), rangesOf(found->writes)});
  }
  return success();
}

/// The plan was proved free of deadlock with a rank that waits for a transfer
/// where `pipe.wait_send` and `pipe.wait_receive` stand. A stream must not wait
/// for it earlier.
LogicalResult ProgramStreams::verifyTransferOver(Operation *post,
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
    StreamAttr stream = streamOf(op);
    builder.setInsertionPoint(op);
    for (size_t work : waits[number])
      WaitEventOp::create(builder, op->getLoc(), events[work], stream);
    builder.setInsertionPointAfter(op);
    if (auto post = dyn_cast<PostSendOp>(op))
      post.setEvent(events[number] = next++);
    else if (auto post = dyn_cast<PostReceiveOp>(op))
      post.setEvent(events[number] = next++);
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
      if (isa<PostSendOp, PostReceiveOp>(ops[work]) &&
          failed(verifyTransferOver(ops[work], op)))
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
    llvm::DenseMap<int64_t, ArenaOp> arenas;
    for (ArenaOp arena : module.getOps<ArenaOp>())
      arenas[arena.getRank()] = arena;
    for (RankOp program : module.getOps<RankOp>()) {
      ArenaOp arena = arenas.lookup(program.getRank());
      if (!arena) {
        program.emitOpError("has no pipe.arena; run pipe-plan-memory");
        return signalPassFailure();
      }
      if (failed(ProgramStreams(program, {*stages, arena}).assign()))
        return signalPassFailure();
    }
  }
};

} // namespace
