//===- GraphOrder.cpp - Nodes in an order that can be imported ------------===//
//
// A depth-first walk from every node in file order; the walk's stack is the
// cycle when there is one. A node's subgraphs are put in order before its own
// graph is, for what they read from there is read by the node.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GraphOrder.h"

#include "frontends/onnx/Subgraphs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace pipewright::frontend {

std::string nodeLabel(const onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return output;
  return "<unnamed>";
}

bool isRunningStatistic(const onnx::NodeProto &node, int input) {
  return node.op_type() == "BatchNormalization" && input >= 3;
}

namespace {

class NodeSorter {
public:
  /// `around` sorts the graph around this one; null for the model's graph,
  /// whose label is "".
  NodeSorter(const ModelFile &file, MLIRContext &context, NodeOrder &result,
             const onnx::GraphProto &graph, const NodeSorter *around,
             std::string label)
      : file(file), context(context), result(result), graph(graph),
        around(around), label(std::move(label)),
        states(graph.node_size(), Unseen) {}

  /// The nodes that the graph's outputs depend on.
  FailureOr<NodeList> sort();
  /// Names from the graphs around that were read, in order.
  const std::vector<CapturedName> &getCaptured() const {
    return captured.names;
  }

private:
  /// Names without repetitions, and where they stand.
  struct CapturedNames {
    std::vector<CapturedName> names;
    llvm::StringMap<size_t> places;
    void add(StringRef name, bool asValue);
  };

  enum State : char { Unseen, Open, Done };

  LogicalResult collectDefinitions();
  LogicalResult visitSubgraphs();
  LogicalResult visitAll();
  NodeList neededNodes();
  LogicalResult visit(int root);
  LogicalResult reportCycle(ArrayRef<std::pair<int, int>> stack, int back);
  LogicalResult define(StringRef name, int node);
  /// The node that defines a name which node `reader` reads; -1 if none does.
  FailureOr<int> producerOf(StringRef name, int reader, bool asValue);
  bool isDefinedAround(StringRef name) const;
  int numReads(const onnx::NodeProto &node) const;
  StringRef readOf(const onnx::NodeProto &node, int index) const;
  bool isReadAsValue(const onnx::NodeProto &node, int index) const;
  /// Starts an error about the graph, naming it if it is a subgraph.
  InFlightDiagnostic error() const;
  std::string labelOf(const onnx::NodeProto &node) const {
    return nameWithin(label, nodeLabel(node));
  }

  const ModelFile &file;
  MLIRContext &context;
  NodeOrder &result;
  const onnx::GraphProto &graph;
  const NodeSorter *around;
  std::string label;
  std::vector<State> states;
  std::vector<int> order;
  /// The node that defines each name; -1 for inputs and initializers.
  llvm::StringMap<int> definedBy;
  CapturedNames captured;
};

} // namespace

InFlightDiagnostic NodeSorter::error() const {
  InFlightDiagnostic diag = file.error(context);
  if (!label.empty())
    diag << "subgraph '" << label << "': ";
  return diag;
}

LogicalResult NodeSorter::define(StringRef name, int node) {
  if (definedBy.try_emplace(name, node).second)
    return success();
  return error() << "'" << name << "' is defined twice";
}

LogicalResult NodeSorter::collectDefinitions() {
  for (const auto &initializer : graph.initializer())
    if (failed(define(initializer.name(), -1)))
      return failure();
  llvm::StringSet<> inputs;
  for (const auto &input : graph.input()) {
    if (!inputs.insert(input.name()).second)
      return error() << "'" << input.name() << "' is defined twice";
    // Up to IR version 3 initializers are inputs as well.
    definedBy.try_emplace(input.name(), -1);
  }
  for (auto [index, node] : llvm::enumerate(graph.node()))
    for (const std::string &output : node.output())
      if (!output.empty() && failed(define(output, int(index))))
        return failure();
  return success();
}

bool NodeSorter::isDefinedAround(StringRef name) const {
  for (const NodeSorter *outer = around; outer; outer = outer->around)
    if (outer->definedBy.contains(name))
      return true;
  return false;
}

void NodeSorter::CapturedNames::add(StringRef name, bool asValue) {
  auto [it, isNew] = places.try_emplace(name, names.size());
  if (isNew)
    names.push_back({name.str(), asValue});
  else
    names[it->second].asValue |= asValue;
}

LogicalResult NodeSorter::visitSubgraphs() {
  for (const auto &node : graph.node()) {
    CapturedNames all;
    for (const Subgraph &inner : subgraphsOf(node)) {
      NodeSorter sorter(file, context, result, *inner.graph, this,
                        subgraphLabel(labelOf(node), inner.attribute));
      FailureOr<NodeList> nodes = sorter.sort();
      if (failed(nodes))
        return failure();
      result.subgraphs[inner.graph] = std::move(*nodes);
      for (const CapturedName &name : sorter.getCaptured())
        all.add(name.name, name.asValue);
    }
    if (!all.names.empty())
      result.captured[&node] = std::move(all.names);
  }
  return success();
}

int NodeSorter::numReads(const onnx::NodeProto &node) const {
  auto it = result.captured.find(&node);
  return node.input_size() +
         (it == result.captured.end() ? 0 : int(it->second.size()));
}

