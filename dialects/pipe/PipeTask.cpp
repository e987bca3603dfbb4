//===- PipeTask.cpp - Verifiers and names of tasks ------------------------===//
//
// A task's signature follows from its stage; that is checked here, where the
// symbol can be looked up. Order and completeness belong to the verify passes.
// What values stand for is the operand lists of README.md, read backwards.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright::pipe;

ReplicaState pipewright::pipe::stateOfReplicas(Type type) {
  if (auto gradient = dyn_cast<GradientType>(type))
    return gradient.getReplicaState();
  return cast<UpdatedType>(type).getReplicaState();
}

LogicalResult UpdatedType::verify(function_ref<InFlightDiagnostic()> error,
                                  FlatSymbolRefAttr, ReplicaState state) {
  if (state == ReplicaState::partial)
    return error() << "expects updated weights to be whole or split over "
                      "replicas, but got partial ones";
  return success();
}

static std::string microBatchName(StringRef prefix, TaskOp task) {
  std::string name = (prefix + "_" + task.getStage()).str();
  if (task.getMicroBatch())
    name += "_" + std::to_string(*task.getMicroBatch());
  if (task.getNumber())
    name += "_" + std::to_string(*task.getNumber());
  return name;
}

void InputOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), (getName() + "_" + getStage() + "_").str() +
                           std::to_string(getMicroBatch()));
}

void TaskOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  StringRef tensor =
      getKind() == TaskKind::forward || getKind() == TaskKind::evaluate ? "h"
                                                                        : "d";
  for (Value result : getResults()) {
    StringRef prefix = tensor;
    if (auto stash = dyn_cast<StashType>(result.getType()))
      prefix = getKind() == TaskKind::recompute                 ? "restored"
               : stash.getReader() == TaskKind::weight_gradient ? "weight_stash"
                                                                : "stash";
    else if (auto handover = dyn_cast<HandoverType>(result.getType()))
      prefix = handover.getGiver() != TaskKind::recompute ? "handover"
               : handover.getReader() == TaskKind::weight_gradient
                   ? "weight_recomputed"
                   : "recomputed";
    else if (isa<GradientType>(result.getType()))
      prefix = "gradients";
    else if (isa<UpdatedType>(result.getType()))
      prefix = "updated";
    setName(result, microBatchName(prefix, *this));
  }
}

void HoldOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  StringRef prefix = isa<StashType>(getResult().getType()) ? "back"
                     : isAway()                            ? "kept"
                                                           : "bytes";
  setName(
      getResult(),
      (prefix + "_" + getOf() + "_" + std::to_string(getMicroBatch())).str());
}

void GradientOfOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ("d_" + getWeight() + "_" + getStage()).str());
}

void AddGradientOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ("gradients_" + getStage()).str());
}

void WeightOfOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), (getWeight() + "_" + getStage()).str());
}

void SetWeightOp::getAsmResultNames(OpAsmSetValueNameFn) {}
void MergeStatisticsOp::getAsmResultNames(OpAsmSetValueNameFn) {}

LogicalResult TaskOp::verify() {
  // (C1)
  if ((getKind() == TaskKind::update) == getMicroBatch().has_value())
    return emitOpError("expects a micro-batch on every kind but 'update'");
  // (C4)
  if (getNumber() && getKind() != TaskKind::update)
    return emitOpError("expects a number only on kind 'update'");
  if (getVersion() &&
      (getKind() == TaskKind::update || getKind() == TaskKind::evaluate))
    return emitOpError("expects no version on kind '")
           << stringifyTaskKind(getKind()) << "'";
  if (getVersion() && static_cast<int64_t>(*getVersion()) < -1)
    return emitOpError("expects a version of at least -1, but got ")
           << static_cast<int64_t>(*getVersion());
  // (C5)
  if (getOverlapsNext() &&
      (getKind() == TaskKind::update || getKind() == TaskKind::evaluate))
    return emitOpError("expects no 'overlaps_next' on kind '")
           << stringifyTaskKind(getKind()) << "'";
  // (C6)
  if (getParts() &&
      (!isa<RankOp>((*this)->getParentOp()) || getNumResults() == 0 ||
       !isa<GradientType>(getResults().back().getType())))
    return emitOpError("expects no parts but in a rank's program, of a task "
                       "that makes gradients of weights");
  return success();
}

