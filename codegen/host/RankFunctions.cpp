//===- RankFunctions.cpp - One straight program per rank ------------------===//
//
// Two walks over a rank's list: the first names the buffers (values that the
// plan puts into the same bytes share a name), the second writes the lines.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/RankFunctions.h"

#include "codegen/host/Loops.h"
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
      : writer(writer), layout(layout), rank(rank) {}

  LogicalResult writeBufferTable();
  LogicalResult writeLines();

private:
  LogicalResult nameBuffers(pipe::StepOpInterface op);
  LogicalResult namePlaces(pipe::StepOpInterface op);
  LogicalResult writeLine(Operation *op);
  LogicalResult writeTask(pipe::TaskOp task);
  Local declare(StringRef base, pipe::BufferAttr planned);
  Local bufferOf(Operation *user, Value value);
  Local placed(Operation *op, FlatSymbolRefAttr stage, FlatSymbolRefAttr weight,
               bool gradient);
  /// Null where the stage has no such weight.
  pipe::PlaceOp placeOf(FlatSymbolRefAttr stage,
                        FlatSymbolRefAttr weight) const;
  Local roundedCopy(pipe::PlaceOp place);
  LogicalResult writeRounding(pipe::SetWeightOp set);
  /// All weights of a stage, in one of their versions.
  Local weightsAt(const StageLayout &stage, pipe::BufferAttr place);
  LogicalResult writeUpdate(pipe::TaskOp task, const StageLayout &stage);
  LogicalResult writeTransfer(Operation *op, Value value, int64_t peer,
                              std::optional<int64_t> event);
  LogicalResult verifyEvent(Operation *op, std::optional<int64_t> event) const;
  Local rangeOf(pipe::CollectiveOp op);
  LogicalResult writeCollective(pipe::CollectiveOp op);
  LogicalResult writeStreamLine(Operation *op);
  void commentCall(const Tokens &name, const Tokens &addition);
  bool hasStreams() const { return layout.target->hasStreams(); }

  FunctionWriter &writer;
  const ProgramLayout &layout;
  pipe::RankOp rank;
  llvm::DenseMap<Value, Local> buffers;
  /// What was declared, by name and place, and how many of each name.
  std::map<std::tuple<std::string, int64_t, int64_t>, Local> declared;
  llvm::StringMap<int64_t> counts;
  /// What each event says when it has fired, for readers: `F0.1 is done`.
  llvm::DenseMap<int64_t, Tokens> eventTexts;
  /// The same of what was put on the compute stream last.
  Tokens lastWork;
};

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Local RankWriter::declare(StringRef base, pipe::BufferAttr planned) {
  auto key =
      std::make_tuple(base.str(), planned.getOffset(), planned.getBytes());
  Local &buffer = declared[key];
  if (!buffer)
    buffer = writer.buffer((base + "_" + Twine(counts[base]++)).str(),
                           planned.getOffset(), planned.getBytes(), base);
  return buffer;
}

/// Only tensors, stashes and handovers have bytes of their own in a rank's
/// list.
static bool hasBytes(Value value) {
  return isa<RankedTensorType, pipe::StashType, pipe::HandoverType,
             pipe::PendingType>(value.getType());
}

LogicalResult RankWriter::nameBuffers(pipe::StepOpInterface op) {
  ArrayAttr planned = op.getPlannedBuffers();
  if (!planned)
    return success();
  if (planned.size() < op->getNumResults() &&
      llvm::any_of(op->getResults().drop_front(planned.size()), hasBytes))
    return op->emitOpError()
           << "expects a buffer for each of its " << op->getNumResults()
           << " results, but got " << planned.size();
  for (auto [result, attribute] : llvm::zip(op->getResults(), planned)) {
    auto buffer = cast<pipe::BufferAttr>(attribute);
    if (!hasBytes(result) && !isa<pipe::CollectiveOp>(*op))
      continue;
    if (buffer.getSpace() != pipe::BufferSpace::arena)
      return op->emitOpError()
             << "expects buffers in the arena, but got " << buffer;
    buffers[result] = declare(nameOfResult(layout, result), buffer);
  }
  return success();
}

