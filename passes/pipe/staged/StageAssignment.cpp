//===- StageAssignment.cpp - Which stage each op is in --------------------===//
//
// Where to cut is decided by passes/planning/StageGraph on plain data. This
// file says what goes in.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/StageAssignment.h"

#include "dialects/nn/NNDevices.h"
#include "dialects/nn/NNLocation.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/pipe/staged/ModelLayers.h"
#include "passes/planning/PeerPartitions.h"
#include "passes/planning/StageGraph.h"
#include "passes/step/CostModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

#include <limits>
#include <optional>
#include <set>

using namespace mlir;

namespace pipewright::pipe {

namespace {

struct Method {
  StringRef name;
  enum Kind {
    Uniform,
    Parameters,
    Flops,
    Step,
    Scopes,
    Memory,
    Time,
    Manual,
    Type,
    Annotated,
    // Others' algorithms, on modules.
    DeepSpeedUniform,
    DeepSpeedParameters,
    TorchgpipeSize,
    TorchgpipeTime,
  } kind;
  /// What stands behind the name, for messages.
  StringRef argument = "";
  bool needsArgument = false;

  bool isOfOthers() const { return kind >= DeepSpeedUniform; }
  /// Whether stages are to take as long, and not to count as much.
  bool sharesTime() const {
    return kind == Flops || kind == Step || kind == Scopes || kind == Time;
  }
  bool readsModelAlone() const {
    return kind == Uniform || kind == Parameters || kind == Flops ||
           kind == Scopes || kind == DeepSpeedUniform ||
           kind == DeepSpeedParameters;
  }
};

} // namespace

static constexpr Method kMethods[] = {
    {"uniform", Method::Uniform},
    {"parameters", Method::Parameters},
    {"flops", Method::Flops},
    {"step", Method::Step, "[:FILE.json]"},
    {"scopes", Method::Scopes},
    {"memory", Method::Memory},
    {"time", Method::Time, ":FILE.json", true},
    {"manual", Method::Manual, ":N,N,...", true},
    {"type", Method::Type, ":REGEX", true},
    {"annotated", Method::Annotated, "[:NAME]"},
    {"deepspeed-uniform", Method::DeepSpeedUniform},
    {"deepspeed-parameters", Method::DeepSpeedParameters},
    {"torchgpipe-size", Method::TorchgpipeSize},
    {"torchgpipe-time", Method::TorchgpipeTime, ":FILE.json", true}};

static const Method *findMethod(StringRef balance) {
  auto [word, argument] = balance.split(':');
  const Method *found = llvm::find_if(
      kMethods, [&](const Method &method) { return method.name == word; });
  if (found == std::end(kMethods) ||
      (found->argument.empty() && word != balance) ||
      (argument.empty() && (found->needsArgument || word != balance)))
    return nullptr;
  return found;
}

/// The layers of each stage: whole numbers above 0. None for other text.
static std::optional<SmallVector<int64_t>> readLayers(StringRef text) {
  SmallVector<int64_t> layers;
  for (StringRef each : llvm::split(text, ',')) {
    int64_t count = 0;
    if (each.trim().getAsInteger(10, count) || count < 1 || count > (1 << 20))
      return std::nullopt;
    layers.push_back(count);
  }
  return layers;
}

SmallVector<StringRef> balancesByName() {
  SmallVector<StringRef> names;
  for (const Method &method : kMethods)
    if (method.argument.empty())
      names.push_back(method.name);
  return names;
}

bool isBalanceWithinMemory(StringRef balance) {
  const Method *method = findMethod(balance);
  return method && method->kind == Method::Step;
}

bool isBalanceOfModelAlone(StringRef balance) {
  const Method *method = findMethod(balance);
  return method && method->readsModelAlone();
}

std::string problemOfBalance(StringRef balance) {
  const Method *method = findMethod(balance);
  StringRef argument = balance.split(':').second;
  if (method && method->kind == Method::Manual && !readLayers(argument))
    return llvm::formatv("numbers of layers with a comma between two behind "
                         "manual:, but got '{0}'",
                         argument);
  if (std::string problem; method && method->kind == Method::Type &&
                           !llvm::Regex(argument).isValid(problem))
    return llvm::formatv("a regular expression behind type:, but got '{0}': "
                         "{1}",
                         argument, problem);
  if (method)
    return "";
  std::vector<std::string> names;
  for (const Method &known : kMethods)
    names.push_back((known.name + known.argument).str());
  const std::string last = names.back();
  names.pop_back();
  return llvm::formatv("{0} or {1}, but got '{2}'", llvm::join(names, ", "),
                       last, balance);
}

StringRef patternOfBalance(StringRef balance) {
  const Method *method = findMethod(balance);
  return method && method->kind == Method::Type ? balance.split(':').second
                                                : StringRef();
}

StringRef timesFileOfBalance(StringRef balance) {
  const Method *method = findMethod(balance);
  return method && (method->kind == Method::Time ||
                    method->kind == Method::Step ||
                    method->kind == Method::TorchgpipeTime)
             ? balance.split(':').second
             : StringRef();
}

//===----------------------------------------------------------------------===//
// Cuts that balance
//===----------------------------------------------------------------------===//

/// Stages begin where modules do. What is of no module goes with what is before
/// it.
static void keepScopesWhole(StageGraph &graph, ArrayRef<Operation *> ops) {
  std::string current;
  for (auto [node, op] : llvm::zip_equal(graph.nodes, ops)) {
    std::string block = blockOf(op);
    node.isLayer = !block.empty() && block != current;
    node.mayBegin = node.isLayer;
    if (!block.empty())
      current = block;
  }
}

/// The ops that the loss needs as a graph of costs, and of bytes where
/// `countsBytes`. `nodes` gets the op of each node.
static StageGraph buildGraph(const ModelOps &model, Method::Kind method,
                             bool countsBytes,
                             SmallVectorImpl<Operation *> &nodes) {
  StageGraph graph;
  bool hasLayers = llvm::any_of(model.placed(), [&](Operation *op) {
    return model.isNeededForLoss(op) && isLayer(op);
  });
  llvm::MapVector<Value, StageGraph::Value> values;
  DenseMap<Attribute, int32_t> weights;
  for (Operation *op : model.placed()) {
    if (!model.isNeededForLoss(op))
      continue;
    int32_t number = nodes.size();
    nodes.push_back(op);
    StageGraph::Node node;
    // A model of pointwise ops alone may be cut anywhere.
    node.isLayer = isLayer(op) || !hasLayers;
    if (method == Method::Uniform)
      node.cost = node.isLayer;
    if (method == Method::Flops || method == Method::Scopes ||
        method == Method::Step)
      if (auto cost = dyn_cast<nn::CostOpInterface>(op))
        node.cost = cost.getFlops();
    for (Value operand : op->getOperands()) {
      const ValueOrigin &origin = model.originOf(operand);
      for (Value source : origin.placed)
        values[source].lastUser = number;
      if (method == Method::Parameters || countsBytes)
        for (nn::ParameterOp parameter : origin.learned) {
          std::vector<double> &counts =
              countsBytes ? graph.weightBytes : graph.weightCosts;
          auto [it, isNew] =
              weights.insert({parameter.getWeightAttr(), counts.size()});
          if (isNew)
            counts.push_back(parameter.getResult().getType().getNumElements());
          node.weights.push_back(it->second);
        }
    }
    for (Value result : op->getResults())
      values[result] = {number, number,
                        byteSize(cast<RankedTensorType>(result.getType()))};
    graph.nodes.push_back(std::move(node));
  }
  for (auto &[value, flow] : values)
    graph.values.push_back(flow);
  return graph;
}

/// What made it so many stages, where that is known: users think in ranks.
static std::string whyStages(ModuleOp module, int64_t stages) {
  const int64_t ranks = programOf(module).ranks.value_or(1);
  if (ranks <= 1)
    return "";
  return llvm::formatv("; each of {0} ranks needs one: use fewer ranks{1}",
                       ranks, stages > ranks ? " or loops" : "");
}

/// Nodes count where their name or their op matches, in capitals or not: ONNX
/// and PyTorch write `Conv` and `Conv2d` where ours is `conv`.
static LogicalResult countMatches(StageGraph &graph, ArrayRef<Operation *> ops,
                                  StringRef pattern, int64_t stages,
                                  ModuleOp module) {
  llvm::Regex regex(pattern, llvm::Regex::IgnoreCase);
  std::set<StringRef> names;
  for (auto [node, op] : llvm::zip_equal(graph.nodes, ops)) {
    node.isLayer = regex.match(nn::nameOfLocation(op->getLoc())) ||
                   regex.match(op->getName().stripDialect());
    node.cost = node.isLayer;
    names.insert(op->getName().stripDialect());
  }
  if (int64_t found = graph.countLayers(); found < stages)
    return module.emitError(
               "pipe-partition-stages: expects a node for each of ")
           << stages << " stages that type:" << pattern << " matches, but "
           << found << (found == 1 ? " does" : " do")
           << whyStages(module, stages) << "; the model's ops are "
           << llvm::join(names, ", ");
  return success();
}

/// Bytes that are there all the time, of weights, their gradients, and the
/// optimizer's states; and what is kept.
static LogicalResult countMemory(StageGraph &graph, const ModelOps &model,
                                 ArrayRef<Operation *> ops, ModuleOp module) {
  nn::OptimizerAttr optimizer = programOf(module).optimizer;
  const size_t states = optimizer ? optimizer.getChoice().states().size() : 0;
  for (double &bytes : graph.weightBytes)
    bytes *= static_cast<double>(sizeof(float) * (2 + states));
  return findKept(model, ops, graph);
}

/// What was measured of each layer, in seconds (`pipe.layer_times`).
static FailureOr<std::vector<double>> timesOf(ArrayRef<ModelLayer> layers,
                                              ModuleOp module) {
  auto measured = module->getAttrOfType<ArrayAttr>(PipeDialect::kLayerTimes);
  if (!measured)
    return module.emitError("pipe-partition-stages: expects '")
           << PipeDialect::kLayerTimes << "', what pipewright profile measures";
  std::vector<double> times;
  for (auto [number, layer] : llvm::enumerate(layers)) {
    auto one = number < measured.size() ? cast<ArrayAttr>(measured[number])
                                        : ArrayAttr();
    StringRef name = one ? cast<StringAttr>(one[0]).getValue() : "";
    if (!one || name != layer.name)
      return module.emitError("pipe-partition-stages: expects the time of '")
             << layer.name << "' as number " << number
             << " of those measured, but got "
             << (one ? "that of '" + name + "'" : "none")
             << ": measure this model by pipewright profile";
    times.push_back(cast<FloatAttr>(one[1]).getValueAsDouble());
  }
  if (measured.size() != layers.size())
    return module.emitError("pipe-partition-stages: expects the times of ")
           << layers.size() << " modules, but got those of " << measured.size()
           << ": measure this model by pipewright profile";
  return times;
}

/// Nodes cost what their ops are predicted to take, where the module says so
/// (`pipe.op_seconds`).
static LogicalResult takeSeconds(StageGraph &graph, const ModelOps &model,
                                 ArrayRef<Operation *> ops) {
  Block &block = model.getFunction().getBody().front();
  auto module = model.getFunction()->getParentOfType<ModuleOp>();
  auto seconds =
      module->getAttrOfType<DenseF64ArrayAttr>(PipeDialect::kOpSeconds);
  if (!seconds)
    return success();
  const auto count = static_cast<int64_t>(block.getOperations().size());
  if (seconds.size() != count)
    return module.emitError("pipe-partition-stages: expects '")
           << PipeDialect::kOpSeconds << "' to have one number for each of "
           << count << " ops, but got " << seconds.size();
  DenseMap<Operation *, double> secondsOfOp;
  for (auto [op, one] : llvm::zip_equal(block, seconds.asArrayRef()))
    secondsOfOp[&op] = one;
  for (auto [node, op] : llvm::zip_equal(graph.nodes, ops))
    node.cost = secondsOfOp.lookup(op);
  return success();
}

/// What others call the cost of each module.
static FailureOr<std::vector<double>> costsOfOthers(Method::Kind method,
                                                    const ModelOps &model,
                                                    ArrayRef<Operation *> ops,
                                                    ArrayRef<ModelLayer> layers,
                                                    ModuleOp module) {
  if (method == Method::TorchgpipeTime)
    return timesOf(layers, module);
  std::vector<double> costs;
  for (const ModelLayer &layer : layers) {
    DenseSet<Attribute> seen;
    double weights = 0, values = 0;
    for (Operation *op : ops.slice(layer.begin, layer.end - layer.begin)) {
      weights += static_cast<double>(trainedBytes(model, op, seen));
      for (Type type : op->getResultTypes())
        values += static_cast<double>(byteSize(cast<RankedTensorType>(type)));
    }
    // Twice: a weight and its gradient.
    costs.push_back(method == Method::TorchgpipeSize ? values + 2 * weights
                                                     : weights);
  }
  return costs;
}

/// Methods that keep modules whole need one for each stage.
static LogicalResult checkModules(ArrayRef<ModelLayer> modules,
                                  StringRef method, int64_t stages,
                                  ModuleOp module) {
  const auto count = static_cast<int64_t>(modules.size());
  if (count >= stages)
    return success();
  return module.emitError("pipe-partition-stages: ")
         << method << " expects a module for each of " << stages
         << " stages, but the model has " << count << whyStages(module, stages);
}

/// As another system would cut the model's modules.
static FailureOr<SmallVector<int32_t>>
cutAsOthers(const Method &method, const ModelOps &model,
            ArrayRef<Operation *> ops, int64_t stages, ModuleOp module) {
  const SmallVector<ModelLayer> layers = layersOf(ops);
  if (failed(checkModules(layers, method.name, stages, module)))
    return failure();
  std::vector<int64_t> cut;
  if (method.kind == Method::DeepSpeedUniform) {
    cut = cutAsDeepSpeedUniform(static_cast<int64_t>(layers.size()), stages);
  } else {
    auto costs = costsOfOthers(method.kind, model, ops, layers, module);
    if (failed(costs))
      return failure();
    cut = method.kind == Method::DeepSpeedParameters
              ? cutAsDeepSpeedBalanced(*costs, stages)
              : cutAsTorchgpipe(*costs, stages);
  }
  if (cut.empty())
    return module.emitError("pipe-partition-stages: ")
           << method.name << " finds no cut into " << stages
           << " stages with a module in each: use another --balance, such as "
              "step";
  SmallVector<int32_t> begins;
  for (int64_t layer : cut)
    begins.push_back(layers[layer].begin);
  return begins;
}

/// The ranks that stages take turns on have several of them: then the most
/// expensive stage counts, as for other methods.
static bool hasOneStageEach(ModuleOp module, int64_t stages) {
  return programOf(module).ranks.value_or(stages) == stages;
}

static StageOfOp stagesThatBegin(ArrayRef<int32_t> begins,
                                 ArrayRef<Operation *> nodes) {
  StageOfOp stageOf;
  for (auto [number, op] : llvm::enumerate(nodes))
    stageOf[op] = llvm::upper_bound(begins, static_cast<int32_t>(number)) -
                  begins.begin() - 1;
  return stageOf;
}

/// What the ranks of stages can do on the machine that is planned for.
static FailureOr<StageRanks> ranksOf(const ModelOps &model, Method::Kind method,
                                     const StageCut &cut) {
  auto function = model.getFunction();
  auto module = function->getParentOfType<ModuleOp>();
  FailureOr<MachineModel> machine = machineOf(module);
  if (failed(machine))
    return failure();
  StageRanks ranks;
  if (method == Method::Step && !cut.memoryLimit.empty())
    for (int64_t stage = 0; stage < cut.stages; ++stage)
      ranks.memory.push_back(static_cast<double>(
          cut.memoryLimit[cut.memoryLimit.size() == 1 ? 0 : stage]));
  if (!machine->isUneven() || cut.stages < 1)
    return ranks;
  const ProgramFields program = programOf(module);
  runtime::Mesh mesh = program.mesh();
  mesh.pipe = program.ranks.value_or(cut.stages);
  Region &body = function.getBody();
  SymbolTableCollection none;
  const double best = workOf(body, machine->ofBestRank(), none).seconds;
  std::vector<int64_t> rankOfStage = cut.rankOfStage.vec();
  for (int64_t stage = 0; cut.rankOfStage.empty() && stage < cut.stages;
       ++stage)
    rankOfStage.push_back(stage % mesh.pipe);
  const size_t copies = rankOfStage.size() / cut.stages;
  for (int64_t stage = 0; stage < cut.stages; ++stage) {
    // The copies share the micro-batches evenly.
    double slowness = 0, memory = std::numeric_limits<double>::infinity();
    for (size_t copy = 0; copy < copies; ++copy) {
      const MachineModel own =
          machine->ofRank(rankOfStage[copy * cut.stages + stage], mesh);
      slowness += workOf(body, own, none).seconds / best;
      memory = std::min(memory, own.memory);
    }
    ranks.slowness.push_back(slowness / static_cast<double>(copies));
    if (method == Method::Memory && memory < MachineModel::unknownMemory)
      ranks.memory.push_back(memory);
  }
  if (method == Method::Memory && !ranks.memory.empty() &&
      ranks.memory.size() != ranks.slowness.size())
    return module.emitError("pipe-partition-stages: balance memory expects the "
                            "memory of all ranks or of none, but the machine "
                            "has it for ")
           << ranks.memory.size() << " of " << ranks.slowness.size()
           << " stages";
  return ranks;
}

static FailureOr<StageOfOp> balanceStages(const ModelOps &model,
                                          const Method &chosen,
                                          StringRef argument,
                                          const StageCut &cut) {
  const Method::Kind method = chosen.kind;
  const int64_t stages = cut.stages;
  const bool countsBytes = method == Method::Memory ||
                           (method == Method::Step && !cut.memoryLimit.empty());
  auto module = model.getFunction()->getParentOfType<ModuleOp>();
  SmallVector<Operation *> nodes;
  StageGraph graph = buildGraph(model, method, countsBytes, nodes);
  if (chosen.isOfOthers()) {
    auto begins = cutAsOthers(chosen, model, nodes, stages, module);
    if (failed(begins))
      return failure();
    return stagesThatBegin(*begins, nodes);
  }
  if (countsBytes && failed(countMemory(graph, model, nodes, module)))
    return failure();
  if (method == Method::Step && argument.empty() &&
      failed(takeSeconds(graph, model, nodes)))
    return failure();
  if (method == Method::Time || (method == Method::Step && !argument.empty())) {
    const SmallVector<ModelLayer> layers = layersOf(nodes);
    auto times = timesOf(layers, module);
    if (failed(times) ||
        failed(checkModules(layers, (chosen.name + ":FILE.json").str(), stages,
                            module)))
      return failure();
    for (StageGraph::Node &node : graph.nodes) {
      node.isLayer = node.mayBegin = false;
      node.cost = 0;
    }
    for (auto [layer, seconds] : llvm::zip_equal(layers, *times)) {
      StageGraph::Node &first = graph.nodes[layer.begin];
      first.isLayer = first.mayBegin = true;
      first.cost = seconds;
    }
  }
  if (method == Method::Scopes) {
    keepScopesWhole(graph, nodes);
    const int64_t blocks = graph.countLayers();
    if (blocks == 0)
      return module.emitError("pipe-partition-stages: balance scopes expects "
                              "nodes with names of modules, but the model has "
                              "none: use another --balance");
    if (blocks < stages)
      return module.emitError("pipe-partition-stages: expects at most ")
             << blocks
             << (blocks == 1 ? " stage, as the model has one module"
                             : " stages, one for each module of the model")
             << " that has a name, but got " << stages
             << whyStages(module, stages)
             << ", or another --balance, which cuts modules, too";
  }
  if (method == Method::Type &&
      failed(countMatches(graph, nodes, argument, stages, module)))
    return failure();
  SmallVector<int64_t> layers;
  if (method == Method::Manual) {
    layers = *readLayers(argument);
    if (static_cast<int64_t>(layers.size()) != stages)
      return module.emitError("pipe-partition-stages: expects the layers of ")
             << stages << (stages == 1 ? " stage" : " stages")
             << " behind manual:, but got those of " << layers.size();
  }
  // A stage without a layer balances badly, but it trains: better than refusing
  // a small model on many ranks.
  if (layers.empty() && graph.countLayers() < stages)
    for (StageGraph::Node &node : graph.nodes)
      node.isLayer = true;
  const int64_t microBatches = programOf(module).microBatches.value_or(1);
  FailureOr<StageRanks> ranks = ranksOf(model, method, cut);
  if (failed(ranks))
    return failure();
  auto begins =
      !layers.empty() ? cutByLayers(graph, layers)
      : method == Method::Memory
          ? cutForMemory(graph, stages, microBatches, /*slack=*/0.01, *ranks)
      : method == Method::Step && hasOneStageEach(module, stages)
          ? cutForStep(graph, stages, microBatches, *ranks)
      : chosen.sharesTime() ? cutIntoStages(graph, stages, 0.05, *ranks)
                            : cutIntoStages(graph, stages);
  if (!begins)
    return module.emitError("pipe-partition-stages: ")
           << llvm::toString(begins.takeError())
           << (layers.empty() ? whyStages(module, stages) : "");
  return stagesThatBegin(*begins, nodes);
}

FailureOr<StageOfOp> assignStages(const ModelOps &model, const StageCut &cut) {
  auto module = model.getFunction()->getParentOfType<ModuleOp>();
  if (std::string problem = problemOfBalance(cut.balance); !problem.empty())
    return module.emitError("pipe-partition-stages: expects balance to be ")
           << problem;
  auto refuse = [&](StringRef option, size_t size) {
    return module.emitError("pipe-partition-stages: expects ")
           << option << " of " << cut.stages << " stages, but got " << size;
  };
  const auto stages = static_cast<size_t>(std::max<int64_t>(0, cut.stages));
  if (cut.memoryLimit.size() > 1 && cut.memoryLimit.size() != stages)
    return refuse("memory-limit", cut.memoryLimit.size());
  if (stages > 0 && cut.rankOfStage.size() % stages != 0)
    return refuse("rank-of-stage", cut.rankOfStage.size());
  const int64_t ranks = programOf(module).ranks.value_or(cut.stages);
  for (int64_t bytes : cut.memoryLimit)
    if (bytes < 1)
      return module.emitError("pipe-partition-stages: expects memory-limit to "
                              "be at least 1 byte, but got ")
             << bytes;
  for (int64_t rank : cut.rankOfStage)
    if (rank < 0 || rank >= ranks)
      return module.emitError("pipe-partition-stages: expects rank-of-stage to "
                              "be from 0 to ")
             << ranks - 1 << ", but got " << rank;
  const Method *method = findMethod(cut.balance);
  StringRef argument = cut.balance.split(':').second;
  return method->kind == Method::Annotated
             ? assignAnnotatedStages(model, argument, cut.stages)
             : balanceStages(model, *method, argument, cut);
}

} // namespace pipewright::pipe
