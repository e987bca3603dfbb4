//===- GroupNorms.cpp - Exporters' spelling of GroupNorm ------------------===//
//
// One walk notes producers and readers; the rest are look-ups in them.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GroupNorms.h"

#include "frontends/onnx/BufferTables.h"
#include "frontends/onnx/Subgraphs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;

namespace pipewright::frontend {

namespace {

class Finder {
public:
  explicit Finder(const onnx::GraphProto &graph);

  /// Whether a node is the normalization within a group normalization, if its
  /// scale is ones.
  bool isSpelling(const onnx::NodeProto &norm) const;
  /// Whether a scale has a weight's name, and nothing else that could be why.
  bool isWeight(StringRef name);

private:
  const onnx::NodeProto *producerOf(StringRef name) const {
    return producers.lookup(name);
  }
  const onnx::NodeProto *onlyReaderOf(const onnx::NodeProto &node) const;
  bool isInitializer(StringRef name) const;

  llvm::StringMap<const onnx::NodeProto *> producers;
  llvm::StringMap<llvm::SmallVector<const onnx::NodeProto *, 1>> readers;
  llvm::StringSet<> initializers;
  /// What isWeight has found.
  llvm::StringMap<bool> weights;
};

} // namespace

static bool isNorm(const onnx::NodeProto &node) {
  return node.op_type() == "InstanceNormalization";
}

Finder::Finder(const onnx::GraphProto &graph) {
  for (const auto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  for (const onnx::NodeProto *node : allNodesOf(graph)) {
    for (const std::string &name : node->output())
      producers[name] = node;
    for (const std::string &name : node->input())
      readers[name].push_back(node);
  }
  // The outside reads as well.
  for (const auto &output : graph.output())
    readers[output.name()].push_back(nullptr);
}

const onnx::NodeProto *Finder::onlyReaderOf(const onnx::NodeProto &node) const {
  auto found =
      node.output_size() ? readers.find(node.output(0)) : readers.end();
  return found != readers.end() && found->second.size() == 1
             ? found->second.front()
             : nullptr;
}

static bool isMove(const onnx::NodeProto &node) {
  return llvm::StringSwitch<bool>(node.op_type())
      .Cases({"Reshape", "Unsqueeze", "Cast", "CastLike", "Identity"}, true)
      .Default(false);
}

/// Whether a name is an initializer, or one under another shape.
bool Finder::isInitializer(StringRef name) const {
  // Exporters put one or two nodes in between.
  constexpr int maxNodes = 4;
  for (int i = 0; i < maxNodes && !initializers.contains(name); ++i) {
    const onnx::NodeProto *node = producerOf(name);
    if (!node || !isMove(*node) || node->input_size() == 0)
      return false;
    name = node->input(0);
  }
  return initializers.contains(name);
}

bool Finder::isSpelling(const onnx::NodeProto &norm) const {
  if (!isNorm(norm) || norm.input_size() != 3)
    return false;
  const onnx::NodeProto *before = producerOf(norm.input(0));
  const onnx::NodeProto *after = onlyReaderOf(norm);
  if (!before || before->op_type() != "Reshape" || !after ||
      after->op_type() != "Reshape" || after->input(0) != norm.output(0))
    return false;
  const onnx::NodeProto *scale = onlyReaderOf(*after);
  if (!scale || scale->op_type() != "Mul" || scale->input_size() != 2)
    return false;
  const bool isFirst = scale->input(0) == after->output(0);
  return isInitializer(scale->input(isFirst));
}

bool Finder::isWeight(StringRef name) {
  auto [known, isNew] = weights.try_emplace(name, false);
  if (isNew)
    known->second =
        initializers.contains(name) && !isGeneratedName(name) &&
        llvm::all_of(readers.lookup(name), [&](const onnx::NodeProto *node) {
          return node && isSpelling(*node);
        });
  return known->second;
}

llvm::StringSet<> findGroupNorms(const onnx::GraphProto &graph) {
  llvm::StringSet<> found;
  const std::vector<const onnx::NodeProto *> nodes = allNodesOf(graph);
  if (llvm::none_of(nodes, [](const auto *node) { return isNorm(*node); }))
    return found;
  Finder finder(graph);
  for (const onnx::NodeProto *node : nodes)
    if (finder.isSpelling(*node) && !finder.isWeight(node->input(1)))
      found.insert(node->output(0));
  return found;
}

} // namespace pipewright::frontend
