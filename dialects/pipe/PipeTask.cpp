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
    if (isa<StashType>(result.getType()))
      prefix = "stash";
    else if (isa<HandoverType>(result.getType()))
      prefix = "handover";
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

/// Fills the operand and result types of a task of a backward or of one of its
/// halves.
static void gradientSignature(TaskOp task, GradientBodyInterface body,
                              SmallVectorImpl<Type> &operands,
                              SmallVectorImpl<Type> &results) {
  MLIRContext *context = task.getContext();
  FlatSymbolRefAttr stage = task.getStageAttr();
  Block &block = body->getRegion(0).front();
  SmallVector<Type> arguments(block.getArgumentTypes());
  size_t saved = body.getInputs().size() + body.getOutputs().size();
  size_t fields = body.getStashFields().size();
  operands.append(arguments.begin(), arguments.begin() + saved);
  if (fields > 0)
    operands.push_back(StashType::get(context, stage));
  auto gradients = arguments.begin() + saved + fields;
  operands.append(gradients, gradients + body.getGradientsOf().size());
  if (body.takesHandover())
    operands.push_back(HandoverType::get(context, stage));

  auto end = cast<ReturnOp>(block.getTerminator());
  llvm::append_range(results, end.getValues().getTypes());
  if (!end.getStash().empty())
    results.push_back(HandoverType::get(context, stage));
  if (isa<InputGradientOp>(body))
    return;
  // The gradients so far are there from the second task of the stage on; an
  // update clears them.
  auto sum = GradientType::get(context, stage);
  if (!task.getOperands().empty()) {
    Type last = task.getOperands().back().getType();
    if (isa<GradientType>(last))
      operands.push_back(sum);
    else if (isa<UpdatedType>(last))
      operands.push_back(UpdatedType::get(context, stage));
  }
  if (task.getNumResults() > results.size())
    results.push_back(sum);
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
    forwardSignature(stage.getForward(), getStage(), true, operands, results);
    break;
  case TaskKind::evaluate:
    if (!stage.getEvaluate())
      return emitOpError("needs a 'pipe.evaluate' in stage '")
             << getStage() << "'";
    forwardSignature(stage.getEvaluate(), getStage(), false, operands, results);
    break;
  case TaskKind::backward:
  case TaskKind::input_gradient:
  case TaskKind::weight_gradient: {
    GradientBodyInterface body = stage.gradientBodyOf(getKind());
    if (!body)
      return emitOpError("needs a 'pipe.")
             << stringifyTaskKind(getKind()) << "' in stage '" << getStage()
             << "'";
    gradientSignature(*this, body, operands, results);
    break;
  }
  case TaskKind::update:
    operands.push_back(GradientType::get(getContext(), getStageAttr()));
    results.push_back(UpdatedType::get(getContext(), getStageAttr()));
    break;
  case TaskKind::recompute:
    return emitOpError("of kind 'recompute' is not supported: a backward that "
                       "keeps too little recomputes inside itself (see "
                       "pipe-rematerialize)");
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
