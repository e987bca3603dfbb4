//===- Importer.cpp - ONNX model to nn dialect ----------------------------===//
//
// The order of the import: read, bind the inputs, import the nodes (twice when
// the batch size changes: once as the file has it, to learn which dimensions
// follow the batch), attach the loss, tidy up, warn.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Importer.h"

#include "frontends/onnx/DeviceConfigurations.h"
#include "frontends/onnx/EvaluationMode.h"
#include "frontends/onnx/FunctionResults.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/InputBinding.h"
#include "frontends/onnx/Limits.h"
#include "frontends/onnx/MergedWeights.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/Subgraphs.h"
#include "frontends/onnx/UnsupportedOps.h"
#include "frontends/onnx/WeightExport.h"
#include "frontends/onnx/WeightOrigins.h"
#include "frontends/onnx/WeightRoles.h"

#include "mlir/IR/Verifier.h"
#include "onnx/defs/schema.h"

using namespace mlir;

namespace pipewright::frontend {

/// Compares what the file says about its outputs with what was inferred.
static LogicalResult checkDeclaredOutputs(GraphImporter &graph) {
  for (const auto &output : graph.file.graph().output()) {
    FailureOr<ImportedValue> value = graph.lookup(output.name());
    if (failed(value))
      return failure();
    if (value->isSequence())
      return graph.error() << "output '" << output.name()
                           << "' is a sequence of tensors: make each of them "
                              "an output of its own";
    if (value->isEmptyOptional())
      return graph.error() << "output '" << output.name()
                           << "' is an optional that holds nothing";
    if (!output.type().has_tensor_type())
      continue;
    const auto &type = output.type().tensor_type();
    auto kind = elementKindOf(type.elem_type());
    if (type.elem_type() && kind != value->element)
      return graph.error() << "output '" << output.name() << "' is declared as "
                           << elementTypeName(type.elem_type())
                           << ", but the graph computes another type";
    if (!type.has_shape())
      continue;
    bool fits = type.shape().dim_size() == int(value->shape.size());
    for (int i = 0; fits && i < type.shape().dim_size(); ++i) {
      const auto &dim = type.shape().dim(i);
      fits = !dim.has_dim_value() || dim.dim_value() == value->shape[i];
    }
    if (fits)
      continue;
    auto diag = graph.error()
                << "output '" << output.name() << "' is declared as [";
    llvm::interleaveComma(type.shape().dim(), diag, [&](const auto &dim) {
      if (dim.has_dim_value())
        diag << dim.dim_value();
      else
        diag << (dim.dim_param().empty() ? "?" : dim.dim_param());
    });
    diag << "], but the graph computes [";
    llvm::interleaveComma(value->shape, diag);
    return diag << "]";
  }
  return success();
}

/// Erases ops without uses, and weights that nothing reads any more.
static void eraseDead(GraphImporter &graph) {
  Block &body = graph.function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::DenseSet<StringAttr> used;
  body.walk([&](Operation *op) {
    op->getAttrDictionary().walk(
        [&](FlatSymbolRefAttr symbol) { used.insert(symbol.getAttr()); });
  });
  for (auto weight : llvm::make_early_inc_range(
           graph.module->getBody()->getOps<nn::WeightOp>())) {
    if (used.contains(weight.getSymNameAttr()))
      continue;
    graph.weights.remove(weight.getSymName());
    weight.erase();
  }
}

static bool takesSampleVariance(const ImportOptions &options,
                                const ModelFile &file) {
  if (options.runningVariance)
    return *options.runningVariance == RunningVariance::Sample;
  return file.proto->producer_name() == "pytorch";
}

/// An op may have come to mean something else; nothing else would tell.
static void warnAboutNewVersions(GraphImporter &graph) {
  int64_t opset = graph.file.opset, ir = graph.file.proto->ir_version();
  for (const onnx::NodeProto *node : allNodesOf(graph.file.graph()))
    opset = std::max(opset, graph.file.opsetOf(*node));
  if (opset > kCheckedOpset || ir > kCheckedIrVersion)
    graph.warn("the model is of opset " + std::to_string(opset) +
               " and IR version " + std::to_string(ir) + ", but opset " +
               std::to_string(kCheckedOpset) + " and IR version " +
               std::to_string(kCheckedIrVersion) +
               " are the newest that pipewright was checked with: an op that "
               "means something else since would be taken for what it was; "
               "export with opset_version=" +
               std::to_string(kCheckedOpset) + " or older");
}

FailureOr<ImportedModel> importOnnx(const ImportOptions &options,
                                    MLIRContext &context) {
  FailureOr<ModelFile> file = readModelFile(options.modelPath, context);
  if (failed(file))
    return failure();
  return importFile(*file, options, context);
}

FailureOr<ImportedModel> importFile(ModelFile &file,
                                    const ImportOptions &options,
                                    MLIRContext &context,
                                    std::vector<WeightOrigin> *origins) {
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  ExporterMetadata metadata = readExporterMetadata(file);
  int64_t parted = partMergedWeights(file, metadata);
  RolePatterns patterns(options.roleRules);
  FailureOr<NodeOrder> order = orderNodes(file, context);
  if (failed(order))
    return failure();
  if (failed(checkSupported(file, *order, context)))
    return failure();
  FailureOr<BoundInputs> bound = bindInputs(file, options, context);
  if (failed(bound))
    return failure();

  TensorReader reader(file, context);
  GraphImporter graph(file, context, reader, metadata, patterns);
  warnAboutNewVersions(graph);
  graph.trainingExport = isTrainingExport(file);
  graph.sampleVariance = takesSampleVariance(options, file);
  graph.trainDropout = options.trainDropout;
  graph.batchNorm = options.batchNorm;
  graph.hasTrainingNorm =
      llvm::any_of(allNodesOf(file.graph()), [&](const onnx::NodeProto *node) {
        return isTrainingNorm(*node, file.opsetOf(*node));
      });
  if (bound->batchChange) {
    GraphImporter original(file, context, reader, metadata, patterns);
    original.trainingExport = graph.trainingExport;
    if (failed(original.importNodes(bound->originalInputs, *order)) ||
        failed(checkDeclaredOutputs(original)))
      return failure();
    graph.originals = original.recordValues(bound->batchChange->original);
    graph.batchChange = bound->batchChange;
  }
  ScopedDiagnosticHandler explain(&context, [&](Diagnostic &diagnostic) {
    if (bound->batchChange)
      diagnostic << " (the model was written for batch size "
                 << bound->batchChange->original
                 << ": export it with a symbolic batch dimension, or pass "
                    "--micro-batch-size "
                 << bound->batchChange->original << ")";
    return failure();
  });
  if (failed(graph.importNodes(bound->inputs, *order)) ||
      failed(bound->batchChange ? graph.checkOutputBatch()
                                : checkDeclaredOutputs(graph)) ||
      failed(buildResults(graph, options)))
    return failure();
  eraseDead(graph);
  graph.devices.attachTo(*graph.module);
  for (std::string &warning : graph.devices.warnings())
    graph.warn(std::move(warning));
  if (parted)
    graph.warn(std::to_string(parted) + (parted == 1 ? " tensor" : " tensors") +
               " of the module, which the export merged into others of equal "
               "values, are apart again: the exporter's notes name them");
  if (failed(assignRoles(graph, options)) || failed(verify(*graph.module)) ||
      failed(warnAboutEvaluationMode(graph)))
    return failure();
  if (origins)
    *origins = originsOfWeights(graph);
  return ImportedModel{std::move(graph.module), std::move(graph.weights),
                       std::move(graph.warnings), std::move(graph.built)};
}

/// What BuiltOps.def says.
static BuiltOpsByOperator saidOps() {
  BuiltOpsByOperator said;
  auto add = [](std::set<std::string> &list, StringRef names) {
    llvm::SmallVector<StringRef> ops;
    names.split(ops, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    list.insert(ops.begin(), ops.end());
  };
#define BUILT(op, ofFloats, ofOthers)                                          \
  add(said[#op].floats, ofFloats);                                             \
  add(said[#op].others, ofOthers);
#include "frontends/onnx/BuiltOps.def"
#undef BUILT
  return said;
}

/// The last operator set that has an operator, of those that the ONNX library
/// and we know.
static int64_t lastOpset(const OpRow &row) {
  for (int version = row.since; version <= kCheckedOpset; ++version)
    if (auto *schema = onnx::OpSchemaRegistry::Schema(row.name.str(), version);
        schema && schema->Deprecated())
      return version - 1;
  return kCheckedOpset;
}

namespace {

struct OnnxFrontend final : Frontend {
  bool reads(StringRef) const override { return true; }
  FailureOr<ImportedModel> import(const ImportOptions &options,
                                  MLIRContext &context) const override {
    return importOnnx(options, context);
  }
  llvm::Expected<AnnotatedModel>
  annotate(StringRef path, StringRef output,
           const StageAnnotations &annotations) const override {
    return annotateOnnx(path, output, annotations);
  }
  llvm::Expected<ExportWeights>
  prepareExport(const ExportOptions &options) const override {
    return prepareOnnxExport(options);
  }
  std::vector<OperatorSummary> operators() const override {
    std::vector<OperatorSummary> all;
    BuiltOpsByOperator said = saidOps();
    for (const OpRow *row : allOps())
      all.push_back({row->name.str(), row->since, lastOpset(*row), !row->import,
                     said[row->name.str()]});
    return all;
  }
};

} // namespace

const Frontend &onnxFrontend() {
  static const OnnxFrontend frontend;
  return frontend;
}

} // namespace pipewright::frontend