Value TaskOp::getSummed() {
  Value last = getOperands().empty() ? Value() : getOperands().back();
  return last && last != getGathered() &&
                 isa<GradientType, UpdatedType>(last.getType())
             ? last
             : Value();
}

Value TaskOp::getStash(Type type) {
  for (Value result : getResults())
    if (result.getType() == type)
      return result;
  return Value();
}

/// An update, and nothing else that makes weights whole, clears gradients.
Value TaskOp::getGathered() {
  for (Value operand : getOperands())
    if (isa<UpdatedType>(operand.getType()) && !operand.getDefiningOp<TaskOp>())
      return operand;
  return Value();
}

void TaskOp::setGathered(Value weights) {
  (*this)->insertOperands(getNumOperands() - (getSummed() ? 1 : 0), weights);
}

/// Fills the operand and result types of a forward or evaluation task.
template <typename Body>
static void forwardSignature(TaskOp task, Body body, bool withStash,
                             SmallVectorImpl<Type> &operands,
                             SmallVectorImpl<Type> &results) {
  llvm::append_range(operands, body.getBody()->getArgumentTypes());
  llvm::append_range(results, body.getReturn().getValues().getTypes());
  if (task.getGathered())
    operands.push_back(
        UpdatedType::get(task.getContext(), task.getStageAttr()));
  if (!withStash)
    return;
  for (const StashRange &range :
       cast<StageOp>(body->getParentOp()).getRanges(TaskKind::forward))
    results.push_back(range.type);
}

/// Fills the operand and result types of a task of a backward or of one of its
/// halves.
static void gradientSignature(TaskOp task, GradientBodyInterface body,
                              SmallVectorImpl<Type> &operands,
                              SmallVectorImpl<Type> &results) {
  MLIRContext *context = task.getContext();
  FlatSymbolRefAttr stage = task.getStageAttr();
  auto stageOp = cast<StageOp>(body->getParentOp());
  Block &block = body->getRegion(0).front();
  SmallVector<Type> arguments(block.getArgumentTypes());
  size_t saved = body.getInputs().size() + body.getOutputs().size();
  size_t fields = body.getStashFields().size();
  operands.append(arguments.begin(), arguments.begin() + saved);
  llvm::append_range(operands,
                     stageOp.getRangesReadBy(body, TaskKind::forward));
  auto gradients = arguments.begin() + saved + fields;
  operands.append(gradients, gradients + body.getGradientsOf().size());
  for (TaskKind giver : {TaskKind::recompute, TaskKind::input_gradient})
    llvm::append_range(operands, stageOp.getRangesReadBy(body, giver));
  if (task.getGathered())
    operands.push_back(UpdatedType::get(context, stage));

  auto end = cast<ReturnOp>(block.getTerminator());
  llvm::append_range(results, end.getValues().getTypes());
  const bool restores = isa<RecomputeOp>(body) && stageOp.getKeeps();
  if (isa<InputGradientOp, RecomputeOp>(body))
    for (const StashRange &range :
         stageOp.getRanges(restores ? TaskKind::forward : task.getKind()))
      results.push_back(range.type);
  if (isa<InputGradientOp, RecomputeOp>(body))
    return;
  // The gradients so far are there from the second task of the stage on; an
  // update clears them, and so does what keeps a part of them.
  auto sum = GradientType::get(
      context, stage,
      stateOfSums(programOf(task->getParentOfType<ModuleOp>())));
  if (Value summed = task.getSummed()) {
    if (summed.getDefiningOp<KeepGradientsOp>())
      operands.push_back(
          GradientType::get(context, stage, ReplicaState::split));
    else if (isa<GradientType>(summed.getType()))
      operands.push_back(sum);
    else
      operands.push_back(UpdatedType::get(context, stage));
  }
  if (task.getNumResults() > results.size())
    results.push_back(sum);
}

