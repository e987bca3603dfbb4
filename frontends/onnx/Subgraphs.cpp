//===- Subgraphs.cpp - Graphs within nodes --------------------------------===//
//
// All weights of a model stand in its own graph behind this, so what looks at
// weights need not look into subgraphs.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Subgraphs.h"

#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/Limits.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace pipewright::frontend {

SmallVector<Subgraph, 2> subgraphsOf(const onnx::NodeProto &node) {
  SmallVector<Subgraph, 2> result;
  for (const auto &attribute : node.attribute()) {
    if (attribute.has_g())
      result.push_back({attribute.name(), &attribute.g()});
    for (const auto &graph : attribute.graphs())
      result.push_back({attribute.name(), &graph});
  }
  return result;
}

SmallVector<onnx::GraphProto *, 2> mutableSubgraphsOf(onnx::NodeProto &node) {
  SmallVector<onnx::GraphProto *, 2> result;
  for (auto &attribute : *node.mutable_attribute()) {
    if (attribute.has_g())
      result.push_back(attribute.mutable_g());
    for (auto &graph : *attribute.mutable_graphs())
      result.push_back(&graph);
  }
  return result;
}

static void collectNodes(const onnx::GraphProto &graph,
                         std::vector<const onnx::NodeProto *> &nodes) {
  for (const auto &node : graph.node()) {
    nodes.push_back(&node);
    for (const Subgraph &inner : subgraphsOf(node))
      collectNodes(*inner.graph, nodes);
  }
}

std::vector<const onnx::NodeProto *> allNodesOf(const onnx::GraphProto &graph) {
  std::vector<const onnx::NodeProto *> nodes;
  collectNodes(graph, nodes);
  return nodes;
}

llvm::StringSet<> namesDefinedIn(const onnx::GraphProto &graph) {
  llvm::StringSet<> names;
  for (const auto &input : graph.input())
    names.insert(input.name());
  for (const auto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const auto &node : graph.node())
    for (const std::string &output : node.output())
      if (!output.empty())
        names.insert(output);
  return names;
}

std::string nameWithin(StringRef place, StringRef name) {
  // PyTorch's names begin with a slash.
  const bool isApart = place.empty() || name.starts_with("/");
  return (place + (isApart ? "" : "/") + name).str();
}

std::string subgraphLabel(StringRef node, StringRef attribute) {
  return (node + "." + attribute).str();
}

std::string iterationLabel(StringRef node, int64_t iteration) {
  return (node + "[" + Twine(iteration) + "]").str();
}

namespace {

class InitializerHoister {
public:
  InitializerHoister(ModelFile &file, MLIRContext &context)
      : file(file), context(context), top(*file.proto->mutable_graph()) {
    collectNames(top);
  }

  LogicalResult visitNodes(onnx::GraphProto &graph, StringRef place, int depth);

private:
  void collectNames(const onnx::GraphProto &graph);
  LogicalResult hoist(onnx::GraphProto &graph, StringRef label);
  std::string takeName(StringRef name);

  ModelFile &file;
  MLIRContext &context;
  onnx::GraphProto &top;
  /// Names that something outside of a subgraph's initializers has.
  llvm::StringSet<> taken;
};

} // namespace

/// Renames what nodes and outputs read of a graph, but for the names that
/// graphs between define, which are in `hidden`.
static void renameReads(onnx::GraphProto &graph,
                        const llvm::StringMap<std::string> &renamed,
                        SmallVectorImpl<llvm::StringSet<>> &hidden) {
  auto rename = [&](std::string *name) {
    auto it = renamed.find(*name);
    if (it != renamed.end() && llvm::none_of(hidden, [&](const auto &names) {
          return names.contains(*name);
        }))
      *name = it->second;
  };
  for (auto &output : *graph.mutable_output())
    rename(output.mutable_name());
  for (auto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      rename(&input);
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node)) {
      hidden.push_back(namesDefinedIn(*inner));
      renameReads(*inner, renamed, hidden);
      hidden.pop_back();
    }
  }
}

void InitializerHoister::collectNames(const onnx::GraphProto &graph) {
  const bool isTop = &graph == &top;
  for (const auto &input : graph.input())
    taken.insert(input.name());
  for (const auto &tensor : graph.initializer())
    if (isTop)
      taken.insert(tensor.name());
  for (const auto &node : graph.node()) {
    for (const std::string &output : node.output())
      taken.insert(output);
    for (const Subgraph &inner : subgraphsOf(node))
      collectNames(*inner.graph);
  }
}

std::string InitializerHoister::takeName(StringRef name) {
  std::string made = name.str();
  for (int number = 2; !taken.insert(made).second; ++number)
    made = (name + "_" + Twine(number)).str();
  return made;
}

LogicalResult InitializerHoister::hoist(onnx::GraphProto &graph,
                                        StringRef label) {
  auto error = [&] {
    return file.error(context) << "subgraph '" << label << "': ";
  };
  if (graph.sparse_initializer_size())
    return error() << "sparse initializers ('"
                   << graph.sparse_initializer(0).values().name()
                   << "') are not supported: store them dense";
  llvm::StringSet<> others;
  for (const auto &input : graph.input())
    others.insert(input.name());
  for (const auto &node : graph.node())
    others.insert(node.output().begin(), node.output().end());
  llvm::StringMap<std::string> renamed;
  for (auto &tensor : *graph.mutable_initializer()) {
    const std::string name = tensor.name();
    if (others.contains(name) || renamed.contains(name))
      return error() << "'" << name << "' is defined twice";
    tensor.set_name(renamed[name] = takeName(name));
    *top.add_initializer() = std::move(tensor);
  }
  graph.clear_initializer();
  SmallVector<llvm::StringSet<>, 4> hidden;
  if (!renamed.empty())
    renameReads(graph, renamed, hidden);
  return success();
}

LogicalResult InitializerHoister::visitNodes(onnx::GraphProto &graph,
                                             StringRef place, int depth) {
  for (auto &node : *graph.mutable_node()) {
    for (auto &attribute : *node.mutable_attribute()) {
      std::string label =
          subgraphLabel(nameWithin(place, nodeLabel(node)), attribute.name());
      SmallVector<onnx::GraphProto *, 1> inner;
      if (attribute.has_g())
        inner.push_back(attribute.mutable_g());
      for (auto &listed : *attribute.mutable_graphs())
        inner.push_back(&listed);
      if (!inner.empty() && depth == kMaxSubgraphDepth)
        return file.error(context)
               << "subgraph '" << label << "' is nested more than "
               << kMaxSubgraphDepth << " deep";
      for (onnx::GraphProto *subgraph : inner)
        if (failed(visitNodes(*subgraph, label, depth + 1)) ||
            failed(hoist(*subgraph, label)))
          return failure();
    }
  }
  return success();
}

LogicalResult hoistInitializers(ModelFile &file, MLIRContext &context) {
  return InitializerHoister(file, context)
      .visitNodes(*file.proto->mutable_graph(), "", 0);
}

} // namespace pipewright::frontend
