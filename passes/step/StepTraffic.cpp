//===- StepTraffic.cpp - What the ranks of a step send --------------------===//
//
// See StepTraffic.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/StepTraffic.h"

#include "passes/step/RunningStatistics.h"
#include "runtime/calls/CollectiveParts.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;
using runtime::Traffic;

/// The bytes that a collective works on; 0 where they have no place.
static int64_t bytesOf(ArenaOp arena, CollectiveOp op, int64_t replicas) {
  const std::optional<BufferAttr> range = op.getRange(arena);
  return range ? range->getBytes() / (op.isOfPart() ? replicas : 1) : 0;
}

namespace {

/// What the members of a group do together.
struct Exchange {
  runtime::CollectiveKind kind;
  int64_t members, bytes, width;
  int64_t root = 0;

  Traffic sentBy(int64_t member) const;
};

} // namespace

Traffic Exchange::sentBy(int64_t member) const {
  return runtime::sentBy(kind, runtime::evenBounds(bytes / width, members),
                         root, member, width);
}

/// Of a rank in all replicas.
static Traffic sentBy(ArenaOp arena, CollectiveOp op, int64_t replicas) {
  const int64_t width = op.getRounded() ? 2 : 4;
  Exchange exchange{op.getKind(), op.countMembers(),
                    bytesOf(arena, op, replicas), width,
                    static_cast<int64_t>(op.getRoot().value_or(0))};
  ArrayRef<int64_t> ranks = op.getOver().getRanks();
  auto numberOf = [&](int64_t rank) {
    return llvm::find(ranks, rank) - ranks.begin();
  };
  const bool isOfReplicas = op.getOver().isOfReplicas();
  if (op.getRoot() && !isOfReplicas)
    exchange.root = numberOf(exchange.root);
  Traffic sent;
  for (int64_t replica = 0; replica < replicas; ++replica)
    sent += exchange.sentBy(isOfReplicas ? replica : numberOf(arena.getRank()));
  return sent;
}

/// Statistics are summed as one range.
static Traffic sentBy(MergeStatisticsOp op, int64_t replicas) {
  auto module = op->getParentOfType<ModuleOp>();
  Exchange exchange{runtime::CollectiveKind::AllReduce, replicas, 0, 4};
  auto stage = module.lookupSymbol<StageOp>(op.getStageAttr().getAttr());
  for (auto [weight, decay] : decaysOf(stage))
    exchange.bytes +=
        byteSize(module.lookupSymbol<nn::WeightOp>(weight).getTensorType());
  Traffic sent;
  for (int64_t replica = 0; replica < replicas; ++replica)
    sent += exchange.sentBy(replica);
  return sent;
}

static Traffic sentBy(ArenaOp arena, RankOp program) {
  const int64_t replicas =
      programOf(program->getParentOfType<ModuleOp>()).replicas;
  Traffic sent;
  for (Operation &op : *program.getBody())
    if (auto post = dyn_cast<PostSendOp>(op))
      sent += {replicas, replicas * byteSize(cast<RankedTensorType>(
                                        post.getValue().getType()))};
    else if (auto together = dyn_cast<CollectiveOp>(op))
      sent += sentBy(arena, together, replicas);
    else if (auto merge = dyn_cast<MergeStatisticsOp>(op))
      sent += sentBy(merge, replicas);
  return sent;
}

Traffic pipewright::pipe::trafficOf(ModuleOp allocated) {
  Traffic sent;
  for (auto program : allocated.getOps<RankOp>())
    for (auto arena : allocated.getOps<ArenaOp>())
      if (program.getMode() == StepMode::train &&
          program.getRank() == arena.getRank())
        sent += sentBy(arena, program);
  return sent;
}
