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
#include "passes/planning/StageGraph.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

#include <optional>

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
    Manual,
    Type,
    Annotated
  } kind;
  /// What stands behind the name, for messages.
  StringRef argument = "";
  bool needsArgument = false;
};

} // namespace

static constexpr Method kMethods[] = {
    {"uniform", Method::Uniform},
    {"parameters", Method::Parameters},
    {"flops", Method::Flops},
    {"step", Method::Step},
    {"scopes", Method::Scopes},
    {"manual", Method::Manual, ":N,N,...", true},
    {"type", Method::Type, ":REGEX", true},
    {"annotated", Method::Annotated, "[:NAME]"}};

static const Method *findMethod(StringRef balance) {
  auto [word, argument] = balance.split(':');
  const Method *found = llvm::find_if(
      kMethods, [&](const Method &method) { return method.name == word; });
  if (found == std::end(kMethods) ||
      (found->argument.empty() && word != balance) ||
      (found->needsArgument && argument.empty()))
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

//===----------------------------------------------------------------------===//
// Cuts that balance
//===----------------------------------------------------------------------===//

/// A library op that combines two tensors is what people call a layer.
static bool isLayer(Operation *op) {
  return isa<nn::LibraryOpInterface>(op) && op->getNumOperands() >= 2;
}

/// The module that stays whole in a cut by scopes: up to the first number of
/// its name, which numbers layers, or all of it.
static std::string blockOf(Operation *op) {
  std::string layer = nn::layerOfLocation(op->getLoc());
  SmallVector<StringRef> parts = nn::partsOfName(layer);
  const auto *number = llvm::find_if(
      parts, [](StringRef part) { return llvm::all_of(part, llvm::isDigit); });
  if (number != parts.end())
    parts.truncate(number - parts.begin() + 1);
  return llvm::join(parts, ".");
}

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

/// The ops that the loss needs as a graph of costs and bytes. `nodes` gets the
/// op of each node.
static StageGraph buildGraph(const ModelOps &model, Method::Kind method,
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
      if (method == Method::Parameters)
        for (nn::ParameterOp parameter : origin.learned) {
          auto [it, isNew] = weights.insert(
              {parameter.getWeightAttr(), graph.weightCosts.size()});
          if (isNew)
            graph.weightCosts.push_back(
                parameter.getResult().getType().getNumElements());
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

/// Nodes count where their name or their op matches.
static LogicalResult countMatches(StageGraph &graph, ArrayRef<Operation *> ops,
                                  StringRef pattern, int64_t stages,
                                  ModuleOp module) {
  llvm::Regex regex(pattern);
  for (auto [node, op] : llvm::zip_equal(graph.nodes, ops)) {
    node.isLayer = regex.match(nn::nameOfLocation(op->getLoc())) ||
                   regex.match(op->getName().stripDialect());
    node.cost = node.isLayer;
  }
  if (int64_t found = graph.countLayers(); found < stages)
    return module.emitError(
               "pipe-partition-stages: expects a node for each of ")
           << stages << " stages that type:" << pattern << " matches, but "
           << found << (found == 1 ? " does" : " do")
           << whyStages(module, stages);
  return success();
}

/// The ranks that stages take turns on have several of them: then the most
/// expensive stage counts, as for other methods.
static bool hasOneStageEach(ModuleOp module, int64_t stages) {
  return programOf(module).ranks.value_or(stages) == stages;
}

static FailureOr<StageOfOp> balanceStages(const ModelOps &model,
                                          const Method &chosen,
                                          StringRef argument, int64_t stages) {
  const Method::Kind method = chosen.kind;
  auto module = model.getFunction()->getParentOfType<ModuleOp>();
  SmallVector<Operation *> nodes;
  StageGraph graph = buildGraph(model, method, nodes);
  if (method == Method::Scopes) {
    keepScopesWhole(graph, nodes);
    if (int64_t blocks = graph.countLayers(); blocks < stages)
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
  auto begins = !layers.empty() ? cutByLayers(graph, layers)
                : method == Method::Step && hasOneStageEach(module, stages)
                    ? cutForStep(graph, stages,
                                 programOf(module).microBatches.value_or(1))
                    : cutIntoStages(graph, stages);
  if (!begins)
    return module.emitError("pipe-partition-stages: ")
           << llvm::toString(begins.takeError()) << whyStages(module, stages);
  StageOfOp stageOf;
  for (auto [number, op] : llvm::enumerate(nodes))
    stageOf[op] = llvm::upper_bound(*begins, static_cast<int32_t>(number)) -
                  begins->begin() - 1;
  return stageOf;
}

FailureOr<StageOfOp> assignStages(const ModelOps &model, StringRef balance,
                                  int64_t stages) {
  if (std::string problem = problemOfBalance(balance); !problem.empty())
    return model.getFunction()->getParentOfType<ModuleOp>().emitError(
               "pipe-partition-stages: expects balance to be ")
           << problem;
  const Method *method = findMethod(balance);
  StringRef argument = balance.split(':').second;
  return method->kind == Method::Annotated
             ? assignAnnotatedStages(model, argument, stages)
             : balanceStages(model, *method, argument, stages);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

FailureOr<std::map<std::string, int32_t>>
stagesOfNodes(ModuleOp module, StringRef balance, int64_t stages) {
  auto function = module.lookupSymbol<func::FuncOp>("model");
  if (!function)
    return module.emitError("expects a function '@model', but has none");
  ModelOps model(function);
  if (failed(model.analyze()))
    return failure();
  FailureOr<StageOfOp> stageOf = assignStages(model, balance, stages);
  if (failed(stageOf))
    return failure();
  std::map<std::string, int32_t> nodes;
  for (Operation *op : model.placed()) {
    StringRef name = nn::nameOfLocation(op->getLoc());
    auto stage = stageOf->find(op);
    if (name.empty() || stage == stageOf->end())
      continue;
    auto [it, isNew] = nodes.try_emplace(name.str(), stage->second);
    if (!isNew && it->second != stage->second)
      it->second = nn::kSeveralStages;
  }
  return nodes;
}

} // namespace pipewright::pipe
