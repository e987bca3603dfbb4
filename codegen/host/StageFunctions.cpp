//===- StageFunctions.cpp - One function per stage and kind ---------------===//
//
// Signatures, and the functions around the bodies. A function's parameters
// are the tensors of the task that calls it (operands, then results) and its
// stash, so one function serves every micro-batch.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/StageFunctions.h"

#include "codegen/host/Identifiers.h"
#include "dialects/nn/NNLocation.h"
#include "dialects/nn/NNOrthogonalize.h"
#include "passes/step/BodyBuffers.h"

using namespace mlir;

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

static StringRef wordFor(pipe::TaskKind kind) {
  switch (kind) {
  case pipe::TaskKind::forward:
    return "forward";
  case pipe::TaskKind::backward:
    return "backward";
  case pipe::TaskKind::input_gradient:
    return "inputGradient";
  case pipe::TaskKind::weight_gradient:
    return "weightGradient";
  case pipe::TaskKind::evaluate:
    return "evaluate";
  case pipe::TaskKind::update:
    return "update";
  case pipe::TaskKind::recompute:
    return "recompute";
  }
  llvm_unreachable("all kinds are listed");
}

std::string stageFunctionName(int64_t stage, StageFunction function) {
  std::string name =
      ("stage" + Twine(stage) + "_" + wordFor(function.kind)).str();
  return function.part ? name + "_part" + std::to_string(*function.part) : name;
}

SmallVector<StageFunction> functionsOf(const StageLayout &stage) {
  using enum pipe::TaskKind;
  auto op = stage.op;
  SmallVector<StageFunction> functions;
  for (pipe::TaskKind kind : {forward, recompute, backward, input_gradient,
                              weight_gradient, evaluate, update}) {
    if (kind == update) {
      if (stage.optimizer)
        functions.push_back({kind});
      continue;
    }
    const auto parts = stage.parts.find(kind);
    const bool isCut = parts != stage.parts.end();
    // Where there are halves, a schedule may need only these, or only the
    // whole; where micro-batches keep their stashes, all of them may.
    const bool mayBeIdle =
        op.gradientBodyOf(kind) && (op.getInputGradient() || isCut ||
                                    (kind == recompute && op.getKeeps()));
    if (op.bodyOf(kind) && (!mayBeIdle || stage.run.contains(kind)))
      functions.push_back({kind});
    for (int64_t part = 0; isCut && part < parts->second.count(); ++part)
      functions.push_back({kind, part});
  }
  return functions;
}

/// What tasks keep for each other, in the order in which functions take it, and
/// what it is called there.
static constexpr std::pair<int64_t, llvm::StringLiteral> stashes[] = {
    {pipe::kForwardStash, "stash"},
    {pipe::kWeightStash, "weight_stash"},
    {pipe::kRecomputed, "recomputed"},
    {pipe::kWeightRecomputed, "weight_recomputed"},
    {pipe::kHandover, "handover"}};
static_assert(std::size(stashes) == pipe::kStashes, "all have a name");

static bool isIn(ArrayRef<pipe::BufferAttr> buffers, int64_t stash) {
  return llvm::any_of(buffers, [&](pipe::BufferAttr buffer) {
    return buffer.getSpace() == pipe::BufferSpace::stash &&
           buffer.getIndex() == stash;
  });
}

