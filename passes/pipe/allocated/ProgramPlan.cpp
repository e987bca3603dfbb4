//===- ProgramPlan.cpp - Where the values of a program are ----------------===//
//
// See ProgramPlan.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/allocated/ProgramPlan.h"

#include "passes/step/BodyBuffers.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// The bytes that a rank's collective works on.
static int64_t bytesOfRange(const Stages &stages, const ArenaLayout &layout,
                            CollectiveOp op) {
  int32_t stage = stages.numberOf(op.getStageName());
  const ArenaLayout::Optimizer *optimizer = layout.optimizerOf(stage);
  if (op.getWeight() && !op.isOfPart())
    return layout.placeOf(stage, *op.getWeight()).weight.bytes;
  if (!optimizer)
    return 0;
  std::optional<size_t> bucket = op.getBucket();
  if (op.getWeight()) {
    bucket = bucketOf(stages, stage, stages.groupOf(op.getWeightAttr()));
    if (!bucket)
      return 0;
  }
  const int64_t bytes = bucket && *bucket < optimizer->buckets.size()
                            ? optimizer->buckets[*bucket]
                            : optimizer->weights.bytes;
  return op.isOfPart()
             ? bytes / programOf(op->getParentOfType<ModuleOp>()).replicas
             : bytes;
}

/// The bytes of a result that has bytes of its own: a tensor, one that will be
/// received, what tasks keep for each other; and those that a collective needs.
static int64_t ownBytes(const Stages &stages, const ArenaLayout &layout,
                        OpResult result) {
  if (auto together = dyn_cast<CollectiveOp>(result.getOwner()))
    return together.scratchBytes(bytesOfRange(stages, layout, together));
  Type type = result.getType();
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return byteSize(tensor);
  if (auto pending = dyn_cast<PendingType>(type))
    return byteSize(pending.getTensor());
  auto op = cast<StepOpInterface>(result.getOwner());
  return StashLayout(stages.stageOf(op.getStageName()), type).bytes;
}

/// A copy to the host's memory.
static bool isOnHost(Value value) {
  auto move = value.getDefiningOp<MoveOp>();
  return move && move.isToHost();
}

/// A value that is sent is in use until the send is complete; one that is
/// received, from the post on; one that a task takes, until its last part.
int64_t ProgramPlan::lastUse(Value value) const {
  int64_t last = pointOf.at(value.getDefiningOp());
  for (Operation *user : value.getUsers()) {
    auto task = dyn_cast<TaskOp>(user);
    last = std::max(last, pointOf.at(task ? task.getLastPart() : user));
    // A copy reads it until it is over.
    if (auto move = dyn_cast<MoveOp>(user); move && move.getWait())
      last = std::max(last, pointOf.at(move.getWait()));
    for (OpResult result : user->getResults())
      if (cast<StepOpInterface>(user).getResultBytes(result).kind ==
          ResultBytes::Kind::OfOperand)
        last = std::max(last, lastUse(result));
  }
  return last;
}

void ProgramPlan::add(Value value, int64_t last, int64_t bytes) {
  indices[value] = lives.size();
  values.push_back(value);
  lives.push_back({pointOf.at(value.getDefiningOp()), last, bytes});
}

/// The link that takes a value to another rank, or brings it from there:
/// whether it is sent, and the peer. None of values that stay, and of stashes
/// that are elsewhere meanwhile.
static std::optional<std::pair<bool, int64_t>> linkOf(Value value) {
  if (auto post = value.getDefiningOp<PostReceiveOp>()) {
    for (Operation *wait : value.getUsers())
      if (llvm::any_of(wait->getUsers(), llvm::IsaPred<HoldOp>))
        return std::nullopt;
    return std::pair(false, static_cast<int64_t>(post.getPeer()));
  }
  for (Operation *user : value.getUsers())
    if (auto post = dyn_cast<PostSendOp>(user))
      return std::pair(true, static_cast<int64_t>(post.getPeer()));
  return std::nullopt;
}

/// The task that makes what is sent, or takes first what is received.
Operation *ProgramPlan::taskOf(Value value) const {
  if (!value.getDefiningOp<PostReceiveOp>())
    return value.getDefiningOp();
  Operation *first = nullptr;
  for (Operation *wait : value.getUsers())
    for (Operation *user : wait->getUsers())
      if (isa<TaskOp>(user) && (!first || pointOf.at(user) < pointOf.at(first)))
        first = user;
  return first ? first : value.getDefiningOp();
}

/// How many values of one size that a link brings or takes may be in use at a
/// time if they are to have bytes of their own.
static constexpr int64_t kMostOfLink = 16;

