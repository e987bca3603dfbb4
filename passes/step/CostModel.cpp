//===- CostModel.cpp - How long tasks take on a machine -------------------===//
//
// A roofline per call: matrix work at the rate of its library, everything else
// at the rate at which memory is read and written.
//
//===----------------------------------------------------------------------===//

#include "passes/step/CostModel.h"

#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNOrthogonalize.h"
#include "passes/planning/MachineLinks.h"
#include "passes/planning/NamedMachines.h"
#include "passes/planning/ProductTime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace pipewright {

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      bytes += pipe::byteSize(type);
  return bytes;
}

static int64_t flopsOf(Operation *op, SymbolTableCollection &kernels) {
  if (auto launch = dyn_cast<nn::LaunchOp>(op)) {
    auto kernel = kernels.lookupNearestSymbolFrom<func::FuncOp>(
        launch, launch.getKernel());
    int64_t flops = 0;
    if (kernel)
      kernel.walk(
          [&](nn::CostOpInterface inner) { flops += inner.getFlops(); });
    return flops;
  }
  if (auto cost = dyn_cast<nn::CostOpInterface>(op))
    return cost.getFlops();
  return 0;
}

/// The product that a call makes; none where it makes several.
static std::optional<ProductSize> productOf(const nn::LibraryCall &call) {
  ProductSize size;
  const std::pair<StringRef, int64_t *> places[] = {
      {"batch", &size.batch}, {"m", &size.m}, {"n", &size.n}, {"k", &size.k}};
  for (const nn::ShapeField &field : call.shape)
    for (auto [name, place] : places)
      if (const auto *number = std::get_if<int64_t>(&field.value);
          number && field.name == name)
        *place = *number;
  if (size.flops() == 0)
    return std::nullopt;
  return size;
}

/// Of a product. Where processors share it, what they read and write at its end
/// comes behind their sums.
static double productSeconds(Operation *op, const nn::LibraryCall &call,
                             int64_t flops, const MachineModel &machine) {
  std::optional<ProductSize> size = productOf(call);
  if (!size || machine.processors <= 1)
    return flops / machine.matmulFlops;
  const int64_t factors = bytesOf(ValueRange(call.buffers).take_front(2));
  const int64_t atEnd =
      bytesOf(op->getOperands()) + bytesOf(op->getResults()) - factors;
  return secondsOfProduct(*size, machine) + atEnd / machine.bandwidth;
}

/// Seconds of the arithmetic of one op, beside its memory traffic.
static double arithmeticSeconds(Operation *op, int64_t flops,
                                const MachineModel &machine) {
  auto library = dyn_cast<nn::LibraryOpInterface>(op);
  const nn::LibraryCall call =
      library ? library.getCall({}) : nn::LibraryCall();
  switch (call.work) {
  case nn::CallWork::Matmul:
    return productSeconds(op, call, flops, machine);
  case nn::CallWork::Convolution:
    return flops / machine.convolutionFlops;
  case nn::CallWork::Attention:
    return flops / machine.attentionFlops;
  case nn::CallWork::Random:
    return cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() *
           machine.secondsPerRandom;
  case nn::CallWork::Memory:
    // Compiled code does some dozen operations for each element it loads.
    return flops / (machine.bandwidth * 2);
  }
  llvm_unreachable("all kinds of work are listed");
}

BodyWork workOf(llvm::iterator_range<Block::iterator> body,
                const MachineModel &machine, SymbolTableCollection &kernels) {
  BodyWork work;
  for (Operation &op : body) {
    if (isa<nn::ViewOpInterface, nn::SubviewOp, nn::ParameterOp,
            nn::ConstantOp>(op) ||
        op.hasTrait<OpTrait::IsTerminator>())
      continue;
    int64_t flops = flopsOf(&op, kernels);
    work.flops += flops;
    double traffic = (bytesOf(op.getOperands()) + bytesOf(op.getResults())) /
                     machine.bandwidth;
    work.seconds += std::max(arithmeticSeconds(&op, flops, machine), traffic) +
                    machine.secondsPerCall;
  }
  return work;
}

