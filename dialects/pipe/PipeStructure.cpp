//===- PipeStructure.cpp - Verifiers of stages and their bodies -----------===//
//
// The numbered constraints of PipeStructure.td. Rules that need other stages
// (who feeds whom) belong to `pipe-verify-staged`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright::pipe;

//===----------------------------------------------------------------------===//
// StageOp
//===----------------------------------------------------------------------===//

/// Bodies of a stage look at each other before all of them are verified.
static bool hasReturn(Operation *body) {
  return body && !body->getRegion(0).empty() &&
         !body->getRegion(0).front().empty() &&
         isa<ReturnOp>(body->getRegion(0).front().back());
}

template <typename OpTy>
static OpTy onlyOne(StageOp stage) {
  auto ops = stage.getBody()->getOps<OpTy>();
  return ops.empty() ? OpTy() : *ops.begin();
}

ForwardOp StageOp::getForward() { return onlyOne<ForwardOp>(*this); }
BackwardOp StageOp::getBackward() { return onlyOne<BackwardOp>(*this); }
EvaluateOp StageOp::getEvaluate() { return onlyOne<EvaluateOp>(*this); }

RecomputeOp StageOp::getRecompute() { return onlyOne<RecomputeOp>(*this); }
InputGradientOp StageOp::getInputGradient() {
  return onlyOne<InputGradientOp>(*this);
}
WeightGradientOp StageOp::getWeightGradient() {
  return onlyOne<WeightGradientOp>(*this);
}

Operation *StageOp::bodyOf(TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
    return getForward();
  case TaskKind::evaluate:
    return getEvaluate();
  case TaskKind::backward:
  case TaskKind::input_gradient:
  case TaskKind::weight_gradient:
  case TaskKind::recompute:
    return gradientBodyOf(kind);
  case TaskKind::update:
    return nullptr;
  }
  llvm_unreachable("all kinds of tasks are covered");
}

GradientBodyInterface StageOp::gradientBodyOf(TaskKind kind) {
  auto orNull = [](auto body) {
    return body ? cast<GradientBodyInterface>(body.getOperation())
                : GradientBodyInterface();
  };
  if (kind == TaskKind::backward)
    return orNull(getBackward());
  if (kind == TaskKind::input_gradient)
    return orNull(getInputGradient());
  if (kind == TaskKind::weight_gradient)
    return orNull(getWeightGradient());
  if (kind == TaskKind::recompute)
    return orNull(getRecompute());
  return {};
}

ValueRange StageOp::getKept(TaskKind giver) {
  if (giver == TaskKind::forward)
    return getForward().getReturn().getStash();
  if (giver == TaskKind::recompute && getKeeps())
    return {};
  GradientBodyInterface body = gradientBodyOf(giver);
  return hasReturn(body)
             ? ValueRange(
                   cast<ReturnOp>(body->getRegion(0).front().getTerminator())
                       .getStash())
             : ValueRange();
}

/// Which values that a task of kind `giver` keeps a body reads.
static SmallVector<int64_t> fieldsReadBy(GradientBodyInterface body,
                                         TaskKind giver, size_t count) {
  if (giver == TaskKind::forward)
    return body.getStashFields();
  if (giver == TaskKind::recompute)
    return body.getRecomputedFields();
  return llvm::to_vector(
      llvm::seq<int64_t>(0, body.takesHandover() ? count : 0));
}

SmallVector<StashRange> StageOp::getRanges(TaskKind giver) {
  auto name = FlatSymbolRefAttr::get(getSymNameAttr());
  auto typeFor = [&](TaskKind reader) -> Type {
    if (giver == TaskKind::forward)
      return StashType::get(getContext(), name, reader);
    return HandoverType::get(getContext(), name, giver, reader);
  };
  const size_t count = getKept(giver).size();
  SmallVector<int64_t> apart;
  if (getSplitsStash() && giver != TaskKind::input_gradient)
    apart =
        fieldsReadBy(gradientBodyOf(TaskKind::weight_gradient), giver, count);
  StashRange ranges[] = {{typeFor(TaskKind::backward), {}},
                         {typeFor(TaskKind::weight_gradient), {}}};
  for (int64_t field = 0; field < static_cast<int64_t>(count); ++field)
    ranges[llvm::is_contained(apart, field)].fields.push_back(field);
  SmallVector<StashRange> kept;
  for (StashRange &range : ranges)
    if (!range.fields.empty())
      kept.push_back(std::move(range));
  return kept;
}

