//===- PipeHost.cpp - Verifiers and names of copies to the host -----------===//
//
// What one op can know: its types, and what it copies back. That a program
// waits for each copy belongs to `pipe-verify-schedule`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright::pipe;

Content MoveOp::contentOf() {
  return stashContent(StashType::get(getContext(), getStageAttr()),
                      static_cast<int64_t>(getMicroBatch()));
}

WaitMoveOp MoveOp::getWait() {
  WaitMoveOp first;
  for (Operation *user : getResult().getUsers())
    if (auto wait = dyn_cast<WaitMoveOp>(user);
        wait && (!first || wait->isBeforeInBlock(first)))
      first = wait;
  return first;
}

MoveOp WaitMoveOp::getMove() { return getValue().getDefiningOp<MoveOp>(); }

LogicalResult MoveOp::verify() {
  // (C1)
  auto isBytes = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 1 &&
           tensor.getElementType().isInteger(8);
  };
  Type own = StashType::get(getContext(), getStageAttr());
  Type from = getValue().getType(), to = getResult().getType();
  if (!(from == own && isBytes(to)) && !(isBytes(from) && to == own))
    return emitOpError("expects to make bytes of a stash of stage '@")
           << getStage() << "', or a stash of bytes, but makes " << to << " of "
           << from;
  if (isToHost())
    return success();
  // (C2)
  auto before = getValue().getDefiningOp<MoveOp>();
  if (!before || before.getStageAttr() != getStageAttr() ||
      before.getMicroBatch() != getMicroBatch())
    return emitOpError("expects bytes that a 'pipe.move' in stage '@")
           << getStage() << "' of micro-batch " << getMicroBatch()
           << " has brought to the host";
  return success();
}

LogicalResult WaitMoveOp::verify() {
  // (C1)
  if (MoveOp move = getMove(); !move || move.getStageAttr() != getStageAttr())
    return emitOpError("expects what a 'pipe.move' in stage '@")
           << getStage() << "' makes";
  return success();
}

void MoveOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ((isToHost() ? "kept_" : "back_") + getStage() + "_" +
                        Twine(getMicroBatch()))
                           .str());
}

//===----------------------------------------------------------------------===//
// StepOpInterface
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr MoveOp::getStageName() { return getStageAttr(); }
StreamAttr MoveOp::getWorkStream() {
  return isToHost() ? StreamAttr::toHost(getContext())
                    : StreamAttr::fromHost(getContext());
}
bool MoveOp::isAsynchronous() { return true; }
std::optional<uint64_t> MoveOp::getRecordedEvent() { return getEvent(); }
std::string MoveOp::getLabel(const StepContext &) {
  return std::string("copy ") + (isToHost() ? "to" : "from") + " the host of " +
         contentOf().describe();
}
ResultBytes MoveOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::Own};
}
ByteUses MoveOp::getByteUses() {
  return {ByteUse::read(getValue()), ByteUse::write(getResult())};
}
std::optional<Content> MoveOp::getContent(OpResult, const StepContext &) {
  return contentOf();
}
std::optional<Content> MoveOp::getWantedContent(OpOperand &,
                                                const StepContext &) {
  return contentOf();
}

FlatSymbolRefAttr WaitMoveOp::getStageName() { return getStageAttr(); }
StreamAttr WaitMoveOp::getWorkStream() {
  return StreamAttr::compute(getContext());
}
bool WaitMoveOp::isAsynchronous() { return false; }
std::optional<uint64_t> WaitMoveOp::getRecordedEvent() { return std::nullopt; }
std::string WaitMoveOp::getLabel(const StepContext &context) {
  return "wait for the " + getMove().getLabel(context);
}
ResultBytes WaitMoveOp::getResultBytes(OpResult) { return {}; }
ByteUses WaitMoveOp::getByteUses() { return {}; }
std::optional<Content> WaitMoveOp::getContent(OpResult, const StepContext &) {
  return std::nullopt;
}
std::optional<Content> WaitMoveOp::getWantedContent(OpOperand &,
                                                    const StepContext &) {
  return std::nullopt;
}