/// The values of ranges that tasks of kind `giver` fill and a body reads: a
/// range is kept as a whole.
static SmallVector<Value> keptFor(pipe::StageOp stage,
                                  pipe::GradientBodyInterface body,
                                  pipe::TaskKind giver) {
  const SmallVector<Type> read = stage.getRangesReadBy(body, giver);
  SmallVector<Value> values;
  for (const pipe::StashRange &range : stage.getRanges(giver))
    if (llvm::is_contained(read, range.type))
      for (int64_t field : range.fields)
        values.push_back(stage.getKept(giver)[field]);
  return values;
}

/// What bodies of a stage hold on to of its forward.
static SmallVector<Value>
savedValues(pipe::StageOp stage, ArrayRef<pipe::GradientBodyInterface> bodies) {
  llvm::SetVector<Value> saved;
  ValueRange inputs = stage.getForward().getBody()->getArguments();
  pipe::ReturnOp end = stage.getForward().getReturn();
  for (pipe::GradientBodyInterface body : bodies) {
    if (!body)
      continue;
    for (int64_t index : body.getInputs())
      saved.insert(inputs[index]);
    saved.insert_range(keptFor(stage, body, pipe::TaskKind::forward));
  }
  llvm::SetVector<int64_t> outputs;
  for (pipe::GradientBodyInterface body : bodies)
    if (body)
      outputs.insert_range(body.getOutputs());
  SmallVector<Value> values = saved.takeVector();
  // An output is a buffer of its own, whatever it is a result of.
  for (int64_t index : outputs)
    values.push_back(end.getValues()[index]);
  return values;
}

SmallVector<Value> keptForBackward(pipe::StageOp stage) {
  pipe::GradientBodyInterface whole =
      stage.gradientBodyOf(pipe::TaskKind::backward);
  if (!whole)
    return {};
  // What makes the stash again is not needed beside it.
  return savedValues(
      stage, {whole, stage.getKeeps()
                         ? pipe::GradientBodyInterface()
                         : stage.gradientBodyOf(pipe::TaskKind::recompute)});
}

schedules::StashWindow stashWindowOf(pipe::StageOp stage) {
  std::optional<pipe::WindowAttr> window = stage.getKeeps();
  if (!window)
    return {};
  return {window->getCount(), window->getOf(),
          window->getEnd() == pipe::WindowEnd::last};
}

SmallVector<Value> keptForWeights(pipe::StageOp stage) {
  pipe::GradientBodyInterface half =
      stage.gradientBodyOf(pipe::TaskKind::weight_gradient);
  if (!half)
    return {};
  SmallVector<Value> values = savedValues(stage, half);
  for (pipe::TaskKind giver :
       {pipe::TaskKind::input_gradient, pipe::TaskKind::recompute})
    llvm::append_range(values, keptFor(stage, half, giver));
  // Gradients of outputs are as large as these.
  ValueRange outputs = stage.getForward().getReturn().getValues();
  for (int64_t index : half.getGradientsOf())
    values.push_back(outputs[index]);
  return values;
}

void countKeptBytes(pipe::StageOp stage, schedules::StageCosts &costs) {
  if (!stage.gradientBodyOf(pipe::TaskKind::backward))
    return;
  costs.stashBytes = bytesOf(keptForBackward(stage));
  // Until the stash is made again, what that needs is kept in place of it.
  if (stage.getKeeps())
    costs.keptBytes =
        bytesOf(savedValues(
            stage, {stage.gradientBodyOf(pipe::TaskKind::backward),
                    stage.gradientBodyOf(pipe::TaskKind::recompute)})) -
        bytesOf(stage.getForward().getReturn().getStash());
  if (stage.gradientBodyOf(pipe::TaskKind::weight_gradient))
    costs.weightStashBytes = bytesOf(keptForWeights(stage));
}

