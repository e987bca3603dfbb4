//===- PipeStream.cpp - Spelling and verifiers of streams -----------------===//
//
// A stream reads as what it is for: `compute`, `send to 1`, `receive from 0`,
// `collective`, `to_host`.
// That events order all accesses to shared bytes is proved by
// `pipe-verify-streams`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright::pipe;

/// The word between a link's direction and its other end.
static StringRef wordBefore(StreamKind kind) {
  return kind == StreamKind::send ? "to" : "from";
}

std::string StreamAttr::describe() const {
  std::string text = stringifyStreamKind(getKind()).str();
  if (isOfLink())
    text += (" " + wordBefore(getKind()) + " " + Twine(getPeer())).str();
  return text;
}

LogicalResult StreamAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StreamKind kind, int64_t peer) {
  bool isOfLink = kind == StreamKind::send || kind == StreamKind::receive;
  if (isOfLink != (peer != -1) || peer < -1)
    return emitError() << "expects a rank at the other end of a link, and none "
                          "(-1) for other streams, but got "
                       << stringifyStreamKind(kind) << " and " << peer;
  return success();
}

ParseResult pipewright::pipe::parseStream(AsmParser &parser,
                                          StreamAttr &stream) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<StreamKind> kind = symbolizeStreamKind(word);
  if (!kind)
    return parser.emitError(loc)
           << "expects a stream, 'compute', 'collective', 'to_host', "
              "'from_host', 'send to RANK' or 'receive from RANK', but got '"
           << word << "'";
  int64_t peer = -1;
  bool isOfLink = *kind == StreamKind::send || *kind == StreamKind::receive;
  if (isOfLink &&
      (parser.parseKeyword(wordBefore(*kind)) || parser.parseInteger(peer)))
    return failure();
  stream = StreamAttr::getChecked([&] { return parser.emitError(loc); },
                                  parser.getContext(), *kind, peer);
  return success(stream != nullptr);
}

void pipewright::pipe::printStream(AsmPrinter &printer, Operation *,
                                   StreamAttr stream) {
  printer << stream.describe();
}

Attribute StreamAttr::parse(AsmParser &parser, Type) {
  StreamAttr stream;
  if (parser.parseLess() || parseStream(parser, stream) ||
      parser.parseGreater())
    return {};
  return stream;
}

void StreamAttr::print(AsmPrinter &printer) const {
  printer << "<" << describe() << ">";
}

template <typename OpTy>
static LogicalResult verifyStream(OpTy op) {
  // (C1)
  auto rank = static_cast<int64_t>(cast<RankOp>(op->getParentOp()).getRank());
  if (op.getStream().getPeer() == rank)
    return op.emitOpError("expects a link to another rank, but got its own, ")
           << rank;
  return success();
}

//===----------------------------------------------------------------------===//
// StepOpInterface
//===----------------------------------------------------------------------===//

StreamAttr RecordEventOp::getWorkStream() { return getStream(); }
std::optional<uint64_t> RecordEventOp::getRecordedEvent() { return getEvent(); }
std::string RecordEventOp::getLabel(const StepContext &) {
  return "record of event " + std::to_string(getEvent());
}
ResultBytes RecordEventOp::getResultBytes(OpResult) { return {}; }

StreamAttr WaitEventOp::getWorkStream() { return getStream(); }
std::optional<uint64_t> WaitEventOp::getRecordedEvent() { return std::nullopt; }
std::string WaitEventOp::getLabel(const StepContext &) {
  return "wait for event " + std::to_string(getEvent());
}
ResultBytes WaitEventOp::getResultBytes(OpResult) { return {}; }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult RecordEventOp::verify() { return verifyStream(*this); }
LogicalResult WaitEventOp::verify() { return verifyStream(*this); }
