//===- EvaluationMode.cpp - What an export lost for training --------------===//
//
// Each sign has a function; the last warning names the way out.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/EvaluationMode.h"

#include "frontends/onnx/Subgraphs.h"

using namespace mlir;

namespace pipewright::frontend {

bool isTrainingExport(const ModelFile &file) {
  llvm::StringSet<> initializers;
  for (const auto &tensor : file.graph().initializer())
    initializers.insert(tensor.name());
  for (const onnx::NodeProto *each : allNodesOf(file.graph())) {
    const onnx::NodeProto &node = *each;
    if (node.op_type() == "Dropout" && node.input_size() == 3)
      return true;
    // Evaluation mode transposes weights once and for all.
    if (node.op_type() == "Transpose" && node.input_size() == 1 &&
        initializers.contains(node.input(0)))
      return true;
    if (node.op_type() != "BatchNormalization")
      continue;
    for (const auto &attribute : node.attribute())
      if (attribute.name() == "training_mode" && attribute.i() == 1)
        return true;
  }
  return false;
}

bool isTrainingNorm(const onnx::NodeProto &node, int64_t opset) {
  if (node.op_type() != "BatchNormalization")
    return false;
  if (opset < 14)
    return node.output_size() > 1;
  return isNotedAsTrainingNorm(node) ||
         llvm::any_of(node.attribute(), [](const auto &attribute) {
           return attribute.name() == "training_mode" && attribute.i() != 0;
         });
}

bool isTransposed(const FloatBytes &a, const FloatBytes &b) {
  int64_t rows = a.shape[0], columns = a.shape[1];
  auto at = [](const FloatBytes &m, int64_t i) {
    return m.bytes.slice(i * 4, 4);
  };
  bool uniform = true;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (at(a, r * columns + c) != at(b, c * rows + r))
        return false;
      uniform &= at(a, r * columns + c) == at(a, 0);
    }
  }
  return !uniform;
}

/// Weights that are another weight transposed: a tie that was cut.
static LogicalResult warnAboutLostTies(GraphImporter &graph, bool &found) {
  std::vector<std::pair<std::string, FloatBytes>> matrices;
  for (const auto &tensor : graph.file.graph().initializer()) {
    if (tensor.dims_size() != 2 || !graph.isRead(tensor.name()) ||
        elementKindOf(tensor.data_type()) != ElementKind::Float)
      continue;
    FailureOr<FloatBytes> bytes =
        graph.reader.readFloats(tensor, "initializer '" + tensor.name() + "'");
    if (failed(bytes))
      return failure();
    matrices.push_back({tensor.name(), std::move(*bytes)});
  }
  for (const auto &[name, a] : matrices) {
    if (!StringRef(name).starts_with("onnx::MatMul_"))
      continue;
    for (const auto &[other, b] : matrices) {
      if (name == other || a.shape[0] != b.shape[1] ||
          a.shape[1] != b.shape[0] || elementCount(a.shape) < 2 ||
          !isTransposed(a, b))
        continue;
      found = true;
      graph.warn("initializer '" + name + "' is '" + other +
                 "' transposed: the export cut the tie between them, and they "
                 "will be trained apart");
    }
  }
  return success();
}

/// No convolution is normalized, and names tell that batch norm was there once:
/// the older exporter makes up names for the folded weights and gives every
/// convolution a bias; with the newer one a convolution's result keeps the
/// name of batch norm's first result.
static bool hasFoldedBatchNorm(const ModelFile &file) {
  int64_t convolutions = 0;
  bool renamed = false;
  for (const onnx::NodeProto *each : allNodesOf(file.graph())) {
    const onnx::NodeProto &node = *each;
    if (node.op_type() == "BatchNormalization")
      return false;
    if (node.op_type() != "Conv" || node.output_size() == 0)
      continue;
    if (StringRef(node.output(0)).starts_with("getitem")) {
      ++convolutions;
      renamed = true;
      continue;
    }
    if (node.input_size() < 3)
      return false;
    ++convolutions;
    renamed |= StringRef(node.input(1)).starts_with("onnx::Conv_");
  }
  return convolutions > 0 && renamed;
}