SmallVector<Type> StageOp::getRangesReadBy(GradientBodyInterface body,
                                           TaskKind giver) {
  const SmallVector<int64_t> read =
      fieldsReadBy(body, giver, getKept(giver).size());
  SmallVector<Type> types;
  for (const StashRange &range : getRanges(giver))
    if (llvm::any_of(range.fields, [&](int64_t field) {
          return llvm::is_contained(read, field);
        }))
      types.push_back(range.type);
  return types;
}

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 WindowEnd, int64_t count, int64_t of) {
  if (count < 1 || of < 0)
    return emitError() << "expects a window of at least 1 micro-batch, but got "
                       << count << " of " << of;
  return success();
}

LogicalResult StageOp::verifyRegions() {
  llvm::MapVector<OperationName, int64_t> counts;
  for (Operation &op : *getBody()) {
    // (C1)
    if (!isa<ForwardOp, GradientBodyInterface, EvaluateOp>(op))
      return op.emitOpError("is not allowed in a stage, which holds only "
                            "'pipe.forward', 'pipe.recompute', 'pipe.backward' "
                            "and its halves, and 'pipe.evaluate'");
    ++counts[op.getName()];
  }
  // (C1)
  if (!getForward())
    return emitOpError("expects a 'pipe.forward', but got none");
  for (auto [name, count] : counts)
    if (count > 1)
      return emitOpError("expects at most one '")
             << name << "', but got " << count;
  // (C2)
  if (getRank() && *getRank() >= kMaxProcesses)
    return emitOpError("expects a rank from 0 to ")
           << kMaxProcesses - 1 << ", but got "
           << static_cast<int64_t>(*getRank());
  // (C3)
  bool hasInput = getInputGradient(), hasWeight = getWeightGradient();
  if (hasInput != hasWeight || (hasInput && !getBackward()))
    return emitOpError("expects 'pipe.input_gradient' and "
                       "'pipe.weight_gradient' together, and beside "
                       "'pipe.backward'");
  if (getRecompute() && !getBackward())
    return emitOpError("expects 'pipe.recompute' beside 'pipe.backward'");
  // (C4)
  if (getKeeps() && !getRecompute())
    return emitOpError("keeps the stashes of some micro-batches, but has no "
                       "'pipe.recompute' that makes those of others again");
  // (C5)
  if (getSplitsStash() && !hasWeight)
    return emitOpError("splits its stash, but has no 'pipe.weight_gradient' "
                       "that reads a part of it");
  return success();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

ReturnOp ForwardOp::getReturn() {
  return cast<ReturnOp>(getBody()->getTerminator());
}
ReturnOp BackwardOp::getReturn() {
  return cast<ReturnOp>(getBody()->getTerminator());
}
ReturnOp InputGradientOp::getReturn() {
  return cast<ReturnOp>(getBody()->getTerminator());
}
ReturnOp WeightGradientOp::getReturn() {
  return cast<ReturnOp>(getBody()->getTerminator());
}
ReturnOp RecomputeOp::getReturn() {
  return cast<ReturnOp>(getBody()->getTerminator());
}
ReturnOp EvaluateOp::getReturn() {
  return cast<ReturnOp>(getBody()->getTerminator());
}

static LogicalResult verifySources(Operation *op, ArrayAttr sources,
                                   Block &block) {
  // (C1)
  if (sources.size() != block.getNumArguments())
    return op->emitOpError("expects one source per argument, but got ")
           << sources.size() << " sources for " << block.getNumArguments()
           << " arguments";
  for (auto [number, source] : llvm::enumerate(sources))
    if (!isa<InputAttr, OutputAttr>(source))
      return op->emitOpError("expects source ")
             << number << " to be #pipe.input or #pipe.output, but got "
             << source;
  // (C2)
  for (BlockArgument argument : block.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape())
      return op->emitOpError("expects arguments of static shape, but argument ")
             << argument.getArgNumber() << " is " << argument.getType();
  }
  return success();
}

static LogicalResult verifyNoStash(Operation *op, ReturnOp results) {
  if (!results.getStash().empty())
    return op->emitOpError("expects no stash, but got ")
           << results.getStash().size() << " values";
  return success();
}

