//===- BodyBuffers.cpp - Where a stage body finds its values --------------===//
//
// See BodyBuffers.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/BodyBuffers.h"
#include "dialects/nn/NNAttributeNames.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

StashLayout::StashLayout(ValueRange fields) {
  for (Value value : fields) {
    int64_t offset = alignedSize(bytes);
    offsets.push_back(offset);
    bytes = offset + bytesOf(value);
  }
}

/// What fills a range of that type.
static TaskKind giverOf(Type type) {
  auto handover = dyn_cast<HandoverType>(type);
  return handover ? handover.getGiver() : TaskKind::forward;
}

/// The values that lie in a range of that type.
static SmallVector<Value> fieldsOf(StageOp stage, Type type) {
  const TaskKind giver = giverOf(type);
  ValueRange kept = stage.getKept(giver);
  for (const StashRange &range : stage.getRanges(giver))
    if (range.type == type)
      return llvm::map_to_vector(
          range.fields, [&](int64_t field) -> Value { return kept[field]; });
  return {};
}

StashLayout::StashLayout(StageOp stage, Type type)
    : StashLayout(fieldsOf(stage, type)) {}

std::optional<int64_t> pipewright::pipe::stashNumber(Type type) {
  if (auto stash = dyn_cast<StashType>(type))
    return stash.getReader() == TaskKind::weight_gradient ? kWeightStash
                                                          : kForwardStash;
  auto handover = dyn_cast<HandoverType>(type);
  if (!handover)
    return std::nullopt;
  if (handover.getGiver() != TaskKind::recompute)
    return kHandover;
  return handover.getReader() == TaskKind::weight_gradient ? kWeightRecomputed
                                                           : kRecomputed;
}

/// By value that tasks of that kind keep.
static SmallVector<BufferAttr> buffersOfKept(StageOp stage, TaskKind giver) {
  ValueRange kept = stage.getKept(giver);
  SmallVector<BufferAttr> buffers(kept.size());
  for (const StashRange &range : stage.getRanges(giver))
    for (auto [field, offset] :
         llvm::zip_equal(range.fields, StashLayout(stage, range.type).offsets))
      buffers[field] = BufferAttr::get(stage.getContext(), BufferSpace::stash,
                                       *stashNumber(range.type), offset,
                                       bytesOf(kept[field]));
  return buffers;
}

SmallVector<BufferAttr> pipewright::pipe::stashBuffers(Operation *body) {
  auto stage = cast<StageOp>(body->getParentOp());
  if (returnOf(body).getStash().empty())
    return {};
  if (isa<InputGradientOp>(body))
    return buffersOfKept(stage, TaskKind::input_gradient);
  // Where some micro-batches keep their stash, it makes that again.
  return buffersOfKept(stage, isa<RecomputeOp>(body) && !stage.getKeeps()
                                  ? TaskKind::recompute
                                  : TaskKind::forward);
}

SmallVector<Operation *>
pipewright::pipe::bodiesRunBy(StageOp stage, ArrayRef<RankOp> programs) {
  llvm::DenseSet<Operation *> run;
  for (RankOp program : programs)
    for (auto task : program.getBody()->getOps<TaskOp>())
      if (task.getStage() == stage.getSymName())
        run.insert(stage.bodyOf(task.getKind()));
  SmallVector<Operation *> bodies;
  for (Operation &body : *stage.getBody())
    if (run.contains(&body))
      bodies.push_back(&body);
  return bodies;
}

SmallVector<BufferAttr> pipewright::pipe::argumentBuffers(Operation *body) {
  MLIRContext *context = body->getContext();
  Block::BlockArgListType arguments = blockOf(body).getArguments();
  SmallVector<BufferAttr> buffers;
  int64_t operand = 0;
  auto addInputs = [&](size_t count) {
    for (BlockArgument argument : arguments.slice(buffers.size(), count))
      buffers.push_back(BufferAttr::get(context, BufferSpace::input, operand++,
                                        /*offset=*/0, bytesOf(argument)));
  };
  auto gradient = dyn_cast<GradientBodyInterface>(body);
  if (!gradient) {
    addInputs(arguments.size());
    return buffers;
  }

  // Saved values, each range of the stash as one operand, gradients, what is
  // handed over as one.
  auto stage = cast<StageOp>(body->getParentOp());
  addInputs(gradient.getInputs().size() + gradient.getOutputs().size());
  auto addKept = [&](TaskKind giver, ArrayRef<int64_t> fields) {
    const SmallVector<BufferAttr> kept = buffersOfKept(stage, giver);
    for (int64_t field : fields)
      buffers.push_back(kept[field]);
  };
  addKept(TaskKind::forward, gradient.getStashFields());
  operand += stage.getRangesReadBy(gradient, TaskKind::forward).size();
  addInputs(gradient.getGradientsOf().size());
  addKept(TaskKind::recompute, gradient.getRecomputedFields());
  if (gradient.takesHandover())
    llvm::append_range(buffers, buffersOfKept(stage, TaskKind::input_gradient));
  return buffers;
}

BufferAttr pipewright::pipe::bufferOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argumentBuffers(
        argument.getOwner()->getParentOp())[argument.getArgNumber()];
  auto result = cast<OpResult>(value);
  auto buffers =
      result.getOwner()->getAttrOfType<ArrayAttr>(PipeDialect::kBuffers);
  if (!buffers || buffers.size() <= result.getResultNumber())
    return BufferAttr();
  return cast<BufferAttr>(buffers[result.getResultNumber()]);
}

bool pipewright::pipe::seesBytes(Operation *op) {
  return isa<nn::ViewOpInterface, nn::SubviewOp>(op);
}

Value pipewright::pipe::rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!seesBytes(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static_assert(nn::SubviewOp::kAlignment == kBufferAlignment,
              "subviews begin where buffers may");

BufferAttr pipewright::pipe::bufferOfView(Operation *view, BufferAttr operand) {
  auto part = dyn_cast<nn::SubviewOp>(view);
  if (!part)
    return operand;
  return BufferAttr::get(
      view->getContext(), operand.getSpace(), operand.getIndex(),
      operand.getOffset() + part.getByteOffset(), bytesOf(part.getResult()));
}

static bool addsByItself(Value product) {
  Operation *op = product.getDefiningOp();
  if (auto library = dyn_cast_if_present<nn::LibraryOpInterface>(op))
    return library.getCall({}).added == product;
  auto added = isa_and_present<nn::LaunchOp>(op)
                   ? op->getAttrOfType<DenseI64ArrayAttr>(nn::kAdded)
                   : DenseI64ArrayAttr();
  return added && llvm::is_contained(added.asArrayRef(),
                                     cast<OpResult>(product).getResultNumber());
}

nn::AccumulateGradientOp pipewright::pipe::addedInPlace(Value product) {
  for (Value value = product; value.hasOneUse();) {
    Operation *user = *value.user_begin();
    if (auto sum = dyn_cast<nn::AccumulateGradientOp>(user))
      return addsByItself(product) ? sum : nn::AccumulateGradientOp();
    if (!isa<nn::ViewOpInterface>(user))
      return {};
    value = user->getResult(0);
  }
  return {};
}