/// "1 node is", "2 nodes are".
static std::string countOf(int64_t count, StringRef noun) {
  return (Twine(count) + " " + noun + (count == 1 ? " is" : "s are")).str();
}

/// The first three of some names, in quotes.
static std::string quotedStart(ArrayRef<std::string> names) {
  std::string list;
  for (const std::string &name : names.take_front(3))
    list += (list.empty() ? "'" : ", '") + name + "'";
  return names.size() > 3 ? list + ", ..." : list;
}

/// How the exporter that wrote a file is told to leave a model as it is. The
/// older one of PyTorch ends at IR 9.
static std::string wayToExport(const ModelFile &file) {
  if (file.proto->ir_version() < 10)
    return "training=TrainingMode.TRAINING and do_constant_folding=False";
  return "model.train() and optimize=False, or with Pipewright's "
         "tools/export.py";
}

static void warnAboutUntied(GraphImporter &graph) {
  graph.warn(std::to_string(graph.untied.size()) + " weights (" +
             quotedStart(graph.untied) +
             ") are read through Identity: the export merged initializers "
             "because their values are equal; each is trained as a weight of "
             "its own again");
}

/// Vectors of one value (the ones and zeros that scales and biases begin with)
/// which several nodes read: PyTorch's newer exporter merges those that are
/// equal and keeps one name. A tie that was meant looks the same, so nothing
/// is untied here.
static LogicalResult warnAboutMergedVectors(GraphImporter &graph) {
  // The older exporter (it ends at IR 9) keeps every weight in training mode.
  if (graph.file.proto->ir_version() < 10 && isTrainingExport(graph.file))
    return success();
  llvm::StringMap<int64_t> readers;
  for (const onnx::NodeProto *node : allNodesOf(graph.file.graph()))
    if (node->op_type() != "Identity" && !graph.isPlainNorm(*node))
      for (const std::string &name : node->input())
        ++readers[name];
  int64_t merged = 0;
  std::string example;
  for (const auto &tensor : graph.file.graph().initializer()) {
    int64_t count = readers.lookup(tensor.name());
    if (count < 2 || tensor.dims_size() != 1 || tensor.dims(0) < 2 ||
        elementKindOf(tensor.data_type()) != ElementKind::Float)
      continue;
    FailureOr<FloatBytes> values =
        graph.reader.readFloats(tensor, "initializer '" + tensor.name() + "'");
    if (failed(values))
      return failure();
    bool uniform = true;
    for (int64_t i = 1; i < tensor.dims(0); ++i)
      uniform &= values->bytes.slice(4 * i, 4) == values->bytes.slice(0, 4);
    if (!uniform)
      continue;
    if (!merged++)
      example = "'" + tensor.name() + "' by " + std::to_string(count);
  }
  if (merged)
    graph.warn(std::to_string(merged) + (merged == 1 ? " vector" : " vectors") +
               " of equal values read by several nodes (" + example +
               "): if the model has a weight for each, the export merged them "
               "and they are trained as one; export after a first step of "
               "training, or with optimize=False");
  return success();
}

namespace {
/// What the exporter's notes say that nodes were called with, and the file does
/// not hold, as it is or computed into something else.
struct Lost {
  std::vector<std::string> parameters;
  int64_t batchNorms = 0;
  /// Whether there are parameters of anything else.
  bool hasOthers = false;
};
} // namespace

static Lost findLost(const GraphImporter &graph) {
  llvm::StringSet<> held, lost;
  for (const auto &tensor : graph.file.graph().initializer())
    held.insert(tensor.name());
  for (const auto &notes : graph.metadata.initializers)
    if (notes.second.foldedFrom && held.contains(notes.first()))
      for (const std::string &source : *notes.second.foldedFrom)
        held.insert(source);
  for (const onnx::NodeProto *node : allNodesOf(graph.file.graph()))
    for (const std::string &placeholder :
         placeholdersReadBy(*node, graph.metadata)) {
      const ModuleTensor &tensor =
          graph.metadata.placeholders.find(placeholder)->second;
      if (!held.contains(tensor.name))
        lost.insert(tensor.name);
    }
  Lost found;
  for (const auto &tensor : lost) {
    auto [module, name] = tensor.first().rsplit('.');
    found.batchNorms += name == "running_mean";
    if (graph.metadata.tensors.lookup(tensor.first()) !=
        ExportedKind::Parameter)
      continue;
    found.parameters.push_back(tensor.first().str());
    found.hasOthers |= !lost.contains((module + ".running_mean").str());
  }
  llvm::sort(found.parameters);
  return found;
}