static void nameSources(ArrayAttr sources, Region &region,
                        OpAsmSetValueNameFn setName) {
  for (auto [argument, source] : llvm::zip(region.getArguments(), sources)) {
    if (auto input = dyn_cast<InputAttr>(source))
      setName(argument, input.getName().getValue());
    else if (auto output = dyn_cast<OutputAttr>(source))
      setName(argument, (output.getStage().getValue() + "_" +
                         std::to_string(output.getIndex()))
                            .str());
  }
}

LogicalResult ForwardOp::verifyRegions() {
  return verifySources(*this, getSources(), *getBody());
}

void ForwardOp::getAsmBlockArgumentNames(Region &region,
                                         OpAsmSetValueNameFn setName) {
  nameSources(getSources(), region, setName);
}

LogicalResult EvaluateOp::verifyRegions() {
  // (C1)
  if (failed(verifySources(*this, getSources(), *getBody())))
    return failure();
  // (C2)
  return verifyNoStash(*this, getReturn());
}

void EvaluateOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  nameSources(getSources(), region, setName);
}

/// Appends the types that `indices` select from `types`.
static LogicalResult select(Operation *op, ArrayRef<int64_t> indices,
                            TypeRange types, StringRef what,
                            SmallVectorImpl<Type> &selected) {
  for (int64_t index : indices) {
    if (index < 0 || index >= static_cast<int64_t>(types.size()))
      return op->emitOpError("names forward ")
             << what << " " << index << ", but the forward has "
             << types.size();
    selected.push_back(types[index]);
  }
  return success();
}

/// Checks arguments and results, numbered as in `pipe.backward`.
static LogicalResult verifyGradientBody(GradientBodyInterface op) {
  auto stage = cast<StageOp>(op->getParentOp());
  ForwardOp forward = stage.getForward();
  // The verifier of the stage or of that body reports this.
  InputGradientOp half = stage.getInputGradient();
  RecomputeOp begin = stage.getRecompute();
  if (!hasReturn(forward) || (half && !hasReturn(half)) ||
      (begin && !hasReturn(begin)))
    return success();
  Block &block = op->getRegion(0).front();
  auto results = cast<ReturnOp>(block.getTerminator());
  ReturnOp kept = forward.getReturn();
  SmallVector<Type> inputs(forward.getBody()->getArgumentTypes());
  SmallVector<Type> outputs(kept.getValues().getTypes());
  SmallVector<Type> stash(kept.getStash().getTypes());
  SmallVector<Type> recomputed(stage.getKept(TaskKind::recompute).getTypes());
  SmallVector<Type> expected, expectedResults;
  if (failed(select(op, op.getInputs(), inputs, "argument", expected)) ||
      failed(select(op, op.getOutputs(), outputs, "result", expected)) ||
      failed(select(op, op.getStashFields(), stash, "stash value", expected)) ||
      failed(select(op, op.getGradientsOf(), outputs, "result", expected)) ||
      failed(select(op, op.getRecomputedFields(), recomputed,
                    "recomputed value", expected)) ||
      failed(select(op, op.getInputGradients(), inputs, "argument",
                    expectedResults)))
    return failure();
  if (op.takesHandover())
    llvm::append_range(expected,
                       stage.getKept(TaskKind::input_gradient).getTypes());
  // (C1)
  if (!llvm::equal(expected, block.getArgumentTypes()))
    return op->emitOpError("expects arguments ")
           << TypeRange(expected) << ", but got " << block.getArgumentTypes();
  // (C2)
  if (!llvm::equal(expectedResults, results.getValues().getTypes()))
    return op->emitOpError("expects to return ")
           << TypeRange(expectedResults) << ", but returns "
           << results.getValues().getTypes();
  return success();
}

static void nameGradientArguments(GradientBodyInterface op, Region &region,
                                  OpAsmSetValueNameFn setName) {
  auto stage = dyn_cast_or_null<StageOp>(op->getParentOp());
  if (!stage || !stage.getForward())
    return;
  SmallVector<std::string> names;
  auto add = [&](StringRef prefix, ArrayRef<int64_t> indices) {
    for (int64_t index : indices)
      names.push_back((prefix + Twine(index)).str());
  };
  add("in", op.getInputs());
  add("out", op.getOutputs());
  add("stash", op.getStashFields());
  add("d_out", op.getGradientsOf());
  add("recomputed", op.getRecomputedFields());
  for (size_t number = 0; names.size() < region.getNumArguments(); ++number)
    names.push_back("handover" + std::to_string(number));
  for (auto [argument, name] : llvm::zip(region.getArguments(), names))
    setName(argument, name);
}

