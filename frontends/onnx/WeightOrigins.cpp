//===- WeightOrigins.cpp - Where a model's file has its weights -----------===//

#include "frontends/onnx/WeightOrigins.h"

#include "dialects/nn/NNWeightNames.h"
#include "frontends/onnx/Subgraphs.h"
#include "frontends/onnx/UnknownFields.h"

using namespace mlir;

namespace pipewright::frontend {

/// The field of an initializer that has its number. ONNX has no such field.
constexpr int kNumberField = 20001;

static void collect(onnx::GraphProto &graph,
                    std::vector<onnx::TensorProto *> &all);

template <typename Nodes>
static void collectFrom(Nodes &nodes, std::vector<onnx::TensorProto *> &all) {
  for (onnx::NodeProto &node : nodes)
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node))
      collect(*inner, all);
}

static void collect(onnx::GraphProto &graph,
                    std::vector<onnx::TensorProto *> &all) {
  for (onnx::TensorProto &tensor : *graph.mutable_initializer())
    all.push_back(&tensor);
  collectFrom(*graph.mutable_node(), all);
}

std::vector<onnx::TensorProto *> initializersOf(onnx::ModelProto &model) {
  std::vector<onnx::TensorProto *> all;
  collect(*model.mutable_graph(), all);
  for (auto &function : *model.mutable_functions())
    collectFrom(*function.mutable_node(), all);
  return all;
}

void numberInitializers(onnx::ModelProto &model) {
  for (auto [number, tensor] : llvm::enumerate(initializersOf(model)))
    tensor->mutable_unknown_fields()->AddVarint(kNumberField, number);
}

namespace {

/// One search.
class OriginFinder {
public:
  explicit OriginFinder(const GraphImporter &graph) : graph(graph) {
    for (const auto &tensor : graph.file.graph().initializer())
      initializers[tensor.name()] = &tensor;
  }

  WeightOrigin find(nn::WeightOp weight) const;

private:
  std::optional<int64_t> numberOf(StringRef initializer) const;
  std::vector<NodeInput> readersOf(StringRef initializer) const;

  const GraphImporter &graph;
  llvm::StringMap<const onnx::TensorProto *> initializers;
};

} // namespace

std::optional<int64_t> OriginFinder::numberOf(StringRef initializer) const {
  const onnx::TensorProto *tensor = initializers.lookup(initializer);
  bool isMalformed = false;
  return tensor ? unknownInteger(tensor->unknown_fields(), kNumberField,
                                 isMalformed)
                : std::nullopt;
}

std::vector<NodeInput> OriginFinder::readersOf(StringRef initializer) const {
  std::vector<NodeInput> readers;
  for (const onnx::NodeProto &node : graph.file.graph().node())
    for (auto [i, input] : llvm::enumerate(node.input()))
      if (input == initializer && node.output_size() > 0)
        readers.push_back({node.output(0), static_cast<unsigned>(i)});
  return readers;
}

WeightOrigin OriginFinder::find(nn::WeightOp weight) const {
  WeightOrigin origin;
  origin.name = nn::fileNameOf(weight).str();
  origin.shape = Shape(weight.getFileType().getShape());
  origin.isTrained = weight.getRole() != nn::WeightRole::Constant;
  origin.isFloat = weight.getTensorType().getElementType().isF32();
  StringRef key = origin.name;
  if (auto location = dyn_cast<NameLoc>(weight.getLoc()))
    key = location.getName();
  // Only what is repeated may be called as something else than it.
  if (auto number = numberOf(key))
    origin.holders.push_back({.number = *number, .own = readersOf(key)});
  for (const OwnStatistic &own : graph.ownStatistics)
    if (own.weight == key)
      if (auto number = numberOf(own.initializer))
        origin.holders.push_back(
            {.number = *number, .own = {{own.result, own.input}}});
  for (const InitializerCopy &copy : graph.initializerCopies)
    if (copy.weight == key)
      if (auto number = numberOf(copy.initializer)) {
        if (copy.initializer == key)
          origin.holders.clear();
        origin.holders.push_back({.number = *number,
                                  .isTransposed = copy.isTransposed,
                                  .isRepeated = !copy.isTransposed});
      }
  if (origin.holders.empty())
    origin.value = key.str();
  return origin;
}

std::vector<WeightOrigin> originsOfWeights(GraphImporter &graph) {
  const OriginFinder finder(graph);
  std::vector<WeightOrigin> origins;
  for (auto weight : graph.module->getBody()->getOps<nn::WeightOp>())
    origins.push_back(finder.find(weight));
  return origins;
}

} // namespace pipewright::frontend
