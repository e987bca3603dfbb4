//===- RankBuffers.cpp - The buffers that a rank's list names -------------===//
//
// See RankBuffers.h.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/RankBuffers.h"

#include "codegen/host/RankNames.h"

using namespace mlir;

namespace pipewright::codegen {

/// Only tensors, stashes and handovers have bytes of their own in a rank's
/// list.
bool hasBytes(Value value) {
  return isa<RankedTensorType, pipe::StashType, pipe::HandoverType,
             pipe::PendingType>(value.getType());
}

Local RankBuffers::declare(StringRef base, pipe::BufferAttr planned) {
  auto key =
      std::make_tuple(base.str(), planned.getOffset(), planned.getBytes());
  Local &buffer = declared[key];
  if (!buffer)
    buffer = writer.buffer((base + "_" + Twine(counts[base]++)).str(),
                           planned.getOffset(), planned.getBytes(), base);
  return buffer;
}

LogicalResult RankBuffers::nameBuffers(pipe::StepOpInterface op) {
  ArrayAttr planned = op.getPlannedBuffers();
  if (!planned)
    return success();
  if (planned.size() < op->getNumResults() &&
      llvm::any_of(op->getResults().drop_front(planned.size()), hasBytes))
    return op->emitOpError()
           << "expects a buffer for each of its " << op->getNumResults()
           << " results, but got " << planned.size();
  for (auto [result, attribute] : llvm::zip(op->getResults(), planned)) {
    auto buffer = cast<pipe::BufferAttr>(attribute);
    if (!hasBytes(result) && !isa<pipe::CollectiveOp>(*op))
      continue;
    const bool isOnHost =
        isa<pipe::MoveOp>(*op) &&
        op.getWorkStream().getKind() == pipe::StreamKind::to_host;
    if (buffer.getSpace() !=
        (isOnHost ? pipe::BufferSpace::host : pipe::BufferSpace::arena))
      return op->emitOpError() << "expects buffers in the "
                               << (isOnHost ? "host's memory" : "arena")
                               << ", but got " << buffer;
    buffers[result] = declare(
        (isOnHost ? "host_" : "") + nameOfResult(layout, result), buffer);
  }
  return success();
}

Local RankBuffers::of(Operation *user, Value value) {
  if (Local known = buffers.lookup(value))
    return known;
  if (auto wait = value.getDefiningOp<pipe::WaitReceiveOp>())
    return of(user, wait.getPending());
  if (auto hold = value.getDefiningOp<pipe::HoldOp>())
    return of(user, hold.getValue());
  user->emitOpError() << "expects a planned buffer for its operand " << value;
  return {};
}

Local RankBuffers::placed(Operation *op, FlatSymbolRefAttr stage,
                          FlatSymbolRefAttr weight, bool gradient) {
  pipe::PlaceOp place = placeOf(stage, weight);
  if (!place || (gradient && !place.getGradient())) {
    op->emitOpError() << "expects a place for "
                      << (gradient ? "the gradient of " : "") << "weight @"
                      << weight.getValue() << " in stage @" << stage.getValue();
    return {};
  }
  std::string name = makeIdentifier(weight.getValue());
  return gradient ? declare("d_" + name, *place.getGradient())
                  : declare(name, place.getBuffer());
}

pipe::PlaceOp RankBuffers::placeOf(FlatSymbolRefAttr stage,
                                   FlatSymbolRefAttr weight) const {
  const StageLayout *layoutOfStage = layout.findStage(stage.getValue());
  return layoutOfStage ? layoutOfStage->places.lookup(weight.getAttr())
                       : pipe::PlaceOp();
}

Local RankBuffers::roundedCopy(pipe::PlaceOp place) {
  return declare(makeIdentifier(place.getWeight()) + "_bf16",
                 *place.getRounded());
}

Local RankBuffers::weightsAt(const StageLayout &stage, pipe::BufferAttr place) {
  pipe::OptimizerOp optimizer = stage.optimizer;
  const bool isOld = optimizer.getVersions() && optimizer.getNewest() != place;
  const bool isRounded = optimizer.getOtherRanges() && optimizer.getRounded();
  const char *what = isOld ? "old" : isRounded ? "rounded" : "weights";
  return declare(what + std::to_string(stage.number), place);
}

/// What all members of a group have in common: a weight, its copy in bf16, or
/// its gradient; or all that a stage's optimizer updates.
Local RankBuffers::rangeOf(pipe::CollectiveOp op) {
  bool isOfGradients = op.isOfGradients();
  const StageLayout *stage = layout.findStage(op.getStage());
  if (op.getWeight() && !op.getRounded() && !op.isOfPart())
    return placed(op, op.getStageAttr(), op.getWeightAttr(), isOfGradients);
  std::optional<pipe::BufferAttr> range;
  if (stage)
    range = op.getRange(layout.ranks[stage->rank].arena);
  if (!range) {
    op.emitOpError("is about what its stage has no place for");
    return {};
  }
  if (op.isOfPart())
    return partOf((isOfGradients     ? "part"
                   : op.getRounded() ? "ownRounded"
                                     : "own") +
                      std::to_string(stage->number),
                  *range);
  if (op.getWeight())
    return roundedCopy(placeOf(op.getStageAttr(), op.getWeightAttr()));
  const char *what = isOfGradients     ? "gradients"
                     : op.getRounded() ? "rounded"
                                       : "weights";
  return declare(what + std::to_string(stage->number), *range);
}

/// All gradients of the op's stage, this replica's part of them, and where that
/// is kept.
std::optional<RankBuffers::KeptGradients>
RankBuffers::keptGradients(pipe::KeepGradientsOp op) {
  const StageLayout *stage = layout.findStage(op.getStage());
  if (!stage || !stage->optimizer ||
      !pipe::OptimizerOp(stage->optimizer).getKept()) {
    op.emitOpError("has no place for what it keeps");
    return std::nullopt;
  }
  pipe::OptimizerOp optimizer = stage->optimizer;
  pipe::BufferAttr all = optimizer.getGradients();
  std::string number = std::to_string(stage->number);
  KeptGradients gradients{declare("gradients" + number, all), {}};
  for (const auto &bucket : optimizer.bucketsOfWeights())
    gradients.parts.push_back(
        {partOf("part" + number, optimizer.partOf(all, bucket)),
         declare("kept" + number,
                 optimizer.partOf(*optimizer.getKept(), bucket))});
  return gradients;
}

std::vector<RankBuffers::FoldedSums>
RankBuffers::foldedSums(pipe::FoldGradientsOp op) {
  const StageLayout *stage = layout.findStage(op.getStage());
  if (!stage) {
    op.emitOpError("is of a stage that the module does not have");
    return {};
  }
  auto sums = op.getSums(layout.ranks[stage->rank].arena);
  if (failed(sums))
    return {};
  const std::string number = std::to_string(stage->number);
  std::vector<FoldedSums> all;
  for (const pipe::FoldGradientsOp::Sums &each : *sums) {
    FoldedSums &folded = all.emplace_back();
    folded.gradients = declare("gradients" + number, each.gradients);
    for (int64_t level = 0; level < op.countLevels(); ++level)
      folded.aside.push_back(declare(
          "aside" + number + "_" + std::to_string(level), each.level(level)));
  }
  if (all.empty())
    op.emitOpError("is of a stage without gradients");
  return all;
}

Local RankBuffers::partOf(const std::string &name, pipe::BufferAttr range) {
  Local &part = parts[{name, range.getOffset()}];
  if (!part)
    part = writer.shard(name, range.getOffset(), range.getBytes());
  return part;
}

std::optional<std::vector<RankBuffers::LoadedPart>>
RankBuffers::loadedParts(pipe::LoadWeightsOp op) {
  const StageLayout *stage = layout.findStage(op.getStage());
  pipe::OptimizerOp optimizer = stage ? stage->optimizer : pipe::OptimizerOp();
  const auto gathers = op.getGathers();
  if (optimizer && optimizer.getSplit())
    return std::vector<LoadedPart>();
  const bool hasHome = llvm::all_of(gathers, [&](pipe::CollectiveOp gather) {
    return optimizer && (gather.getRounded() ? optimizer.getRounded() &&
                                                   optimizer.getRoundedHome()
                                             : optimizer.getHome().has_value());
  });
  if (gathers.empty() || !hasHome) {
    op.emitOpError("has no home of what it loads");
    return std::nullopt;
  }
  std::string number = std::to_string(stage->number);
  std::vector<LoadedPart> parts;
  for (pipe::CollectiveOp gather : gathers) {
    auto part = [&](pipe::BufferAttr range) {
      return optimizer.partOf(range, gather.getBucket());
    };
    const pipe::BufferAttr range = *gather.getFlatRange(optimizer);
    if (!gather.getRounded())
      parts.push_back({declare("home" + number, part(*optimizer.getHome())),
                       partOf("own" + number, part(range))});
    else
      parts.push_back(
          {declare("roundedHome" + number, part(*optimizer.getRoundedHome())),
           partOf("ownRounded" + number, part(range))});
  }
  return parts;
}

/// The places of weights that an op works on.
LogicalResult RankBuffers::namePlaces(pipe::StepOpInterface op) {
  if (auto together = dyn_cast<pipe::CollectiveOp>(*op))
    return success(static_cast<bool>(rangeOf(together)));
  if (auto keep = dyn_cast<pipe::KeepGradientsOp>(*op))
    return success(keptGradients(keep).has_value());
  if (auto fold = dyn_cast<pipe::FoldGradientsOp>(*op))
    return success(!foldedSums(fold).empty());
  if (auto load = dyn_cast<pipe::LoadWeightsOp>(*op))
    return success(loadedParts(load).has_value());
  SmallVector<pipe::PlaceOp> withCopy;
  for (const pipe::ByteUse &use : op.getByteUses()) {
    bool isGradient = use.kind == pipe::ByteUse::Kind::Gradient;
    if (!use.weight)
      continue;
    if (!placed(op, op.getStageName(), use.weight, isGradient))
      return failure();
    pipe::PlaceOp place = placeOf(op.getStageName(), use.weight);
    if (!isGradient && place.getRounded())
      withCopy.push_back(place);
  }
  for (pipe::PlaceOp place : withCopy)
    roundedCopy(place);
  return success();
}

LogicalResult RankBuffers::writeTable() {
  auto ops = rank.getBody()->getOps<pipe::StepOpInterface>();
  for (pipe::StepOpInterface op : ops)
    if (failed(nameBuffers(op)))
      return failure();
  // Places of weights are looked up now, so that the table is whole.
  for (pipe::StepOpInterface op : ops) {
    if (failed(namePlaces(op)))
      return failure();
    auto task = dyn_cast<pipe::TaskOp>(*op);
    const StageLayout *stage =
        task ? layout.findStage(task.getStage()) : nullptr;
    if (!task || !task.getWeights() || !stage->optimizer)
      continue;
    weightsAt(*stage, *task.getWeights());
    if (pipe::OptimizerOp optimizer = stage->optimizer; optimizer.getVersions())
      weightsAt(*stage, optimizer.getNewest());
  }
  return success();
}

} // namespace pipewright::codegen
