//===- PipeResume.cpp - Tasks that are run in parts -----------------------===//
//
// What a part can know by itself. That it adds to no bucket whose collective
// has begun before it is proved by `pipe-verify-schedule`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"

using namespace mlir;
using namespace pipewright::pipe;

/// What made gradients: a task or a part of one, over collectives.
static Operation *partBehind(Value gradients) {
  Operation *made = gradients.getDefiningOp();
  while (auto together = dyn_cast_or_null<CollectiveOp>(made))
    made = together.getValue().getDefiningOp();
  return made;
}

TaskOp ResumeOp::getTask() {
  Operation *made = partBehind(getGradients());
  while (auto before = dyn_cast_or_null<ResumeOp>(made))
    made = partBehind(before.getGradients());
  return dyn_cast_or_null<TaskOp>(made);
}

Operation *TaskOp::getLastPart() {
  Operation *last = *this;
  for (Operation *next = last->getNextNode(); getParts() && next;
       next = next->getNextNode())
    if (auto resume = dyn_cast<ResumeOp>(next);
        resume && resume.getTask() == *this)
      last = next;
  return last;
}

LogicalResult ResumeOp::verify() {
  // (C1)
  if (!isa<RankOp>((*this)->getParentOp()))
    return emitOpError("expects to stand in a rank's program");
  Operation *before = partBehind(getGradients());
  auto task = dyn_cast_or_null<TaskOp>(before);
  auto resume = dyn_cast_or_null<ResumeOp>(before);
  const uint64_t number = resume ? resume.getPart() + 1 : 1;
  TaskOp whole = getTask();
  if ((!task && !resume) || !whole || getPart() != number ||
      getPart() >= whole.getParts().value_or(1))
    return emitOpError("expects the gradients of the part before part ")
           << getPart() << " of a task that has so many";
  // What runs elsewhere may use no bytes of the task meanwhile, but those of
  // buckets that are whole.
  Operation *between = (*this)->getPrevNode();
  while (between && between != before &&
         isa<CollectiveOp, RecordEventOp, WaitEventOp>(between))
    between = between->getPrevNode();
  if (between != before) {
    InFlightDiagnostic diagnostic =
        emitOpError("expects only collectives between itself and the part "
                    "before it");
    if (between)
      diagnostic.attachNote(between->getLoc()) << "but here is another op";
    return diagnostic;
  }
  // (C2)
  if (cast<GradientType>(getGradients().getType()).getStage() != getStageAttr())
    return emitOpError("expects gradients of its stage, but takes ")
           << getGradients().getType();
  return success();
}

void ResumeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ("gradients_" + getStage()).str());
}

//===----------------------------------------------------------------------===//
// StepOpInterface
//===----------------------------------------------------------------------===//

std::string ResumeOp::getLabel(const StepContext &context) {
  TaskOp task = getTask();
  return "part " + std::to_string(getPart()) + " of " +
         (task ? task.getLabel(context) : std::string("a task"));
}
ResultBytes ResumeOp::getResultBytes(OpResult) { return {}; }
ByteUses ResumeOp::getByteUses() {
  return {{ByteUse::Kind::Body, /*writes=*/true}};
}
std::optional<Content> ResumeOp::getContent(OpResult, const StepContext &) {
  return Content{Content::Kind::Sum, getStageAttr(), 0, 0, {}};
}
std::optional<Content> ResumeOp::getWantedContent(OpOperand &,
                                                  const StepContext &) {
  return Content{Content::Kind::Sum, getStageAttr(), 0, 0, {}};
}
