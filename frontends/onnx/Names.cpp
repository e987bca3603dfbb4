//===- Names.cpp - Names of a model, settled once -------------------------===//
//
// Values between nodes are known to nobody outside of the file, so they may be
// renamed; two that would look the same stay apart.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Names.h"

#include "dialects/nn/NNWeightNames.h"
#include "frontends/onnx/Limits.h"
#include "frontends/onnx/Subgraphs.h"
#include "support/Text.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {

class NameSettler {
public:
  NameSettler(ModelFile &file, MLIRContext &context)
      : file(file), context(context), graph(*file.proto->mutable_graph()) {}

  LogicalResult settle();

private:
  LogicalResult check(StringRef what, StringRef name);
  LogicalResult checkInterface();
  LogicalResult collect(const std::string &name);
  LogicalResult collectSubgraph(const onnx::GraphProto &inner);
  template <typename Nodes>
  LogicalResult collectNodes(const Nodes &nodes);
  LogicalResult collectValues();
  void rename(std::string *name) const;
  void renameSubgraph(onnx::GraphProto &inner) const;
  template <typename Nodes>
  void renameNodes(Nodes &nodes) const;
  void renameValues();
  void repairLabels();

  ModelFile &file;
  MLIRContext &context;
  onnx::GraphProto &graph;
  /// All names of values as they are in the file, then also as they will be.
  llvm::StringSet<> taken;
  /// Those of values that are not printable.
  std::vector<std::string> repaired;
  /// What they become.
  llvm::StringMap<std::string> renamed;
};

} // namespace

static void makePrintable(std::string *name) {
  if (!text::isPrintable(*name) || name->size() > kMaxLabelBytes)
    *name = text::shortened(*name, kMaxLabelBytes);
}

LogicalResult NameSettler::check(StringRef what, StringRef name) {
  auto error = [&] {
    return file.error(context)
           << what << " '" << text::shortened(name) << "': ";
  };
  if (name.size() > kMaxNameBytes)
    return error() << "expects a name of at most " << kMaxNameBytes
                   << " bytes, but got " << name.size()
                   << ": rename it in the model";
  taken.insert(name);
  if (!text::isPrintable(name))
    return error() << text::problemOfName(name) << ": rename it in the model";
  return success();
}

/// What people name on the command line and files of weights have.
LogicalResult NameSettler::checkInterface() {
  auto checkPort = [&](StringRef what,
                       const onnx::ValueInfoProto &port) -> LogicalResult {
    if (port.name().empty())
      return file.error(context) << what << " has no name";
    return check(what, port.name());
  };
  for (const auto &input : graph.input()) {
    if (failed(checkPort("input", input)))
      return failure();
    for (const auto &dim : input.type().tensor_type().shape().dim())
      if (failed(check("dimension", dim.dim_param())))
        return failure();
  }
  for (const auto &output : graph.output())
    if (failed(checkPort("output", output)))
      return failure();
  for (const auto &tensor : graph.initializer()) {
    if (failed(check("initializer", tensor.name())))
      return failure();
    if (tensor.name() == nn::kMetadataName)
      return file.error(context)
             << "initializer '" << nn::kMetadataName
             << "' has the name that files of weights (.safetensors) keep for "
                "notes: rename it in the model";
  }
  return success();
}

LogicalResult NameSettler::collect(const std::string &name) {
  if (!taken.insert(name).second)
    return success();
  if (name.size() > kMaxNameBytes)
    return check("value", name);
  if (!text::isPrintable(name))
    repaired.push_back(name);
  return success();
}

LogicalResult NameSettler::collectSubgraph(const onnx::GraphProto &inner) {
  for (const auto *ports : {&inner.input(), &inner.output()})
    for (const auto &port : *ports)
      if (failed(collect(port.name())))
        return failure();
  for (const auto &tensor : inner.initializer())
    if (failed(check("initializer", tensor.name())))
      return failure();
  return collectNodes(inner.node());
}

