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

StashLayout::StashLayout(StageOp stage)
    : StashLayout(ValueRange(stage.getForward().getReturn().getStash())) {}

StashLayout::StashLayout(StageOp stage, Type type)
    : StashLayout(isa<HandoverType>(type)
                      ? stage.getHandover(cast<HandoverType>(type).getGiver())
                      : stage.getForward().getReturn().getStash()) {}

std::optional<int64_t> pipewright::pipe::stashNumber(Type type) {
  if (isa<StashType>(type))
    return kForwardStash;
  if (auto handover = dyn_cast<HandoverType>(type))
    return handover.getGiver() == TaskKind::recompute ? kRecomputed : kHandover;
  return std::nullopt;
}

int64_t pipewright::pipe::stashFilledBy(Operation *body) {
  if (isa<InputGradientOp>(body))
    return kHandover;
  const bool restores =
      cast<StageOp>(body->getParentOp()).getKeeps().has_value();
  return isa<RecomputeOp>(body) && !restores ? kRecomputed : kForwardStash;
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

  // Saved values, the stash as one operand, gradients, the handover as one.
  auto stage = cast<StageOp>(body->getParentOp());
  auto addField = [&](int64_t stash, int64_t offset) {
    int64_t bytes = bytesOf(arguments[buffers.size()]);
    buffers.push_back(
        BufferAttr::get(context, BufferSpace::stash, stash, offset, bytes));
  };
  addInputs(gradient.getInputs().size() + gradient.getOutputs().size());
  StashLayout stash(stage), recomputed(stage.getHandover(TaskKind::recompute)),
      handover(stage.getHandover(TaskKind::input_gradient));
  for (int64_t field : gradient.getStashFields())
    addField(kForwardStash, stash.offsets[field]);
  operand += !gradient.getStashFields().empty();
  addInputs(gradient.getGradientsOf().size());
  for (int64_t field : gradient.getRecomputedFields())
    addField(kRecomputed, recomputed.offsets[field]);
  if (gradient.takesHandover())
    for (int64_t offset : handover.offsets)
      addField(kHandover, offset);
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
