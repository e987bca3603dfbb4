//===- ProgramLayout.cpp - An allocated module, indexed -------------------===//
//
// One walk over the module's top level, so that the writers of functions and
// tables need no searches of their own.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/ProgramLayout.h"

#include "codegen/host/Identifiers.h"
#include "codegen/host/IndexBounds.h"
#include "dialects/nn/NNLocation.h"

using namespace mlir;

namespace pipewright::codegen {

Value behindViews(Value value) {
  while (auto view = value.getDefiningOp<nn::ViewOpInterface>())
    value = view->getOperand(0);
  return value;
}

pipe::BufferAttr plannedBuffer(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  auto buffers = op->getDiscardableAttr(pipe::PipeDialect::kBuffers);
  auto array = dyn_cast_if_present<ArrayAttr>(buffers);
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (!array || index >= array.size())
    return {};
  return dyn_cast<pipe::BufferAttr>(array[index]);
}

FailureOr<ProgramLayout> ProgramLayout::of(ModuleOp module,
                                           const Target &target) {
  ProgramLayout layout;
  layout.module = module;
  layout.target = &target;
  pipe::ProgramFields program = pipe::programOf(module);
  layout.updates = program.updates;
  if (nn::OptimizerAttr optimizer = program.optimizer)
    layout.states = optimizer.getChoice().keptStates();
  for (auto weight : module.getOps<nn::WeightOp>())
    layout.weights[weight.getSymNameAttr()] = weight;
  if (failed(layout.indexStages()) || failed(layout.indexRanks()))
    return failure();
  layout.indexGroups();
  return layout;
}

const StageLayout *ProgramLayout::findStage(StringRef name) const {
  for (const StageLayout &stage : stages)
    if (const_cast<pipe::StageOp &>(stage.op).getSymName() == name)
      return &stage;
  return nullptr;
}

pipe::StageOp ProgramLayout::stageOf(FlatSymbolRefAttr name) const {
  const StageLayout *stage = findStage(name.getValue());
  return stage ? stage->op : pipe::StageOp();
}

int32_t ProgramLayout::numberOf(FlatSymbolRefAttr name) const {
  const StageLayout *stage = findStage(name.getValue());
  return stage ? static_cast<int32_t>(stage->number) : -1;
}

SmallVector<FlatSymbolRefAttr>
ProgramLayout::holdersOf(FlatSymbolRefAttr weight) const {
  SmallVector<FlatSymbolRefAttr> holders;
  for (const StageLayout &stage : stages)
    if (pipe::PlaceOp place = stage.places.lookup(weight.getAttr()))
      holders.push_back(place.getStageAttr());
  return holders;
}

static int64_t numberOf(ArrayRef<Port> ports, StringRef name) {
  for (auto [number, port] : llvm::enumerate(ports))
    if (port.name == name)
      return number;
  return -1;
}

int64_t ProgramLayout::groupNumber(pipe::CollectiveOp op) const {
  return llvm::find(groups, op.getOver()) - groups.begin();
}

int64_t ProgramLayout::inputNumber(StringRef name) const {
  return codegen::numberOf(inputs, name);
}
int64_t ProgramLayout::outputNumber(StringRef name) const {
  return codegen::numberOf(outputs, name);
}

std::string ProgramLayout::nameOfOutput(const StageLayout &stage,
                                        unsigned index) const {
  auto values = const_cast<pipe::StageOp &>(stage.op)
                    .getForward()
                    .getReturn()
                    .getValues();
  if (index >= values.size())
    return "output" + std::to_string(index);
  Value value = values[index];
  if (auto copy = value.getDefiningOp<pipe::CopyOp>())
    value = copy.getValue();
  if (isa<BlockArgument>(value) && nn::nameOfLocation(value.getLoc()).empty())
    return "s" + std::to_string(stage.number) + "_out" + std::to_string(index);
  return identifierFor(value);
}

LogicalResult ProgramLayout::indexPorts(Region &body, ArrayAttr sources,
                                        std::vector<IndexBounds> &bounds) {
  for (auto [argument, source] :
       llvm::zip_equal(body.getArguments(), sources)) {
    auto input = dyn_cast<pipe::InputAttr>(source);
    if (!input)
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t number = inputNumber(input.getName().getValue());
    if (number < 0) {
      number = inputs.size();
      inputs.push_back({input.getName().str(), type, 0, std::nullopt,
                        nn::countedInput(module, input.getName())});
      bounds.emplace_back();
    }
    if (type.getElementType().isInteger(64) &&
        failed(bounds[number].follow(*this, argument)))
      return failure();
  }
  for (auto report : body.getOps<pipe::ReportOp>()) {
    if (report.getName() == "loss" || outputNumber(report.getName()) >= 0)
      continue;
    outputs.push_back({report.getName().str(),
                       cast<RankedTensorType>(report.getValue().getType()), 0,
                       std::nullopt});
  }
  return success();
}

LogicalResult ProgramLayout::indexStages() {
  for (auto op : module.getOps<pipe::StageOp>()) {
    StageLayout stage;
    stage.op = op;
    stage.number = stages.size();
    if (!op.getRank())
      return op.emitOpError(
          "has no rank; expects a module after pipe-schedule");
    stage.rank = *op.getRank();
    stages.push_back(std::move(stage));
  }
  if (stages.empty())
    return module.emitError("has no pipe.stage; expects a module after "
                            "pipe-plan-memory");
  std::vector<IndexBounds> bounds;
  for (StageLayout &stage : stages) {
    pipe::ForwardOp forward = stage.op.getForward();
    if (failed(
            indexPorts(forward.getBodyRegion(), forward.getSources(), bounds)))
      return failure();
    if (pipe::EvaluateOp evaluate = stage.op.getEvaluate())
      if (failed(indexPorts(evaluate.getBodyRegion(), evaluate.getSources(),
                            bounds)))
        return failure();
  }
  for (auto [input, bound] : llvm::zip_equal(inputs, bounds))
    bound.apply(input);
  return success();
}

LogicalResult ProgramLayout::indexArena(pipe::ArenaOp arena) {
  for (Operation &op : arena.getBodyRegion().front()) {
    StringRef stageName;
    if (auto place = dyn_cast<pipe::PlaceOp>(op))
      stageName = place.getStage();
    else if (auto optimizer = dyn_cast<pipe::OptimizerOp>(op))
      stageName = optimizer.getStage();
    else
      continue;
    auto *stage = const_cast<StageLayout *>(findStage(stageName));
    if (!stage)
      return op.emitOpError()
             << "names stage @" << stageName << ", which does not exist";
    if (auto place = dyn_cast<pipe::PlaceOp>(op)) {
      if (!weights.contains(place.getWeightAttr().getAttr()))
        return place.emitOpError() << "names weight @" << place.getWeight()
                                   << ", which does not exist";
      stage->places[place.getWeightAttr().getAttr()] = place;
    } else {
      stage->optimizer = cast<pipe::OptimizerOp>(op);
      size_t found = stage->optimizer.getStates().size();
      if (found != states.size())
        return op.emitOpError() << "has " << found << " states, but the "
                                << "module's optimizer " << states.size();
    }
  }
  return success();
}

void ProgramLayout::indexGroups() {
  for (auto rank : module.getOps<pipe::RankOp>())
    for (auto together : rank.getBody()->getOps<pipe::CollectiveOp>())
      if (groupNumber(together) == static_cast<int64_t>(groups.size()))
        groups.push_back(together.getOver());
}

LogicalResult ProgramLayout::indexTask(pipe::TaskOp task, StageLayout &stage) {
  const pipe::TaskKind kind = task.getKind();
  if (!task.getParts()) {
    stage.run.insert(kind);
    return success();
  }
  if (stage.parts.contains(kind))
    return success();
  FailureOr<pipe::Stages> read = pipe::Stages::read(module);
  if (failed(read))
    return failure();
  stage.parts[kind] =
      pipe::backwardParts(*read, read->numberOf(task.getStageAttr()), kind);
  return success();
}

LogicalResult ProgramLayout::indexRanks() {
  for (auto arena : module.getOps<pipe::ArenaOp>()) {
    RankLayout rank;
    rank.number = arena.getRank();
    rank.arena = arena;
    ranks.push_back(rank);
    if (failed(indexArena(arena)))
      return failure();
  }
  llvm::sort(ranks, [](const RankLayout &a, const RankLayout &b) {
    return a.number < b.number;
  });
  for (auto [number, rank] : llvm::enumerate(ranks))
    if (rank.number != static_cast<int64_t>(number))
      return rank.arena.emitOpError()
             << "expects ranks 0, 1, 2, ... to have one arena each, but rank "
             << number << " has none or several";
  for (auto op : module.getOps<pipe::RankOp>()) {
    int64_t number = op.getRank();
    if (number >= static_cast<int64_t>(ranks.size()))
      return op.emitOpError() << "has no pipe.arena; expects a module after "
                                 "pipe-plan-memory";
    bool trains = op.getMode() == pipe::StepMode::train;
    (trains ? ranks[number].train : ranks[number].evaluate) = op;
    for (auto task : op.getBody()->getOps<pipe::TaskOp>())
      if (auto *stage = const_cast<StageLayout *>(findStage(task.getStage())))
        if (failed(indexTask(task, *stage)))
          return failure();
  }
  if (ranks.empty())
    return module.emitError("has no pipe.arena; expects a module after "
                            "pipe-plan-memory");
  for (RankLayout &rank : ranks)
    if (!rank.train)
      return rank.arena.emitOpError("has no pipe.rank for training");
  return success();
}

} // namespace pipewright::codegen