/// Until gradients are summed over replicas, an update takes those of one. A
/// part of them is enough for a part of the weights.
static void updateSignature(TaskOp task, SmallVectorImpl<Type> &operands,
                            SmallVectorImpl<Type> &results) {
  auto stateOf = [](TypeRange types) {
    return types.size() == 1 && isa<GradientType, UpdatedType>(types.front())
               ? stateOfReplicas(types.front())
               : ReplicaState::whole;
  };
  ReplicaState sums = stateOf(task.getOperandTypes());
  ReplicaState weights =
      sums == ReplicaState::split ? sums : stateOf(task.getResultTypes());
  if (weights == ReplicaState::partial)
    weights = ReplicaState::whole;
  operands.push_back(
      GradientType::get(task.getContext(), task.getStageAttr(), sums));
  results.push_back(
      UpdatedType::get(task.getContext(), task.getStageAttr(), weights));
}

LogicalResult TaskOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // (C2)
  auto stage = symbols.lookupNearestSymbolFrom<StageOp>(
      (*this)->getParentOp()->getParentOp(), getStageAttr());
  if (!stage)
    return emitOpError("names '")
           << getStage() << "', which is no stage of the module";
  SmallVector<Type> operands, results;
  switch (getKind()) {
  case TaskKind::forward:
    forwardSignature(*this, stage.getForward(), true, operands, results);
    break;
  case TaskKind::evaluate:
    if (!stage.getEvaluate())
      return emitOpError("needs a 'pipe.evaluate' in stage '")
             << getStage() << "'";
    forwardSignature(*this, stage.getEvaluate(), false, operands, results);
    break;
  case TaskKind::backward:
  case TaskKind::input_gradient:
  case TaskKind::weight_gradient:
  case TaskKind::recompute: {
    GradientBodyInterface body = stage.gradientBodyOf(getKind());
    if (!body)
      return emitOpError("needs a 'pipe.")
             << stringifyTaskKind(getKind()) << "' in stage '" << getStage()
             << "'";
    gradientSignature(*this, body, operands, results);
    break;
  }
  case TaskKind::update:
    updateSignature(*this, operands, results);
    break;
  }
  // (C3)
  if (!llvm::equal(operands, getOperandTypes()))
    return emitOpError("expects operands ")
           << TypeRange(operands) << ", but got " << getOperandTypes();
  if (!llvm::equal(results, getResultTypes()))
    return emitOpError("expects results ")
           << TypeRange(results) << ", but got " << getResultTypes();
  return success();
}

LogicalResult StepOp::verifyRegions() { return verifyStepOps(*getBody()); }

//===----------------------------------------------------------------------===//
// StepOpInterface: inputs
//===----------------------------------------------------------------------===//