Local RankWriter::bufferOf(Operation *user, Value value) {
  if (Local known = buffers.lookup(value))
    return known;
  if (auto wait = value.getDefiningOp<pipe::WaitReceiveOp>())
    return bufferOf(user, wait.getPending());
  user->emitOpError() << "expects a planned buffer for its operand " << value;
  return {};
}

Local RankWriter::placed(Operation *op, FlatSymbolRefAttr stage,
                         FlatSymbolRefAttr weight, bool gradient) {
  pipe::PlaceOp place = placeOf(stage, weight);
  if (!place || (gradient && !place.getGradient())) {
    op->emitOpError() << "expects a place for "
                      << (gradient ? "the gradient of " : "") << "weight @"
                      << weight.getValue() << " in stage @" << stage.getValue();
    return {};
  }
  std::string name = makeIdentifier(weight.getValue());
  return gradient ? declare("d_" + name, *place.getGradient())
                  : declare(name, place.getBuffer());
}

pipe::PlaceOp RankWriter::placeOf(FlatSymbolRefAttr stage,
                                  FlatSymbolRefAttr weight) const {
  const StageLayout *layoutOfStage = layout.findStage(stage.getValue());
  return layoutOfStage ? layoutOfStage->places.lookup(weight.getAttr())
                       : pipe::PlaceOp();
}

Local RankWriter::roundedCopy(pipe::PlaceOp place) {
  return declare(makeIdentifier(place.getWeight()) + "_bf16",
                 *place.getRounded());
}

Local RankWriter::weightsAt(const StageLayout &stage, pipe::BufferAttr place) {
  bool isNewest = pipe::OptimizerOp(stage.optimizer).getNewest() == place;
  return declare(((isNewest ? "weights" : "old") + Twine(stage.number)).str(),
                 place);
}

/// What all members of a group have in common: a weight, its copy in bf16, or
/// its gradient; or all that a stage's optimizer updates.
Local RankWriter::rangeOf(pipe::CollectiveOp op) {
  bool isOfGradients = op.isOfGradients();
  const StageLayout *stage = layout.findStage(op.getStage());
  if (op.getWeight() && !op.getRounded())
    return placed(op, op.getStageAttr(), op.getWeightAttr(), isOfGradients);
  if (op.getWeight()) {
    pipe::PlaceOp place = placeOf(op.getStageAttr(), op.getWeightAttr());
    if (place && place.getRounded())
      return roundedCopy(place);
  } else if (stage && stage->optimizer) {
    pipe::OptimizerOp optimizer = stage->optimizer;
    std::string number = std::to_string(stage->number);
    if (isOfGradients)
      return declare("gradients" + number, optimizer.getGradients());
    if (!op.getRounded())
      return declare("weights" + number, optimizer.getWeights());
    if (optimizer.getRounded())
      return declare("rounded" + number, *optimizer.getRounded());
  }
  op.emitOpError("is about what its stage has no place for");
  return {};
}

/// The places of weights that an op works on.
LogicalResult RankWriter::namePlaces(pipe::StepOpInterface op) {
  if (auto together = dyn_cast<pipe::CollectiveOp>(*op))
    return success(static_cast<bool>(rangeOf(together)));
  SmallVector<pipe::PlaceOp> withCopy;
  for (const pipe::ByteUse &use : op.getByteUses()) {
    bool isGradient = use.kind == pipe::ByteUse::Kind::Gradient;
    if (!use.weight)
      continue;
    if (!placed(op, op.getStageName(), use.weight, isGradient))
      return failure();
    pipe::PlaceOp place = placeOf(op.getStageName(), use.weight);
    if (!isGradient && place.getRounded())
      withCopy.push_back(place);
  }
  for (pipe::PlaceOp place : withCopy)
    roundedCopy(place);
  return success();
}

