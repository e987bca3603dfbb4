//===- FoldedParameters.cpp - Initializers computed of parameters ---------===//
//
// PyTorch's newer exporter computes what depends on parameters alone. A copy of
// a parameter is that parameter again here, where the exporter's notes and the
// values tell.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/TensorBuilder.h"
#include "frontends/onnx/EvaluationMode.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/ops/Broadcasting.h"

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// Transposed
//===----------------------------------------------------------------------===//

/// The tied parameter that an initializer is a transposed copy of, transposed;
/// null if it is none. The exporter stores the weights of products so.
FailureOr<Value>
GraphImporter::readTransposedParameter(const onnx::TensorProto &tensor,
                                       const FloatBytes &bytes) {
  auto noted = metadata.initializers.find(tensor.name());
  if (noted == metadata.initializers.end() || !noted->second.foldedFrom ||
      noted->second.foldedFrom->size() != 1)
    return Value();
  const std::string &source = noted->second.foldedFrom->front();
  auto original = metadata.initializers.find(source);
  const onnx::TensorProto *parameter = initializers.lookup(source);
  if (!parameter || !isRead(source) ||
      original == metadata.initializers.end() ||
      original->second.kind != ExportedKind::Parameter ||
      original->second.foldedFrom || bytes.shape.size() != 2 ||
      parameter->dims_size() != 2 || parameter->dims(0) != bytes.shape[1] ||
      parameter->dims(1) != bytes.shape[0] ||
      elementKindOf(parameter->data_type()) != ElementKind::Float)
    return Value();
  FailureOr<FloatBytes> other =
      reader.readFloats(*parameter, "initializer '" + source + "'");
  if (failed(other))
    return failure();
  if (!isTransposed(bytes, *other))
    return Value();
  FailureOr<ImportedValue> tied = lookup(source);
  if (failed(tied))
    return failure();
  if (tied->isWeight())
    initializerCopies.push_back(
        {tensor.name(), tied->weight, /*isTransposed=*/true});
  TensorBuilder b(builder, NameLoc::get(builder.getStringAttr(source)),
                  [this] { return error(); });
  return b.transpose(materialize(*tied, source), {1, 0});
}

//===----------------------------------------------------------------------===//
// Repeated
//===----------------------------------------------------------------------===//

/// The one parameter among what an initializer was computed from; empty if
/// there is another number of them.
static std::string parameterOf(const InitializerNotes &notes,
                               const ExporterMetadata &metadata) {
  std::string found;
  for (const std::string &source : *notes.foldedFrom) {
    auto tensor = metadata.tensors.find(source);
    if (tensor == metadata.tensors.end() ||
        tensor->second != ExportedKind::Parameter)
      continue;
    if (!found.empty())
      return "";
    found = source;
  }
  return found;
}

/// Rows that a lookup took from a table, each once where it took it several
/// times: a gradient reaches the row from all of them. Rows that are all the
/// same number do not tell whether they are one.
static std::optional<ConstantTensor> distinctRows(ConstantTensor rows) {
  if (rows.isUniform())
    return std::nullopt;
  for (int64_t axis = 0; axis + 1 < rows.rank(); ++axis)
    if (std::optional<ConstantTensor> slice = commonSlice(rows, axis))
      rows = std::move(*slice);
  return rows;
}

/// One of the samples that a parameter was expanded to.
static std::optional<ConstantTensor> oneSample(const ConstantTensor &samples,
                                               int64_t batch) {
  for (int64_t axis = 0; axis < samples.rank(); ++axis)
    if (batch > 1 && samples.shape()[axis] == batch)
      return commonSlice(samples, axis);
  return std::nullopt;
}

FailureOr<Value>
GraphImporter::readRepeatedParameter(const onnx::TensorProto &tensor) {
  StringRef name = tensor.name();
  bool isExpanded = name.starts_with("expand");
  auto noted = metadata.initializers.find(name);
  if ((!isExpanded && !name.starts_with("embedding")) ||
      noted == metadata.initializers.end() || !noted->second.foldedFrom ||
      function.getNumArguments() == 0)
    return Value();
  std::string parameter = parameterOf(noted->second, metadata);
  // It would no longer be tied to what else reads the parameter.
  if (parameter.empty() || initializers.contains(parameter) ||
      values.contains(parameter))
    return Value();
  FailureOr<ConstantTensor> all =
      reader.readConstant(tensor, "initializer '" + name.str() + "'");
  if (failed(all))
    return failure();
  ArrayRef<int64_t> input = shapeOf(function.getArgument(0));
  int64_t batch = batchChange     ? batchChange->original
                  : input.empty() ? 1
                                  : input.front();
  std::optional<ConstantTensor> one =
      isExpanded ? oneSample(*all, batch) : distinctRows(*all);
  if (!one || one->shape() == all->shape())
    return Value();
  Shape shape(all->shape());
  for (auto [size, kept] : llvm::zip(shape, one->shape()))
    if (batchChange && size == batch && kept == 1)
      size = batchChange->wanted;
  std::string key = isExpanded ? parameter : name.str();
  values[key] = addConstantAsWeight(
      key, std::make_shared<ConstantTensor>(std::move(*one)),
      nn::WeightRole::Parameter);
  initializerCopies.push_back({tensor.name(), key});
  TensorBuilder b(builder, NameLoc::get(builder.getStringAttr(key)),
                  [this] { return error(); });
  return b.broadcastTo(readWeight(key), shape);
}

} // namespace pipewright::frontend
