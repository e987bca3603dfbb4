//===- PartitionStages.cpp - pipe-partition-stages ------------------------===//
//
// Cuts the model's function into stages. Where to cut is decided by
// passes/planning/StageGraph on plain data; the bodies are built by
// StageBodies. This file says what goes in and applies what comes out.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/pipe/staged/ModelOps.h"
#include "passes/pipe/staged/StageBodies.h"
#include "passes/planning/StageGraph.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEPARTITIONSTAGES
#include "passes/pipe/Passes.h.inc"

namespace {

enum class Balance { Uniform, Parameters, Flops };

std::optional<Balance> parseBalance(StringRef name) {
  return llvm::StringSwitch<std::optional<Balance>>(name)
      .Case("uniform", Balance::Uniform)
      .Case("parameters", Balance::Parameters)
      .Case("flops", Balance::Flops)
      .Default(std::nullopt);
}

/// A library op that combines two tensors is what people call a layer.
bool isLayer(Operation *op) {
  return isa<nn::LibraryOpInterface>(op) && op->getNumOperands() >= 2;
}

/// The ops that the loss needs as a graph of costs and bytes. `nodes` gets the
/// op of each node.
StageGraph buildGraph(const ModelOps &model, Balance balance,
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
    if (balance == Balance::Uniform)
      node.cost = node.isLayer;
    if (balance == Balance::Flops)
      if (auto cost = dyn_cast<nn::CostOpInterface>(op))
        node.cost = cost.getFlops();
    for (Value operand : op->getOperands()) {
      const ValueOrigin &origin = model.originOf(operand);
      for (Value source : origin.placed)
        values[source].lastUser = number;
      if (balance == Balance::Parameters)
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

struct PartitionStages : impl::PipePartitionStagesBase<PartitionStages> {
  using PipePartitionStagesBase::PipePartitionStagesBase;

  void runOnOperation() override {
    if (failed(partition()))
      signalPassFailure();
  }

private:
  LogicalResult partition();
};

/// What made it so many stages, where that is known: users think in ranks.
static std::string whyStages(ModuleOp module, int64_t stages) {
  auto ranks = module->getAttrOfType<IntegerAttr>(PipeDialect::kRanks);
  if (!ranks || ranks.getInt() <= 1)
    return "";
  return llvm::formatv("; each of {0} ranks needs one: use fewer ranks{1}",
                       ranks.getInt(),
                       stages > ranks.getInt() ? " or loops" : "");
}

LogicalResult PartitionStages::partition() {
  ModuleOp module = getOperation();
  std::optional<Balance> method = parseBalance(balance.getValue());
  if (!method)
    return module.emitError("pipe-partition-stages: expects balance to be "
                            "'uniform', 'parameters' or 'flops', but got '")
           << balance.getValue() << "'";
  auto function = module.lookupSymbol<func::FuncOp>("model");
  if (!function)
    return module.emitError("pipe-partition-stages: expects a function "
                            "'@model', but the module has none");

  ModelOps model(function);
  if (failed(model.analyze()))
    return failure();
  SmallVector<Operation *> nodes;
  StageGraph graph = buildGraph(model, *method, nodes);
  // A stage without a layer balances badly, but it trains: better than refusing
  // a small model on many ranks.
  if (graph.countLayers() < stages)
    for (StageGraph::Node &node : graph.nodes)
      node.isLayer = true;
  auto begins = cutIntoStages(graph, stages);
  if (!begins)
    return module.emitError("pipe-partition-stages: ")
           << llvm::toString(begins.takeError()) << whyStages(module, stages);

  DenseMap<Operation *, int32_t> stageOf;
  for (auto [number, op] : llvm::enumerate(nodes))
    stageOf[op] = llvm::upper_bound(*begins, static_cast<int32_t>(number)) -
                  begins->begin() - 1;
  if (failed(buildStages(model, std::move(stageOf), stages)))
    return failure();
  function.erase();
  return success();
}

} // namespace
} // namespace pipewright::pipe
