//===- GraphOrder.cpp - Nodes in an order that can be imported ------------===//
//
// A depth-first walk from every node in file order; the walk's stack is the
// cycle when there is one.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GraphOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

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

namespace {

class NodeSorter {
public:
  NodeSorter(const ModelFile &file, MLIRContext &context)
      : file(file), context(context), graph(file.graph()),
        states(graph.node_size(), Unseen) {}

  LogicalResult collectDefinitions();
  LogicalResult visitAll();
  std::vector<const onnx::NodeProto *> neededNodes();

private:
  enum State : char { Unseen, Open, Done };

  LogicalResult visit(int root);
  LogicalResult reportCycle(ArrayRef<std::pair<int, int>> stack, int back);
  LogicalResult define(StringRef name, int node);

  const ModelFile &file;
  MLIRContext &context;
  const onnx::GraphProto &graph;
  std::vector<State> states;
  std::vector<int> order;
  /// The node that defines each name; -1 for inputs and initializers.
  llvm::StringMap<int> definedBy;
};

} // namespace

LogicalResult NodeSorter::define(StringRef name, int node) {
  if (definedBy.try_emplace(name, node).second)
    return success();
  return file.error(context) << "'" << name << "' is defined twice";
}

LogicalResult NodeSorter::collectDefinitions() {
  for (const auto &initializer : graph.initializer())
    if (failed(define(initializer.name(), -1)))
      return failure();
  llvm::StringSet<> inputs;
  for (const auto &input : graph.input()) {
    if (!inputs.insert(input.name()).second)
      return file.error(context) << "'" << input.name() << "' is defined twice";
    // Up to IR version 3 initializers are inputs as well.
    definedBy.try_emplace(input.name(), -1);
  }
  for (auto [index, node] : llvm::enumerate(graph.node()))
    for (const std::string &output : node.output())
      if (!output.empty() && failed(define(output, int(index))))
        return failure();
  return success();
}

LogicalResult NodeSorter::reportCycle(ArrayRef<std::pair<int, int>> stack,
                                      int back) {
  auto first = llvm::find_if(stack, [&](auto e) { return e.first == back; });
  auto diag = file.error(context) << "the graph has a cycle: ";
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
    if (next == node.input_size()) {
      states[index] = Done;
      order.push_back(index);
      stack.pop_back();
      continue;
    }
    const std::string &input = node.input(next++);
    if (input.empty())
      continue;
    auto it = definedBy.find(input);
    if (it == definedBy.end())
      return file.error(context)
             << "node '" << nodeLabel(node) << "' (" << node.op_type()
             << ") reads '" << input
             << "', which no node, input or initializer defines";
    int producer = it->second;
    if (producer < 0 || states[producer] == Done)
      continue;
    if (states[producer] == Open)
      return reportCycle(stack, producer);
    states[producer] = Open;
    stack.push_back({producer, 0});
  }
  return success();
}

LogicalResult NodeSorter::visitAll() {
  for (int i = 0, e = graph.node_size(); i < e; ++i)
    if (failed(visit(i)))
      return failure();
  for (const auto &output : graph.output())
    if (!definedBy.contains(output.name()))
      return file.error(context)
             << "output '" << output.name()
             << "' is defined by no node, input or initializer";
  return success();
}

std::vector<const onnx::NodeProto *> NodeSorter::neededNodes() {
  llvm::StringSet<> neededNames;
  for (const auto &output : graph.output())
    neededNames.insert(output.name());
  std::vector<const onnx::NodeProto *> result;
  for (int index : llvm::reverse(order)) {
    const onnx::NodeProto &node = graph.node(index);
    if (llvm::none_of(node.output(), [&](const std::string &name) {
          return neededNames.contains(name);
        }))
      continue;
    for (const std::string &input : node.input())
      if (!input.empty())
        neededNames.insert(input);
    result.push_back(&node);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

FailureOr<std::vector<const onnx::NodeProto *>>
orderNodes(const ModelFile &file, MLIRContext &context) {
  NodeSorter sorter(file, context);
  if (failed(sorter.collectDefinitions()) || failed(sorter.visitAll()))
    return failure();
  return sorter.neededNodes();
}

} // namespace pipewright::frontend
