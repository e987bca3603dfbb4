//===- ArenaLayout.cpp - The fixed part of a rank's arena -----------------===//
//
// Weights of all stages, then gradients, then optimizer state, then what the
// runtime tells the optimizer: people read the report in these terms.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/allocated/ArenaLayout.h"

#include "dialects/nn/NNOrthogonalize.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

ArenaLayout::Range ArenaLayout::allocate(int64_t bytes) {
  Range range{alignedSize(end), bytes};
  end = range.offset + bytes;
  return range;
}

/// Padding between weights, and behind the last one to the end of a shard, is
/// part of the flat range: it starts as zero, gets no gradient, and stays zero
/// under every optimizer.
ArenaLayout::Range ArenaLayout::around(Range first, Range last) const {
  int64_t bytes = last.offset + last.bytes - first.offset;
  int64_t whole = shards == 1
                      ? alignedSize(bytes)
                      : llvm::divideCeil(bytes, shards * kShardAlignment) *
                            shards * kShardAlignment;
  return {first.offset, whole};
}

static bool isReadRounded(const Stages &stages,
                          const ArenaLayout::Place &place) {
  return stages.readsRounded(place.stage, *place.group);
}

void ArenaLayout::share(ArrayRef<std::vector<Place *>> ofStages,
                        ArrayRef<int64_t> bytes, ArrayRef<RangeUse> uses,
                        int64_t begin,
                        llvm::function_ref<Range &(Place &)> rangeIn) {
  if (uses.empty())
    return;
  std::vector<BufferTurns> ranges;
  for (auto [use, size] : llvm::zip_equal(uses, bytes))
    ranges.push_back({use.turns, size});
  MemoryPlan plan = planTurns(ranges, kBufferAlignment);
  for (auto [places, size, offset] :
       llvm::zip_equal(ofStages, bytes, plan.offsets)) {
    if (size == 0)
      continue;
    int64_t by = begin + offset - rangeIn(*places.front()).offset;
    for (Place *place : places)
      rangeIn(*place).offset += by;
  }
  end = begin + plan.bytes;
}

