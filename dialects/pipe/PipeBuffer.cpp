//===- PipeBuffer.cpp - Verifiers of buffers and arenas -------------------===//
//
// A buffer lies within its arena. That live buffers do not overlap is proved by
// `pipe-verify-allocated`.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "dialects/pipe/StashNumbers.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright::pipe;

LogicalResult BufferAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 BufferSpace space, int64_t index,
                                 int64_t offset, int64_t bytes) {
  if (index < 0 || offset < 0 || bytes < 0)
    return emitError() << "expects index, offset and bytes that are not "
                          "negative, but got "
                       << index << ", " << offset << " and " << bytes;
  // Ends of ranges, rounded up, are 64-bit numbers, too.
  constexpr int64_t limit = int64_t(1) << 62;
  if (offset > limit || bytes > limit - offset)
    return emitError() << "expects a range that ends below 2^62, but got "
                       << bytes << " bytes at " << offset;
  if ((space == BufferSpace::arena || space == BufferSpace::weights ||
       space == BufferSpace::host) &&
      index != 0)
    return emitError() << "expects index 0 in space '"
                       << stringifyBufferSpace(space) << "', but got " << index;
  if (space == BufferSpace::stash && index >= kStashes)
    return emitError() << "expects an index from 0 to " << kStashes - 1
                       << " in space 'stash', but got " << index;
  return success();
}

LogicalResult PlaceOp::verify() {
  // (C1)
  if (getRounded() && 2 * getRounded()->getBytes() != getBuffer().getBytes())
    return emitOpError("expects a rounded copy of half of ")
           << getBuffer() << ", but got " << *getRounded();
  // (C2)
  if (getAside() &&
      (!getGradient() || isUpdated() ||
       getAside()->getBytes() % alignedSize(getGradient()->getBytes()) != 0))
    return emitOpError("expects sums of a gradient aside that is not updated, "
                       "but got ")
           << *getAside();
  // (C3)
  if (getFinishAttr() && !getKernelAttr())
    return emitOpError("expects a kernel before that which finishes");
  return success();
}

LogicalResult OptimizerOp::verify() {
  // (C1)
  if (getRounded() && 2 * getRounded()->getBytes() != getWeights().getBytes())
    return emitOpError("expects rounded copies of half of ")
           << getWeights() << ", but got " << *getRounded();
  // (C2)
  if (ArrayAttr versions = getVersionsAttr())
    for (auto version : versions.getAsRange<BufferAttr>())
      if (version.getBytes() != getNewest().getBytes())
        return emitOpError("expects versions of the size of ")
               << getNewest() << ", but got " << version;
  // (C5)
  for (auto [what, part] : {std::pair("kept gradients but those", getKept()),
                            std::pair("home of weights but that", getHome())})
    if (part && (!getShards() || part->getBytes() != getShardBytes()))
      return emitOpError("expects no ")
             << what << " of a shard of " << getShardBytes()
             << " bytes, and got " << *part;
  // (C6)
  if (getRoundedHome() && !(getHome() && getRounded()))
    return emitOpError("expects no home of rounded weights but where there are "
                       "such, and weights have one");
  if (getRoundedHome() &&
      2 * getRoundedHome()->getBytes() != getHome()->getBytes())
    return emitOpError("expects a home of rounded weights of half of ")
           << *getHome() << ", but got " << *getRoundedHome();
  // (C7)
  if (getAside() && getAside()->getBytes() % getGradients().getBytes() != 0)
    return emitOpError("expects a whole number of ")
           << getGradients() << " aside, but got " << *getAside();
  // (C8)
  if (getElementwise().has_value() != getWorkspace().has_value() ||
      (getElementwise() &&
       (static_cast<int64_t>(*getElementwise()) < 0 ||
        static_cast<int64_t>(*getElementwise()) >= getWeights().getBytes())))
    return emitOpError("expects elementwise bytes with a workspace, and fewer "
                       "than ")
           << getWeights().getBytes();
  // (C9)
  int64_t rest = getBuckets() ? getWeights().getBytes() : 0;
  for (int64_t bytes : getBuckets().value_or(ArrayRef<int64_t>()))
    rest = bytes > 0 && bytes <= rest ? rest - bytes : -1;
  if (rest != 0 || (getBuckets() && getBuckets()->empty()))
    return emitOpError("expects buckets of ")
           << getWeights().getBytes() << " bytes together";
  // (C10)
  if (getKernels() && getKernels()->size() != bucketsOfKernels().size())
    return emitOpError("expects ")
           << bucketsOfKernels().size() << " kernels, but got "
           << getKernels()->size();
  // (C12)
  if (getSplit() && (!getShards() || isElsewhere()))
    return emitOpError(
        "expects no split weights but of shards that are nowhere "
        "else");
  // (C11)
  if (ArrayAttr others = getOtherRangesAttr()) {
    if (!getHome() || getVersions())
      return emitOpError("expects no other ranges but of weights that have a "
                         "home, and no old versions");
    for (auto other : others.getAsRange<BufferAttr>())
      if (other.getBytes() != getNewest().getBytes())
        return emitOpError("expects other ranges of the size of ")
               << getNewest() << ", but got " << other;
  }
  if (!getShards())
    return success();
  const auto buckets = bucketsOfWeights();
  // (C8)
  if (getElementwise() && llvm::none_of(buckets, [&](const Bucket &bucket) {
        return bucket.begin == static_cast<int64_t>(*getElementwise());
      }))
    return emitOpError("expects matrices from the beginning of a bucket on, "
                       "but got ")
           << *getElementwise() << " elementwise bytes";
  // (C3)
  int64_t replicas = programOf((*this)->getParentOfType<ModuleOp>()).replicas;
  if (static_cast<int64_t>(*getShards()) != replicas)
    return emitOpError("expects a shard for each of ")
           << replicas << " replicas, but has " << *getShards();
  // (C4)
  for (const Bucket &bucket : buckets)
    if (bucket.bytes % (replicas * kShardAlignment) != 0)
      return emitOpError("expects a range of shards of a multiple of ")
             << kShardAlignment << " bytes, but got "
             << partOf(getWeights(), bucket);
  return success();
}

