//===- Names.cpp - Names of a model, settled once -------------------------===//
//
// Values between nodes are known to nobody outside of the file, so they may be
// renamed; two that would look the same stay apart.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Names.h"

#include "dialects/nn/NNWeightNames.h"
#include "frontends/onnx/Limits.h"
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
  LogicalResult collectValues();
  void renameValues();
  void repairLabels();

  ModelFile &file;
  MLIRContext &context;
  onnx::GraphProto &graph;
  /// All names of values as they are in the file, then also as they will be.
  llvm::StringSet<> taken;
  /// Those of values that get another.
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

LogicalResult NameSettler::collectValues() {
  std::vector<StringRef> repaired;
  auto add = [&](const std::string &name) -> LogicalResult {
    if (!taken.insert(name).second)
      return success();
    if (name.size() > kMaxNameBytes)
      return check("value", name);
    if (!text::isPrintable(name))
      repaired.push_back(name);
    return success();
  };
  for (const auto &node : graph.node()) {
    for (const std::string &name : node.input())
      if (failed(add(name)))
        return failure();
    for (const std::string &name : node.output())
      if (failed(add(name)))
        return failure();
  }
  for (StringRef name : repaired) {
    std::string base = text::printable(name), made = base;
    for (int number = 2; !taken.insert(made).second; ++number)
      made = base + "_" + std::to_string(number);
    renamed[name] = made;
  }
  return success();
}

void NameSettler::renameValues() {
  auto rename = [&](std::string *name) {
    if (auto it = renamed.find(*name); it != renamed.end())
      *name = it->second;
  };
  for (auto &node : *graph.mutable_node()) {
    for (std::string &name : *node.mutable_input())
      rename(&name);
    for (std::string &name : *node.mutable_output())
      rename(&name);
  }
}

/// What only messages and comments show.
void NameSettler::repairLabels() {
  makePrintable(graph.mutable_name());
  for (auto &node : *graph.mutable_node()) {
    makePrintable(node.mutable_name());
    makePrintable(node.mutable_op_type());
    makePrintable(node.mutable_domain());
    for (auto &attribute : *node.mutable_attribute())
      makePrintable(attribute.mutable_name());
  }
  for (auto &output : *graph.mutable_output())
    if (output.type().tensor_type().has_shape())
      for (auto &dim : *output.mutable_type()
                            ->mutable_tensor_type()
                            ->mutable_shape()
                            ->mutable_dim())
        if (!dim.dim_param().empty())
          makePrintable(dim.mutable_dim_param());
  for (auto &function : *file.proto->mutable_functions())
    makePrintable(function.mutable_name());
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
