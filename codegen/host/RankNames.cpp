//===- RankNames.cpp - What a rank's values are called --------------------===//
//
// See RankNames.h.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/RankNames.h"

#include "codegen/host/Identifiers.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace pipewright::codegen {

/// `stash`, or `weight_stash` where weight gradients read it.
static std::string nameOfRange(const pipe::Content &content, StringRef name) {
  const bool isForWeights =
      content.index == static_cast<int64_t>(pipe::TaskKind::weight_gradient);
  return ((isForWeights ? "weight_" : "") + name).str();
}

/// What is behind a value gives it its name.
static std::string nameOf(const ProgramLayout &layout,
                          const pipe::Content &content) {
  using Kind = pipe::Content::Kind;
  const StageLayout *stage =
      content.stage ? layout.findStage(content.stage.getValue()) : nullptr;
  switch (content.kind) {
  case Kind::Input:
  case Kind::NewWeight:
    return makeIdentifier(content.name);
  case Kind::WeightGradient:
    return "d_" + makeIdentifier(content.name);
  case Kind::Result:
    return layout.nameOfOutput(*stage, content.index);
  case Kind::Gradient:
    return "d_" + layout.nameOfOutput(*stage, content.index);
  case Kind::Stash:
    return nameOfRange(content, "stash") + std::to_string(stage->number);
  case Kind::Recomputed:
    return nameOfRange(content, "recomputed") + std::to_string(stage->number);
  case Kind::Handover:
    return "handover" + std::to_string(stage->number);
  case Kind::Sum:
    // What a collective needs to make it.
    return "scratch";
  case Kind::Updated:
    return "buffer";
  }
  llvm_unreachable("all kinds of contents are covered");
}

std::string nameOfResult(const ProgramLayout &layout, OpResult value) {
  auto op = cast<pipe::StepOpInterface>(value.getOwner());
  if (std::optional<pipe::Content> content = op.getContent(value, layout))
    return nameOf(layout, *content);
  if (!isa<pipe::PendingType>(value.getType()))
    return "gradient";
  // Named by what the received value is used for.
  for (Operation *wait : value.getUsers())
    for (OpOperand &use : wait->getUses())
      if (std::optional<pipe::Content> wanted =
              cast<pipe::StepOpInterface>(use.getOwner())
                  .getWantedContent(use, layout))
        return nameOf(layout, *wanted);
  return "received";
}

Tokens textWhenOver(pipe::CollectiveOp op, const Local &range) {
  const runtime::CollectiveFacts &facts = op.getKindAttr().getFacts();
  if (facts.replicates && (facts.reduces || !facts.rooted))
    return {range, " is whole"};
  if (!facts.rooted)
    return {"a part of ", range, " is whole"};
  std::string root = (op.getOver().isOfReplicas() ? "replica " : "rank ") +
                     std::to_string(*op.getRoot()) + "'s";
  if (facts.replicates)
    return {range, " is " + root};
  return {root + " ", range, " is whole"};
}

} // namespace pipewright::codegen
