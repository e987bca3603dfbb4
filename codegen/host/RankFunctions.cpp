//===- RankFunctions.cpp - One straight program per rank ------------------===//
//
// Two walks over a rank's list: the first names the buffers (RankBuffers.h),
// the second writes the lines.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/RankFunctions.h"

#include "codegen/host/RankBuffers.h"
#include "codegen/host/RankNames.h"
#include "codegen/host/Tables.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace pipewright::codegen {

std::string rankFunctionName(int64_t rank, RankFunction function) {
  StringRef word = function == RankFunction::Step       ? "step"
                   : function == RankFunction::Evaluate ? "evaluate"
                                                        : "setUp";
  return ("rank" + Twine(rank) + "_" + word).str();
}

namespace {

class RankWriter {
public:
  RankWriter(FunctionWriter &writer, const ProgramLayout &layout,
             pipe::RankOp rank)
      : writer(writer), layout(layout), rank(rank),
        buffers(writer, layout, rank) {}

  LogicalResult writeBufferTable() { return buffers.writeTable(); }
  LogicalResult writeLines();

private:
  LogicalResult writeLine(Operation *op);
  LogicalResult writeTask(pipe::TaskOp task);
  LogicalResult writeBody(pipe::TaskOp task, std::optional<int64_t> part);
  LogicalResult writeRounding(pipe::SetWeightOp set);
  LogicalResult writeUpdate(pipe::TaskOp task, const StageLayout &stage);
  LogicalResult writeTransfer(Operation *op, Value value, int64_t peer,
                              std::optional<int64_t> event);
  LogicalResult writeMove(pipe::MoveOp move);
  LogicalResult verifyEvent(Operation *op, std::optional<int64_t> event) const;
  LogicalResult writeCollective(pipe::CollectiveOp op);
  LogicalResult writeFold(pipe::FoldGradientsOp op);
  LogicalResult writeStreamLine(Operation *op);
  void commentCall(const Tokens &name, const Tokens &addition);
  bool hasStreams() const { return layout.target->hasStreams(); }