std::string InputOp::getLabel(const StepContext &) {
  return "input '" + getName().str() + "' of micro-batch " +
         std::to_string(getMicroBatch());
}
ResultBytes InputOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::Own};
}
ByteUses InputOp::getByteUses() { return {ByteUse::write(getResult())}; }
std::optional<Content> InputOp::getContent(OpResult, const StepContext &) {
  return Content{Content::Kind::Input, getStageAttr(), 0,
                 static_cast<int64_t>(getMicroBatch()), getName()};
}
std::optional<Content> InputOp::getWantedContent(OpOperand &,
                                                 const StepContext &) {
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// StepOpInterface: tasks
//===----------------------------------------------------------------------===//

/// `task F0.1`, and `task U0` for the first update of a step.
std::string TaskOp::getLabel(const StepContext &context) {
  std::string name = "task " + letterOf(getKind()).str() +
                     std::to_string(context.numberOf(getStageAttr()));
  uint64_t number = getMicroBatch().value_or(getNumber().value_or(0));
  if (getMicroBatch() || number > 0)
    name += "." + std::to_string(number);
  return name;
}

ResultBytes TaskOp::getResultBytes(OpResult result) {
  bool hasBytes =
      isa<RankedTensorType, StashType, HandoverType>(result.getType());
  return {hasBytes ? ResultBytes::Kind::Own : ResultBytes::Kind::None};
}

ByteUses TaskOp::getByteUses() {
  bool isUpdate = getKind() == TaskKind::update;
  return {{isUpdate ? ByteUse::Kind::Optimizer : ByteUse::Kind::Body,
           /*writes=*/true}};
}

std::optional<Content> TaskOp::getContent(OpResult result,
                                          const StepContext &context) {
  using Kind = Content::Kind;
  FlatSymbolRefAttr name = getStageAttr();
  auto batch = static_cast<int64_t>(getMicroBatch().value_or(0));
  if (isa<StashType, HandoverType>(result.getType()))
    return stashContent(result.getType(), batch);
  if (isa<GradientType>(result.getType()))
    return Content{Kind::Sum, name, 0, 0, {}};
  if (isa<UpdatedType>(result.getType()))
    return Content{Kind::Updated, name, 0, 0, {}};
  StageOp stage = context.stageOf(name);
  int64_t number = result.getResultNumber();
  GradientBodyInterface body = stage.gradientBodyOf(getKind());
  if (!body)
    return Content{Kind::Result, name, number, batch, {}};
  int64_t argument = body.getInputGradients()[number];
  auto source = dyn_cast<OutputAttr>(stage.getForward().getSources()[argument]);
  if (!source)
    return std::nullopt;
  return Content{
      Kind::Gradient, source.getStage(), source.getIndex(), batch, {}};
}

static Content sourceContent(FlatSymbolRefAttr stage, Attribute source,
                             int64_t batch) {
  if (auto input = dyn_cast<InputAttr>(source))
    return {Content::Kind::Input, stage, 0, batch, input.getName().getValue()};
  auto output = cast<OutputAttr>(source);
  return {
      Content::Kind::Result, output.getStage(), output.getIndex(), batch, {}};
}

/// What an operand of a backward task, or of one of its halves, holds.
static Content operandOfBackward(TaskOp task, StageOp stage, int64_t number) {
  using Kind = Content::Kind;
  FlatSymbolRefAttr name = task.getStageAttr();
  auto batch = static_cast<int64_t>(task.getMicroBatch().value_or(0));
  GradientBodyInterface body = stage.gradientBodyOf(task.getKind());
  ArrayRef<int64_t> inputs = body.getInputs();
  ArrayRef<int64_t> outputs = body.getOutputs();
  ArrayRef<int64_t> gradients = body.getGradientsOf();
  if (number < static_cast<int64_t>(inputs.size()))
    return sourceContent(name, stage.getForward().getSources()[inputs[number]],
                         batch);
  number -= inputs.size();
  if (number < static_cast<int64_t>(outputs.size()))
    return {Kind::Result, name, outputs[number], batch, {}};
  number -= outputs.size();
  // Whether the operand is of a range that a task of that kind fills.
  SmallVector<Type> ranges;
  auto isGivenBy = [&](TaskKind giver) {
    ranges = stage.getRangesReadBy(body, giver);
    const bool isOne = number < static_cast<int64_t>(ranges.size());
    number -= isOne ? 0 : ranges.size();
    return isOne;
  };
  if (isGivenBy(TaskKind::forward))
    return stashContent(ranges[number], batch);
  if (number < static_cast<int64_t>(gradients.size()))
    return {Kind::Gradient, name, gradients[number], batch, {}};
  number -= gradients.size();
  if (isGivenBy(TaskKind::recompute) || isGivenBy(TaskKind::input_gradient))
    return stashContent(ranges[number], batch);
  return {Kind::Sum, name, 0, 0, {}};
}

std::optional<Content> TaskOp::getWantedContent(OpOperand &operand,
                                                const StepContext &context) {
  FlatSymbolRefAttr name = getStageAttr();
  int64_t number = operand.getOperandNumber();
  auto batch = static_cast<int64_t>(getMicroBatch().value_or(0));
  if (isa<UpdatedType>(operand.get().getType()))
    return Content{Content::Kind::Updated, name, 0, 0, {}};
  StageOp stage = context.stageOf(name);
  switch (getKind()) {
  case TaskKind::forward:
    return sourceContent(name, stage.getForward().getSources()[number], batch);
  case TaskKind::evaluate:
    return sourceContent(name, stage.getEvaluate().getSources()[number], batch);
  case TaskKind::backward:
  case TaskKind::input_gradient:
  case TaskKind::weight_gradient:
  case TaskKind::recompute:
    return operandOfBackward(*this, stage, number);
  case TaskKind::update:
    return Content{Content::Kind::Sum, name, 0, 0, {}};
  }
  llvm_unreachable("all kinds of tasks are covered");
}

//===----------------------------------------------------------------------===//
// StepOpInterface: stashes elsewhere
//===----------------------------------------------------------------------===//

Content HoldOp::contentOf() {
  return stashContent(StashType::get(getContext(), getOfAttr()),
                      static_cast<int64_t>(getMicroBatch()));
}

std::string HoldOp::getLabel(const StepContext &) {
  return contentOf().describe();
}
ResultBytes HoldOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::OfOperand};
}
ByteUses HoldOp::getByteUses() { return {}; }
std::optional<Content> HoldOp::getContent(OpResult, const StepContext &) {
  return contentOf();
}
std::optional<Content> HoldOp::getWantedContent(OpOperand &operand,
                                                const StepContext &) {
  if (operand.getOperandNumber() != 0)
    return std::nullopt;
  return contentOf();
}

