//===- PipeTask.cpp - Verifiers and names of tasks ------------------------===//
//
// A task's signature follows from its stage; that is checked here, where the
// symbol can be looked up. Order and completeness belong to the verify passes.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright::pipe;

static std::string microBatchName(StringRef prefix, TaskOp task) {
  std::string name = (prefix + "_" + task.getStage()).str();
  if (task.getMicroBatch())
    name += "_" + std::to_string(*task.getMicroBatch());
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
    if (isa<StashType>(result.getType()))
      prefix = "stash";
    else if (isa<GradientType>(result.getType()))
      prefix = "gradients";
    else if (isa<UpdatedType>(result.getType()))
      prefix = "updated";
    setName(result, microBatchName(prefix, *this));
  }
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

LogicalResult TaskOp::verify() {
  // (C1)
  if ((getKind() == TaskKind::update) == getMicroBatch().has_value())
    return emitOpError("expects a micro-batch on every kind but 'update'");
  return success();
}

/// Fills the operand and result types of a forward or evaluation task.
template <typename Body>
static void forwardSignature(Body body, StringRef stage, bool withStash,
                             SmallVectorImpl<Type> &operands,
                             SmallVectorImpl<Type> &results) {
  llvm::append_range(operands, body.getBody()->getArgumentTypes());
  llvm::append_range(results, body.getReturn().getValues().getTypes());
  if (withStash && !body.getReturn().getStash().empty())
    results.push_back(StashType::get(
        body.getContext(), FlatSymbolRefAttr::get(body.getContext(), stage)));
}

LogicalResult TaskOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // (C2)
  auto stage = symbols.lookupNearestSymbolFrom<StageOp>(
      (*this)->getParentOp()->getParentOp(), getStageAttr());
  if (!stage)
    return emitOpError("names '")
           << getStage() << "', which is no stage of the module";
  SmallVector<Type> operands, results;
  auto gradient = GradientType::get(getContext(), getStageAttr());
  switch (getKind()) {
  case TaskKind::forward:
    forwardSignature(stage.getForward(), getStage(), true, operands, results);
    break;
  case TaskKind::evaluate:
    if (!stage.getEvaluate())
      return emitOpError("needs a 'pipe.evaluate' in stage '")
             << getStage() << "'";
    forwardSignature(stage.getEvaluate(), getStage(), false, operands, results);
    break;
  case TaskKind::backward: {
    BackwardOp backward = stage.getBackward();
    if (!backward)
      return emitOpError("needs a 'pipe.backward' in stage '")
             << getStage() << "'";
    SmallVector<Type> body(backward.getBody()->getArgumentTypes());
    size_t saved = backward.getInputs().size() + backward.getOutputs().size();
    operands.append(body.begin(), body.begin() + saved);
    if (!stage.getForward().getReturn().getStash().empty())
      operands.push_back(StashType::get(getContext(), getStageAttr()));
    operands.append(body.end() - backward.getGradientsOf().size(), body.end());
    llvm::append_range(results, backward.getReturn().getValues().getTypes());
    // The gradients so far are there from the second backward task on.
    if (!getOperands().empty() &&
        isa<GradientType>(getOperands().back().getType()))
      operands.push_back(gradient);
    if (getNumResults() > results.size())
      results.push_back(gradient);
    break;
  }
  case TaskKind::update:
    operands.push_back(gradient);
    results.push_back(UpdatedType::get(getContext(), getStageAttr()));
    break;
  case TaskKind::input_gradient:
  case TaskKind::weight_gradient:
  case TaskKind::recompute:
    return emitOpError("of kind '")
           << stringifyTaskKind(getKind()) << "' needs a split stage body";
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
