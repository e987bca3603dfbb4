//===- InputBinding.cpp - Sizes for a model's inputs ----------------------===//
//
// Dimension 0 of every input is the batch. A symbolic one takes the wanted
// size; a fixed one is changed when all inputs agree on it.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/InputBinding.h"

#include "dialects/nn/NNLimits.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using onnx::TensorShapeProto;

namespace pipewright::frontend {

namespace {

class InputBinder {
public:
  InputBinder(const ModelFile &file, const ImportOptions &options,
              MLIRContext &context)
      : file(file), options(options), context(context) {}

  FailureOr<BoundInputs> bind();

private:
  LogicalResult checkOptions();
  LogicalResult collectInputs();
  LogicalResult bindBatchNames();
  FailureOr<int64_t> bindDimension(const onnx::ValueInfoProto &input,
                                   int index);
  LogicalResult checkUnusedOptions();
  FailureOr<std::optional<BatchChange>>
  findBatchChange(const BoundInputs &bound);

  const TensorShapeProto::Dimension &dimension(const onnx::ValueInfoProto &v,
                                               int i) {
    return v.type().tensor_type().shape().dim(i);
  }
  InFlightDiagnostic error() { return file.error(context); }

  const ModelFile &file;
  const ImportOptions &options;
  MLIRContext &context;
  std::vector<const onnx::ValueInfoProto *> inputs;
  llvm::StringMap<int64_t> sizes;
  llvm::StringSet<> usedOptions;
};

} // namespace

LogicalResult InputBinder::checkOptions() {
  if (options.microBatchSize && *options.microBatchSize < 1)
    return emitError(UnknownLoc::get(&context))
           << "--micro-batch-size: expects 1 or more, but got "
           << *options.microBatchSize;
  for (const auto &entry : options.dims) {
    if (entry.getValue() < 1)
      return emitError(UnknownLoc::get(&context))
             << "--dim " << entry.getKey() << ": expects 1 or more, but got "
             << entry.getValue();
    sizes[entry.getKey()] = entry.getValue();
  }
  return success();
}

LogicalResult InputBinder::collectInputs() {
  // Up to IR version 3 initializers are listed as inputs as well.
  llvm::StringSet<> initializers;
  for (const auto &tensor : file.graph().initializer())
    initializers.insert(tensor.name());
  for (const auto &input : file.graph().input()) {
    if (initializers.contains(input.name()))
      continue;
    if (input.type().has_sequence_type())
      return error() << "input '" << input.name()
                     << "' is a sequence of tensors: make each of them an "
                        "input of its own";
    if (input.type().has_optional_type())
      return error() << "input '" << input.name()
                     << "' is an optional: make what it holds an input, or "
                        "leave it out of the model";
    if (!input.type().has_tensor_type())
      return error() << "input '" << input.name() << "' is not a tensor";
    const auto &type = input.type().tensor_type();
    if (!elementKindOf(type.elem_type()))
      return error() << "input '" << input.name() << "': element type "
                     << elementTypeName(type.elem_type()) << " ("
                     << type.elem_type() << ") is not supported";
    if (!type.has_shape())
      return error() << "input '" << input.name() << "' has no shape";
    inputs.push_back(&input);
  }
  return success();
}

/// A symbolic batch dimension names its size, wherever else the name occurs.
LogicalResult InputBinder::bindBatchNames() {
  if (!options.microBatchSize)
    return success();
  for (const onnx::ValueInfoProto *input : inputs) {
    if (input->type().tensor_type().shape().dim_size() == 0)
      continue;
    const auto &dim = dimension(*input, 0);
    if (dim.has_dim_value() || dim.dim_param().empty())
      continue;
    auto [it, isNew] =
        sizes.try_emplace(dim.dim_param(), *options.microBatchSize);
    if (!isNew && it->second != *options.microBatchSize)
      return error() << "--dim " << dim.dim_param() << "=" << it->second
                     << " contradicts --micro-batch-size "
                     << *options.microBatchSize;
  }
  return success();
}

FailureOr<int64_t> InputBinder::bindDimension(const onnx::ValueInfoProto &input,
                                              int index) {
  const auto &dim = dimension(input, index);
  if (dim.has_dim_value()) {
    if (dim.dim_value() < 1)
      return error() << "input '" << input.name() << "' dimension " << index
                     << ": expects 1 or more, but got " << dim.dim_value();
    return dim.dim_value();
  }
  std::string anonymous = input.name() + ":" + std::to_string(index);
  for (const std::string &key : {dim.dim_param(), anonymous}) {
    auto it = sizes.find(key);
    if (key.empty() || it == sizes.end())
      continue;
    usedOptions.insert(key);
    return it->second;
  }
  if (index == 0 && options.microBatchSize)
    return *options.microBatchSize;
  auto diag = error() << "input '" << input.name() << "' dimension " << index;
  if (!dim.dim_param().empty())
    diag << " ('" << dim.dim_param() << "')";
  diag << " has no size: pass ";
  if (index == 0)
    diag << "--micro-batch-size N or ";
  return diag << "--dim "
              << (dim.dim_param().empty() ? anonymous : dim.dim_param())
              << "=N";
}

LogicalResult InputBinder::checkUnusedOptions() {
  for (const auto &entry : options.dims)
    if (!usedOptions.contains(entry.getKey()))
      return error() << "--dim " << entry.getKey()
                     << ": no input has a dimension of that name";
  return success();
}

FailureOr<std::optional<BatchChange>>
InputBinder::findBatchChange(const BoundInputs &bound) {
  std::optional<int64_t> fixed;
  bool differ = false;
  for (auto [input, binding] : llvm::zip(inputs, bound.inputs)) {
    if (binding.shape.empty())
      continue;
    if (!dimension(*input, 0).has_dim_value())
      return std::optional<BatchChange>();
    differ |= fixed && *fixed != binding.shape.front();
    fixed = binding.shape.front();
  }
  if (!fixed || !options.microBatchSize ||
      (!differ && *fixed == *options.microBatchSize))
    return std::optional<BatchChange>();
  if (differ)
    return error() << "--micro-batch-size " << *options.microBatchSize
                   << " cannot be applied: the inputs differ in dimension 0, "
                      "which the model fixes";
  return std::optional<BatchChange>(
      BatchChange{*fixed, *options.microBatchSize});
}

FailureOr<BoundInputs> InputBinder::bind() {
  if (failed(checkOptions()) || failed(collectInputs()) ||
      failed(bindBatchNames()))
    return failure();
  BoundInputs bound;
  for (const onnx::ValueInfoProto *input : inputs) {
    const auto &type = input->type().tensor_type();
    InputBinding binding{input->name(),
                         {},
                         *elementKindOf(type.elem_type()),
                         floatFormatOf(type.elem_type())};
    for (int i = 0, e = type.shape().dim_size(); i < e; ++i) {
      FailureOr<int64_t> size = bindDimension(*input, i);
      if (failed(size))
        return failure();
      binding.shape.push_back(*size);
    }
    if (std::string problem = nn::problemOfSize(binding.shape);
        !problem.empty())
      return error() << "input '" << input->name() << "': " << problem;
    bound.inputs.push_back(std::move(binding));
  }
  if (failed(checkUnusedOptions()))
    return failure();
  FailureOr<std::optional<BatchChange>> change = findBatchChange(bound);
  if (failed(change))
    return failure();
  bound.batchChange = *change;
  if (bound.batchChange) {
    bound.originalInputs = bound.inputs;
    for (InputBinding &binding : bound.inputs)
      if (!binding.shape.empty()) {
        binding.shape.front() = bound.batchChange->wanted;
        if (std::string problem = nn::problemOfSize(binding.shape);
            !problem.empty())
          return error() << "input '" << binding.name << "': " << problem;
      }
  }
  return bound;
}

FailureOr<BoundInputs> bindInputs(const ModelFile &file,
                                  const ImportOptions &options,
                                  MLIRContext &context) {
  return InputBinder(file, options, context).bind();
}

} // namespace pipewright::frontend