ArenaLayout::ArenaLayout(const Stages &stages, ArrayRef<int32_t> onRank,
                         const nn::OptimizerChoice &choice,
                         ArrayRef<int64_t> oldVersions, const RangeUses &uses,
                         int64_t shards)
    : shards(shards) {
  for (int32_t stage : onRank)
    for (const WeightGroup &group : stages.weights())
      if (llvm::is_contained(group.stages, stage))
        allPlaces.push_back({&group,
                             stage,
                             group.isUpdatedIn(stage),
                             choice.takesMatrices() &&
                                 group.isUpdatedIn(stage) &&
                                 group.weight.getOutputs().has_value(),
                             {},
                             {},
                             {},
                             {}});

  // What each stage's optimizer works on comes first, in one piece, whose end
  // are the matrices that it takes.
  std::vector<std::vector<Place *>> updated;
  std::vector<Place *> others;
  for (int32_t stage : onRank) {
    updated.emplace_back();
    std::vector<Place *> matrices;
    for (Place &place : allPlaces)
      if (place.stage == stage)
        (!place.isUpdated ? others
         : place.isMatrix ? matrices
                          : updated.back())
            .push_back(&place);
    llvm::append_range(updated.back(), matrices);
  }
  auto bytesOf = [](const Place &place) {
    return byteSize(place.group->weight.getTensorType());
  };
  auto finishRange = [&](Range first, Range last) {
    Range range = around(first, last);
    end = range.offset + range.bytes;
  };

  // Of weights whose bf16 copies alone are read, a replica has its part.
  auto isAbsent = [&](int32_t stage) {
    return shards > 1 && stages.readsRounded(stage) &&
           !stages.readsMasters(stage);
  };
  int64_t begin = end;
  for (auto [stage, group] : llvm::zip_equal(onRank, updated)) {
    const int64_t before = end;
    if (isAbsent(stage))
      end = 0;
    for (Place *place : group)
      place->weight = allocate(bytesOf(*place));
    if (isAbsent(stage))
      end = before;
    else if (!group.empty())
      finishRange(group.front()->weight, group.back()->weight);
  }
  // By stage: the bytes of its flat ranges, but for the bf16 copies.
  auto flat = llvm::map_to_vector(updated, [&](ArrayRef<Place *> group) {
    return group.empty()
               ? int64_t{0}
               : around(group.front()->weight, group.back()->weight).bytes;
  });
  SmallVector<int64_t> present;
  for (auto [stage, bytes] : llvm::zip_equal(onRank, flat))
    present.push_back(isAbsent(stage) ? 0 : bytes);
  share(updated, present, uses.weights, begin,
        [](Place &place) -> Range & { return place.weight; });
  for (Place *place : others)
    place->weight = allocate(bytesOf(*place));
  llvm::SmallDenseMap<int32_t, Range> homeOf, roundedHomeOf;
  for (auto [number, stage] : llvm::enumerate(onRank))
    if (isAbsent(stage) ||
        (!uses.weights.empty() && uses.weights[number].isKept))
      homeOf[stage] = allocate(flat[number] / shards);
  addRegion("weights", begin, end);

  // The flat range of a stage is halved as a whole, padding and all.
  begin = end = alignedSize(end);
  SmallVector<int64_t> flatRounded;
  for (auto [group, bytes] : llvm::zip_equal(updated, flat)) {
    bool isRead = llvm::any_of(group, [&](const Place *place) {
      return isReadRounded(stages, *place);
    });
    flatRounded.push_back(isRead ? bytes / 2 : 0);
    if (!isRead)
      continue;
    Range rounded = allocate(bytes / 2);
    for (Place *place : group)
      place->rounded = {
          rounded.offset +
              (place->weight.offset - group.front()->weight.offset) / 2,
          place->weight.bytes / 2};
  }
  share(updated, flatRounded, uses.rounded, begin,
        [](Place &place) -> Range & { return *place.rounded; });
  for (Place *place : others)
    if (isReadRounded(stages, *place))
      place->rounded = allocate(place->weight.bytes / 2);
  for (auto [stage, bytes, use] : llvm::zip(onRank, flatRounded, uses.rounded))
    if (use.isKept && bytes > 0)
      roundedHomeOf[stage] = allocate(bytes / shards);
  addRegion("bf16 weights", begin, end);

  begin = end = alignedSize(end);
  for (ArrayRef<Place *> group : updated) {
    for (Place *place : group)
      place->gradient = allocate(bytesOf(*place));
    if (!group.empty())
      finishRange(*group.front()->gradient, *group.back()->gradient);
  }
  share(updated, flat, uses.gradients, begin,
        [](Place &place) -> Range & { return *place.gradient; });
  for (Place *place : others)
    if (place->group->isTrained())
      place->gradient = allocate(bytesOf(*place));
  llvm::SmallDenseMap<int32_t, Range> keptOf;
  for (auto [stage, bytes, use] : llvm::zip(onRank, flat, uses.gradients))
    if (use.isKept)
      keptOf[stage] = allocate(bytes / shards);
  addRegion("gradients", begin, end);

  // Each of them begins where the one before ends.
  begin = end = alignedSize(end);
  llvm::SmallDenseMap<int32_t, Range> asideOf;
  for (auto [stage, bytes] : llvm::zip_equal(onRank, flat))
    if (uses.aside > 0 && bytes > 0)
      asideOf[stage] = allocate(uses.aside * bytes);
  for (Place *place : others)
    if (uses.aside > 0 && place->gradient)
      place->aside = allocate(uses.aside * alignedSize(place->gradient->bytes));
  addRegion("sums of groups", begin, end);

  begin = end = alignedSize(end);
  for (ArrayRef<Place *> group : updated) {
    if (group.empty())
      continue;
    Optimizer optimizer;
    optimizer.stage = group.front()->stage;
    optimizer.weights = around(group.front()->weight, group.back()->weight);
    optimizer.gradients =
        around(*group.front()->gradient, *group.back()->gradient);
    if (group.front()->rounded)
      optimizer.rounded = {group.front()->rounded->offset,
                           optimizer.weights.bytes / 2};
    auto of = [&](const auto &ranges) {
      auto found = ranges.find(optimizer.stage);
      return found == ranges.end() ? std::optional<Range>() : found->second;
    };
    optimizer.kept = of(keptOf);
    optimizer.aside = of(asideOf);
    optimizer.home = of(homeOf);
    optimizer.roundedHome = of(roundedHomeOf);
    auto matrix = llvm::find_if(
        group, [](const Place *place) { return place->isMatrix; });
    if (matrix != group.end())
      optimizer.elementwise =
          (*matrix)->weight.offset - optimizer.weights.offset;
    for (const nn::OptimizerState &state : choice.keptStates())
      optimizer.states.push_back(
          allocate(!state.isOfMatrices && optimizer.elementwise
                       ? *optimizer.elementwise
                       : optimizer.weights.bytes / shards));
    optimizers.push_back(std::move(optimizer));
  }
  addRegion("optimizer state", begin, end);

  begin = end = alignedSize(end);
  for (Optimizer &optimizer : optimizers)
    for (auto [stage, count] : llvm::zip_equal(onRank, oldVersions))
      if (stage == optimizer.stage)
        for (int64_t slot = 0; slot < count; ++slot)
          optimizer.versions.push_back(allocate(optimizer.newest().bytes));
  addRegion("old weights", begin, end);

  begin = end = alignedSize(end);
  for (Optimizer &optimizer : optimizers)
    optimizer.hyper = allocate(choice.row->scalars.size() * sizeof(float));
  addRegion("hyper-parameters", begin, end);

  // Updates of a rank come one after the other.
  begin = end = alignedSize(end);
  int64_t workspace = 0;
  for (const Place &place : allPlaces)
    if (place.isMatrix)
      workspace = std::max(workspace, nn::matrixWorkspace(place.group->weight));
  for (Optimizer &optimizer : optimizers)
    if (optimizer.elementwise)
      optimizer.workspace = {begin, workspace};
  addRegion("products of updates", begin, begin + workspace);
}