/// Which of them a body reads or fills.
static SmallVector<std::pair<int64_t, llvm::StringLiteral>>
stashesOf(Operation *body) {
  const auto read = pipe::argumentBuffers(body);
  const auto filled = pipe::stashBuffers(body);
  return llvm::to_vector(llvm::make_filter_range(stashes, [&](const auto &one) {
    return isIn(read, one.first) || isIn(filled, one.first);
  }));
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

/// What a task of the kind takes, then what it makes: tensors only.
static SmallVector<std::string> tensorNames(const ProgramLayout &layout,
                                            const StageLayout &stage,
                                            Operation *body) {
  pipe::ForwardOp forward = const_cast<pipe::StageOp &>(stage.op).getForward();
  NameScope scope;
  SmallVector<std::string> names;
  auto add = [&](const std::string &name) {
    names.push_back(scope.unique(name));
  };
  if (auto gradient = dyn_cast<pipe::GradientBodyInterface>(body)) {
    for (int64_t index : gradient.getInputs())
      add(nameOfSource(layout, forward.getSources()[index]));
    for (int64_t index : gradient.getOutputs())
      add(layout.nameOfOutput(stage, index));
    for (int64_t index : gradient.getGradientsOf())
      add("d_" + layout.nameOfOutput(stage, index));
    for (int64_t index : gradient.getInputGradients())
      add("d_" + nameOfSource(layout, forward.getSources()[index]));
    return names;
  }
  ArrayAttr sources = isa<pipe::ForwardOp>(body)
                          ? cast<pipe::ForwardOp>(body).getSources()
                          : cast<pipe::EvaluateOp>(body).getSources();
  for (Attribute source : sources)
    add(nameOfSource(layout, source));
  for (size_t index = 0; index < pipe::returnOf(body).getValues().size();
       ++index)
    add(layout.nameOfOutput(stage, index));
  return names;
}

/// Whether it reads weights that are not always in the same bytes.
static bool isToldWeights(Operation *body) {
  auto reads = body->getRegion(0).getOps<nn::ParameterOp>();
  return llvm::any_of(reads, [](nn::ParameterOp read) {
    pipe::BufferAttr buffer = pipe::bufferOf(read.getResult());
    return buffer && buffer.getSpace() == pipe::BufferSpace::weights;
  });
}

bool takesWeights(const StageLayout &stage, pipe::TaskKind kind) {
  Operation *body = const_cast<pipe::StageOp &>(stage.op).bodyOf(kind);
  return body && isToldWeights(body);
}

SmallVector<std::string> stageParameters(const ProgramLayout &layout,
                                         const StageLayout &stage,
                                         pipe::TaskKind kind) {
  Operation *body = const_cast<pipe::StageOp &>(stage.op).bodyOf(kind);
  if (!body)
    return {};
  SmallVector<std::string> names = tensorNames(layout, stage, body);
  for (const auto &[stash, name] : stashesOf(body))
    names.push_back(name.str());
  if (isToldWeights(body))
    names.push_back("weights");
  return names;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// `// Stage 0, forward: wte .. h.5.mlp`: the layers of its first and last op.
static std::string describe(const StageLayout &stage, StageFunction function,
                            pipe::BodyOps ops) {
  const pipe::TaskKind kind = function.kind;
  std::string first, last;
  for (Operation &op : ops) {
    std::string layer = nn::layerOfLocation(op.getLoc());
    if (layer.empty() || onlyBrings(&op))
      continue;
    if (first.empty())
      first = layer;
    last = layer;
  }
  StringRef what = kind == pipe::TaskKind::input_gradient    ? "input gradient"
                   : kind == pipe::TaskKind::weight_gradient ? "weight gradient"
                                                             : wordFor(kind);
  std::string text = ("Stage " + Twine(stage.number) + ", " + what).str();
  if (function.part)
    text += ", part " + std::to_string(*function.part);
  if (!first.empty())
    text += ": " + first + (first == last ? "" : " .. " + last);
  return text;
}

static LogicalResult writeOps(FunctionWriter &writer, BodyWriter &body,
                              pipe::BodyOps ops) {
  for (Operation &op : ops)
    if (failed(body.write(&op)))
      return failure();
  return success();
}

/// Forward and evaluate differ only in what is stashed.
template <class BodyOp>
static LogicalResult
writeForward(llvm::raw_ostream &os, const ProgramLayout &layout,
             const StageLayout &stage, BodyOp op, pipe::TaskKind kind,
             Preparations &preparations) {
  Region &region = op.getBodyRegion();
  pipe::ReturnOp end = op.getReturn();
  SmallVector<std::string> parameters = stageParameters(layout, stage, kind);

  FunctionWriter writer(layout.target->hostStyle(),
                        stageFunctionName(stage.number, {kind}),
                        /*hasMicroBatch=*/true, parameters);
  BodyWriter body(writer, layout, stage, preparations, op);
  size_t next = 0;
  for (BlockArgument argument : region.getArguments()) {
    body.inputs.push_back(writer.parameter(next));
    body.bind(argument, writer.parameter(next++));
  }
  for (unsigned index = 0; index < end.getValues().size(); ++index)
    body.outputs.push_back(writer.parameter(next++));
  for (const auto &[stash, name] : stashesOf(op))
    body.stashes[stash] = writer.parameter(next++);
  if (isToldWeights(op))
    body.weights = writer.parameter(next++);
  writer.task(letterOf(kind), stage.number, true);
  if (failed(writeOps(writer, body, region.front())))
    return failure();
  printFunction(os, describe(stage, {kind}, region.front()), writer.finish());
  return success();
}

/// A backward or one of its halves, or a part of it.
static LogicalResult writeGradient(llvm::raw_ostream &os,
                                   const ProgramLayout &layout,
                                   const StageLayout &stage,
                                   StageFunction function,
                                   Preparations &preparations) {
  const pipe::TaskKind kind = function.kind;
  auto stageOp = stage.op;
  pipe::GradientBodyInterface op = stageOp.gradientBodyOf(kind);
  Region &region = op->getRegion(0);
  SmallVector<std::string> parameters = stageParameters(layout, stage, kind);

  const pipe::BodyOps ops =
      function.part ? pipe::opsOfPart(op, stage.parts.at(kind), *function.part)
                    : pipe::BodyOps(region.front());

  FunctionWriter writer(layout.target->hostStyle(),
                        stageFunctionName(stage.number, function),
                        /*hasMicroBatch=*/true, parameters);
  BodyWriter body(writer, layout, stage, preparations, op);
  if (function.part.value_or(0) == 0)
    writer.task(letterOf(kind), stage.number, true);

  // Operands of the task: saved values, ranges of the stash, gradients. What is
  // handed over comes last, and nothing is found by its number.
  size_t next = 0, last = parameters.size();
  if (isToldWeights(op))
    body.weights = writer.parameter(--last);
  const auto kept = stashesOf(op);
  for (const auto &[stash, name] : llvm::reverse(kept))
    body.stashes[stash] = writer.parameter(--last);
  auto addInputs = [&](size_t count) {
    while (count-- > 0)
      body.inputs.push_back(writer.parameter(next++));
  };
  addInputs(op.getInputs().size() + op.getOutputs().size());
  for (Type type : stageOp.getRangesReadBy(op, pipe::TaskKind::forward))
    body.inputs.push_back(body.stashes[*pipe::stashNumber(type)]);
  addInputs(op.getGradientsOf().size());
  while (next < last)
    body.outputs.push_back(writer.parameter(next++));
  for (auto [argument, buffer] :
       llvm::zip_equal(region.getArguments(), pipe::argumentBuffers(op)))
    body.bindTo(argument, buffer);
  if (llvm::hasSingleElement(region.front()))
    writer.comment(kind == pipe::TaskKind::input_gradient
                       ? "No other stage needs a gradient of this one."
                       : "There are no weights to train.");
  if (failed(writeOps(writer, body, ops)))
    return failure();
  printFunction(os, describe(stage, function, ops), writer.finish());
  return success();
}

/// The places that the stage's optimizer updates.
static SmallVector<pipe::PlaceOp> updatedPlaces(const ProgramLayout &layout,
                                                const StageLayout &stage) {
  pipe::OptimizerOp optimizer = stage.optimizer;
  SmallVector<pipe::PlaceOp> places;
  pipe::ArenaOp arena = layout.ranks[stage.rank].arena;
  for (auto place : arena.getOps<pipe::PlaceOp>())
    if (place.getStage() == optimizer.getStage() && place.isUpdated())
      places.push_back(place);
  return places;
}

namespace {

/// Kernels that update in place: one over the flat buffers of all the stage's
/// weights, or one for each weight; matrices that are taken as a whole are made
/// orthogonal between two kernels. They leave zero gradients, as the first
/// backward after them expects. If replicas share the update, the kernel works
/// on a part, and all gradients are cleared behind it, unless they were when
/// the part was kept.
class UpdateWriter {
public:
  UpdateWriter(const ProgramLayout &layout, const StageLayout &stage,
               Preparations &preparations)
      : layout(layout), stage(stage), optimizer(stage.optimizer),
        preparations(preparations),
        writer(layout.target->hostStyle(),
               stageFunctionName(stage.number, {pipe::TaskKind::update}),
               /*hasMicroBatch=*/false, {}) {}

  void write(llvm::raw_ostream &os);

private:
  Local buffer(StringRef name, pipe::BufferAttr planned) {
    return writer.buffer(name, planned.getOffset(), planned.getBytes());
  }
  /// What a replica updates of a range.
  Local updated(StringRef name, pipe::BufferAttr planned) {
    return optimizer.getShards()
               ? writer.shard(name, planned.getOffset(), planned.getBytes())
               : buffer(name, planned);
  }
  /// The matrix at `place` in a flat range, or in a replica's part of one.
  pipe::BufferAttr matrixIn(pipe::BufferAttr range, pipe::BufferAttr place);
  void launch(SymbolRefAttr kernel, ArrayRef<Local> arguments) {
    StringRef called = kernel.getLeafReference().getValue();
    preparations.kernel(called);
    writer.launch(called, arguments);
  }
  Local hyper();
  void writeBucket(SymbolRefAttr kernel, pipe::OptimizerOp::Bucket bucket);
  void writeWeight(pipe::PlaceOp place);
  void writeMatrix(pipe::PlaceOp place);

  const ProgramLayout &layout;
  const StageLayout &stage;
  pipe::OptimizerOp optimizer;
  Preparations &preparations;
  FunctionWriter writer;
  Local loaded;
};

} // namespace

Local UpdateWriter::hyper() {
  if (!loaded) {
    loaded = buffer("hyper", optimizer.getHyper());
    writer.loadHyper(loaded);
  }
  return loaded;
}

/// Updates what replicas cut into parts together, or all that is in front of
/// matrices.
void UpdateWriter::writeBucket(SymbolRefAttr kernel,
                               pipe::OptimizerOp::Bucket bucket) {
  // In what a replica has a part of alone, it lies as a whole.
  auto of = [&](StringRef name, pipe::BufferAttr whole,
                std::optional<pipe::BufferAttr> ofPart) {
    return ofPart ? buffer(name, optimizer.partOf(*ofPart, bucket))
                  : updated(name, optimizer.partOf(whole, bucket));
  };
  SmallVector<Local> arguments = {
      of("weights", optimizer.getWeights(), optimizer.getHome()),
      of("gradients", optimizer.getGradients(), optimizer.getKept())};
  for (auto state : optimizer.getStates().getAsRange<pipe::BufferAttr>())
    arguments.push_back(buffer("state", optimizer.partOf(state, bucket)));
  arguments.push_back(hyper());
  if (optimizer.getRounded())
    arguments.push_back(
        of("rounded", *optimizer.getRounded(), optimizer.getRoundedHome()));
  launch(kernel, arguments);
}

void UpdateWriter::writeWeight(pipe::PlaceOp place) {
  const std::string name = makeIdentifier(place.getWeight());
  SmallVector<Local> arguments = {buffer(name, place.getBuffer()),
                                  buffer("d_" + name, *place.getGradient())};
  for (auto state : optimizer.getStates().getAsRange<pipe::BufferAttr>())
    arguments.push_back(
        buffer(name + "_state", optimizer.partOf(state, place.getBuffer())));
  arguments.push_back(hyper());
  if (place.getRounded())
    arguments.push_back(buffer(name + "_rounded", *place.getRounded()));
  launch(place.getKernelAttr(), arguments);
}

pipe::BufferAttr UpdateWriter::matrixIn(pipe::BufferAttr range,
                                        pipe::BufferAttr place) {
  // Where it would be if the part of the first replica went on.
  const pipe::BufferAttr whole = optimizer.partOf(range, place);
  const int64_t part =
      optimizer.bucketAround(place).bytes / optimizer.countShards();
  const int64_t ratio = place.getBytes() / whole.getBytes();
  return pipe::BufferAttr::get(range.getContext(), range.getSpace(),
                               whole.getOffset() -
                                   optimizer.replicaOf(place) * part / ratio,
                               whole.getBytes());
}

void UpdateWriter::writeMatrix(pipe::PlaceOp place) {
  nn::WeightOp weight =
      layout.weights.find(place.getWeightAttr().getAttr())->second;
  const std::string name = makeIdentifier(place.getWeight());
  const int64_t workspace = optimizer.getWorkspace()->getOffset();
  const runtime::OrthogonalizeShape shape = nn::orthogonalizeShape(weight);
  Local direction =
      writer.buffer(name + "_direction", workspace, shape.bytes());
  Local gradient =
      buffer("d_" + name, optimizer.getKept() ? matrixIn(*optimizer.getKept(),
                                                         place.getBuffer())
                                              : *place.getGradient());
  SmallVector<Local> arguments;
  for (auto [state, kept] : llvm::zip_equal(
           optimizer.getStates().getAsRange<pipe::BufferAttr>(), layout.states))
    if (kept.isOfMatrices)
      arguments.push_back(
          buffer(name + "_state", matrixIn(state, place.getBuffer())));
  arguments.append({gradient, hyper(), direction});
  launch(place.getKernelAttr(), arguments);

  nn::LibraryCall call = nn::orthogonalizeCall(weight);
  writer.call(
      call.function,
      {preparations.add(call), direction,
       writer.buffer(name + "_products", workspace + nn::directionBytes(weight),
                     shape.workspaceBytes())});
  arguments = {buffer(name, optimizer.getHome() ? matrixIn(*optimizer.getHome(),
                                                           place.getBuffer())
                                                : place.getBuffer()),
               gradient, direction, hyper()};
  if (place.getRounded())
    arguments.push_back(
        buffer(name + "_rounded",
               optimizer.getRoundedHome()
                   ? matrixIn(*optimizer.getRoundedHome(), place.getBuffer())
                   : *place.getRounded()));
  launch(place.getFinishAttr(), arguments);
}

void UpdateWriter::write(llvm::raw_ostream &os) {
  writer.task("U", stage.number, false);
  if (ArrayAttr kernels = optimizer.getKernelsAttr())
    for (auto [kernel, bucket] : llvm::zip_equal(
             kernels.getAsRange<SymbolRefAttr>(), optimizer.bucketsOfKernels()))
      writeBucket(kernel, bucket);
  std::map<int64_t, SmallVector<pipe::PlaceOp>> matrices;
  for (pipe::PlaceOp place : updatedPlaces(layout, stage))
    if (optimizer.takesAsMatrix(place))
      matrices[optimizer.replicaOf(place.getBuffer())].push_back(place);
    else if (!optimizer.getKernelsAttr())
      writeWeight(place);
  if (!matrices.empty())
    hyper();
  for (const auto &[replica, places] : matrices) {
    if (optimizer.getShards())
      writer.onReplica(replica);
    for (pipe::PlaceOp place : places)
      writeMatrix(place);
    writer.always();
  }
  if (optimizer.getShards() && !optimizer.getKept())
    writer.zero(buffer("allGradients", optimizer.getGradients()));
  printFunction(os, ("Stage " + Twine(stage.number) + ", update").str(),
                writer.finish());
}

LogicalResult writeStageFunctions(llvm::raw_ostream &os,
                                  const ProgramLayout &layout,
                                  const StageLayout &stage,
                                  Preparations &preparations) {
  auto op = stage.op;
  for (StageFunction function : functionsOf(stage)) {
    const pipe::TaskKind kind = function.kind;
    if (kind == pipe::TaskKind::update)
      continue;
    LogicalResult written =
        kind == pipe::TaskKind::forward
            ? writeForward(os, layout, stage, op.getForward(), kind,
                           preparations)
        : kind == pipe::TaskKind::evaluate
            ? writeForward(os, layout, stage, op.getEvaluate(), kind,
                           preparations)
            : writeGradient(os, layout, stage, function, preparations);
    if (failed(written))
      return failure();
  }
  pipe::ArenaOp arena = layout.ranks[stage.rank].arena;
  for (auto place : arena.getOps<pipe::PlaceOp>())
    if (place.getKernelAttr() &&
        place.getStageAttr().getAttr() == op.getSymNameAttr())
      preparations.kernel(place.getKernelAttr().getLeafReference().getValue());
  if (stage.optimizer) {
    pipe::OptimizerOp optimizer = stage.optimizer;
    if (!llvm::all_of(updatedPlaces(layout, stage), [&](pipe::PlaceOp place) {
          return optimizer.takesAsMatrix(place)
                     ? place.getFinishAttr() != nullptr
                     : optimizer.getKernelsAttr() || place.getKernelAttr();
        }))
      return optimizer.emitOpError("has no kernel; expects a module after "
                                   "pipe-attach-optimizer-kernels");
    UpdateWriter(layout, stage, preparations).write(os);
  }
  return success();
}

} // namespace pipewright::codegen