static void warnAboutLost(GraphImporter &graph, const Lost &lost) {
  auto count = static_cast<int64_t>(lost.parameters.size());
  int64_t all = llvm::count_if(graph.metadata.tensors, [](const auto &tensor) {
    return tensor.second == ExportedKind::Parameter;
  });
  std::string why;
  if (lost.batchNorms)
    why = " folded " + std::to_string(lost.batchNorms) +
          (lost.batchNorms == 1 ? " batch normalization"
                                : " batch normalizations") +
          " into other weights";
  if (lost.hasOthers)
    why += std::string(why.empty() ? "" : " and") +
           " left out biases that are all zeros";
  graph.warn(std::to_string(count) + " of the module's " + std::to_string(all) +
             " parameters " + (count == 1 ? "is" : "are") +
             " not in the file (" + quotedStart(lost.parameters) + ") and " +
             (count == 1 ? "does" : "do") + " not train: the exporter" + why +
             "; Pipewright's tools/export.py exports all that a model uses");
}

static void warnAboutFoldedBatchNorm(GraphImporter &graph) {
  graph.warn("no convolution is followed by batch normalization, but names "
             "show that it was folded into the weights: training goes on "
             "without it");
}

static void warnAboutAttention(GraphImporter &graph,
                               const std::vector<std::string> &modules) {
  const bool isNamed = llvm::none_of(
      modules, [](const std::string &module) { return module.empty(); });
  graph.warn("dropout of " + std::to_string(modules.size()) +
             (modules.size() == 1 ? " attention" : " attentions") +
             (isNamed ? " (" + quotedStart(modules) + ")" : "") +
             " does not drop: PyTorch's exporter writes it so (--train-dropout "
             "lets it drop)");
}

LogicalResult warnAboutEvaluationMode(GraphImporter &graph) {
  bool evaluation = false;
  if (failed(warnAboutMergedVectors(graph)))
    return failure();
  if (!graph.untied.empty()) {
    evaluation = true;
    warnAboutUntied(graph);
  }
  if (failed(warnAboutLostTies(graph, evaluation)))
    return failure();
  const Lost lost = findLost(graph);
  if (!lost.parameters.empty()) {
    warnAboutLost(graph, lost);
  } else if (hasFoldedBatchNorm(graph.file)) {
    evaluation = true;
    warnAboutFoldedBatchNorm(graph);
  }
  if (graph.inferenceBatchNorms)
    graph.warn(countOf(graph.inferenceBatchNorms, "BatchNormalization node") +
               " in inference form: trained with the statistics of each "
               "micro-batch, and running statistics are kept (--batch-norm "
               "frozen uses those that are there)");
  if (graph.frozenBatchNorms && !graph.batchNorm)
    graph.warn(countOf(graph.frozenBatchNorms, "BatchNormalization node") +
               " in inference form beside others that train: " +
               (graph.frozenBatchNorms == 1 ? "its" : "their") +
               " running statistics stay as they are (--batch-norm batch "
               "trains with those of each micro-batch)");
  if (graph.inferenceDropouts) {
    // Beside others that drop it is a part of the model that was kept fixed.
    evaluation |= graph.activeDropouts == 0;
    graph.warn(countOf(graph.inferenceDropouts, "Dropout node") +
               " in inference form: training goes on without " +
               (graph.inferenceDropouts == 1 ? "it" : "them") +
               " (--train-dropout lets it drop)");
  }
  if (!graph.fixedAttentions.empty())
    warnAboutAttention(graph, graph.fixedAttentions);
  if (evaluation)
    graph.warn(std::string("the model was exported in evaluation mode") +
               (graph.activeDropouts ? "" : ", where any dropout is gone") +
               ": to train the model that was written, export it with " +
               wayToExport(graph.file));
  return success();
}

} // namespace pipewright::frontend