LogicalResult RankWriter::writeBufferTable() {
  auto ops = rank.getBody()->getOps<pipe::StepOpInterface>();
  for (pipe::StepOpInterface op : ops)
    if (failed(nameBuffers(op)))
      return failure();
  // Places of weights are looked up now, so that the table is whole.
  for (pipe::StepOpInterface op : ops) {
    if (failed(namePlaces(op)))
      return failure();
    auto task = dyn_cast<pipe::TaskOp>(*op);
    const StageLayout *stage =
        task ? layout.findStage(task.getStage()) : nullptr;
    if (!task || !task.getWeights() || !stage->hasVersions())
      continue;
    weightsAt(*stage, *task.getWeights());
    weightsAt(*stage, pipe::OptimizerOp(stage->optimizer).getNewest());
  }
  return success();
}

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
    if (!stage.hasVersions())
      return task.emitOpError("expects a place for old weights in stage @")
             << task.getStage();
    writer.copy(
        weightsAt(stage, pipe::OptimizerOp(stage.optimizer).getNewest()),
        weightsAt(stage, *kept));
    writer.commentBehind({"keeps version ", Counter::update(number)});
  }
  writer.callStage(letterOf(pipe::TaskKind::update), stage.number,
                   stageFunctionName(stage.number, pipe::TaskKind::update),
                   std::nullopt, {});
  Tokens name = {"U" + std::to_string(stage.number)};
  if (number)
    name.insert(name.end(), {".", Counter::update(number)});
  commentCall(name, {});
  return success();
}

/// Rounds a tied weight again that the owner has updated.
LogicalResult RankWriter::writeRounding(pipe::SetWeightOp set) {
  pipe::PlaceOp place = placeOf(set.getStageAttr(), set.getWeightAttr());
  if (!place.getRounded())
    return success();
  if (!place.getKernelAttr())
    return place.emitOpError("has no kernel; expects a module after "
                             "pipe-attach-optimizer-kernels");
  writer.launch(place.getKernelAttr().getLeafReference().getValue(),
                {placed(set, set.getStageAttr(), set.getWeightAttr(), false),
                 roundedCopy(place)});
  return success();
}

