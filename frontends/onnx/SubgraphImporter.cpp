//===- SubgraphImporter.cpp - Subgraphs, once for each iteration ----------===//
//
// A subgraph has no form of its own in the module: its nodes are imported where
// it runs. Each time its names become others, so that a name stands for one
// value, and its values go when it ends: only outputs are seen from outside.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GraphImporter.h"

#include "frontends/onnx/Limits.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/Subgraphs.h"
#include "support/Text.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace pipewright::frontend {

std::string GraphImporter::resolve(const std::string &name) const {
  for (const Scope *inner = scope; inner; inner = inner->around)
    if (auto it = inner->names.find(name); it != inner->names.end())
      return it->second;
  return name;
}

NodeNames GraphImporter::namesOf(const onnx::NodeProto &node) const {
  NodeNames names;
  names.label = nameWithin(scope ? scope->place : "", nodeLabel(node));
  for (const std::string &input : node.input())
    names.inputs.push_back(resolve(input));
  for (const std::string &output : node.output())
    names.outputs.push_back(resolve(output));
  return names;
}

std::string GraphImporter::instanceName(StringRef place, StringRef name) {
  std::string made = text::shortened(nameWithin(place, name), kMaxNameBytes);
  while (!takenNames.insert(made).second)
    made += '_';
  return made;
}

void GraphImporter::openScope(Scope &inner, const onnx::GraphProto &subgraph) {
  const NodeList &nodes = order->subgraphs.find(&subgraph)->second;
  for (const auto &input : subgraph.input())
    inner.names[input.name()] = instanceName(inner.place, input.name());
  for (const onnx::NodeProto *node : nodes)
    for (const std::string &output : node->output())
      if (!output.empty())
        inner.names[output] = instanceName(inner.place, output);
  scope = &inner;
  inlinedOps.isInSubgraph = true;
  for (const onnx::NodeProto *node : nodes)
    noteReads(*node);
  for (const auto &output : subgraph.output())
    noteRead(resolve(output.name()));
}

void GraphImporter::closeScope() {
  for (const auto &name : scope->names) {
    auto it = values.find(name.getValue());
    if (it == values.end())
      continue;
    ImportedValue &gone = valuesInSubgraphs[it->getKey()];
    gone.shape = it->getValue().shape;
    gone.value = it->getValue().value;
    values.erase(it);
  }
  scope = scope->around;
  inlinedOps.isInSubgraph = isInSubgraph();
}

void GraphImporter::noteStages(const onnx::NodeProto &node, StringRef label) {
  SmallVector<const onnx::NodeProto *> nodes = {&node};
  for (const Scope *inner = scope; inner; inner = inner->around)
    nodes.push_back(inner->node);
  devices.note(label, nodes);
}

/// Elements of a constant; a tensor of a sequence counts as the words of its
/// record.
static int64_t storedSizeOf(const ImportedValue &value) {
  if (value.isConstant())
    return value.constant->storedSize();
  constexpr int64_t words = sizeof(ImportedValue) / sizeof(int64_t);
  return value.isSequence() ? int64_t(value.elements->size()) * words : 0;
}

void GraphImporter::countElements(const onnx::NodeProto &node) {
  // Each iteration looks at all names that subgraphs within it read.
  if (auto it = order->captured.find(&node); it != order->captured.end())
    inlinedElements +=
        it->second.size() * (sizeof(CapturedName) / sizeof(int64_t));
  for (const std::string &output : node.output())
    if (auto it = values.find(resolve(output)); it != values.end())
      inlinedElements += storedSizeOf(it->getValue());
}

LogicalResult GraphImporter::checkInlined(NodeContext &n) {
  auto check = [&](int64_t count, int64_t most,
                   StringRef what) -> LogicalResult {
    if (count <= most)
      return success();
    return n.error() << "subgraphs become more than " << most << " " << what
                     << " when each iteration is imported: make fewer "
                        "iterations, or move what they share out of them";
  };
  if (failed(check(inlinedNodes, kMaxInlinedNodes, "nodes")) ||
      failed(check(inlinedOps.count, kMaxInlinedOps, "ops")))
    return failure();
  return check(inlinedElements, kMaxInlinedElements, "elements of constants");
}

FailureOr<std::vector<ImportedValue>>
GraphImporter::importSubgraph(NodeContext &n, const onnx::GraphProto &subgraph,
                              StringRef place,
                              std::vector<ImportedValue> inputs) {
  const NodeList &nodes = order->subgraphs.find(&subgraph)->second;
  Scope inner{scope, text::shortened(place, kMaxLabelBytes), &n.node, {}};
  openScope(inner, subgraph);
  llvm::scope_exit close([this] { closeScope(); });
  for (auto [input, value] : llvm::zip(subgraph.input(), inputs))
    define(resolve(input.name()), std::move(value));
  for (const onnx::NodeProto *node : nodes) {
    ++inlinedNodes;
    if (failed(checkInlined(n)) || failed(importNode(*node)))
      return failure();
    countElements(*node);
  }
  std::vector<ImportedValue> outputs;
  for (const auto &output : subgraph.output()) {
    FailureOr<ImportedValue> value = lookup(resolve(output.name()));
    if (failed(value))
      return failure();
    outputs.push_back(std::move(*value));
  }
  return outputs;
}

} // namespace pipewright::frontend
