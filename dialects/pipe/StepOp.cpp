//===- StepOp.cpp - What ops of a step say about themselves ---------------===//
//
// How contents and tasks are named. Each op says the rest beside its verifier.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"

using namespace mlir;
using namespace pipewright::pipe;

std::string Content::describe() const {
  auto of = [&](const std::string &what) {
    return what + " of stage '@" + stage.getValue().str() + "'";
  };
  std::string batch = ", micro-batch " + std::to_string(microBatch);
  std::string number = std::to_string(index);
  std::string reader = index == static_cast<int64_t>(TaskKind::weight_gradient)
                           ? " for weight gradients"
                           : "";
  switch (kind) {
  case Kind::Input:
    return "input '" + name.str() + "' for" + of("").substr(3) + batch;
  case Kind::Result:
    return of("output " + number) + batch;
  case Kind::Gradient:
    return of("gradient of output " + number) + batch;
  case Kind::Stash:
    return of("stash" + reader) + batch;
  case Kind::Recomputed:
    return of("recomputed values" + reader) + batch;
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

Content pipewright::pipe::stashContent(Type range, int64_t microBatch) {
  if (auto stash = dyn_cast<StashType>(range))
    return {Content::Kind::Stash,
            stash.getStage(),
            static_cast<int64_t>(stash.getReader()),
            microBatch,
            {}};
  auto handover = cast<HandoverType>(range);
  if (handover.getGiver() == TaskKind::recompute)
    return {Content::Kind::Recomputed,
            handover.getStage(),
            static_cast<int64_t>(handover.getReader()),
            microBatch,
            {}};
  return {Content::Kind::Handover, handover.getStage(), 0, microBatch, {}};
}

StringRef pipewright::pipe::letterOf(TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
    return "F";
  case TaskKind::backward:
    return "B";
  case TaskKind::input_gradient:
    return "I";
  case TaskKind::weight_gradient:
    return "W";
  case TaskKind::recompute:
    return "R";
  case TaskKind::update:
    return "U";
  case TaskKind::evaluate:
    return "E";
  }
  llvm_unreachable("all kinds of tasks are covered");
}

LogicalResult pipewright::pipe::verifyStepOps(Block &block) {
  for (Operation &op : block)
    // (C1)
    if (!isa<StepOpInterface>(op))
      return op.emitOpError("has no place in a step or a rank's program");
  return success();
}
