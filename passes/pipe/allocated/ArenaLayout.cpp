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

/// Puts the weights of a bucket behind what a flat range has, and returns the
/// bytes of the bucket. Matrices that a replica each updates lie in its part;
/// all parts are as long as the longest.
int64_t ArenaLayout::arrangeBucket(Flat &flat, const Bucket &bucket,
                                   int32_t stage) {
  std::vector<Place *> places;
  for (const WeightGroup *group : bucket.weights)
    for (Place &place : allPlaces)
      if (place.stage == stage && place.group == group)
        places.push_back(&place);
  llvm::append_range(flat.places, places);
  std::vector<int64_t> ends(bucket.homes.empty() ? 1 : shards, 0);
  auto partOf = [&](size_t number) {
    return bucket.homes.empty() ? 0 : bucket.homes[number];
  };
  for (auto [number, place] : llvm::enumerate(places)) {
    int64_t &end = ends[partOf(number)];
    if (place->isMatrix && !flat.elementwise)
      flat.elementwise = flat.bytes + alignedSize(end);
    place->inFlat = alignedSize(end);
    end = place->inFlat + place->weight.bytes;
  }
  int64_t part = *llvm::max_element(ends);
  if (shards > 1)
    part = llvm::alignTo(bucket.homes.empty() ? llvm::divideCeil(part, shards)
                                              : part,
                         kShardAlignment);
  for (auto [number, place] : llvm::enumerate(places))
    place->inFlat += flat.bytes + partOf(number) * part;
  return alignedSize(part * shards);
}

/// Padding between weights, and behind the last one of a part, is part of the
/// flat range: it starts as zero, gets no gradient, and stays zero under every
/// optimizer.
ArenaLayout::Flat ArenaLayout::arrange(const Stages &stages, int32_t stage) {
  Flat flat;
  for (const Bucket &bucket : bucketsOf(stages, stage)) {
    flat.buckets.push_back(arrangeBucket(flat, bucket, stage));
    flat.bytes += flat.buckets.back();
  }
  return flat;
}

ArenaLayout::Range ArenaLayout::around(const Flat &flat, const Place &place,
                                       Range part) {
  return {part.offset - place.inFlat, flat.bytes};
}

static bool isReadRounded(const Stages &stages,
                          const ArenaLayout::Place &place) {
  return stages.readsRounded(place.stage, *place.group);
}

/// By stage and turn, where ranges begin of which each turn names one: behind
/// each other, and behind them those of stages that have bytes of their own.
static std::vector<SmallVector<int64_t>>
placeNamedRanges(ArrayRef<int64_t> bytes, ArrayRef<ArenaLayout::RangeUse> uses,
                 int64_t begin, int64_t &end) {
  std::map<int64_t, int64_t> room;
  for (auto [use, size] : llvm::zip_equal(uses, bytes))
    for (int64_t range : use.ranges)
      room[range] = std::max(room[range], size);
  end = begin;
  auto take = [&](int64_t size) {
    const int64_t offset = alignedSize(end);
    end = size > 0 ? offset + size : end;
    return offset;
  };
  std::map<int64_t, int64_t> offsets;
  for (auto [range, size] : room)
    offsets[range] = take(size);
  std::vector<SmallVector<int64_t>> all(uses.size());
  for (auto [use, size, ofTurns] : llvm::zip_equal(uses, bytes, all))
    if (use.ranges.empty())
      ofTurns.push_back(take(size));
    else
      for (int64_t range : use.ranges)
        ofTurns.push_back(offsets.at(range));
  return all;
}

static std::vector<SmallVector<int64_t>>
placeRanges(ArrayRef<int64_t> bytes, ArrayRef<ArenaLayout::RangeUse> uses,
            int64_t begin, int64_t &end) {
  std::vector<BufferTurns> ranges;
  for (auto [use, size] : llvm::zip_equal(uses, bytes))
    ranges.push_back({use.turns, size});
  MemoryPlan plan = planTurns(ranges, kBufferAlignment);
  end = begin + plan.bytes;
  std::vector<SmallVector<int64_t>> all;
  for (int64_t offset : plan.offsets)
    all.push_back({begin + offset});
  return all;
}