/// With spare buffers, what goes over a link has bytes of its own, behind all
/// others: apart for each size. Each of several tensors of that size that one
/// task sends or takes has its spare ones. Where many are in use at a time,
/// they have most when others have few, so they share bytes with these; but
/// nothing else has the bytes from the post of the receive that is so many
/// before on, or until that send is over which comes so many later.
void ProgramPlan::place(int64_t spare) {
  std::map<std::tuple<bool, int64_t, int64_t>, std::vector<size_t>> ofLinks;
  std::vector<size_t> others, onHost;
  for (size_t index = 0; index < lives.size(); ++index)
    if (isOnHost(values[index]))
      onHost.push_back(index);
    else if (auto link = spare > 0 ? linkOf(values[index]) : std::nullopt;
             link && lives[index].bytes > 0)
      ofLinks[{link->first, link->second, lives[index].bytes}].push_back(index);
    else
      others.push_back(index);
  std::vector<BufferLife> held = lives;
  auto livesOf = [&](ArrayRef<size_t> indices) {
    return llvm::map_to_vector(indices,
                               [&](size_t index) { return held[index]; });
  };
  plan.offsets.resize(lives.size());
  host.offsets.resize(lives.size());
  auto put = [](ArrayRef<size_t> indices, const MemoryPlan &part,
                MemoryPlan &whole) {
    const int64_t begin = alignedSize(whole.bytes);
    for (auto [index, offset] : llvm::zip_equal(indices, part.offsets))
      whole.offsets[index] = begin + offset;
    if (part.bytes > 0)
      whole.bytes = begin + part.bytes;
  };
  struct InTurns {
    ArrayRef<size_t> indices;
    int64_t spare = 0;
  };
  std::vector<InTurns> apart;
  for (const auto &[link, indices] : ofLinks) {
    std::map<Operation *, int64_t> counts;
    int64_t together = 1;
    for (size_t index : indices)
      together = std::max(together, ++counts[taskOf(values[index])]);
    if (mostInUse(livesOf(indices)) <= kMostOfLink * together) {
      apart.push_back({indices, spare * together});
      continue;
    }
    llvm::append_range(others, indices);
    for (auto [before, after] :
         llvm::zip(indices, ArrayRef(indices).drop_front(std::min<size_t>(
                                spare * together, indices.size()))))
      if (std::get<0>(link))
        held[before].end = std::max(held[before].end, lives[after].end);
      else
        held[after].begin = lives[before].begin;
  }
  put(others, planMemory(livesOf(others), kBufferAlignment), plan);
  put(onHost, planMemory(livesOf(onHost), kBufferAlignment), host);
  for (const InTurns &each : apart)
    put(each.indices,
        planInTurns(livesOf(each.indices), each.spare, kBufferAlignment), plan);
}

ProgramPlan::ProgramPlan(const Stages &stages, const ArenaLayout &layout,
                         RankOp program, int64_t spare)
    : program(program) {
  for (auto [point, op] : llvm::enumerate(*program.getBody()))
    pointOf[&op] = point;
  for (auto op : program.getBody()->getOps<StepOpInterface>())
    for (OpResult result : op->getResults()) {
      ResultBytes::Kind kind = op.getResultBytes(result).kind;
      if (kind == ResultBytes::Kind::Own)
        add(result, lastUse(result), ownBytes(stages, layout, result));
      else if (kind == ResultBytes::Kind::Scratch)
        add(result, pointOf.at(cast<CollectiveOp>(*op).getWait()),
            ownBytes(stages, layout, result));
    }
  place(spare);
}

void ProgramPlan::write(const Stages &stages, const ArenaLayout &layout,
                        int64_t base) {
  MLIRContext *context = program.getContext();
  auto placeOf = [&](StepOpInterface op,
                     OpResult result) -> ArenaLayout::Range {
    ResultBytes bytes = op.getResultBytes(result);
    if (indices.contains(result)) {
      size_t index = indices.at(result);
      return {base + plan.offsets[index], lives[index].bytes};
    }
    const ArenaLayout::Place &place = layout.placeOf(
        stages.numberOf(op.getStageName()), bytes.weight.getValue());
    return bytes.kind == ResultBytes::Kind::Weight ? place.weight
                                                   : *place.gradient;
  };
  for (auto op : program.getBody()->getOps<StepOpInterface>()) {
    SmallVector<Attribute> buffers;
    for (OpResult result : op->getResults()) {
      if (!op.getResultBytes(result).isPlanned())
        continue;
      if (isOnHost(result)) {
        const size_t index = indices.at(result);
        buffers.push_back(BufferAttr::get(context, BufferSpace::host,
                                          host.offsets[index],
                                          lives[index].bytes));
        continue;
      }
      ArenaLayout::Range range = placeOf(op, result);
      buffers.push_back(BufferAttr::get(context, BufferSpace::arena,
                                        range.offset, range.bytes));
    }
    // A task says so, too, where it has none.
    if (!buffers.empty() || isa<TaskOp>(op))
      op.setPlannedBuffers(ArrayAttr::get(context, buffers));
  }
}
