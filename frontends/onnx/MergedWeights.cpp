//===- MergedWeights.cpp - Undo what exporters merge and copy -------------===//
//
// A node's note lists the tensors of the module that its operation was called
// with. Where one of them is gone from the file, and the node reads an
// initializer that its note does not list, that initializer stands for it.
// Scale, bias and running statistics of batch normalization are known by their
// places, and so are scale and bias of group normalization.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/MergedWeights.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using llvm::StringRef;

namespace pipewright::frontend {

namespace {

class WeightSplitter {
public:
  WeightSplitter(ModelFile &file, ExporterMetadata &metadata);

  int64_t run();

private:
  void visit(onnx::NodeProto &node);
  void visitBatchNorm(onnx::NodeProto &node);
  void visitGroupNorm(onnx::NodeProto &node);
  bool isFoldedFromOthers(StringRef name, StringRef tensor) const;
  bool isGone(StringRef placeholder) const {
    StringRef name = metadata.placeholders.find(placeholder)->second.name;
    return !definedNames.contains(name) && !foldedNames.contains(name);
  }
  bool makeInitializer(const ModuleTensor &tensor, StringRef from);
  void part(onnx::NodeProto &node, int input, StringRef placeholder);

  ModelFile &file;
  ExporterMetadata &metadata;
  /// Positions, since adding initializers moves them.
  llvm::StringMap<int> initializers;
  llvm::StringSet<> definedNames, foldedNames;
  /// Initializers that came of parting, by their name, and from which.
  llvm::StringMap<std::string> parted;
};

} // namespace

/// The exporter merges tensors of up to 1024 elements.
static bool mayBeMerged(const onnx::TensorProto &tensor) {
  constexpr int64_t maxElements = 4096;
  int64_t count = 1;
  for (int64_t size : tensor.dims()) {
    if (size < 1 || size > maxElements)
      return false;
    count *= size;
    if (count > maxElements)
      return false;
  }
  return true;
}

WeightSplitter::WeightSplitter(ModelFile &file, ExporterMetadata &metadata)
    : file(file), metadata(metadata) {
  const onnx::GraphProto &graph = file.graph();
  for (auto [number, tensor] : llvm::enumerate(graph.initializer())) {
    initializers[tensor.name()] = static_cast<int>(number);
    definedNames.insert(tensor.name());
  }
  for (const auto &input : graph.input())
    definedNames.insert(input.name());
  for (const auto &node : graph.node())
    for (const std::string &output : node.output())
      definedNames.insert(output);
  for (const auto &entry : metadata.initializers)
    if (entry.getValue().foldedFrom)
      for (const std::string &name : *entry.getValue().foldedFrom)
        foldedNames.insert(name);
}

bool WeightSplitter::makeInitializer(const ModuleTensor &tensor,
                                     StringRef from) {
  auto known = parted.find(tensor.name);
  if (known != parted.end())
    return known->second == from;
  onnx::GraphProto &graph = *file.proto->mutable_graph();
  onnx::TensorProto copy = graph.initializer(initializers.lookup(from));
  copy.set_name(tensor.name);
  *graph.add_initializer() = std::move(copy);
  metadata.initializers[tensor.name].kind = tensor.kind;
  parted[tensor.name] = from.str();
  return true;
}

/// Gives an input of a node the tensor that it was in the module.
void WeightSplitter::part(onnx::NodeProto &node, int input,
                          StringRef placeholder) {
  const ModuleTensor &tensor = metadata.placeholders.find(placeholder)->second;
  if (makeInitializer(tensor, node.input(input)))
    node.set_input(input, tensor.name);
}

/// Ones and zeros of a fresh scale and bias are also those of its running
/// statistics, so a node may read one initializer in two places.
void WeightSplitter::visitBatchNorm(onnx::NodeProto &node) {
  constexpr size_t inputs = 5, statistics = 2, all = 4;
  std::vector<std::string> listed = placeholdersReadBy(node, metadata);
  if (node.input_size() != inputs || node.output_size() == 0 ||
      (listed.size() != all && listed.size() != statistics))
    return;
  const int firstInput = static_cast<int>(inputs - listed.size());
  // Ones and zeros in place of a scale and a bias that the module has not.
  for (int i = 1; i < firstInput; ++i)
    if (metadata.tensors.contains(node.input(i)) &&
        initializers.contains(node.input(i))) {
      ModuleTensor own{node.output(0) + (i == 1 ? ".scale" : ".bias"),
                       ExportedKind::Constant};
      if (definedNames.insert(own.name).second &&
          makeInitializer(own, node.input(i)))
        node.set_input(i, own.name);
    }
  for (auto [i, placeholder] : llvm::enumerate(listed)) {
    auto tensor = initializers.find(node.input(firstInput + i));
    if (tensor != initializers.end() && isGone(placeholder) &&
        mayBeMerged(file.graph().initializer(tensor->second)))
      part(node, firstInput + i, placeholder);
  }
}

/// Whether an initializer was computed from a parameter at export, but not from
/// this tensor of the module.
bool WeightSplitter::isFoldedFromOthers(StringRef name,
                                        StringRef tensor) const {
  auto noted = metadata.initializers.find(name);
  return noted != metadata.initializers.end() && noted->second.foldedFrom &&
         llvm::any_of(*noted->second.foldedFrom,
                      [&](StringRef source) {
                        auto found = metadata.tensors.find(source);
                        return found != metadata.tensors.end() &&
                               found->second == ExportedKind::Parameter;
                      }) &&
         !llvm::is_contained(*noted->second.foldedFrom, tensor);
}

/// Its scale and bias were folded into another shape, [C, 1, 1], and then
/// merged. The ones and zeros that it is spelt with stand for nothing of the
/// module.
void WeightSplitter::visitGroupNorm(onnx::NodeProto &node) {
  std::vector<std::string> listed = placeholdersReadBy(node, metadata);
  const bool isShift = node.op_type() == "Add";
  if (listed.size() != 2 || (node.op_type() != "Mul" && !isShift))
    return;
  StringRef placeholder = listed[isShift];
  for (int i = 0; i < node.input_size(); ++i) {
    auto tensor = initializers.find(node.input(i));
    if (tensor != initializers.end() && isGone(placeholder) &&
        isFoldedFromOthers(
            node.input(i),
            metadata.placeholders.find(placeholder)->second.name) &&
        mayBeMerged(file.graph().initializer(tensor->second)))
      part(node, i, placeholder);
  }
}

void WeightSplitter::visit(onnx::NodeProto &node) {
  if (node.op_type() == "BatchNormalization")
    return visitBatchNorm(node);
  if (isNotedAsGroupNorm(node))
    return visitGroupNorm(node);
  // Ones and zeros that are none of its weights.
  if (node.op_type() == "InstanceNormalization" && isNotedAsPlainNorm(node))
    return;
  std::vector<std::string> listed = placeholdersReadBy(node, metadata);
  llvm::StringSet<> names;
  for (const std::string &placeholder : listed)
    names.insert(metadata.placeholders.find(placeholder)->second.name);
  llvm::erase_if(listed, [&](StringRef name) { return !isGone(name); });
  // Inputs that are another tensor of the module than any listed one.
  std::vector<int> inputs;
  for (int i = 0; i < node.input_size(); ++i) {
    const std::string &name = node.input(i);
    auto tensor = initializers.find(name);
    if (tensor == initializers.end() || names.contains(name) ||
        !metadata.tensors.contains(name) ||
        !mayBeMerged(file.graph().initializer(tensor->second)))
      continue;
    inputs.push_back(i);
  }
  // Else nothing says which is which.
  if (inputs.size() != listed.size())
    return;
  for (auto [input, placeholder] : llvm::zip_equal(inputs, listed))
    part(node, input, placeholder);
}

int64_t WeightSplitter::run() {
  onnx::GraphProto &graph = *file.proto->mutable_graph();
  for (onnx::NodeProto &node : *graph.mutable_node())
    visit(node);
  return parted.size();
}

int64_t partMergedWeights(ModelFile &file, ExporterMetadata &metadata) {
  if (metadata.placeholders.empty())
    return 0;
  return WeightSplitter(file, metadata).run();
}

} // namespace pipewright::frontend