std::map<int32_t, SmallVector<ArenaLayout::Range>>
ArenaLayout::share(ArrayRef<Flat> ofStages, ArrayRef<int64_t> bytes,
                   ArrayRef<RangeUse> uses, int64_t begin,
                   llvm::function_ref<Range &(Place &)> rangeIn) {
  std::map<int32_t, SmallVector<Range>> moving;
  if (uses.empty())
    return moving;
  const bool areNamed = llvm::any_of(
      uses, [](const RangeUse &use) { return !use.ranges.empty(); });
  const auto offsets = areNamed ? placeNamedRanges(bytes, uses, begin, end)
                                : placeRanges(bytes, uses, begin, end);
  for (auto [flat, size, ofTurns] : llvm::zip_equal(ofStages, bytes, offsets)) {
    if (size == 0)
      continue;
    const Place &first = *flat.places.front();
    int64_t by = ofTurns.front() - (rangeIn(*flat.places.front()).offset -
                                    first.inFlat / (flat.bytes / size));
    for (Place *place : flat.places)
      rangeIn(*place).offset += by;
    if (!llvm::all_equal(ofTurns))
      for (int64_t offset : ofTurns)
        moving[first.stage].push_back({offset, size});
  }
  return moving;
}

ArenaLayout::ArenaLayout(const Stages &stages, ArrayRef<int32_t> onRank,
                         const nn::OptimizerChoice &choice,
                         ArrayRef<int64_t> oldVersions, const RangeUses &uses,
                         int64_t shards)
    : shards(shards) {
  for (int32_t stage : onRank)
    for (const WeightGroup &group : stages.weights())
      if (llvm::is_contained(group.stages, stage)) {
        Place &place = allPlaces.emplace_back();
        place.group = &group;
        place.stage = stage;
        place.isUpdated = group.isUpdatedIn(stage);
        place.isMatrix = choice.takesMatrices() && place.isUpdated &&
                         group.weight.getOutputs().has_value();
        place.weight.bytes = byteSize(group.weight.getTensorType());
      }

  // What each stage's optimizer works on comes first, in one piece.
  std::vector<Flat> updated;
  std::vector<Place *> others;
  for (int32_t stage : onRank)
    updated.push_back(arrange(stages, stage));
  for (Place &place : allPlaces)
    if (!place.isUpdated)
      others.push_back(&place);
  // Within what was allocated for all that a stage updates.
  auto within = [](Range all, const Place &place) {
    return Range{all.offset + place.inFlat, place.weight.bytes};
  };

  // Of weights whose bf16 copies alone are read, a replica has its part.
  auto isAbsent = [&](int32_t stage) {
    return shards > 1 && stages.readsRounded(stage) &&
           !stages.readsMasters(stage);
  };
  int64_t begin = end;
  for (auto [stage, flat] : llvm::zip_equal(onRank, updated)) {
    if (flat.places.empty())
      continue;
    const Range all = isAbsent(stage) ? Range{} : allocate(flat.bytes);
    for (Place *place : flat.places)
      place->weight = within(all, *place);
  }
  SmallVector<int64_t> present, flatBytes;
  for (auto [stage, flat] : llvm::zip_equal(onRank, updated)) {
    flatBytes.push_back(flat.bytes);
    present.push_back(isAbsent(stage) ? 0 : flat.bytes);
  }
  auto gathered = share(updated, present, uses.weights, begin,
                        [](Place &place) -> Range & { return place.weight; });
  for (Place *place : others)
    place->weight = allocate(place->weight.bytes);
  llvm::SmallDenseMap<int32_t, Range> homeOf, roundedHomeOf;
  for (auto [number, stage] : llvm::enumerate(onRank))
    if (isAbsent(stage) ||
        (!uses.weights.empty() && uses.weights[number].isKept))
      homeOf[stage] = allocate(flatBytes[number] / shards);
  addRegion("weights", begin, end);

  // The flat range of a stage is halved as a whole, padding and all.
  begin = end = alignedSize(end);
  SmallVector<int64_t> flatRounded;
  for (const Flat &flat : updated) {
    bool isRead = llvm::any_of(flat.places, [&](const Place *place) {
      return isReadRounded(stages, *place);
    });
    flatRounded.push_back(isRead ? flat.bytes / 2 : 0);
    if (!isRead)
      continue;
    Range rounded = allocate(flat.bytes / 2);
    for (Place *place : flat.places)
      place->rounded = {rounded.offset + place->inFlat / 2,
                        place->weight.bytes / 2};
  }
  gathered.merge(share(updated, flatRounded, uses.rounded, begin,
                       [](Place &place) -> Range & { return *place.rounded; }));
  for (Place *place : others)
    if (isReadRounded(stages, *place))
      place->rounded = allocate(place->weight.bytes / 2);
  for (auto [stage, bytes, use] : llvm::zip(onRank, flatRounded, uses.rounded))
    if (use.isKept && bytes > 0)
      roundedHomeOf[stage] = allocate(bytes / shards);
  addRegion("bf16 weights", begin, end);

  begin = end = alignedSize(end);
  for (const Flat &flat : updated) {
    if (flat.places.empty())
      continue;
    const Range all = allocate(flat.bytes);
    for (Place *place : flat.places)
      place->gradient = within(all, *place);
  }
  share(updated, flatBytes, uses.gradients, begin,
        [](Place &place) -> Range & { return *place.gradient; });
  for (Place *place : others)
    if (place->group->isTrained())
      place->gradient = allocate(place->weight.bytes);
  llvm::SmallDenseMap<int32_t, Range> keptOf;
  for (auto [stage, bytes, use] : llvm::zip(onRank, flatBytes, uses.gradients))
    if (use.isKept)
      keptOf[stage] = allocate(bytes / shards);
  addRegion("gradients", begin, end);

  // Each of them begins where the one before ends.
  begin = end = alignedSize(end);
  llvm::SmallDenseMap<int32_t, Range> asideOf;
  for (auto [stage, bytes] : llvm::zip_equal(onRank, flatBytes))
    if (uses.aside > 0 && bytes > 0)
      asideOf[stage] = allocate(uses.aside * bytes);
  for (Place *place : others)
    if (uses.aside > 0 && place->gradient)
      place->aside = allocate(uses.aside * alignedSize(place->gradient->bytes));
  addRegion("sums of groups", begin, end);

  begin = end = alignedSize(end);
  for (const Flat &flat : updated) {
    if (flat.places.empty())
      continue;
    const Place &first = *flat.places.front();
    Optimizer optimizer;
    optimizer.stage = first.stage;
    optimizer.weights = around(flat, first, first.weight);
    optimizer.gradients = around(flat, first, *first.gradient);
    optimizer.buckets = flat.buckets;
    optimizer.elementwise = flat.elementwise;
    if (first.rounded)
      optimizer.rounded = {first.rounded->offset - first.inFlat / 2,
                           optimizer.weights.bytes / 2};
    auto of = [&](const auto &ranges) {
      auto found = ranges.find(optimizer.stage);
      return found == ranges.end() ? std::optional<Range>() : found->second;
    };
    optimizer.kept = of(keptOf);
    optimizer.aside = of(asideOf);
    optimizer.home = of(homeOf);
    optimizer.roundedHome = of(roundedHomeOf);
    optimizer.gathered = std::move(gathered[optimizer.stage]);
    optimizer.isSplit = uses.split.contains(optimizer.stage);
    for (const nn::OptimizerState &state : choice.keptStates())
      optimizer.states.push_back(
          allocate((!state.isOfMatrices && optimizer.elementwise
                        ? *optimizer.elementwise
                        : optimizer.weights.bytes) /
                   shards));
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
  const bool isTold = optimizer && place.isUpdated &&
                      read.isWorkingCopy() == optimizer->rounded.has_value() &&
                      (!optimizer->gathered.empty() ||
                       (isTraining && !optimizer->versions.empty()));
  return BufferAttr::get(
      read.getContext(), isTold ? BufferSpace::weights : BufferSpace::arena,
      range.offset - (isTold ? optimizer->newest().offset : 0), range.bytes);
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
    llvm::SmallSetVector<Attribute, 4> otherRanges;
    for (Range state : optimizer.states)
      states.push_back(buffer(state));
    for (Range version : optimizer.versions)
      versions.push_back(buffer(version));
    for (Range range : optimizer.gathered)
      if (range.offset != optimizer.newest().offset)
        otherRanges.insert(buffer(range));
    OptimizerOp::create(
        builder, location, stages.nameOf(optimizer.stage),
        /*kernels=*/ArrayAttr(), buffer(optimizer.weights),
        buffer(optimizer.gradients), builder.getArrayAttr(states),
        buffer(optimizer.hyper), optional(optimizer.rounded),
        versions.empty() ? ArrayAttr() : builder.getArrayAttr(versions),
        shards == 1 ? IntegerAttr() : builder.getI64IntegerAttr(shards),
        optional(optimizer.kept), optional(optimizer.home),
        optional(optimizer.roundedHome), optional(optimizer.aside),
        optimizer.elementwise
            ? builder.getI64IntegerAttr(*optimizer.elementwise)
            : IntegerAttr(),
        optional(optimizer.workspace),
        optimizer.buckets.size() > 1
            ? builder.getDenseI64ArrayAttr(optimizer.buckets)
            : DenseI64ArrayAttr(),
        otherRanges.empty() ? ArrayAttr()
                            : builder.getArrayAttr(otherRanges.getArrayRef()),
        flag(optimizer.isSplit));
  }
  for (const Region &region : regions)
    RegionOp::create(builder, location, region.name, buffer(region.range));
}
