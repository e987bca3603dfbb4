//===- PipeStructure.cpp - Verifiers of stages and their bodies -----------===//
//
// The numbered constraints of PipeStructure.td. Rules that need other stages
// (who feeds whom) belong to `pipe-verify-staged`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright::pipe;

//===----------------------------------------------------------------------===//
// StageOp
//===----------------------------------------------------------------------===//

template <typename OpTy>
static OpTy onlyOne(StageOp stage) {
  auto ops = stage.getBody()->getOps<OpTy>();
  return ops.empty() ? OpTy() : *ops.begin();
}

ForwardOp StageOp::getForward() { return onlyOne<ForwardOp>(*this); }
BackwardOp StageOp::getBackward() { return onlyOne<BackwardOp>(*this); }
EvaluateOp StageOp::getEvaluate() { return onlyOne<EvaluateOp>(*this); }

LogicalResult StageOp::verifyRegions() {
  int64_t forwards = 0, backwards = 0, evaluates = 0;
  for (Operation &op : *getBody()) {
    // (C1)
    if (!isa<ForwardOp, BackwardOp, EvaluateOp>(op))
      return op.emitOpError("is not allowed in a stage, which holds only "
                            "'pipe.forward', 'pipe.backward' and "
                            "'pipe.evaluate'");
    forwards += isa<ForwardOp>(op);
    backwards += isa<BackwardOp>(op);
    evaluates += isa<EvaluateOp>(op);
  }
  // (C1)
  if (forwards != 1 || backwards > 1 || evaluates > 1)
    return emitOpError("expects one 'pipe.forward' and at most one "
                       "'pipe.backward' and 'pipe.evaluate', but got ")
           << forwards << ", " << backwards << " and " << evaluates;
  // (C2)
  if (getRank() && static_cast<int64_t>(*getRank()) < 0)
    return emitOpError("expects a rank that is not negative, but got ")
           << static_cast<int64_t>(*getRank());
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
  if (!getReturn().getStash().empty())
    return emitOpError("expects no stash, but got ")
           << getReturn().getStash().size() << " values";
  return success();
}

void EvaluateOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  nameSources(getSources(), region, setName);
}

/// Appends the types that `indices` select from `types`.
static LogicalResult select(BackwardOp op, ArrayRef<int64_t> indices,
                            TypeRange types, StringRef what,
                            SmallVectorImpl<Type> &selected) {
  for (int64_t index : indices) {
    if (index < 0 || index >= static_cast<int64_t>(types.size()))
      return op.emitOpError("names forward ")
             << what << " " << index << ", but the forward has "
             << types.size();
    selected.push_back(types[index]);
  }
  return success();
}

LogicalResult BackwardOp::verifyRegions() {
  ForwardOp forward = cast<StageOp>((*this)->getParentOp()).getForward();
  if (!forward)
    return success(); // The stage's own verifier reports this.
  ReturnOp kept = forward.getReturn();
  SmallVector<Type> inputs(forward.getBody()->getArgumentTypes());
  SmallVector<Type> outputs(kept.getValues().getTypes());
  SmallVector<Type> expected, expectedResults;
  if (failed(select(*this, getInputs(), inputs, "argument", expected)) ||
      failed(select(*this, getOutputs(), outputs, "result", expected)))
    return failure();
  llvm::append_range(expected, kept.getStash().getTypes());
  if (failed(select(*this, getGradientsOf(), outputs, "result", expected)) ||
      failed(select(*this, getInputGradients(), inputs, "argument",
                    expectedResults)))
    return failure();
  // (C1)
  if (!llvm::equal(expected, getBody()->getArgumentTypes()))
    return emitOpError("expects arguments ")
           << TypeRange(expected) << ", but got "
           << getBody()->getArgumentTypes();
  // (C2)
  if (!llvm::equal(expectedResults, getReturn().getValues().getTypes()))
    return emitOpError("expects to return ")
           << TypeRange(expectedResults) << ", but returns "
           << getReturn().getValues().getTypes();
  // (C3)
  if (!getReturn().getStash().empty())
    return emitOpError("expects no stash, but got ")
           << getReturn().getStash().size() << " values";
  return success();
}

void BackwardOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  auto stage = dyn_cast_or_null<StageOp>((*this)->getParentOp());
  ForwardOp forward = stage ? stage.getForward() : ForwardOp();
  if (!forward)
    return;
  size_t saved = getInputs().size() + getOutputs().size();
  size_t gradients = getGradientsOf().size();
  for (BlockArgument argument : region.getArguments()) {
    size_t number = argument.getArgNumber();
    if (number < getInputs().size())
      setName(argument, "in" + std::to_string(getInputs()[number]));
    else if (number < saved)
      setName(argument, "out" + std::to_string(
                                    getOutputs()[number - getInputs().size()]));
    else if (number + gradients < region.getNumArguments())
      setName(argument, "stash" + std::to_string(number - saved));
    else
      setName(argument,
              "d_out" +
                  std::to_string(getGradientsOf()[number + gradients -
                                                  region.getNumArguments()]));
  }
}