template <typename Nodes>
LogicalResult NameSettler::collectNodes(const Nodes &nodes) {
  for (const onnx::NodeProto &node : nodes) {
    for (const auto *names : {&node.input(), &node.output()})
      for (const std::string &name : *names)
        if (failed(collect(name)))
          return failure();
    for (const Subgraph &inner : subgraphsOf(node))
      if (failed(collectSubgraph(*inner.graph)))
        return failure();
  }
  return success();
}

LogicalResult NameSettler::collectValues() {
  if (failed(collectNodes(graph.node())))
    return failure();
  for (const auto &function : file.proto->functions()) {
    for (const auto *names : {&function.input(), &function.output()})
      for (const std::string &name : *names)
        if (failed(collect(name)))
          return failure();
    if (failed(collectNodes(function.node())))
      return failure();
  }
  for (const std::string &name : repaired) {
    std::string base = text::printable(name), made = base;
    for (int number = 2; !taken.insert(made).second; ++number)
      made = base + "_" + std::to_string(number);
    renamed[name] = made;
  }
  return success();
}

void NameSettler::rename(std::string *name) const {
  if (auto it = renamed.find(*name); it != renamed.end())
    *name = it->second;
}

void NameSettler::renameSubgraph(onnx::GraphProto &inner) const {
  for (auto *ports : {inner.mutable_input(), inner.mutable_output()})
    for (auto &port : *ports)
      rename(port.mutable_name());
  renameNodes(*inner.mutable_node());
}

template <typename Nodes>
void NameSettler::renameNodes(Nodes &nodes) const {
  for (onnx::NodeProto &node : nodes) {
    for (auto *names : {node.mutable_input(), node.mutable_output()})
      for (std::string &name : *names)
        rename(&name);
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node))
      renameSubgraph(*inner);
  }
}

void NameSettler::renameValues() {
  renameNodes(*graph.mutable_node());
  for (auto &function : *file.proto->mutable_functions()) {
    for (auto *names : {function.mutable_input(), function.mutable_output()})
      for (std::string &name : *names)
        rename(&name);
    renameNodes(*function.mutable_node());
  }
}

/// Of nodes and of those in their subgraphs.
template <typename Nodes>
static void repairNodes(Nodes &nodes) {
  for (onnx::NodeProto &node : nodes) {
    makePrintable(node.mutable_name());
    makePrintable(node.mutable_op_type());
    makePrintable(node.mutable_domain());
    for (auto &attribute : *node.mutable_attribute()) {
      makePrintable(attribute.mutable_name());
      if (!attribute.ref_attr_name().empty())
        makePrintable(attribute.mutable_ref_attr_name());
    }
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node)) {
      makePrintable(inner->mutable_name());
      for (auto &tensor : *inner->mutable_sparse_initializer())
        makePrintable(tensor.mutable_values()->mutable_name());
      repairNodes(*inner->mutable_node());
    }
  }
}

/// What only messages and comments show.
void NameSettler::repairLabels() {
  makePrintable(graph.mutable_name());
  repairNodes(*graph.mutable_node());
  for (auto &output : *graph.mutable_output())
    if (output.type().tensor_type().has_shape())
      for (auto &dim : *output.mutable_type()
                            ->mutable_tensor_type()
                            ->mutable_shape()
                            ->mutable_dim())
        if (!dim.dim_param().empty())
          makePrintable(dim.mutable_dim_param());
  for (auto &function : *file.proto->mutable_functions()) {
    makePrintable(function.mutable_name());
    makePrintable(function.mutable_domain());
    for (std::string &name : *function.mutable_attribute())
      makePrintable(&name);
    repairNodes(*function.mutable_node());
  }
  for (auto &tensor : *graph.mutable_sparse_initializer())
    makePrintable(tensor.mutable_values()->mutable_name());
}

LogicalResult NameSettler::settle() {
  if (failed(checkInterface()) || failed(collectValues()))
    return failure();
  renameValues();
  repairLabels();
  return success();
}

LogicalResult settleNames(ModelFile &file, MLIRContext &context) {
  return NameSettler(file, context).settle();
}

} // namespace pipewright::frontend
