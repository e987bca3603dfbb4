//===- PipeTransfer.cpp - Verifiers and names of transfers ----------------===//
//
// What one op can know: its peer, its post and its bytes. Pairing across ranks
// belongs to `pipe-verify-schedule`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright::pipe;

template <typename OpTy>
static LogicalResult verifyPeer(OpTy op) {
  // (C1)
  if (cast<RankOp>(op->getParentOp()).getRank() == op.getPeer())
    return op.emitOpError("expects another rank as peer, but got its own, ")
           << op.getPeer();
  return success();
}

LogicalResult PostSendOp::verify() { return verifyPeer(*this); }
LogicalResult PostReceiveOp::verify() { return verifyPeer(*this); }

template <typename PostOp, typename WaitOp>
static LogicalResult verifyWait(WaitOp op, StringRef post) {
  // (C1)
  auto posted = op.getPending().template getDefiningOp<PostOp>();
  if (!posted)
    return op.emitOpError("expects the result of a '") << post << "'";
  if (posted.getPeer() != op.getPeer())
    return op.emitOpError("expects the peer of its post, ")
           << posted.getPeer() << ", but got " << op.getPeer();
  return success();
}

LogicalResult WaitSendOp::verify() {
  return verifyWait<PostSendOp>(*this, "pipe.post_send");
}
LogicalResult WaitReceiveOp::verify() {
  return verifyWait<PostReceiveOp>(*this, "pipe.post_receive");
}

void PostSendOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "sending");
}
void PostReceiveOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "receiving");
}
void WaitReceiveOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "received");
}

//===----------------------------------------------------------------------===//
// StepOpInterface
//===----------------------------------------------------------------------===//

LogicalResult RankOp::verifyRegions() { return verifyStepOps(*getBody()); }

/// ` (event 3)`
static std::string inBrackets(std::optional<uint64_t> event) {
  return event ? " (event " + std::to_string(*event) + ")" : std::string();
}

StreamAttr PostSendOp::getWorkStream() {
  return StreamAttr::sendTo(getContext(), getPeer());
}
std::string PostSendOp::getLabel(const StepContext &) {
  return "send to rank " + std::to_string(getPeer()) + inBrackets(getEvent());
}
/// What is being sent stays in use.
ResultBytes PostSendOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::OfOperand};
}
ByteUses PostSendOp::getByteUses() { return {ByteUse::read(getValue())}; }

StreamAttr PostReceiveOp::getWorkStream() {
  return StreamAttr::receiveFrom(getContext(), getPeer());
}
std::string PostReceiveOp::getLabel(const StepContext &) {
  return "receive from rank " + std::to_string(getPeer()) +
         inBrackets(getEvent());
}
ResultBytes PostReceiveOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::Own};
}
ByteUses PostReceiveOp::getByteUses() { return {ByteUse::write(getResult())}; }

std::string WaitSendOp::getLabel(const StepContext &) {
  return "wait for the send to rank " + std::to_string(getPeer());
}
ResultBytes WaitSendOp::getResultBytes(OpResult) { return {}; }

std::string WaitReceiveOp::getLabel(const StepContext &) {
  return "wait for the receive from rank " + std::to_string(getPeer());
}
ResultBytes WaitReceiveOp::getResultBytes(OpResult) {
  return {ResultBytes::Kind::OfOperand};
}
