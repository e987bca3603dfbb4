//===- BodyBuffers.cpp - Where a stage body finds its values --------------===//
//
// See BodyBuffers.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/BodyBuffers.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

StashLayout::StashLayout(StageOp stage) {
  for (Value value : stage.getForward().getReturn().getStash()) {
    int64_t offset = alignedSize(bytes);
    offsets.push_back(offset);
    bytes = offset + bytesOf(value);
  }
}

SmallVector<Operation *> pipewright::pipe::bodiesOf(StageOp stage) {
  SmallVector<Operation *> bodies;
  for (Operation &op : *stage.getBody())
    bodies.push_back(&op);
  return bodies;
}

SmallVector<BufferAttr> pipewright::pipe::argumentBuffers(Operation *body) {
  MLIRContext *context = body->getContext();
  Block &block = blockOf(body);
  SmallVector<BufferAttr> buffers;
  auto addInput = [&](int64_t operand, BlockArgument argument) {
    buffers.push_back(BufferAttr::get(context, BufferSpace::input, operand,
                                      /*offset=*/0, bytesOf(argument)));
  };
  auto backward = dyn_cast<BackwardOp>(body);
  if (!backward) {
    for (BlockArgument argument : block.getArguments())
      addInput(argument.getArgNumber(), argument);
    return buffers;
  }

  // Saved values, the whole stash as one operand, gradients.
  StashLayout layout(cast<StageOp>(body->getParentOp()));
  int64_t saved = backward.getInputs().size() + backward.getOutputs().size();
  int64_t fields = layout.offsets.size();
  for (BlockArgument argument : block.getArguments()) {
    int64_t number = argument.getArgNumber();
    if (number < saved)
      addInput(number, argument);
    else if (number < saved + fields)
      buffers.push_back(BufferAttr::get(
          context, BufferSpace::stash,
          /*index=*/0, layout.offsets[number - saved], bytesOf(argument)));
    else
      addInput(number - fields + (fields > 0), argument);
  }
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

Value pipewright::pipe::rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<nn::ViewOpInterface>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

nn::AccumulateGradientOp pipewright::pipe::addedInPlace(Value product) {
  if (!isa_and_present<nn::MatmulOp, nn::ConvBackwardWeightOp,
                       nn::EmbeddingBackwardOp>(product.getDefiningOp()))
    return {};
  while (product.hasOneUse()) {
    Operation *user = *product.user_begin();
    if (auto sum = dyn_cast<nn::AccumulateGradientOp>(user))
      return sum;
    if (!isa<nn::ViewOpInterface>(user))
      return {};
    product = user->getResult(0);
  }
  return {};
}
