//===- VerifyStreams.cpp - No race between the streams of a rank ----------===//
//
// Runs each program symbolically and looks for data races. Each stream has a
// vector clock, which events carry to other streams; each byte knows who used
// it since it was last written. Nothing here knows how events were assigned:
// what an op does is read anew from its body, op by op.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/planning/RangeMap.h"
#include "passes/step/BackwardParts.h"
#include "passes/step/BodyBuffers.h"
#include "passes/step/StepOrder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEVERIFYSTREAMS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// By stream: how much of its work is known to be over.
using Clock = SmallVector<int64_t>;

/// One op's use of some bytes.
struct Access {
  Operation *op = nullptr;
  size_t stream = 0;
  /// The clock of the stream when the op is over.
  int64_t time = 0;
  bool writes = false;
};

struct Event {
  Operation *recorder = nullptr;
  Clock clock;
};

class RaceDetector {
public:
  RaceDetector(const Stages &stages, ArenaOp arena, RankOp program)
      : stages(stages), arena(arena), program(program) {}

  LogicalResult verify();

private:
  // Streams and events.
  LogicalResult collectStreams();
  LogicalResult verifyOp(Operation &op);
  LogicalResult record(Operation *op, std::optional<uint64_t> event);
  LogicalResult wait(WaitEventOp op);
  LogicalResult verifyNumbers();

  // What ops do.
  LogicalResult place(Operation &op);
  LogicalResult use(Operation *op, BufferAttr buffer, bool writes);
  LogicalResult use(Operation *op, Value value, bool writes);
  LogicalResult runTask(TaskOp task);
  LogicalResult runPart(TaskOp task, Operation *running);
  LogicalResult runBodyOp(TaskOp task, Operation &op);
  LogicalResult runUpdate(TaskOp task);
  LogicalResult runCollective(CollectiveOp op);
  LogicalResult runKeep(KeepGradientsOp op);
  LogicalResult runFold(FoldGradientsOp op);
  LogicalResult runLoad(LoadWeightsOp op);
  LogicalResult runClipping(ClipGradientsOp op);
  LogicalResult writePlace(Operation *op, FlatSymbolRefAttr weight,
                           StringRef stage, bool weights, bool gradients);
  LogicalResult useInBody(TaskOp task, Operation &op, Value value, bool writes);

  LogicalResult report(const Access &now, const Access &before,
                       BufferSpace space, int64_t begin, int64_t end);
  std::string nameOf(Operation *op);

  const Stages &stages;
  ArenaOp arena;
  RankOp program;

  /// Numbers of streams and, by number, their clocks.
  llvm::MapVector<StreamAttr, size_t> streams;
  std::vector<Clock> clocks;
  /// By number.
  std::map<uint64_t, Event> events;
  llvm::DenseSet<Value> waitedFor;
  /// Where values lie; and, while a task runs, where each space begins.
  llvm::DenseMap<Value, BufferAttr> places;
  std::map<std::pair<BufferSpace, int64_t>, BufferAttr> frame;
  /// The task that runs, or its part.
  Operation *part = nullptr;
  /// The last write to each byte and what has used it since: in the arena, and
  /// in the host's memory.
  RangeMap<SmallVector<Access, 2>> memory, onHost;
};

} // namespace

