//===- Contents.cpp - What a value of a step stands for -------------------===//
//
// The operand lists of dialects/pipe/README.md, read backwards. See Contents.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/Contents.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;
using Kind = Content::Kind;

std::string Content::describe(const Stages &stages) const {
  auto of = [&](llvm::StringRef what) {
    return (what + " of stage '@" + stages[stage].getSymName() + "'").str();
  };
  std::string batch = ", micro-batch " + std::to_string(microBatch);
  std::string number = std::to_string(index);
  switch (kind) {
  case Kind::Input:
    return "input '" + name.str() + "' for" + of("").substr(3) + batch;
  case Kind::Result:
    return of("output " + number) + batch;
  case Kind::Gradient:
    return of("gradient of output " + number) + batch;
  case Kind::Stash:
    return of("stash") + batch;
  case Kind::Handover:
    return of("handover") + batch;
  case Kind::Sum:
    return of("summed gradients");
  case Kind::WeightGradient:
    return of("gradient of weight '" + name.str() + "'");
  case Kind::NewWeight:
    return "new value of weight '" + name.str() + "'";
  case Kind::Updated:
    return of("update");
  }
  llvm_unreachable("all kinds of contents are covered");
}

static int64_t microBatchOf(TaskOp task) {
  return task.getMicroBatch().value_or(0);
}

static std::optional<Content> resultOfTask(const Stages &stages, TaskOp task,
                                           OpResult result) {
  int32_t stage = stages.numberOf(task.getStage());
  int64_t number = result.getResultNumber(), batch = microBatchOf(task);
  if (isa<StashType>(result.getType()))
    return Content{Kind::Stash, stage, 0, batch, {}};
  if (isa<HandoverType>(result.getType()))
    return Content{Kind::Handover, stage, 0, batch, {}};
  if (isa<GradientType>(result.getType()))
    return Content{Kind::Sum, stage, 0, 0, {}};
  if (isa<UpdatedType>(result.getType()))
    return Content{Kind::Updated, stage, 0, 0, {}};
  GradientBodyInterface body = stages[stage].gradientBodyOf(task.getKind());
  if (!body)
    return Content{Kind::Result, stage, number, batch, {}};
  int64_t argument = body.getInputGradients()[number];
  int64_t link = stages.linkInto(stage, argument);
  if (link < 0)
    return std::nullopt;
  const StageLink &source = stages.links()[link];
  return Content{Kind::Gradient, source.from, source.result, batch, {}};
}

std::optional<Content> pipewright::pipe::contentOf(const Stages &stages,
                                                   StepMode mode, Value value) {
  Operation *op = value.getDefiningOp();
  if (auto input = dyn_cast<InputOp>(op))
    return Content{Kind::Input, stages.numberOf(input.getStage()), 0,
                   static_cast<int64_t>(input.getMicroBatch()),
                   input.getName()};
  if (auto task = dyn_cast<TaskOp>(op))
    return resultOfTask(stages, task, cast<OpResult>(value));
  if (auto view = dyn_cast<GradientOfOp>(op))
    return Content{Kind::WeightGradient, stages.numberOf(view.getStage()), 0, 0,
                   view.getWeight()};
  if (auto add = dyn_cast<AddGradientOp>(op))
    return Content{Kind::Sum, stages.numberOf(add.getStage()), 0, 0, {}};
  if (auto view = dyn_cast<WeightOfOp>(op))
    return Content{Kind::NewWeight, 0, 0, 0, view.getWeight()};
  return std::nullopt;
}

static Content sourceContent(const Stages &stages, int32_t stage,
                             Attribute source, int64_t batch) {
  if (auto input = dyn_cast<InputAttr>(source))
    return {Kind::Input, stage, 0, batch, input.getName().getValue()};
  auto output = cast<OutputAttr>(source);
  return {Kind::Result,
          stages.numberOf(output.getStage()),
          output.getIndex(),
          batch,
          {}};
}

