//===- RankFunctions.cpp - One straight program per rank ------------------===//
//
// Two walks over a rank's list: the first names the buffers (values that the
// plan puts into the same bytes share a name), the second writes the lines.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/RankFunctions.h"

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
  LogicalResult nameBuffers(Operation *op);
  LogicalResult writeLine(Operation *op);
  LogicalResult writeTask(pipe::TaskOp task);
  std::string nameFor(Value value);
  std::string nameOfTaskResult(pipe::TaskOp task, unsigned index);
  std::string nameOfTaskOperand(pipe::TaskOp task, unsigned index);
  Value declare(StringRef base, pipe::BufferAttr planned);
  Value bufferOf(Operation *user, Value value);
  Value placed(Operation *op, FlatSymbolRefAttr stage, FlatSymbolRefAttr weight,
               bool gradient);
  /// All weights of a stage, in one of their versions.
  Value weightsAt(const StageLayout &stage, pipe::BufferAttr place);
  LogicalResult writeUpdate(pipe::TaskOp task, const StageLayout &stage);

  FunctionWriter &writer;
  const ProgramLayout &layout;
  pipe::RankOp rank;
  llvm::DenseMap<Value, Value> buffers;
  /// What was declared, by name and place, and how many of each name.
  std::map<std::tuple<std::string, int64_t, int64_t>, Value> declared;
  llvm::StringMap<int64_t> counts;
};

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string RankWriter::nameOfTaskResult(pipe::TaskOp task, unsigned index) {
  const StageLayout *stage = layout.findStage(task.getStage());
  auto op = stage->op;
  if (isa<pipe::StashType>(task->getResult(index).getType()))
    return "stash" + std::to_string(stage->number);
  if (isa<pipe::HandoverType>(task->getResult(index).getType()))
    return "handover" + std::to_string(stage->number);
  if (pipe::GradientBodyInterface body = op.gradientBodyOf(task.getKind())) {
    ArrayRef<int64_t> gradients = body.getInputGradients();
    if (index < gradients.size()) {
      auto source = dyn_cast<pipe::OutputAttr>(
          op.getForward().getSources()[gradients[index]]);
      if (source)
        if (const StageLayout *from =
                layout.findStage(source.getStage().getValue()))
          return "d_" + layout.nameOfOutput(*from, source.getIndex());
    }
    return "gradient";
  }
  return layout.nameOfOutput(*stage, index);
}

std::string RankWriter::nameOfTaskOperand(pipe::TaskOp task, unsigned index) {
  const StageLayout *stage = layout.findStage(task.getStage());
  auto op = stage->op;
  auto nameOfSource = [&](Attribute source) -> std::string {
    if (auto output = dyn_cast<pipe::OutputAttr>(source))
      if (const StageLayout *from =
              layout.findStage(output.getStage().getValue()))
        return layout.nameOfOutput(*from, output.getIndex());
    if (auto input = dyn_cast<pipe::InputAttr>(source))
      return makeIdentifier(input.getName().getValue());
    return "received";
  };
  if (pipe::GradientBodyInterface body = op.gradientBodyOf(task.getKind())) {
    size_t numInputs = body.getInputs().size();
    size_t first =
        numInputs + body.getOutputs().size() + !body.getStashFields().empty();
    if (index < numInputs)
      return nameOfSource(
          op.getForward().getSources()[body.getInputs()[index]]);
    if (index >= first && index - first < body.getGradientsOf().size())
      return "d_" +
             layout.nameOfOutput(*stage, body.getGradientsOf()[index - first]);
    return "received";
  }
  if (index < op.getForward().getSources().size())
    return nameOfSource(op.getForward().getSources()[index]);
  return "received";
}