StringRef NodeSorter::readOf(const onnx::NodeProto &node, int index) const {
  if (index < node.input_size())
    return node.input(index);
  return result.captured.find(&node)->second[index - node.input_size()].name;
}

bool NodeSorter::isReadAsValue(const onnx::NodeProto &node, int index) const {
  if (index < node.input_size())
    return !isRunningStatistic(node, index);
  return result.captured.find(&node)->second[index - node.input_size()].asValue;
}

FailureOr<int> NodeSorter::producerOf(StringRef name, int reader,
                                      bool asValue) {
  const onnx::NodeProto &node = graph.node(reader);
  auto it = definedBy.find(name);
  if (it == definedBy.end() && isDefinedAround(name)) {
    captured.add(name, asValue);
    return -1;
  }
  if (it == definedBy.end())
    return file.error(context)
           << "node '" << labelOf(node) << "' (" << node.op_type()
           << ") reads '" << name
           << "', which no node, input or initializer defines";
  if (it->second > reader && isDefinedAround(name))
    return file.error(context)
           << "node '" << labelOf(node) << "' (" << node.op_type()
           << ") reads '" << name << "', which is defined outside of '" << label
           << "' and later in it: give the two different names";
  return it->second;
}

LogicalResult NodeSorter::reportCycle(ArrayRef<std::pair<int, int>> stack,
                                      int back) {
  auto first = llvm::find_if(stack, [&](auto e) { return e.first == back; });
  auto diag = error() << "the graph has a cycle: ";
  // The stack goes from consumer to producer; data flows the other way.
  diag << "'" << nodeLabel(graph.node(back)) << "'";
  ArrayRef<std::pair<int, int>> cycle(first, stack.end());
  for (auto [node, input] : llvm::reverse(cycle))
    diag << " -> '" << nodeLabel(graph.node(node)) << "'";
  return diag;
}

LogicalResult NodeSorter::visit(int root) {
  // (node, next input): an explicit stack, for graphs are thousands deep.
  SmallVector<std::pair<int, int>> stack;
  if (states[root] == Unseen) {
    states[root] = Open;
    stack.push_back({root, 0});
  }
  while (!stack.empty()) {
    auto &[index, next] = stack.back();
    const onnx::NodeProto &node = graph.node(index);
    if (next == numReads(node)) {
      states[index] = Done;
      order.push_back(index);
      stack.pop_back();
      continue;
    }
    const StringRef input = readOf(node, next);
    const bool asValue = isReadAsValue(node, next++);
    if (input.empty())
      continue;
    FailureOr<int> producer = producerOf(input, index, asValue);
    if (failed(producer))
      return failure();
    if (*producer < 0 || states[*producer] == Done)
      continue;
    if (states[*producer] == Open)
      return reportCycle(stack, *producer);
    states[*producer] = Open;
    stack.push_back({*producer, 0});
  }
  return success();
}

LogicalResult NodeSorter::visitAll() {
  for (int i = 0, e = graph.node_size(); i < e; ++i)
    if (failed(visit(i)))
      return failure();
  for (const auto &output : graph.output()) {
    if (definedBy.contains(output.name()))
      continue;
    if (!isDefinedAround(output.name()))
      return error() << "output '" << output.name()
                     << "' is defined by no node, input or initializer";
    captured.add(output.name(), /*asValue=*/true);
  }
  return success();
}

NodeList NodeSorter::neededNodes() {
  llvm::StringSet<> neededNames;
  for (const auto &output : graph.output())
    neededNames.insert(output.name());
  NodeList needed;
  for (int index : llvm::reverse(order)) {
    const onnx::NodeProto &node = graph.node(index);
    if (llvm::none_of(node.output(), [&](const std::string &name) {
          return neededNames.contains(name);
        }))
      continue;
    for (int i = 0, e = numReads(node); i < e; ++i)
      if (!readOf(node, i).empty())
        neededNames.insert(readOf(node, i));
    needed.push_back(&node);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

FailureOr<NodeList> NodeSorter::sort() {
  if (failed(collectDefinitions()) || failed(visitSubgraphs()) ||
      failed(visitAll()))
    return failure();
  return neededNodes();
}

static void
walkNodes(const NodeOrder &order, const NodeList &nodes, StringRef place,
          llvm::function_ref<void(const onnx::NodeProto &, StringRef)> visit) {
  for (const onnx::NodeProto *node : nodes) {
    visit(*node, place);
    for (const Subgraph &inner : subgraphsOf(*node))
      walkNodes(
          order, order.subgraphs.find(inner.graph)->second,
          subgraphLabel(nameWithin(place, nodeLabel(*node)), inner.attribute),
          visit);
  }
}

void NodeOrder::walk(
    llvm::function_ref<void(const onnx::NodeProto &, StringRef)> visit) const {
  walkNodes(*this, nodes, "", visit);
}

FailureOr<NodeOrder> orderNodes(const ModelFile &file, MLIRContext &context) {
  NodeOrder order;
  FailureOr<NodeList> nodes =
      NodeSorter(file, context, order, file.graph(), nullptr, "").sort();
  if (failed(nodes))
    return failure();
  order.nodes = std::move(*nodes);
  return order;
}

} // namespace pipewright::frontend