  FunctionWriter &writer;
  const ProgramLayout &layout;
  pipe::RankOp rank;
  RankBuffers buffers;
  /// What each event says when it has fired, for readers: `F0.1 is done`.
  llvm::DenseMap<int64_t, Tokens> eventTexts;
  /// The same of what was put on the compute stream last.
  Tokens lastWork;
};

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// A task's line on a GPU says itself which one it is.
void RankWriter::commentCall(const Tokens &name, const Tokens &addition) {
  lastWork = name;
  lastWork.push_back(" is done");
  Tokens text = hasStreams() ? Tokens() : name;
  if (!text.empty() && !addition.empty())
    text.push_back(", ");
  llvm::append_range(text, addition);
  writer.commentBehind(text);
}

/// What an update overwrites and somebody still needs is copied first.
LogicalResult RankWriter::writeUpdate(pipe::TaskOp task,
                                      const StageLayout &stage) {
  int64_t number = task.getNumber().value_or(0);
  if (layout.updates > 1)
    writer.beginUpdate(number);
  if (std::optional<pipe::BufferAttr> kept = task.getWeights()) {
    pipe::OptimizerOp optimizer = stage.optimizer;
    if (!optimizer || !optimizer.getVersions())
      return task.emitOpError("expects a place for old weights in stage @")
             << task.getStage();
    writer.copy(buffers.weightsAt(stage, optimizer.getNewest()),
                buffers.weightsAt(stage, *kept));
    writer.commentBehind({"keeps version ", Counter::update(number)});
  }
  writer.callStage(letterOf(pipe::TaskKind::update), stage.number,
                   stageFunctionName(stage.number, {pipe::TaskKind::update}),
                   std::nullopt, {});
  Tokens name = {"U" + std::to_string(stage.number)};
  if (number)
    name.insert(name.end(), {".", Counter::update(number)});
  commentCall(name, {});
  return success();
}

/// Rounds a tied weight again that the owner has updated.
LogicalResult RankWriter::writeRounding(pipe::SetWeightOp set) {
  pipe::PlaceOp place =
      buffers.placeOf(set.getStageAttr(), set.getWeightAttr());
  if (!place.getRounded())
    return success();
  if (!place.getKernelAttr())
    return place.emitOpError("has no kernel; expects a module after "
                             "pipe-attach-optimizer-kernels");
  writer.launch(
      place.getKernelAttr().getLeafReference().getValue(),
      {buffers.placed(set, set.getStageAttr(), set.getWeightAttr(), false),
       buffers.roundedCopy(place)});
  return success();
}

LogicalResult RankWriter::writeTask(pipe::TaskOp task) {
  const StageLayout *stage = layout.findStage(task.getStage());
  const bool hasFunction =
      llvm::any_of(functionsOf(*stage), [&](StageFunction function) {
        return function.kind == task.getKind();
      });
  if (!hasFunction)
    return task.emitOpError("has no body in its stage");
  if (task.getKind() == pipe::TaskKind::update)
    return writeUpdate(task, *stage);
  return writeBody(task,
                   task.getParts() ? std::optional(int64_t{0}) : std::nullopt);
}

/// Of a task, or a part of it.
LogicalResult RankWriter::writeBody(pipe::TaskOp task,
                                    std::optional<int64_t> part) {
  const StageLayout *stage = layout.findStage(task.getStage());
  const pipe::TaskKind kind = task.getKind();
  SmallVector<CallArgument> arguments, stashes;
  auto add = [&](Value value) -> LogicalResult {
    if (!hasBytes(value))
      return success();
    Local buffer = buffers.of(task, value);
    if (!buffer)
      return failure();
    bool isTensor = isa<RankedTensorType>(value.getType());
    (isTensor ? arguments : stashes).push_back(buffer);
    return success();
  };
  for (Value operand : task->getOperands())
    if (failed(add(operand)))
      return failure();
  for (Value result : task->getResults())
    if (failed(add(result)))
      return failure();
  llvm::append_range(arguments, stashes);
  if (takesWeights(*stage, kind)) {
    if (!task.getWeights())
      return task.emitOpError("expects the place of its weights");
    arguments.push_back(buffers.weightsAt(*stage, *task.getWeights()));
  }
  size_t expected = stageParameters(layout, *stage, kind).size();
  if (arguments.size() != expected)
    return task.emitOpError() << "expects " << expected << " buffers, but got "
                              << arguments.size();
  int64_t microBatch = *task.getMicroBatch();
  const std::string function = stageFunctionName(stage->number, {kind, part});
  if (part.value_or(0) == 0)
    writer.callStage(letterOf(kind), stage->number, function, microBatch,
                     arguments);
  else
    writer.resumeStage(function, microBatch, arguments);
  Tokens version;
  if (task.getVersion())
    version = {"version ", Counter::update(*task.getVersion())};
  Tokens name = {(letterOf(kind) + Twine(stage->number) + ".").str(),
                 Counter::microBatch(microBatch)};
  if (part)
    name.push_back(", part " + std::to_string(*part));
  commentCall(name, version);
  return success();
}

LogicalResult RankWriter::verifyEvent(Operation *op,
                                      std::optional<int64_t> event) const {
  if (hasStreams() && !event)
    return op->emitOpError(
        "has no event; expects a module after pipe-assign-streams");
  if (!hasStreams() && event)
    return op->emitOpError("has an event, which ")
           << layout.target->noun()
           << " knows nothing of; expects a module before pipe-assign-streams";
  return success();
}

LogicalResult RankWriter::writeCollective(pipe::CollectiveOp op) {
  std::optional<int64_t> event = op.getEvent();
  Local range = buffers.rangeOf(op);
  if (!range || failed(verifyEvent(op, event)))
    return failure();
  std::string type = op.getRounded() ? "ElementType::BF16" : "ElementType::F32";
  SmallVector<CallArgument> arguments = {std::to_string(layout.groupNumber(op)),
                                         type, range};
  if (op.isOfGradients()) {
    Local scratch = buffers.of(op, op.getResult());
    if (!scratch)
      return failure();
    arguments.push_back(scratch);
  }
  if (op.getRoot())
    arguments.push_back(std::to_string(*op.getRoot()));
  writer.collective(op.getKind(), arguments, event);
  writer.commentBehind({"over " + op.getOver().describe()});
  if (event)
    eventTexts[*event] = textWhenOver(op, range);
  return success();
}

LogicalResult RankWriter::writeFold(pipe::FoldGradientsOp op) {
  const auto sums = buffers.foldedSums(op);
  const auto group = static_cast<int64_t>(op.getGroup());
  const int64_t added = op.countAdded();
  for (const auto &[gradients, aside] : sums) {
    for (int64_t level = 0; level < added; ++level) {
      writer.accumulate(aside[level], gradients);
      writer.commentBehind({"groups " +
                            std::to_string(group + 1 - (int64_t(2) << level)) +
                            " to " + std::to_string(group)});
    }
    lastWork = {gradients, " is whole"};
    if (op.isLast())
      continue;
    writer.copy(gradients, aside[added]);
    if (added == 0)
      writer.commentBehind({"group " + std::to_string(group)});
    writer.zero(gradients);
    lastWork = {aside[added], " is aside"};
  }
  return success(!sums.empty());
}

/// `value` is what a post sends, or what it will have received.
/// The stash that a post moves; null if it moves something else.
static pipe::HoldOp heldStash(Operation *post, Value value) {
  if (isa<pipe::PostSendOp>(post))
    return value.getDefiningOp<pipe::HoldOp>();
  for (Operation *wait : value.getUsers())
    if (auto received = dyn_cast<pipe::WaitReceiveOp>(wait))
      for (Operation *user : received.getResult().getUsers())
        if (auto hold = dyn_cast<pipe::HoldOp>(user))
          return hold;
  return {};
}

LogicalResult RankWriter::writeTransfer(Operation *op, Value value,
                                        int64_t peer,
                                        std::optional<int64_t> event) {
  Local buffer = buffers.of(op, value);
  if (!buffer || failed(verifyEvent(op, event)))
    return failure();
  bool sends = isa<pipe::PostSendOp>(op);
  if (sends)
    writer.postSend(peer, buffer, event);
  else
    writer.postReceive(peer, buffer, event);
  Tokens comment = {(sends ? "to rank " : "from rank ") + std::to_string(peer)};
  if (pipe::HoldOp hold = heldStash(op, value)) {
    comment.push_back(": stash of F" +
                      std::to_string(layout.numberOf(hold.getOfAttr())) + ".");
    comment.push_back(Counter::microBatch(hold.getMicroBatch()));
  }
  writer.commentBehind(comment);
  if (event)
    eventTexts[*event] = {buffer, sends ? " is sent" : " is there"};
  return success();
}

LogicalResult RankWriter::writeMove(pipe::MoveOp move) {
  if (!hasStreams())
    return move.emitOpError("copies a stash to the host's memory, where ")
           << layout.target->noun()
           << "'s ranks have theirs already; leave --offload out";
  Local from = buffers.of(move, move.getValue());
  Local to = buffers.of(move, move.getResult());
  if (!from || !to || failed(verifyEvent(move, move.getEvent())))
    return failure();
  const auto event = static_cast<int64_t>(*move.getEvent());
  if (move.isToHost())
    writer.copyToHost(from, to, event);
  else
    writer.copyFromHost(from, to, event);
  writer.commentBehind(
      {"stash of F" + std::to_string(layout.numberOf(move.getStageAttr())) +
           ".",
       Counter::microBatch(move.getMicroBatch())});
  eventTexts[event] = {to, move.isToHost() ? " is on the host" : " is back"};
  return success();
}

LogicalResult RankWriter::writeStreamLine(Operation *op) {
  if (!hasStreams())
    return op->emitOpError("has no place in ")
           << layout.target->noun()
           << "'s program; expects a module before pipe-assign-streams";
  if (auto wait = dyn_cast<pipe::WaitEventOp>(op)) {
    writer.wait(streamName(wait.getStream()), wait.getEvent());
    writer.commentBehind(eventTexts.lookup(wait.getEvent()));
    return success();
  }
  auto record = cast<pipe::RecordEventOp>(op);
  writer.record(streamName(record.getStream()), record.getEvent());
  if (record.getStream().getKind() == pipe::StreamKind::compute &&
      !lastWork.empty()) {
    eventTexts[record.getEvent()] = lastWork;
    writer.commentBehind(lastWork);
  }
  return success();
}

LogicalResult RankWriter::writeLine(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](pipe::InputOp input) -> LogicalResult {
        Local buffer = buffers.of(op, input.getResult());
        int64_t number = layout.inputNumber(input.getName());
        if (!buffer)
          return failure();
        if (number < 0)
          return op->emitOpError("is of no stage's sources");
        writer.loadInput(number, input.getMicroBatch(), buffer);
        writer.commentBehind({(input.getName() + " of micro-batch ").str(),
                              Counter::microBatch(input.getMicroBatch())});
        lastWork = {buffer, " is loaded"};
        return success();
      })
      .Case([&](pipe::TaskOp task) { return writeTask(task); })
      .Case([&](pipe::ResumeOp resume) {
        return writeBody(resume.getTask(),
                         static_cast<int64_t>(resume.getPart()));
      })
      .Case([&](pipe::PostSendOp post) {
        return writeTransfer(op, post.getValue(), post.getPeer(),
                             post.getEvent());
      })
      .Case([&](pipe::PostReceiveOp post) {
        return writeTransfer(op, post.getResult(), post.getPeer(),
                             post.getEvent());
      })
      .Case([&](pipe::MoveOp move) { return writeMove(move); })
      // Events say it.
      .Case([](pipe::WaitMoveOp) { return success(); })
      .Case<pipe::WaitEventOp, pipe::RecordEventOp>(
          [&](Operation *stream) { return writeStreamLine(stream); })
      .Case([&](pipe::WaitSendOp wait) -> LogicalResult {
        // Events say it where there are streams.
        if (!hasStreams())
          writer.waitSend(wait.getPeer());
        return success();
      })
      .Case([&](pipe::WaitReceiveOp wait) -> LogicalResult {
        if (!hasStreams())
          writer.waitReceive(wait.getPeer());
        return success();
      })
      .Case<pipe::GradientOfOp, pipe::WeightOfOp, pipe::HoldOp>(
          [](Operation *) { return success(); })
      .Case([&](pipe::CollectiveOp together) {
        return writeCollective(together);
      })
      .Case([&](pipe::WaitCollectiveOp wait) -> LogicalResult {
        auto post = wait.getValue().getDefiningOp<pipe::CollectiveOp>();
        if (!hasStreams()) {
          writer.waitCollective();
          writer.commentBehind(textWhenOver(post, buffers.rangeOf(post)));
        }
        return success();
      })
      .Case([&](pipe::KeepGradientsOp keep) -> LogicalResult {
        std::optional<RankBuffers::KeptGradients> gradients =
            buffers.keptGradients(keep);
        if (!gradients)
          return failure();
        for (const auto &[part, kept] : gradients->parts) {
          writer.accumulate(part, kept);
          lastWork = {kept, " is kept"};
        }
        writer.zero(gradients->all);
        return success();
      })
      .Case([&](pipe::FoldGradientsOp fold) { return writeFold(fold); })
      .Case([&](pipe::LoadWeightsOp load) -> LogicalResult {
        const auto parts = buffers.loadedParts(load);
        if (!parts)
          return failure();
        for (const auto &[home, part] : *parts) {
          writer.copy(home, part);
          lastWork = {part, " is loaded"};
        }
        return success();
      })
      .Case([&](pipe::AddGradientOp add) -> LogicalResult {
        Local source = buffers.of(op, add.getAddend());
        Local gradient =
            buffers.placed(op, add.getStageAttr(), add.getWeightAttr(), true);
        if (!source || !gradient)
          return failure();
        writer.accumulate(source, gradient);
        writer.commentBehind({"tied weight"});
        lastWork = {gradient, " is whole"};
        return success();
      })
      .Case([&](pipe::SetWeightOp set) -> LogicalResult {
        Local source = buffers.of(op, set.getValue());
        if (!source)
          return failure();
        writer.copy(source, buffers.placed(op, set.getStageAttr(),
                                           set.getWeightAttr(), false));
        writer.commentBehind({"tied weight"});
        if (failed(writeRounding(set)))
          return failure();
        writer.zero(
            buffers.placed(op, set.getStageAttr(), set.getWeightAttr(), true));
        lastWork = {makeIdentifier(set.getWeight()) + " is set"};
        return success();
      })
      .Case([&](pipe::MergeStatisticsOp merge) {
        writer.mergeStatistics(layout.numberOf(merge.getStageAttr()));
        writer.commentBehind({"over all replicas"});
        return success();
      })
      .Case([&](pipe::ClipGradientsOp) {
        writer.clipGradients();
        writer.commentBehind({"by the norm of all"});
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("has no place in a rank's program");
      });
}