std::string RankWriter::nameFor(Value value) {
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case(
          [&](pipe::InputOp input) { return makeIdentifier(input.getName()); })
      .Case([&](pipe::TaskOp task) { return nameOfTaskResult(task, index); })
      .Case([&](pipe::GradientOfOp view) {
        return "d_" + makeIdentifier(view.getWeight());
      })
      .Case([&](pipe::WeightOfOp view) {
        return makeIdentifier(view.getWeight());
      })
      .Case([&](pipe::PostReceiveOp post) -> std::string {
        // Named by what the received value is used for.
        for (Operation *wait : post.getResult().getUsers()) {
          if (!isa<pipe::WaitReceiveOp>(wait))
            continue;
          for (OpOperand &use : wait->getResult(0).getUses()) {
            Operation *user = use.getOwner();
            if (auto task = dyn_cast<pipe::TaskOp>(user))
              return nameOfTaskOperand(task, use.getOperandNumber());
            if (auto add = dyn_cast<pipe::AddGradientOp>(user))
              return "d_" + makeIdentifier(add.getWeight());
            if (auto set = dyn_cast<pipe::SetWeightOp>(user))
              return makeIdentifier(set.getWeight());
          }
        }
        return "received";
      })
      .Default([](Operation *) { return std::string("buffer"); });
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Value RankWriter::declare(StringRef base, pipe::BufferAttr planned) {
  auto key =
      std::make_tuple(base.str(), planned.getOffset(), planned.getBytes());
  Value &value = declared[key];
  if (!value)
    value = writer.buffer((base + "_" + Twine(counts[base]++)).str(),
                          planned.getOffset(), planned.getBytes());
  return value;
}

/// Only tensors, stashes and handovers have bytes of their own in a rank's
/// list.
static bool hasBytes(Value value) {
  return isa<RankedTensorType, pipe::StashType, pipe::HandoverType,
             pipe::PendingType>(value.getType());
}

LogicalResult RankWriter::nameBuffers(Operation *op) {
  ArrayAttr planned = llvm::TypeSwitch<Operation *, ArrayAttr>(op)
                          .Case<pipe::InputOp, pipe::TaskOp, pipe::GradientOfOp,
                                pipe::WeightOfOp, pipe::PostReceiveOp>(
                              [](auto typed) { return typed.getBuffersAttr(); })
                          .Default([](Operation *) { return ArrayAttr(); });
  if (!planned)
    return success();
  if (planned.size() < op->getNumResults() &&
      llvm::any_of(op->getResults().drop_front(planned.size()), hasBytes))
    return op->emitOpError()
           << "expects a buffer for each of its " << op->getNumResults()
           << " results, but got " << planned.size();
  for (auto [result, attribute] : llvm::zip(op->getResults(), planned)) {
    auto buffer = cast<pipe::BufferAttr>(attribute);
    if (!hasBytes(result))
      continue;
    if (buffer.getSpace() != pipe::BufferSpace::arena)
      return op->emitOpError()
             << "expects buffers in the arena, but got " << buffer;
    buffers[result] = declare(nameFor(result), buffer);
  }
  return success();
}

Value RankWriter::bufferOf(Operation *user, Value value) {
  if (Value known = buffers.lookup(value))
    return known;
  if (auto wait = value.getDefiningOp<pipe::WaitReceiveOp>())
    return bufferOf(user, wait.getPending());
  user->emitOpError() << "expects a planned buffer for its operand " << value;
  return {};
}

Value RankWriter::placed(Operation *op, FlatSymbolRefAttr stage,
                         FlatSymbolRefAttr weight, bool gradient) {
  const StageLayout *layoutOfStage = layout.findStage(stage.getValue());
  pipe::PlaceOp place = layoutOfStage
                            ? layoutOfStage->places.lookup(weight.getAttr())
                            : pipe::PlaceOp();
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

Value RankWriter::weightsAt(const StageLayout &stage, pipe::BufferAttr place) {
  bool isNewest = pipe::OptimizerOp(stage.optimizer).getWeights() == place;
  return declare(((isNewest ? "weights" : "old") + Twine(stage.number)).str(),
                 place);
}

LogicalResult RankWriter::writeBufferTable() {
  for (Operation &op : rank.getBodyRegion().front())
    if (failed(nameBuffers(&op)))
      return failure();
  // Places of tied weights are looked up now, so that the table is whole.
  for (Operation &op : rank.getBodyRegion().front()) {
    if (auto add = dyn_cast<pipe::AddGradientOp>(op)) {
      if (!placed(&op, add.getStageAttr(), add.getWeightAttr(), true))
        return failure();
    } else if (auto set = dyn_cast<pipe::SetWeightOp>(op)) {
      if (!placed(&op, set.getStageAttr(), set.getWeightAttr(), false) ||
          !placed(&op, set.getStageAttr(), set.getWeightAttr(), true))
        return failure();
    } else if (auto task = dyn_cast<pipe::TaskOp>(op)) {
      const StageLayout *stage = layout.findStage(task.getStage());
      if (!task.getWeights() || !stage->hasVersions())
        continue;
      weightsAt(*stage, *task.getWeights());
      weightsAt(*stage, pipe::OptimizerOp(stage->optimizer).getWeights());
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

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
        weightsAt(stage, pipe::OptimizerOp(stage.optimizer).getWeights()),
        weightsAt(stage, *kept));
    writer.commentBehind("keeps version " + std::to_string(number));
  }
  writer.callStage(stageFunctionName(stage.number, pipe::TaskKind::update),
                   std::nullopt, {});
  writer.commentBehind("U" + std::to_string(stage.number) +
                       (number ? "." + std::to_string(number) : ""));
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
    Value buffer = bufferOf(task, value);
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
  if (arguments.size() != countStageParameters(*stage, kind))
    return task.emitOpError()
           << "expects " << countStageParameters(*stage, kind)
           << " buffers, but got " << arguments.size();
  int64_t microBatch = *task.getMicroBatch();
  writer.callStage(stageFunctionName(stage->number, kind), microBatch,
                   arguments);
  std::string name =
      (letterOf(kind) + Twine(stage->number) + "." + Twine(microBatch)).str();
  if (task.getVersion())
    name += ", version " + std::to_string(int64_t(*task.getVersion()));
  writer.commentBehind(name);
  return success();
}

LogicalResult RankWriter::writeLine(Operation *op) {
  auto behind = [&](const Twine &text) { writer.commentBehind(text.str()); };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](pipe::InputOp input) -> LogicalResult {
        Value buffer = bufferOf(op, input.getResult());
        int64_t number = layout.inputNumber(input.getName());
        if (!buffer)
          return failure();
        if (number < 0)
          return op->emitOpError("is of no stage's sources");
        writer.loadInput(number, input.getMicroBatch(), buffer);
        behind(input.getName() + " of micro-batch " +
               Twine(input.getMicroBatch()));
        return success();
      })
      .Case([&](pipe::TaskOp task) { return writeTask(task); })
      .Case([&](pipe::PostSendOp post) -> LogicalResult {
        Value buffer = bufferOf(op, post.getValue());
        if (!buffer)
          return failure();
        writer.postSend(post.getPeer(), buffer);
        behind("to rank " + Twine(post.getPeer()));
        return success();
      })
      .Case([&](pipe::PostReceiveOp post) -> LogicalResult {
        Value buffer = bufferOf(op, post.getResult());
        if (!buffer)
          return failure();
        writer.postReceive(post.getPeer(), buffer);
        behind("from rank " + Twine(post.getPeer()));
        return success();
      })
      .Case([&](pipe::WaitSendOp wait) -> LogicalResult {
        writer.waitSend(wait.getPeer());
        return success();
      })
      .Case([&](pipe::WaitReceiveOp wait) -> LogicalResult {
        writer.waitReceive(wait.getPeer());
        return success();
      })
      .Case<pipe::GradientOfOp, pipe::WeightOfOp>(
          [](Operation *) { return success(); })
      .Case([&](pipe::AddGradientOp add) -> LogicalResult {
        Value source = bufferOf(op, add.getAddend());
        Value gradient =
            placed(op, add.getStageAttr(), add.getWeightAttr(), true);
        if (!source || !gradient)
          return failure();
        writer.accumulate(source, gradient);
        behind("tied weight");
        return success();
      })
      .Case([&](pipe::SetWeightOp set) -> LogicalResult {
        Value source = bufferOf(op, set.getValue());
        if (!source)
          return failure();
        writer.copy(source,
                    placed(op, set.getStageAttr(), set.getWeightAttr(), false));
        behind("tied weight");
        writer.zero(placed(op, set.getStageAttr(), set.getWeightAttr(), true));
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("has no place in a rank's program");
      });
}

