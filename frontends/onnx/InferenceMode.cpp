//===- InferenceMode.cpp - A trained model as it is used ------------------===//

#include "frontends/onnx/InferenceMode.h"

#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/Subgraphs.h"

using google::protobuf::RepeatedPtrField;

namespace pipewright::frontend {

using Names = llvm::StringSet<>;

/// Takes away what a predicate is true for.
template <class Element, class Predicate>
static void eraseIf(RepeatedPtrField<Element> &elements, Predicate isGone) {
  auto end = std::remove_if(elements.begin(), elements.end(), isGone);
  elements.erase(end, elements.end());
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Notes the outputs that go.
static void freezeNorm(onnx::NodeProto &node, Names &gone) {
  eraseIf(*node.mutable_attribute(), [](const auto &attribute) {
    return attribute.name() == "training_mode";
  });
  while (node.output_size() > 1) {
    if (!node.output().rbegin()->empty())
      gone.insert(*node.output().rbegin());
    node.mutable_output()->RemoveLast();
  }
}

static void passOn(onnx::NodeProto &dropout) {
  constexpr int inputs = 2;
  while (dropout.input_size() > inputs)
    dropout.mutable_input()->RemoveLast();
}

/// Nodes that read an output which is gone go, too.
static void eraseReaders(RepeatedPtrField<onnx::NodeProto> &nodes,
                         Names &gone) {
  size_t before;
  do {
    before = gone.size();
    eraseIf(nodes, [&](const onnx::NodeProto &node) {
      if (llvm::none_of(node.input(), [&](const std::string &name) {
            return gone.contains(name);
          }))
        return false;
      gone.insert(node.output().begin(), node.output().end());
      return true;
    });
  } while (gone.size() != before);
}

static void freezeNodes(RepeatedPtrField<onnx::NodeProto> &nodes, Names &gone,
                        Names &problems);

/// Within a node or a function everything must stay that is read outside.
static void freezeWithin(RepeatedPtrField<onnx::NodeProto> &nodes,
                         const std::vector<std::string> &outputs,
                         const std::string &place, Names &problems) {
  Names gone;
  freezeNodes(nodes, gone, problems);
  for (const std::string &output : outputs)
    if (gone.contains(output))
      problems.insert(place);
}

static void freezeNodes(RepeatedPtrField<onnx::NodeProto> &nodes, Names &gone,
                        Names &problems) {
  for (onnx::NodeProto &node : nodes) {
    if (node.op_type() == "BatchNormalization")
      freezeNorm(node, gone);
    else if (node.op_type() == "Dropout")
      passOn(node);
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node)) {
      std::vector<std::string> outputs;
      for (const auto &output : inner->output())
        outputs.push_back(output.name());
      freezeWithin(*inner->mutable_node(), outputs, nodeLabel(node), problems);
    }
  }
  eraseReaders(nodes, gone);
}

//===----------------------------------------------------------------------===//
// What nothing needs any more
//===----------------------------------------------------------------------===//

/// The names that a node and its subgraphs read.
static void addReads(const onnx::NodeProto &node, Names &read) {
  read.insert(node.input().begin(), node.input().end());
  for (const Subgraph &inner : subgraphsOf(node)) {
    for (const auto &output : inner.graph->output())
      read.insert(output.name());
    for (const onnx::NodeProto &each : inner.graph->node())
      addReads(each, read);
  }
}

/// What the outputs of a graph depend on, be it nodes, initializers or inputs.
static Names namesNeeded(const onnx::GraphProto &graph) {
  Names needed;
  for (const auto &output : graph.output())
    needed.insert(output.name());
  size_t before;
  do {
    before = needed.size();
    for (int i = graph.node_size() - 1; i >= 0; --i)
      if (llvm::any_of(graph.node(i).output(), [&](const std::string &name) {
            return needed.contains(name);
          }))
        addReads(graph.node(i), needed);
  } while (needed.size() != before);
  return needed;
}

/// Takes away what was needed, and is no longer.
static void eraseUnneeded(onnx::GraphProto &graph, const Names &before) {
  const Names now = namesNeeded(graph);
  auto isUnneeded = [&](const std::string &name) {
    return before.contains(name) && !now.contains(name);
  };
  auto isUnneededTensor = [&](const auto &tensor) {
    return isUnneeded(tensor.name());
  };
  eraseIf(*graph.mutable_node(), [&](const onnx::NodeProto &node) {
    return llvm::any_of(node.output(), isUnneeded) &&
           llvm::none_of(node.output(), [&](const std::string &name) {
             return now.contains(name);
           });
  });
  eraseIf(*graph.mutable_initializer(), isUnneededTensor);
  eraseIf(*graph.mutable_input(), isUnneededTensor);
  eraseIf(*graph.mutable_value_info(), isUnneededTensor);
}

static std::vector<std::string> warningsOf(const onnx::GraphProto &graph) {
  for (const onnx::NodeProto *node : allNodesOf(graph))
    if (llvm::StringRef(node->op_type()).starts_with("Random") ||
        node->op_type() == "Bernoulli" || node->op_type() == "Multinomial")
      return {"node '" + nodeLabel(*node) + "' (" + node->op_type() +
              ") draws random numbers, for inference, too: export the model "
              "in evaluation mode to be without them"};
  return {};
}

llvm::Expected<std::vector<std::string>>
enterInference(onnx::ModelProto &model, const std::string &loss) {
  onnx::GraphProto &graph = *model.mutable_graph();
  const Names before = namesNeeded(graph);
  Names gone, problems;
  for (auto &function : *model.mutable_functions()) {
    const std::vector<std::string> outputs(function.output().begin(),
                                           function.output().end());
    freezeWithin(*function.mutable_node(), outputs, function.name(), problems);
  }
  freezeNodes(*graph.mutable_node(), gone, problems);
  eraseIf(*graph.mutable_output(),
          [&](const auto &output) { return gone.contains(output.name()); });
  for (const onnx::NodeProto *node : allNodesOf(graph))
    for (const std::string &name : node->input())
      if (gone.contains(name))
        problems.insert(nodeLabel(*node));
  if (!problems.empty())
    return llvm::createStringError(
        "'" + problems.begin()->getKey() +
        "' returns running statistics of a batch normalization, which has none "
        "to return in inference: leave --inference out");
  if (graph.output_size() > 1)
    eraseIf(*graph.mutable_output(),
            [&](const auto &output) { return output.name() == loss; });
  if (graph.output_size() == 0)
    return llvm::createStringError(
        "every output depends on running statistics that inference does not "
        "compute: leave --inference out");
  eraseUnneeded(graph, before);
  return warningsOf(graph);
}

} // namespace pipewright::frontend