SmallVector<int64_t> BackwardOp::getStashFields() {
  ForwardOp forward = cast<StageOp>((*this)->getParentOp()).getForward();
  size_t count = forward ? forward.getReturn().getStash().size() : 0;
  return llvm::to_vector(llvm::seq<int64_t>(0, count));
}

SmallVector<int64_t> BackwardOp::getRecomputedFields() {
  auto stage = cast<StageOp>((*this)->getParentOp());
  return llvm::to_vector(
      llvm::seq<int64_t>(0, stage.getKept(TaskKind::recompute).size()));
}

bool BackwardOp::takesHandover() { return false; }

LogicalResult BackwardOp::verifyRegions() {
  // (C1), (C2)
  if (failed(verifyGradientBody(cast<GradientBodyInterface>(getOperation()))))
    return failure();
  // (C3)
  return verifyNoStash(*this, getReturn());
}

void BackwardOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  nameGradientArguments(cast<GradientBodyInterface>(getOperation()), region,
                        setName);
}

SmallVector<int64_t> RecomputeOp::getStashFields() {
  return SmallVector<int64_t>(getStash());
}

ArrayRef<int64_t> RecomputeOp::getGradientsOf() { return {}; }
ArrayRef<int64_t> RecomputeOp::getInputGradients() { return {}; }
SmallVector<int64_t> RecomputeOp::getRecomputedFields() { return {}; }
bool RecomputeOp::takesHandover() { return false; }

LogicalResult RecomputeOp::verifyRegions() {
  // (C1), (C2)
  if (failed(verifyGradientBody(cast<GradientBodyInterface>(getOperation()))))
    return failure();
  // (C2)
  if (getReturn().getStash().empty())
    return emitOpError("expects a stash, but got none");
  // (C3)
  auto stage = cast<StageOp>((*this)->getParentOp());
  if (!stage.getKeeps() || !hasReturn(stage.getForward()))
    return success();
  if (!getStash().empty())
    return emitOpError("makes the stash of the forward again, but takes ")
           << getStash().size() << " values of it";
  TypeRange made = getReturn().getStash().getTypes(),
            stashed = stage.getForward().getReturn().getStash().getTypes();
  if (!llvm::equal(made, stashed))
    return emitOpError("expects to make the stash of the forward again, ")
           << stashed << ", but makes " << made;
  return success();
}

void RecomputeOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  nameGradientArguments(cast<GradientBodyInterface>(getOperation()), region,
                        setName);
}

SmallVector<int64_t> InputGradientOp::getStashFields() {
  return SmallVector<int64_t>(getStash());
}

SmallVector<int64_t> InputGradientOp::getRecomputedFields() {
  return SmallVector<int64_t>(getRecomputed().value_or(ArrayRef<int64_t>()));
}

bool InputGradientOp::takesHandover() { return false; }

LogicalResult InputGradientOp::verifyRegions() {
  // (C1), (C2)
  return verifyGradientBody(cast<GradientBodyInterface>(getOperation()));
}

void InputGradientOp::getAsmBlockArgumentNames(Region &region,
                                               OpAsmSetValueNameFn setName) {
  nameGradientArguments(cast<GradientBodyInterface>(getOperation()), region,
                        setName);
}

SmallVector<int64_t> WeightGradientOp::getStashFields() {
  return SmallVector<int64_t>(getStash());
}

ArrayRef<int64_t> WeightGradientOp::getInputGradients() { return {}; }

SmallVector<int64_t> WeightGradientOp::getRecomputedFields() {
  return SmallVector<int64_t>(getRecomputed().value_or(ArrayRef<int64_t>()));
}

bool WeightGradientOp::takesHandover() {
  return !cast<StageOp>((*this)->getParentOp())
              .getKept(TaskKind::input_gradient)
              .empty();
}

LogicalResult WeightGradientOp::verifyRegions() {
  // (C1), (C2)
  if (failed(verifyGradientBody(cast<GradientBodyInterface>(getOperation()))))
    return failure();
  // (C2)
  return verifyNoStash(*this, getReturn());
}

void WeightGradientOp::getAsmBlockArgumentNames(Region &region,
                                                OpAsmSetValueNameFn setName) {
  nameGradientArguments(cast<GradientBodyInterface>(getOperation()), region,
                        setName);
}