LogicalResult RankWriter::writeLines() {
  for (Operation &op : rank.getBodyRegion().front())
    if (failed(writeLine(&op)))
      return failure();
  return success();
}

} // namespace

static void writeComment(OpBuilder &builder, Location loc, const Twine &text) {
  emitc::VerbatimOp::create(builder, loc, builder.getStringAttr("// " + text),
                            ValueRange());
}

static LogicalResult writeProgram(OpBuilder &builder,
                                  const ProgramLayout &layout, pipe::RankOp op,
                                  RankFunction function) {
  std::string steps = layout.updates == 1 ? "one optimizer step."
                                          : std::to_string(layout.updates) +
                                                " optimizer steps.";
  writeComment(builder, op.getLoc(),
               "Rank " + Twine(op.getRank()) + ": " +
                   (function == RankFunction::Step
                        ? steps
                        : "held-out data, forward only."));
  FunctionWriter writer(builder, op.getLoc(),
                        rankFunctionName(op.getRank(), function),
                        /*hasMicroBatch=*/false, {});
  RankWriter rank(writer, layout, op);
  if (failed(rank.writeBufferTable()))
    return failure();
  writer.blankLine();
  if (failed(rank.writeLines()))
    return failure();
  writer.finish();
  emitc::VerbatimOp::create(builder, op.getLoc(), builder.getStringAttr(""),
                            ValueRange());
  return success();
}

LogicalResult writeRankFunctions(OpBuilder &builder,
                                 const ProgramLayout &layout,
                                 const RankLayout &rank,
                                 const Preparations &preparations) {
  Location loc = const_cast<pipe::ArenaOp &>(rank.arena).getLoc();
  writeComment(builder, loc,
               "Rank " + Twine(rank.number) + ": before the first step.");
  FunctionWriter setUp(builder, loc,
                       rankFunctionName(rank.number, RankFunction::SetUp),
                       /*hasMicroBatch=*/false, {});
  preparations.write(setUp);
  setUp.finish();
  emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(""),
                            ValueRange());
  if (failed(writeProgram(builder, layout, rank.train, RankFunction::Step)))
    return failure();
  if (rank.evaluate)
    return writeProgram(builder, layout, rank.evaluate, RankFunction::Evaluate);
  return success();
}

} // namespace pipewright::codegen