static constexpr llvm::StringLiteral kOthers = "others", kFirst = "first",
                                     kLast = "last";

DictionaryAttr machineAttribute(const MachineModel &machine,
                                MLIRContext *context) {
  Builder builder(context);
  SmallVector<NamedAttribute> figures;
  auto add = [&](const MachineFigure &figure, double number) {
    figures.push_back(
        builder.getNamedAttr(figure.name, builder.getF64FloatAttr(number)));
  };
  SmallVector<Attribute> others;
  for (const OtherRanks &ranks : machine.others) {
    figures = {
        builder.getNamedAttr(kFirst, builder.getI64IntegerAttr(ranks.first)),
        builder.getNamedAttr(kLast, builder.getI64IntegerAttr(ranks.last))};
    for (auto [figure, number] : ranks.figures)
      add(*figure, number);
    others.push_back(builder.getDictionaryAttr(figures));
  }
  figures.clear();
  for (const MachineFigure &figure : machineFigures())
    if (figure.isKnown(machine))
      add(figure, machine.*figure.place);
  if (!others.empty())
    figures.push_back(
        builder.getNamedAttr(kOthers, builder.getArrayAttr(others)));
  return builder.getDictionaryAttr(figures);
}

/// A number above 0; none where it is none.
static std::optional<double> figureIn(Attribute attribute) {
  auto number = dyn_cast_or_null<FloatAttr>(attribute);
  double value = number ? number.getValueAsDouble() : 0;
  if (!std::isfinite(value) || value <= 0)
    return std::nullopt;
  return value;
}

/// Ranks that are not like the rest.
static std::optional<OtherRanks> ranksWith(Attribute attribute) {
  auto all = dyn_cast<DictionaryAttr>(attribute);
  auto first = all ? all.getAs<IntegerAttr>(kFirst) : IntegerAttr();
  auto last = all ? all.getAs<IntegerAttr>(kLast) : IntegerAttr();
  auto isNumber = [](IntegerAttr number) {
    return number && number.getType().isSignlessInteger(64);
  };
  if (!isNumber(first) || !isNumber(last) || first.getInt() < 0 ||
      last.getInt() < first.getInt() || last.getInt() >= OtherRanks::mostPlaces)
    return std::nullopt;
  OtherRanks ranks{first.getInt(), last.getInt(), {}};
  for (const MachineFigure &figure : machineFigures())
    if (Attribute own = all.get(figure.name)) {
      std::optional<double> number = figureIn(own);
      if (!number || !figure.isOfRank)
        return std::nullopt;
      ranks.figures.emplace_back(&figure, *number);
    }
  if (ranks.figures.empty() || all.size() != ranks.figures.size() + 2)
    return std::nullopt;
  return ranks;
}

/// The machine that has all figures in an attribute, and nothing else.
static std::optional<MachineModel> machineWith(DictionaryAttr attribute) {
  MachineModel machine;
  size_t known = 0;
  for (const MachineFigure &figure : machineFigures()) {
    Attribute own = attribute.get(figure.name);
    if (!own && figure.isOptional)
      continue;
    std::optional<double> number = figureIn(own);
    if (!number)
      return std::nullopt;
    machine.*figure.place = *number;
    ++known;
  }
  if (Attribute own = attribute.get(kOthers)) {
    auto others = dyn_cast<ArrayAttr>(own);
    if (!others || others.size() > OtherRanks::mostKinds)
      return std::nullopt;
    for (Attribute each : others) {
      std::optional<OtherRanks> ranks = ranksWith(each);
      if (!ranks || llvm::any_of(machine.others, [&](const OtherRanks &other) {
            return ranks->overlaps(other);
          }))
        return std::nullopt;
      machine.others.push_back(std::move(*ranks));
    }
    ++known;
  }
  if (attribute.size() != known)
    return std::nullopt;
  return machine;
}