void ArenaLayout::addRegion(StringRef name, int64_t regionBegin,
                            int64_t regionEnd) {
  if (regionEnd == regionBegin)
    return;
  end = std::max(end, regionEnd);
  regions.push_back({name, {regionBegin, regionEnd - regionBegin}});
}

const ArenaLayout::Place &ArenaLayout::placeOf(int32_t stage,
                                               StringRef weight) const {
  for (const Place &place : allPlaces)
    if (place.stage == stage && place.group->weight.getSymName() == weight)
      return place;
  llvm_unreachable("every weight that a stage names has a place");
}

const ArenaLayout::Optimizer *ArenaLayout::optimizerOf(int32_t stage) const {
  for (const Optimizer &optimizer : optimizers)
    if (optimizer.stage == stage)
      return &optimizer;
  return nullptr;
}

BufferAttr ArenaLayout::bufferOf(nn::ParameterOp read, int32_t stage,
                                 bool isTraining) const {
  const Place &place = placeOf(stage, read.getWeight());
  const Optimizer *optimizer = optimizerOf(stage);
  Range range = read.isWorkingCopy() ? *place.rounded : place.weight;
  bool hasVersions = isTraining && optimizer && !optimizer->versions.empty() &&
                     place.isUpdated &&
                     read.isWorkingCopy() == optimizer->rounded.has_value();
  return BufferAttr::get(
      read.getContext(),
      hasVersions ? BufferSpace::weights : BufferSpace::arena,
      range.offset - (hasVersions ? optimizer->newest().offset : 0),
      range.bytes);
}

void ArenaLayout::emit(OpBuilder &builder, const Stages &stages) const {
  MLIRContext *context = builder.getContext();
  Location location = builder.getUnknownLoc();
  auto buffer = [&](Range range) {
    return BufferAttr::get(context, BufferSpace::arena, range.offset,
                           range.bytes);
  };
  auto optional = [&](std::optional<Range> range) {
    return range ? buffer(*range) : BufferAttr();
  };
  auto flag = [&](bool isSet) {
    return isSet ? builder.getUnitAttr() : UnitAttr();
  };
  for (const Place &place : allPlaces) {
    bool isOwner = place.stage == place.group->owner();
    PlaceOp::create(
        builder, place.group->weight.getLoc(),
        FlatSymbolRefAttr::get(place.group->weight.getSymNameAttr()),
        stages.nameOf(place.stage), buffer(place.weight),
        optional(place.gradient), optional(place.rounded),
        /*kernel=*/SymbolRefAttr(), flag(isOwner),
        flag(place.isUpdated && !isOwner), optional(place.aside),
        /*finish=*/SymbolRefAttr());
  }
  for (const Optimizer &optimizer : optimizers) {
    SmallVector<Attribute> states, versions;
    for (Range state : optimizer.states)
      states.push_back(buffer(state));
    for (Range version : optimizer.versions)
      versions.push_back(buffer(version));
    OptimizerOp::create(
        builder, location, stages.nameOf(optimizer.stage),
        /*kernel=*/SymbolRefAttr(), buffer(optimizer.weights),
        buffer(optimizer.gradients), builder.getArrayAttr(states),
        buffer(optimizer.hyper), optional(optimizer.rounded),
        versions.empty() ? ArrayAttr() : builder.getArrayAttr(versions),
        shards == 1 ? IntegerAttr() : builder.getI64IntegerAttr(shards),
        optional(optimizer.kept), optional(optimizer.home),
        optional(optimizer.roundedHome), optional(optimizer.aside),
        optimizer.elementwise
            ? builder.getI64IntegerAttr(*optimizer.elementwise)
            : IntegerAttr(),
        optional(optimizer.workspace));
  }
  for (const Region &region : regions)
    RegionOp::create(builder, location, region.name, buffer(region.range));
}