LogicalResult RankWriter::writeLines() {
  if (!rank.getBody()->getOps<pipe::MergeStatisticsOp>().empty())
    writer.beginStatistics();
  for (Operation &op : rank.getBodyRegion().front())
    if (failed(writeLine(&op)))
      return failure();
  return success();
}

} // namespace

/// A list of a rank as a function, one line for each op.
static FailureOr<Function> rankProgram(const ProgramLayout &layout,
                                       pipe::RankOp op, RankFunction function) {
  FunctionWriter writer(layout.target->hostStyle(),
                        rankFunctionName(op.getRank(), function),
                        /*hasMicroBatch=*/false, {});
  RankWriter rank(writer, layout, op);
  if (failed(rank.writeBufferTable()))
    return failure();
  writer.blankLine();
  if (failed(rank.writeLines()))
    return failure();
  return writer.finish();
}

/// Makes a table of a list of more than `limit` calls, and says so.
static StringRef shorten(Function &list, int64_t limit) {
  int64_t calls = llvm::count_if(list.body, [](const Statement &statement) {
    return std::holds_alternative<CallStatement>(statement);
  });
  if (calls <= limit)
    return "";
  makeTable(list);
  return ", as a table";
}

LogicalResult writeRankFunctions(llvm::raw_ostream &os,
                                 const ProgramLayout &layout,
                                 const RankLayout &rank,
                                 const Preparations &preparations,
                                 int64_t tableAbove) {
  std::string prefix = "Rank " + std::to_string(rank.number) + ": ";
  FunctionWriter setUp(layout.target->hostStyle(),
                       rankFunctionName(rank.number, RankFunction::SetUp),
                       /*hasMicroBatch=*/false, {});
  preparations.write(setUp, layout.target->hostStyle());
  printFunction(os, prefix + "before the first step.", setUp.finish());

  auto write = [&](pipe::RankOp list, RankFunction which, StringRef what) {
    FailureOr<Function> function = rankProgram(layout, list, which);
    if (failed(function))
      return failure();
    StringRef form = shorten(*function, tableAbove);
    printFunction(os, prefix + what.str() + form.str() + ".", *function);
    return success();
  };
  std::string steps = layout.updates == 1
                          ? "one optimizer step"
                          : std::to_string(layout.updates) + " optimizer steps";
  if (failed(write(rank.train, RankFunction::Step, steps)))
    return failure();
  return rank.evaluate ? write(rank.evaluate, RankFunction::Evaluate,
                               "held-out data, forward only")
                       : success();
}

} // namespace pipewright::codegen