FailureOr<MachineModel> machineOf(ModuleOp module) {
  Attribute given = pipe::programOf(module).machine;
  if (auto figures = dyn_cast_or_null<DictionaryAttr>(given)) {
    if (std::optional<MachineModel> machine = machineWith(figures))
      return *machine;
    InFlightDiagnostic error = module.emitError(
        "expects 'machine' to have a number above 0 for each of");
    for (auto [i, figure] : llvm::enumerate(machineFigures()))
      error << (i == 0 ? " " : ", ") << figure.name
            << (figure.isOptional ? " (optional)" : "");
    return error << "; and where ranks differ '" << kOthers << "' with '"
                 << kFirst << "', '" << kLast << "' and their figures";
  }
  auto name = dyn_cast_or_null<StringAttr>(given);
  if (!name)
    return MachineModel();
  std::optional<MachineModel> machine = machineNamed(name);
  if (!machine)
    return module.emitError("is for an unknown machine: 'machine' is ")
           << name << ", expected " << namesOfMachines();
  return *machine;
}

MachineModel machineOfStage(const MachineModel &machine, pipe::StageOp stage,
                            int64_t number, ArrayRef<int32_t> rankOfStage) {
  if (!machine.isUneven())
    return machine;
  const pipe::ProgramFields program =
      pipe::programOf(stage->getParentOfType<ModuleOp>());
  const runtime::Mesh mesh = program.mesh();
  const int64_t rank =
      !rankOfStage.empty()
          ? rankOfStage[number]
          : static_cast<int64_t>(stage.getRank().value_or(number % mesh.pipe));
  return machine.ofRank(rank, mesh);
}

schedules::TaskCosts costsOfLinks(ModuleOp module,
                                  const MachineModel &machine) {
  schedules::TaskCosts costs;
  setLinks(costs, machine, pipe::programOf(module).mesh());
  return costs;
}

schedules::TaskCosts predictCosts(ModuleOp module, const MachineModel &machine,
                                  pipe::StepMode mode,
                                  ArrayRef<int32_t> rankOfStage) {
  // Never zero: a task that takes no time has no place in a timeline.
  constexpr double least = 1e-7;
  schedules::TaskCosts costs = costsOfLinks(module, machine);
  SymbolTableCollection kernels;
  for (auto [number, stage] : llvm::enumerate(module.getOps<pipe::StageOp>())) {
    schedules::StageCosts cost;
    const MachineModel own =
        machineOfStage(machine, stage, number, rankOfStage);
    auto secondsOf = [&](Operation *body) {
      return std::max(
          least, body ? workOf(body->getRegion(0), own, kernels).seconds : 0);
    };
    if (mode == pipe::StepMode::evaluate) {
      cost.forward = secondsOf(stage.getEvaluate());
      cost.backward = least;
      costs.stages.push_back(cost);
      continue;
    }
    cost.forward = secondsOf(stage.getForward());
    Operation *recompute = stage.getRecompute();
    cost.recompute = recompute ? secondsOf(recompute) : cost.forward;
    cost.recomputesEarly = recompute != nullptr;
    cost.window = stashWindowOf(stage);
    cost.backward = secondsOf(stage.getBackward());
    // Before a backward is split, halves are as good a guess as any.
    cost.inputGradient = cost.weightGradient =
        std::max(least, cost.backward / 2);
    if (stage.getInputGradient()) {
      cost.inputGradient = secondsOf(stage.getInputGradient());
      cost.weightGradient = secondsOf(stage.getWeightGradient());
    }
    countKeptBytes(stage, cost);
    costs.stages.push_back(cost);
  }
  return costs;
}

double secondsOnCores(const schedules::Simulation &simulation, int64_t replicas,
                      int64_t cores) {
  double busy = 0;
  for (const schedules::RankSummary &rank : simulation.ranks)
    busy += rank.busySeconds * static_cast<double>(replicas);
  return std::max(simulation.globalStepTime, busy / static_cast<double>(cores));
}

} // namespace pipewright