LogicalResult HoldOp::verify() {
  // (C1)
  auto isBytes = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 1 &&
           tensor.getElementType().isInteger(8);
  };
  Type own = StashType::get(getContext(), getOfAttr());
  Type from = getValue().getType(), to = getResult().getType();
  auto isOwn = [&](Type type) { return type == own && !isAway(); };
  if (!(isBytes(from) && (isBytes(to) || isOwn(to))) &&
      !(isOwn(from) && isBytes(to)))
    return emitOpError("expects to take or return bytes, and a stash only in "
                       "its own stage, but makes ")
           << to << " of " << from << " in stage '@" << getStage() << "'";
  if (isBytes(from) && isBytes(to) && from != to)
    return emitOpError("expects to return ") << from << ", but returns " << to;
  // (C3)
  if (!getBehind())
    return success();
  auto before = getBehind().getDefiningOp<HoldOp>();
  if (!before || before == *this || before.getStageAttr() != getStageAttr())
    return emitOpError("expects 'behind' to be what a 'pipe.hold' in stage '@")
           << getStage() << "' holds as bytes";
  return success();
}

LogicalResult HoldOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // (C2)
  if (!symbols.lookupNearestSymbolFrom<StageOp>(
          (*this)->getParentOp()->getParentOp(), getOfAttr()))
    return emitOpError("names '")
           << getOf() << "', which is no stage of the module";
  return success();
}

//===----------------------------------------------------------------------===//
// StepOpInterface: tied weights
//===----------------------------------------------------------------------===//

/// `'@wte' in stage '@s0'`
template <typename OpTy>
static std::string quoted(OpTy op) {
  return "'@" + op.getWeight().str() + "' in stage '@" + op.getStage().str() +
         "'";
}

static Content sumOf(FlatSymbolRefAttr stage) {
  return {Content::Kind::Sum, stage, 0, 0, {}};
}

std::string GradientOfOp::getLabel(const StepContext &) {
  return "gradient of " + quoted(*this);
}
ResultBytes GradientOfOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::Gradient, getWeightAttr()};
}
ByteUses GradientOfOp::getByteUses() { return {}; }
std::optional<Content> GradientOfOp::getContent(OpResult, const StepContext &) {
  return Content{Content::Kind::WeightGradient, getStageAttr(), 0, 0,
                 getWeight()};
}
std::optional<Content> GradientOfOp::getWantedContent(OpOperand &,
                                                      const StepContext &) {
  return sumOf(getStageAttr());
}

