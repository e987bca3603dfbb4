//===- StageFunctions.cpp - One function per stage and direction ----------===//
//
// Signatures, and the functions around the bodies. A function's parameters
// are the tensors of the task that calls it (operands, then results) and its
// stash, so one function serves every micro-batch.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/StageFunctions.h"

#include "passes/pipe/BodyBuffers.h"

using namespace mlir;

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Preparations
//===----------------------------------------------------------------------===//

int64_t Preparations::convolution(const std::string &shape, StringRef weight) {
  auto [it, isNew] =
      numbers.try_emplace({shape, weight.str()}, convolutions.size());
  if (isNew)
    convolutions.push_back({shape, std::nullopt, false, false});
  return it->second;
}

void Preparations::write(FunctionWriter &writer) const {
  for (auto [number, convolution] : llvm::enumerate(convolutions)) {
    if (convolution.forwardHasBias)
      writer.prepareConvolution("Forward", number, convolution.shape,
                                convolution.forwardHasBias);
    if (convolution.backwardData)
      writer.prepareConvolution("BackwardData", number, convolution.shape,
                                std::nullopt);
    if (convolution.backwardWeight)
      writer.prepareConvolution("BackwardWeight", number, convolution.shape,
                                std::nullopt);
  }
  for (const std::string &shape : attentions)
    writer.prepareAttention(shape);
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

static StringRef wordFor(Direction direction) {
  switch (direction) {
  case Direction::Forward:
    return "forward";
  case Direction::Backward:
    return "backward";
  case Direction::Evaluate:
    return "evaluate";
  case Direction::Update:
    return "update";
  }
  llvm_unreachable("all directions are listed");
}

std::string stageFunctionName(int64_t stage, Direction direction) {
  return ("stage" + Twine(stage) + "_" + wordFor(direction)).str();
}

static bool hasStash(const StageLayout &stage) {
  auto op = stage.op;
  return !op.getForward().getReturn().getStash().empty();
}

bool hasStageFunction(const StageLayout &stage, Direction direction) {
  auto op = stage.op;
  switch (direction) {
  case Direction::Forward:
    return true;
  case Direction::Backward:
    return op.getBackward() != nullptr;
  case Direction::Evaluate:
    return op.getEvaluate() != nullptr;
  case Direction::Update:
    return stage.optimizer != nullptr;
  }
  llvm_unreachable("all directions are listed");
}

size_t countStageParameters(const StageLayout &stage, Direction direction) {
  auto op = stage.op;
  switch (direction) {
  case Direction::Forward:
    return op.getForward().getSources().size() +
           op.getForward().getReturn().getValues().size() + hasStash(stage);
  case Direction::Backward: {
    pipe::BackwardOp backward = op.getBackward();
    return backward.getInputs().size() + backward.getOutputs().size() +
           backward.getGradientsOf().size() +
           backward.getInputGradients().size() + hasStash(stage);
  }
  case Direction::Evaluate:
    return op.getEvaluate().getSources().size() +
           op.getEvaluate().getReturn().getValues().size();
  case Direction::Update:
    return 0;
  }
  llvm_unreachable("all directions are listed");
}

/// Names for the arguments of a forward or evaluate body.
static std::string nameOfSource(const ProgramLayout &layout, Attribute source) {
  if (auto input = dyn_cast<pipe::InputAttr>(source))
    return makeIdentifier(input.getName().getValue());
  auto output = cast<pipe::OutputAttr>(source);
  if (const StageLayout *from = layout.findStage(output.getStage().getValue()))
    return layout.nameOfOutput(*from, output.getIndex());
  return "input";
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// `// Stage 0, forward: wte .. h.5.mlp`: the layers of its first and last op.
static std::string describe(const StageLayout &stage, Direction direction,
                            Region &body) {
  std::string first, last;
  for (Operation &op : body.front()) {
    std::string layer = layerOfLocation(op.getLoc());
    if (layer.empty())
      continue;
    if (first.empty())
      first = layer;
    last = layer;
  }
  std::string text =
      ("Stage " + Twine(stage.number) + ", " + wordFor(direction)).str();
  if (!first.empty())
    text += ": " + first + (first == last ? "" : " .. " + last);
  return text;
}

static void writeComment(OpBuilder &builder, Location loc, const Twine &text) {
  emitc::VerbatimOp::create(builder, loc, builder.getStringAttr("// " + text),
                            ValueRange());
}

static LogicalResult writeOps(FunctionWriter &writer, BodyWriter &body,
                              Region &region) {
  for (Operation &op : region.front())
    if (failed(body.write(&op)))
      return failure();
  return success();
}

/// Forward and evaluate differ only in what is stashed.
template <class BodyOp>
static LogicalResult
writeForward(OpBuilder &builder, const ProgramLayout &layout,
             const StageLayout &stage, BodyOp op, Direction direction,
             Preparations &preparations) {
  Region &region = op.getBodyRegion();
  pipe::ReturnOp end = op.getReturn();
  bool stashes = !end.getStash().empty();
  NameScope scope;
  SmallVector<std::string> parameters;
  for (Attribute source : op.getSources())
    parameters.push_back(scope.unique(nameOfSource(layout, source)));
  for (unsigned index = 0; index < end.getValues().size(); ++index)
    parameters.push_back(scope.unique(layout.nameOfOutput(stage, index)));
  if (stashes)
    parameters.push_back("stash");

  writeComment(builder, op.getLoc(), describe(stage, direction, region));
  FunctionWriter writer(builder, op.getLoc(),
                        stageFunctionName(stage.number, direction),
                        /*hasMicroBatch=*/true, parameters);
  BodyWriter body(writer, layout, stage, preparations, direction);
  size_t next = 0;
  for (BlockArgument argument : region.getArguments()) {
    body.inputs.push_back(writer.parameter(next));
    body.bind(argument, writer.parameter(next++));
  }
  for (unsigned index = 0; index < end.getValues().size(); ++index)
    body.outputs.push_back(writer.parameter(next++));
  if (stashes)
    body.stash = writer.parameter(next++);
  writer.task(direction == Direction::Forward ? "F" : "E", stage.number, true);
  if (failed(writeOps(writer, body, region)))
    return failure();
  writer.finish();
  return success();
}

static LogicalResult writeBackward(OpBuilder &builder,
                                   const ProgramLayout &layout,
                                   const StageLayout &stage,
                                   Preparations &preparations) {
  auto stageOp = stage.op;
  pipe::BackwardOp op = stageOp.getBackward();
  pipe::ForwardOp forward = stageOp.getForward();
  Region &region = op.getBodyRegion();
  bool stashes = hasStash(stage);

  NameScope scope;
  SmallVector<std::string> parameters;
  auto add = [&](const std::string &name) {
    parameters.push_back(scope.unique(name));
  };
  for (int64_t index : op.getInputs())
    add(nameOfSource(layout, forward.getSources()[index]));
  for (int64_t index : op.getOutputs())
    add(layout.nameOfOutput(stage, index));
  for (int64_t index : op.getGradientsOf())
    add("d_" + layout.nameOfOutput(stage, index));
  for (int64_t index : op.getInputGradients())
    add("d_" + nameOfSource(layout, forward.getSources()[index]));
  if (stashes)
    parameters.push_back("stash");

  writeComment(builder, op.getLoc(),
               describe(stage, Direction::Backward, region));
  FunctionWriter writer(builder, op.getLoc(),
                        stageFunctionName(stage.number, Direction::Backward),
                        /*hasMicroBatch=*/true, parameters);
  BodyWriter body(writer, layout, stage, preparations, Direction::Backward);
  size_t numSaved = op.getInputs().size() + op.getOutputs().size();
  size_t numGradients = op.getGradientsOf().size();
  if (stashes)
    body.stash = writer.parameter(parameters.size() - 1);
  writer.task("B", stage.number, true);

  // Operands of the task: saved values, one stash, gradients.
  for (size_t i = 0; i < numSaved; ++i)
    body.inputs.push_back(writer.parameter(i));
  if (stashes)
    body.inputs.push_back(body.stash);
  for (size_t i = 0; i < numGradients; ++i)
    body.inputs.push_back(writer.parameter(numSaved + i));
  for (size_t i = 0; i < op.getInputGradients().size(); ++i)
    body.outputs.push_back(writer.parameter(numSaved + numGradients + i));
  for (auto [argument, buffer] : llvm::zip_equal(
           region.getArguments(), pipe::argumentBuffers(op.getOperation())))
    body.bindTo(argument, buffer);
  if (failed(writeOps(writer, body, region)))
    return failure();
  writer.finish();
  return success();
}

/// One kernel over the flat buffers of all the stage's weights, in place; it
/// leaves zero gradients, as the first backward of the next step expects.
static void writeUpdate(OpBuilder &builder, const StageLayout &stage) {
  pipe::OptimizerOp optimizer = stage.optimizer;
  writeComment(builder, optimizer.getLoc(),
               "Stage " + Twine(stage.number) + ", update");
  FunctionWriter writer(builder, optimizer.getLoc(),
                        stageFunctionName(stage.number, Direction::Update),
                        /*hasMicroBatch=*/false, {});
  auto buffer = [&](StringRef name, pipe::BufferAttr planned) {
    return writer.buffer(name, planned.getOffset(), planned.getBytes());
  };
  writer.task("U", stage.number, false);
  Value weights = buffer("weights", optimizer.getWeights());
  Value gradients = buffer("gradients", optimizer.getGradients());
  SmallVector<Value> states;
  for (Attribute state : optimizer.getStates())
    states.push_back(buffer("state", cast<pipe::BufferAttr>(state)));
  Value hyper = buffer("hyper", optimizer.getHyper());
  writer.loadHyper(hyper);
  SmallVector<CallArgument> arguments = {weights, gradients};
  llvm::append_range(arguments, states);
  arguments.push_back(hyper);
  writer.launch(optimizer.getKernelAttr().getLeafReference().getValue(),
                arguments);
  writer.finish();
}

LogicalResult writeStageFunctions(OpBuilder &builder,
                                  const ProgramLayout &layout,
                                  const StageLayout &stage,
                                  Preparations &preparations) {
  auto op = stage.op;
  auto separate = [&] {
    emitc::VerbatimOp::create(builder, op.getLoc(), builder.getStringAttr(""),
                              ValueRange());
  };
  if (failed(writeForward(builder, layout, stage, op.getForward(),
                          Direction::Forward, preparations)))
    return failure();
  separate();
  if (op.getBackward()) {
    if (failed(writeBackward(builder, layout, stage, preparations)))
      return failure();
    separate();
  }
  if (pipe::EvaluateOp evaluate = op.getEvaluate()) {
    if (failed(writeForward(builder, layout, stage, evaluate,
                            Direction::Evaluate, preparations)))
      return failure();
    separate();
  }
  if (stage.optimizer) {
    pipe::OptimizerOp optimizer = stage.optimizer;
    if (!optimizer.getKernelAttr())
      return optimizer.emitOpError("has no kernel; expects a module after "
                                   "attach-optimizer-kernels");
    writeUpdate(builder, stage);
    separate();
  }
  return success();
}

} // namespace pipewright::codegen