/// Of a backward task or one of its halves.
static std::optional<Content> operandOfBackward(const Stages &stages,
                                                TaskOp task, int64_t number) {
  int32_t stage = stages.numberOf(task.getStage());
  int64_t batch = microBatchOf(task);
  StageOp op = stages[stage];
  GradientBodyInterface body = op.gradientBodyOf(task.getKind());
  ArrayRef<int64_t> inputs = body.getInputs();
  ArrayRef<int64_t> outputs = body.getOutputs();
  ArrayRef<int64_t> gradients = body.getGradientsOf();
  if (number < static_cast<int64_t>(inputs.size()))
    return sourceContent(stages, stage,
                         op.getForward().getSources()[inputs[number]], batch);
  number -= inputs.size();
  if (number < static_cast<int64_t>(outputs.size()))
    return Content{Kind::Result, stage, outputs[number], batch, {}};
  number -= outputs.size();
  if (!body.getStashFields().empty() && number-- == 0)
    return Content{Kind::Stash, stage, 0, batch, {}};
  if (number < static_cast<int64_t>(gradients.size()))
    return Content{Kind::Gradient, stage, gradients[number], batch, {}};
  number -= gradients.size();
  if (body.takesHandover() && number == 0)
    return Content{Kind::Handover, stage, 0, batch, {}};
  return Content{Kind::Sum, stage, 0, 0, {}};
}

/// Replicas' gradients are added in the order of their stages; this addition
/// takes that of as many stages after the owner as it has predecessors. Where
/// two holders all-reduce, each takes that of the other.
static std::optional<Content> addendOf(const Stages &stages,
                                       AddGradientOp add) {
  for (const WeightCopies &copies : stages.weights()) {
    if (copies.weight.getSymName() != add.getWeight())
      continue;
    if (copies.isAllReduced() && copies.stages.size() == 2) {
      bool isOwner = stages.numberOf(add.getStage()) == copies.owner();
      return Content{Kind::WeightGradient, copies.stages[isOwner ? 1 : 0], 0, 0,
                     add.getWeight()};
    }
    size_t number = 1;
    for (auto before = add.getGradient().getDefiningOp<AddGradientOp>(); before;
         before = before.getGradient().getDefiningOp<AddGradientOp>())
      number += before.getWeight() == add.getWeight();
    if (number < copies.stages.size())
      return Content{Kind::WeightGradient, copies.stages[number], 0, 0,
                     add.getWeight()};
  }
  return std::nullopt;
}

std::optional<Content> pipewright::pipe::contentWantedBy(const Stages &stages,
                                                         StepMode mode,
                                                         OpOperand &operand) {
  Operation *op = operand.getOwner();
  int64_t number = operand.getOperandNumber();
  if (auto task = dyn_cast<TaskOp>(op)) {
    int32_t stage = stages.numberOf(task.getStage());
    if (isa<UpdatedType>(operand.get().getType()))
      return Content{Kind::Updated, stage, 0, 0, {}};
    switch (task.getKind()) {
    case TaskKind::forward:
      return sourceContent(stages, stage,
                           stages[stage].getForward().getSources()[number],
                           microBatchOf(task));
    case TaskKind::evaluate:
      return sourceContent(stages, stage,
                           stages[stage].getEvaluate().getSources()[number],
                           microBatchOf(task));
    case TaskKind::backward:
    case TaskKind::input_gradient:
    case TaskKind::weight_gradient:
      return operandOfBackward(stages, task, number);
    case TaskKind::update:
      return Content{Kind::Sum, stage, 0, 0, {}};
    default:
      return std::nullopt;
    }
  }
  if (auto view = dyn_cast<GradientOfOp>(op))
    return Content{Kind::Sum, stages.numberOf(view.getStage()), 0, 0, {}};
  if (auto add = dyn_cast<AddGradientOp>(op))
    return number == 0
               ? Content{Kind::Sum, stages.numberOf(add.getStage()), 0, 0, {}}
               : addendOf(stages, add);
  if (auto view = dyn_cast<WeightOfOp>(op))
    return Content{Kind::Updated, stages.numberOf(view.getStage()), 0, 0, {}};
  if (auto set = dyn_cast<SetWeightOp>(op)) {
    if (number == 0)
      return Content{Kind::NewWeight, 0, 0, 0, set.getWeight()};
    return Content{Kind::Sum, stages.numberOf(set.getStage()), 0, 0, {}};
  }
  return std::nullopt;
}