std::string AddGradientOp::getLabel(const StepContext &) {
  return "sum of gradients of " + quoted(*this);
}
ResultBytes AddGradientOp::getResultBytes(OpResult) { return {}; }
ByteUses AddGradientOp::getByteUses() {
  return {ByteUse::read(getAddend()),
          {ByteUse::Kind::Gradient, /*writes=*/true, Value(), getWeightAttr()}};
}
std::optional<Content> AddGradientOp::getContent(OpResult,
                                                 const StepContext &) {
  return sumOf(getStageAttr());
}
/// The owner adds the gradients of the other holders in the order of their
/// stages; this addition takes that of as many stages after the owner as it has
/// predecessors.
std::optional<Content>
AddGradientOp::getWantedContent(OpOperand &operand,
                                const StepContext &context) {
  if (operand.get() == getGradient())
    return sumOf(getStageAttr());
  SmallVector<FlatSymbolRefAttr> holders = context.holdersOf(getWeightAttr());
  size_t number = 1;
  for (Operation *before = getGradient().getDefiningOp();
       isa_and_present<AddGradientOp, CollectiveOp>(before);
       before = before->getOperand(0).getDefiningOp())
    if (auto add = dyn_cast<AddGradientOp>(before))
      number += add.getWeight() == getWeight();
  if (number >= holders.size() || holders.front() != getStageAttr())
    return std::nullopt;
  return Content{Content::Kind::WeightGradient, holders[number], 0, 0,
                 getWeight()};
}

std::string WeightOfOp::getLabel(const StepContext &) {
  return "new value of " + quoted(*this);
}
ResultBytes WeightOfOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::Weight, getWeightAttr()};
}
ByteUses WeightOfOp::getByteUses() { return {}; }
std::optional<Content> WeightOfOp::getContent(OpResult, const StepContext &) {
  return Content{Content::Kind::NewWeight, {}, 0, 0, getWeight()};
}
std::optional<Content> WeightOfOp::getWantedContent(OpOperand &,
                                                    const StepContext &) {
  return Content{Content::Kind::Updated, getStageAttr(), 0, 0, {}};
}

std::string SetWeightOp::getLabel(const StepContext &) {
  return "copy of weight " + quoted(*this);
}
ResultBytes SetWeightOp::getResultBytes(OpResult) { return {}; }
ByteUses SetWeightOp::getByteUses() {
  return {ByteUse::read(getValue()),
          {ByteUse::Kind::Weight, /*writes=*/true, Value(), getWeightAttr()},
          {ByteUse::Kind::Gradient, /*writes=*/true, Value(), getWeightAttr()}};
}
std::optional<Content> SetWeightOp::getContent(OpResult, const StepContext &) {
  return std::nullopt;
}
std::optional<Content> SetWeightOp::getWantedContent(OpOperand &operand,
                                                     const StepContext &) {
  if (operand.getOperandNumber() == 1)
    return sumOf(getStageAttr());
  return Content{Content::Kind::NewWeight, {}, 0, 0, getWeight()};
}

std::string MergeStatisticsOp::getLabel(const StepContext &) {
  return "running statistics of stage '@" + getStage().str() + "'";
}
ResultBytes MergeStatisticsOp::getResultBytes(OpResult) { return {}; }
/// Running statistics are planned as places of weights, which keep their bytes.
ByteUses MergeStatisticsOp::getByteUses() { return {}; }
std::optional<Content> MergeStatisticsOp::getContent(OpResult,
                                                     const StepContext &) {
  return std::nullopt;
}
std::optional<Content>
MergeStatisticsOp::getWantedContent(OpOperand &, const StepContext &) {
  return std::nullopt;
}

LogicalResult MergeStatisticsOp::verify() {
  // (C1)
  if (!getOver().isOfReplicas())
    return emitOpError("is over ")
           << getOver().describe() << ", but expects replicas";
  if (getOver().size((*this)->getParentOfType<ModuleOp>()) < 2)
    return emitOpError("is over replicas, but the module has one alone");
  return success();
}