LogicalResult RankWriter::writeTask(pipe::TaskOp task) {
  const StageLayout *stage = layout.findStage(task.getStage());
  pipe::TaskKind kind = task.getKind();
  if (!hasStageFunction(*stage, kind))
    return task.emitOpError("has no body in its stage");
  if (kind == pipe::TaskKind::update)
    return writeUpdate(task, *stage);
  SmallVector<CallArgument> arguments, stashes;
  auto add = [&](Value value) -> LogicalResult {
    if (!hasBytes(value))
      return success();
    Local buffer = bufferOf(task, value);
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
  if (stage->hasVersions() && kind != pipe::TaskKind::evaluate) {
    if (!task.getWeights())
      return task.emitOpError("expects the place of its weights");
    arguments.push_back(weightsAt(*stage, *task.getWeights()));
  }
  size_t expected = stageParameters(layout, *stage, kind).size();
  if (arguments.size() != expected)
    return task.emitOpError() << "expects " << expected << " buffers, but got "
                              << arguments.size();
  int64_t microBatch = *task.getMicroBatch();
  writer.callStage(letterOf(kind), stage->number,
                   stageFunctionName(stage->number, kind), microBatch,
                   arguments);
  Tokens version;
  if (task.getVersion())
    version = {"version ", Counter::update(*task.getVersion())};
  commentCall({(letterOf(kind) + Twine(stage->number) + ".").str(),
               Counter::microBatch(microBatch)},
              version);
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
  Local range = rangeOf(op);
  if (!range || failed(verifyEvent(op, event)))
    return failure();
  std::string type = op.getRounded() ? "ElementType::BF16" : "ElementType::F32";
  SmallVector<CallArgument> arguments = {std::to_string(layout.groupNumber(op)),
                                         type, range};
  if (op.isOfGradients()) {
    Local scratch = bufferOf(op, op.getResult());
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

/// `value` is what a post sends, or what it will have received.
LogicalResult RankWriter::writeTransfer(Operation *op, Value value,
                                        int64_t peer,
                                        std::optional<int64_t> event) {
  Local buffer = bufferOf(op, value);
  if (!buffer || failed(verifyEvent(op, event)))
    return failure();
  bool sends = isa<pipe::PostSendOp>(op);
  if (sends)
    writer.postSend(peer, buffer, event);
  else
    writer.postReceive(peer, buffer, event);
  writer.commentBehind(
      {(sends ? "to rank " : "from rank ") + std::to_string(peer)});
  if (event)
    eventTexts[*event] = {buffer, sends ? " is sent" : " is there"};
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
        Local buffer = bufferOf(op, input.getResult());
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
      .Case([&](pipe::PostSendOp post) {
        return writeTransfer(op, post.getValue(), post.getPeer(),
                             post.getEvent());
      })
      .Case([&](pipe::PostReceiveOp post) {
        return writeTransfer(op, post.getResult(), post.getPeer(),
                             post.getEvent());
      })
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
      .Case<pipe::GradientOfOp, pipe::WeightOfOp>(
          [](Operation *) { return success(); })
      .Case([&](pipe::CollectiveOp together) {
        return writeCollective(together);
      })
      .Case([&](pipe::WaitCollectiveOp wait) -> LogicalResult {
        auto post = wait.getValue().getDefiningOp<pipe::CollectiveOp>();
        if (!hasStreams()) {
          writer.waitCollective();
          writer.commentBehind(textWhenOver(post, rangeOf(post)));
        }
        return success();
      })
      .Case([&](pipe::AddGradientOp add) -> LogicalResult {
        Local source = bufferOf(op, add.getAddend());
        Local gradient =
            placed(op, add.getStageAttr(), add.getWeightAttr(), true);
        if (!source || !gradient)
          return failure();
        writer.accumulate(source, gradient);
        writer.commentBehind({"tied weight"});
        lastWork = {gradient, " is whole"};
        return success();
      })
      .Case([&](pipe::SetWeightOp set) -> LogicalResult {
        Local source = bufferOf(op, set.getValue());
        if (!source)
          return failure();
        writer.copy(source,
                    placed(op, set.getStageAttr(), set.getWeightAttr(), false));
        writer.commentBehind({"tied weight"});
        if (failed(writeRounding(set)))
          return failure();
        writer.zero(placed(op, set.getStageAttr(), set.getWeightAttr(), true));
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

/// The calls that a function shows.
static int64_t countCalls(const Function &function) {
  int64_t calls = 0;
  for (const Statement &statement : function.body)
    if (auto *loop = std::get_if<Loop>(&statement))
      calls += loop->body.size();
    else if (std::holds_alternative<CallStatement>(statement))
      ++calls;
  return calls;
}

/// Shortens a list if it is too long, and says how.
static StringRef shorten(Function &list, const ListLengths &lengths) {
  if (countCalls(list) <= lengths.unrolled)
    return "";
  Function folded = list;
  bool hasLoops = foldLoops(folded);
  if (countCalls(folded) > lengths.withLoops) {
    makeTable(list);
    return ", as a table";
  }
  list = std::move(folded);
  return hasLoops ? ", in loops" : "";
}

LogicalResult writeRankFunctions(llvm::raw_ostream &os,
                                 const ProgramLayout &layout,
                                 const RankLayout &rank,
                                 const Preparations &preparations,
                                 const ListLengths &lengths) {
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
    StringRef form = shorten(*function, lengths);
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
