//===- PipeCollective.cpp - Verifiers and uses of collectives -------------===//
//
// What one member can know: its group, its root and its types. That all members
// do the same is proved by `pipe-verify-schedule`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright::pipe;

LogicalResult CollectiveOp::verify() {
  // (C1)
  ArrayRef<int64_t> over = getOver();
  bool isAscending = std::adjacent_find(over.begin(), over.end(),
                                        std::greater_equal()) == over.end();
  if (over.size() < 2 || over.front() < 0 || !isAscending)
    return emitOpError("expects at least two ranks in ascending order, but "
                       "got [")
           << over << "]";
  // (C2)
  if (auto rank = dyn_cast<RankOp>((*this)->getParentOp()))
    if (!llvm::is_contained(over, static_cast<int64_t>(rank.getRank())))
      return emitOpError("is of ranks [")
             << over << "], but stands on rank " << rank.getRank();
  // (C3)
  if ((getKind() == CollectiveKind::broadcast) != getRoot().has_value())
    return emitOpError("expects a root on kind 'broadcast' and no other");
  if (getRoot() && !llvm::is_contained(over, static_cast<int64_t>(*getRoot())))
    return emitOpError("expects one of ranks [")
           << over << "] as its root, but got " << *getRoot();
  // (C4)
  Type gradient = GradientType::get(getContext(), getStageAttr());
  Type updated = UpdatedType::get(getContext(), getStageAttr());
  Type result = isOfGradients() ? gradient : updated;
  if (getResult().getType() != result)
    return emitOpError("expects to return ")
           << result << ", but returns " << getResult().getType();
  Type value = getValue().getType();
  if (value != gradient && (isOfGradients() || value != updated))
    return emitOpError("expects the state of its stage, ")
           << result << ", but got " << value;
  return success();
}

LogicalResult WaitCollectiveOp::verify() {
  // (C1)
  if (!getValue().getDefiningOp<CollectiveOp>())
    return emitOpError("expects the result of a 'pipe.collective'");
  return success();
}

void CollectiveOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(),
          ((isOfGradients() ? "gradients_" : "updated_") + getStage()).str());
}

//===----------------------------------------------------------------------===//
// StepOpInterface
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr CollectiveOp::getStageName() { return getStageAttr(); }
StreamAttr CollectiveOp::getWorkStream() {
  return StreamAttr::collective(getContext());
}
bool CollectiveOp::isAsynchronous() { return true; }
std::optional<uint64_t> CollectiveOp::getRecordedEvent() { return getEvent(); }

/// `all_reduce of '@wte' in stage '@s0' (event 9)`
std::string CollectiveOp::getLabel(const StepContext &) {
  std::string text = stringifyCollectiveKind(getKind()).str();
  if (getWeight())
    text += " of '@" + getWeight()->str() + "'";
  text += " in stage '@" + getStage().str() + "'";
  if (getEvent())
    text += " (event " + std::to_string(*getEvent()) + ")";
  return text;
}

ResultBytes CollectiveOp::getResultBytes(OpResult) { return {}; }

ByteUses CollectiveOp::getByteUses() {
  return {{isOfGradients() ? ByteUse::What::Gradient : ByteUse::What::Weight,
           /*writes=*/true, Value(), getWeightAttr()}};
}

std::optional<Content> CollectiveOp::getContent(OpResult, const StepContext &) {
  return Content{isOfGradients() ? Content::Kind::Sum : Content::Kind::Updated,
                 getStageAttr(),
                 0,
                 0,
                 {}};
}

std::optional<Content> CollectiveOp::getWantedContent(OpOperand &operand,
                                                      const StepContext &) {
  bool isSum = isa<GradientType>(operand.get().getType());
  return Content{isSum ? Content::Kind::Sum : Content::Kind::Updated,
                 getStageAttr(),
                 0,
                 0,
                 {}};
}

std::string WaitCollectiveOp::getLabel(const StepContext &) {
  return "wait for a collective";
}
ResultBytes WaitCollectiveOp::getResultBytes(OpResult) { return {}; }