static StreamAttr streamOf(Operation &op) {
  MLIRContext *context = op.getContext();
  return llvm::TypeSwitch<Operation *, StreamAttr>(&op)
      .Case([&](PostSendOp post) {
        return StreamAttr::sendTo(context, post.getPeer());
      })
      .Case([&](PostReceiveOp post) {
        return StreamAttr::receiveFrom(context, post.getPeer());
      })
      .Case<RecordEventOp, WaitEventOp>(
          [](auto typed) { return typed.getStream(); })
      .Case([&](MoveOp move) {
        return move.isToHost() ? StreamAttr::toHost(context)
                               : StreamAttr::fromHost(context);
      })
      .Case([&](CollectiveOp) { return StreamAttr::collective(context); })
      .Default([&](Operation *) { return StreamAttr::compute(context); });
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string RaceDetector::nameOf(Operation *op) {
  return cast<StepOpInterface>(op).getLabel(stages);
}

LogicalResult RaceDetector::report(const Access &now, const Access &before,
                                   BufferSpace space, int64_t begin,
                                   int64_t end) {
  auto streamName = [&](const Access &access) {
    return std::next(streams.begin(), access.stream)->first.describe();
  };
  InFlightDiagnostic diagnostic =
      now.op->emitError("data race on rank ")
      << program.getRank() << ": " << nameOf(now.op) << " on stream '"
      << streamName(now) << "' " << (now.writes ? "writes" : "reads")
      << " bytes " << begin << " to " << end - 1 << " of the "
      << (space == BufferSpace::host ? "host's memory" : "arena") << ", which "
      << nameOf(before.op) << " on stream '" << streamName(before) << "' "
      << (before.writes ? "writes" : "reads") << ", and no event orders them";
  diagnostic.attachNote(before.op->getLoc()) << "the other one is here";
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

/// The streams are `compute`, those of the links that the rank uses, that of
/// its collectives, and those of its copies to the host and back.
LogicalResult RaceDetector::collectStreams() {
  streams.insert({StreamAttr::compute(program.getContext()), 0});
  for (Operation &op : *program.getBody())
    if (isa<PostSendOp, PostReceiveOp, CollectiveOp, MoveOp>(op))
      streams.insert({streamOf(op), streams.size()});
  for (Operation &op : *program.getBody())
    if (!streams.contains(streamOf(op)))
      return op.emitOpError("names stream '")
             << streamOf(op).describe() << "', but rank " << program.getRank()
             << " has no transfer there";
  clocks.assign(streams.size(), Clock(streams.size()));
  return success();
}

LogicalResult RaceDetector::record(Operation *op,
                                   std::optional<uint64_t> event) {
  if (!event)
    return op->emitOpError("has no event; run pipe-assign-streams");
  auto [known, isNew] =
      events.insert({*event, {op, clocks[streams.lookup(streamOf(*op))]}});
  if (isNew)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError("records event ")
                                  << *event << " a second time";
  diagnostic.attachNote(known->second.recorder->getLoc()) << "recorded here";
  return diagnostic;
}

LogicalResult RaceDetector::wait(WaitEventOp op) {
  auto found = events.find(op.getEvent());
  if (found == events.end())
    return op.emitOpError("waits for event ")
           << op.getEvent() << ", which nothing before it records";
  Operation *recorder = found->second.recorder;
  // (M2)
  if (isa<PostSendOp, PostReceiveOp, CollectiveOp, MoveOp>(recorder) &&
      !waitedFor.contains(recorder->getResult(0))) {
    InFlightDiagnostic diagnostic =
        op.emitOpError("waits for the ")
        << nameOf(recorder)
        << " earlier than the plan, which was proved free of deadlock";
    diagnostic.attachNote(recorder->getLoc()) << "posted here";
    return diagnostic;
  }
  for (auto [mine, theirs] :
       llvm::zip(clocks[streams.lookup(op.getStream())], found->second.clock))
    mine = std::max(mine, theirs);
  return success();
}

/// The runtime has as many events as the largest number says.
LogicalResult RaceDetector::verifyNumbers() {
  uint64_t expected = 0;
  for (auto &[number, event] : events)
    if (number != expected++)
      return event.recorder->emitOpError("records event ")
             << number << ", but no op records event " << expected - 1
             << ": events are numbered from 0";
  return success();
}

//===----------------------------------------------------------------------===//
// Uses of bytes
//===----------------------------------------------------------------------===//

LogicalResult RaceDetector::use(Operation *op, BufferAttr buffer, bool writes) {
  size_t stream = streams.lookup(streamOf(*op));
  const Clock &clock = clocks[stream];
  Access now{op, stream, clock[stream], writes};
  LogicalResult result = success();
  auto check = [&](int64_t begin, int64_t end, SmallVector<Access, 2> &before) {
    for (const Access &access : before)
      if (succeeded(result) && (writes || access.writes) &&
          clock[access.stream] < access.time)
        result = report(now, access, buffer.getSpace(), begin, end);
    // Whoever comes after this write comes after all before it. Of reads on
    // one stream, the last is the one to come after.
    llvm::erase_if(before, [&](const Access &access) {
      return writes || (access.stream == stream && !access.writes);
    });
    before.push_back(now);
  };
  (buffer.getSpace() == BufferSpace::host ? onHost : memory)
      .visit(buffer.getOffset(), buffer.getBytes(), check);
  return result;
}

LogicalResult RaceDetector::use(Operation *op, Value value, bool writes) {
  if (BufferAttr buffer = places.lookup(value))
    return use(op, buffer, writes);
  return op->emitOpError("uses a value that has no bytes; run "
                         "pipe-plan-memory");
}

/// Uses what a body's value means while `task` runs it.
LogicalResult RaceDetector::useInBody(TaskOp task, Operation &op, Value value,
                                      bool writes) {
  BufferAttr buffer = bufferOf(value);
  if (buffer && buffer.getSpace() == BufferSpace::arena)
    return use(part, buffer, writes);
  BufferAttr base =
      buffer ? frame[{buffer.getSpace(), buffer.getIndex()}] : BufferAttr();
  if (!base) {
    InFlightDiagnostic diagnostic =
        part->emitOpError("has no bytes for what its body uses; run "
                          "pipe-plan-memory");
    diagnostic.attachNote(op.getLoc()) << "used here";
    return diagnostic;
  }
  return use(part,
             BufferAttr::get(base.getContext(), BufferSpace::arena,
                             base.getOffset() + buffer.getOffset(),
                             buffer.getBytes()),
             writes);
}

/// Writes a stage's copies of a weight, its gradient, or both.
LogicalResult RaceDetector::writePlace(Operation *op, FlatSymbolRefAttr weight,
                                       StringRef stage, bool weights,
                                       bool gradients) {
  for (auto place : arena.getBody()->getOps<PlaceOp>()) {
    if (place.getWeightAttr() != weight || place.getStage() != stage)
      continue;
    for (std::optional<BufferAttr> copy :
         {std::optional(place.getBuffer()), place.getRounded()})
      if (weights && copy && failed(use(op, *copy, /*writes=*/true)))
        return failure();
    if (gradients && place.getGradient() &&
        failed(use(op, *place.getGradient(), /*writes=*/true)))
      return failure();
  }
  return success();
}

LogicalResult RaceDetector::runBodyOp(TaskOp task, Operation &op) {
  // Weights are read by the ops that use them.
  if (seesBytes(&op) || isa<nn::ParameterOp>(op))
    return success();
  for (Value operand : op.getOperands())
    // A product that is added in place has no bytes of its own.
    if (!addedInPlace(rootOf(operand)) &&
        failed(useInBody(task, op, operand, /*writes=*/false)))
      return failure();
  for (Value result : op.getResults())
    if (failed(useInBody(task, op, result, /*writes=*/true)))
      return failure();
  if (auto sum = dyn_cast<nn::AccumulateGradientOp>(op))
    return writePlace(part, sum.getWeightAttr(), task.getStage(),
                      /*weights=*/false, /*gradients=*/true);
  if (auto assign = dyn_cast<nn::AssignStateOp>(op))
    return writePlace(part, assign.getWeightAttr(), task.getStage(),
                      /*weights=*/true, /*gradients=*/false);
  if (auto norm = dyn_cast<nn::BatchNormOp>(op))
    for (FlatSymbolRefAttr state :
         {norm.getRunningMeanAttr(), norm.getRunningVarianceAttr()})
      if (state && failed(writePlace(part, state, task.getStage(),
                                     /*weights=*/true, /*gradients=*/false)))
        return failure();
  return success();
}

/// Old weights are kept, then the optimizer changes all that it owns.
LogicalResult RaceDetector::runUpdate(TaskOp task) {
  SmallVector<BufferAttr> written;
  if (task.getWeightsAttr())
    written.push_back(task.getWeightsAttr());
  for (auto optimizer : arena.getBody()->getOps<OptimizerOp>()) {
    if (optimizer.getStage() != task.getStage())
      continue;
    written.append({optimizer.getHome().value_or(optimizer.getWeights()),
                    optimizer.getGradients(), optimizer.getHyper()});
    llvm::append_range(written, optimizer.getStates().getAsRange<BufferAttr>());
    for (std::optional<BufferAttr> more :
         {optimizer.getRoundedHome() ? optimizer.getRoundedHome()
                                     : optimizer.getRounded(),
          optimizer.getKept(), optimizer.getWorkspace()})
      if (more)
        written.push_back(*more);
  }
  for (BufferAttr buffer : written)
    if (failed(use(task, buffer, /*writes=*/true)))
      return failure();
  return success();
}

/// (M2) It uses what all members hold in common until its event.
LogicalResult RaceDetector::runCollective(CollectiveOp op) {
  const std::optional<BufferAttr> range = op.getRange(arena);
  if (!range)
    return op.emitOpError("is about what its stage has no place for");
  if (failed(use(op, *range, /*writes=*/true)))
    return failure();
  if (op.getBuffersAttr())
    for (auto scratch : op.getBuffersAttr().getAsRange<BufferAttr>())
      if (failed(use(op, scratch, /*writes=*/true)))
        return failure();
  return record(op, op.getEvent());
}

/// It adds what it keeps, and clears all of the range.
LogicalResult RaceDetector::runKeep(KeepGradientsOp op) {
  for (auto optimizer : arena.getBody()->getOps<OptimizerOp>()) {
    if (optimizer.getStage() != op.getStage())
      continue;
    if (!optimizer.getKept())
      return op.emitOpError("has no place for what it keeps; run "
                            "pipe-plan-memory");
    for (BufferAttr buffer : {optimizer.getGradients(), *optimizer.getKept()})
      if (failed(use(op, buffer, /*writes=*/true)))
        return failure();
  }
  return success();
}

/// It reads and writes gradients and the sums that are aside.
LogicalResult RaceDetector::runFold(FoldGradientsOp op) {
  auto sums = op.getSums(arena);
  if (failed(sums))
    return failure();
  for (const FoldGradientsOp::Sums &each : *sums)
    for (BufferAttr buffer : {each.gradients, each.aside})
      if (failed(use(op, buffer, /*writes=*/true)))
        return failure();
  return success();
}

/// It reads what is kept, and writes its part of what tasks read.
LogicalResult RaceDetector::runLoad(LoadWeightsOp op) {
  for (auto optimizer : arena.getBody()->getOps<OptimizerOp>()) {
    if (optimizer.getStage() != op.getStage() || optimizer.getSplit())
      continue;
    for (CollectiveOp gather : op.getGathers()) {
      const std::optional<BufferAttr> from = gather.getRounded()
                                                 ? optimizer.getRoundedHome()
                                                 : optimizer.getHome();
      const std::optional<BufferAttr> to = gather.getFlatRange(optimizer);
      if (!from || !to)
        return op.emitOpError("has no home of the weights that it loads; run "
                              "pipe-plan-memory");
      if (failed(use(op, *from, /*writes=*/false)) ||
          failed(use(op, *to, /*writes=*/true)))
        return failure();
    }
  }
  return success();
}

/// It reads all gradients that updates of its rank will use.
LogicalResult RaceDetector::runClipping(ClipGradientsOp op) {
  for (auto optimizer : arena.getBody()->getOps<OptimizerOp>())
    if (llvm::any_of(op.getGradients().getTypes(), [&](Type type) {
          return cast<GradientType>(type).getStage().getValue() ==
                 optimizer.getStage();
        }))
      if (failed(use(op, optimizer.getGradients(), /*writes=*/false)))
        return failure();
  return success();
}

LogicalResult RaceDetector::runTask(TaskOp task) {
  if (task.getKind() == TaskKind::update)
    return runUpdate(task);
  frame.clear();
  frame[{BufferSpace::weights, 0}] = task.getWeightsAttr();
  auto enter = [&](BufferSpace space, ValueRange values) {
    for (auto [index, value] : llvm::enumerate(values)) {
      BufferAttr buffer = places.lookup(value);
      frame[{space, index}] = buffer;
      if (std::optional<int64_t> stash = stashNumber(value.getType()))
        frame[{BufferSpace::stash, *stash}] = buffer;
    }
  };
  enter(BufferSpace::input, task->getOperands());
  enter(BufferSpace::output, task->getResults());
  return runPart(task, task);
}

/// The task itself, or a `pipe.resume` behind it.
LogicalResult RaceDetector::runPart(TaskOp task, Operation *running) {
  part = running;
  for (Operation &op : opsRunBy(stages, part))
    if (!isa<ReturnOp>(op) && failed(runBodyOp(task, op)))
      return failure();
  return success();
}

/// Notes where the results of an op lie: their bytes, or those of a transfer.
LogicalResult RaceDetector::place(Operation &op) {
  if (auto wait = dyn_cast<WaitReceiveOp>(op)) {
    places[wait.getResult()] = places.lookup(wait.getPending());
    return success();
  }
  if (auto hold = dyn_cast<HoldOp>(op)) {
    places[hold.getResult()] = places.lookup(hold.getValue());
    return success();
  }
  auto given = op.getAttrOfType<ArrayAttr>("buffers");
  size_t next = 0;
  for (Value result : op.getResults()) {
    bool hasBytes =
        isa<RankedTensorType, StashType, HandoverType>(result.getType()) ||
        isa<PostReceiveOp>(op);
    if (!hasBytes || isa<AddGradientOp>(op))
      continue;
    if (!given || next == given.size())
      return op.emitOpError("has no buffers; run pipe-plan-memory");
    places[result] = cast<BufferAttr>(given[next++]);
  }
  return success();
}

LogicalResult RaceDetector::verifyOp(Operation &op) {
  if (failed(place(op)))
    return failure();
  // The op is over when its stream has come this far.
  size_t stream = streams.lookup(streamOf(op));
  if (!isa<RecordEventOp, WaitEventOp>(op))
    ++clocks[stream][stream];
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](TaskOp task) { return runTask(task); })
      .Case([&](ResumeOp resume) { return runPart(resume.getTask(), resume); })
      .Case([&](InputOp input) {
        return use(input, input.getResult(), /*writes=*/true);
      })
      .Case([&](AddGradientOp add) -> LogicalResult {
        if (failed(use(add, add.getAddend(), /*writes=*/false)))
          return failure();
        return writePlace(add, add.getWeightAttr(), add.getStage(),
                          /*weights=*/false, /*gradients=*/true);
      })
      .Case([&](SetWeightOp set) -> LogicalResult {
        if (failed(use(set, set.getValue(), /*writes=*/false)))
          return failure();
        return writePlace(set, set.getWeightAttr(), set.getStage(),
                          /*weights=*/true, /*gradients=*/true);
      })
      .Case([&](PostSendOp post) -> LogicalResult {
        if (failed(use(post, post.getValue(), /*writes=*/false)))
          return failure();
        return record(post, post.getEvent());
      })
      .Case([&](PostReceiveOp post) -> LogicalResult {
        if (failed(use(post, post.getResult(), /*writes=*/true)))
          return failure();
        return record(post, post.getEvent());
      })
      .Case<WaitSendOp, WaitReceiveOp>([&](auto wait) {
        waitedFor.insert(wait.getPending());
        return success();
      })
      .Case([&](MoveOp move) -> LogicalResult {
        if (failed(use(move, move.getValue(), /*writes=*/false)) ||
            failed(use(move, move.getResult(), /*writes=*/true)))
          return failure();
        return record(move, move.getEvent());
      })
      .Case([&](WaitMoveOp wait) {
        waitedFor.insert(wait.getValue());
        return success();
      })
      .Case([&](CollectiveOp together) { return runCollective(together); })
      .Case([&](WaitCollectiveOp wait) {
        waitedFor.insert(wait.getValue());
        return success();
      })
      .Case([&](KeepGradientsOp keep) { return runKeep(keep); })
      .Case([&](FoldGradientsOp fold) { return runFold(fold); })
      .Case([&](LoadWeightsOp load) { return runLoad(load); })
      .Case([&](ClipGradientsOp clip) { return runClipping(clip); })
      // The program waits for `compute`, where alone statistics are written.
      .Case([&](MergeStatisticsOp) { return success(); })
      .Case(
          [&](RecordEventOp event) { return record(event, event.getEvent()); })
      .Case([&](WaitEventOp event) { return wait(event); })
      .Case<GradientOfOp, WeightOfOp, HoldOp>(
          [](Operation *) { return success(); })
      .Default([](Operation *other) {
        return other->emitOpError("has no place in a rank's program");
      });
}

LogicalResult RaceDetector::verify() {
  if (failed(collectStreams()))
    return failure();
  for (Operation &op : *program.getBody())
    if (failed(verifyOp(op)))
      return failure();
  return verifyNumbers();
}

namespace {

class VerifyStreams : public pipe::impl::PipeVerifyStreamsBase<VerifyStreams> {
public:
  using PipeVerifyStreamsBase::PipeVerifyStreamsBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    for (RankOp program : module.getOps<RankOp>()) {
      FailureOr<ArenaOp> arena = arenaOf(program);
      if (failed(arena) ||
          failed(RaceDetector(*stages, *arena, program).verify()))
        signalPassFailure();
    }
  }
};

} // namespace