SmallVector<OptimizerOp::Bucket> OptimizerOp::bucketsOfWeights() {
  const std::optional<ArrayRef<int64_t>> sizes = getBuckets();
  if (!sizes)
    return {{0, getWeights().getBytes()}};
  SmallVector<Bucket> all;
  int64_t begin = 0;
  for (int64_t bytes : *sizes) {
    all.push_back({begin, bytes});
    begin += bytes;
  }
  return all;
}

OptimizerOp::Bucket OptimizerOp::bucketAround(BufferAttr place) {
  const int64_t distance = place.getOffset() - getWeights().getOffset();
  for (const Bucket &bucket : bucketsOfWeights())
    if (distance < bucket.begin + bucket.bytes)
      return bucket;
  return bucketsOfWeights().back();
}

SmallVector<OptimizerOp::Bucket> OptimizerOp::bucketsOfKernels() {
  const auto end =
      static_cast<int64_t>(getElementwise().value_or(getWeights().getBytes()));
  if (end == 0)
    return {};
  if (!getShards())
    return {{0, end}};
  SmallVector<Bucket> all = bucketsOfWeights();
  llvm::erase_if(all, [&](Bucket bucket) { return bucket.begin >= end; });
  return all;
}

bool OptimizerOp::mayBeRead(BufferAttr range) {
  auto isAmong = [&](ArrayAttr ranges) {
    return ranges && llvm::is_contained(ranges, range);
  };
  return range == getNewest() || isAmong(getVersionsAttr()) ||
         isAmong(getOtherRangesAttr());
}

bool OptimizerOp::isRounded(BufferAttr range) {
  return getRounded() && (range == getRoundedHome() || mayBeRead(range));
}

BufferAttr OptimizerOp::partOf(BufferAttr range, Bucket bucket) {
  const bool isOfPart = range == getKept() || range == getHome() ||
                        range == getRoundedHome() ||
                        llvm::is_contained(getStates(), range);
  const int64_t scale =
      (isRounded(range) ? 2 : 1) * (isOfPart ? countShards() : 1);
  return BufferAttr::get(getContext(), range.getSpace(), range.getIndex(),
                         range.getOffset() + bucket.begin / scale,
                         bucket.bytes / scale);
}

BufferAttr OptimizerOp::partOf(BufferAttr range,
                               std::optional<uint64_t> bucket) {
  const auto buckets = bucketsOfWeights();
  return bucket && *bucket < buckets.size() ? partOf(range, buckets[*bucket])
                                            : range;
}

int64_t OptimizerOp::replicaOf(BufferAttr place) {
  const Bucket bucket = bucketAround(place);
  return (place.getOffset() - getWeights().getOffset() - bucket.begin) /
         (bucket.bytes / countShards());
}

bool OptimizerOp::takesAsMatrix(PlaceOp place) {
  return getElementwise() && place.isUpdated() &&
         place.getStage() == getStage() &&
         place.getBuffer().getOffset() - getWeights().getOffset() >=
             static_cast<int64_t>(*getElementwise());
}

BufferAttr OptimizerOp::partOf(BufferAttr range, BufferAttr place) {
  const int64_t ratio = isRounded(range) ? 2 : 1;
  const Bucket bucket = bucketAround(place);
  const int64_t distance =
      place.getOffset() - getWeights().getOffset() - bucket.begin;
  return BufferAttr::get(getContext(), BufferSpace::arena,
                         partOf(range, bucket).getOffset() + distance / ratio,
                         place.getBytes() / ratio);
}

LogicalResult ArenaOp::verifyRegions() {
  for (Operation &op : *getBody()) {
    // (C1)
    if (!isa<PlaceOp, OptimizerOp, RegionOp>(op))
      return op.emitOpError("is not allowed in an arena");
    bool inside = true;
    op.getAttrDictionary().walk([&](BufferAttr buffer) {
      inside &= buffer.getSpace() == BufferSpace::arena &&
                buffer.getOffset() + buffer.getBytes() <=
                    static_cast<int64_t>(getBytes());
    });
    if (!inside)
      return op.emitOpError("has a buffer outside the arena of ")
             << getBytes() << " bytes";
  }
  return success();
}
