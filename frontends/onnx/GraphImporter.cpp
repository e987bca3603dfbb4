//===- GraphImporter.cpp - Names of a graph and what they stand for -------===//
//
// Initializers become weights or constants here, and values of every kind
// become op results. What single ops mean is in ops/.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GraphImporter.h"

#include "dialects/nn/NNWeightNames.h"

#include "frontends/onnx/BufferTables.h"
#include "frontends/onnx/EvaluationMode.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/GroupNorms.h"
#include "frontends/onnx/Names.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/Subgraphs.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

GraphImporter::GraphImporter(const ModelFile &file, MLIRContext &context,
                             TensorReader &reader,
                             const ExporterMetadata &metadata,
                             RolePatterns &patterns)
    : file(file), context(context), reader(reader), metadata(metadata),
      patterns(patterns), builder(&context),
      groupNorms(findGroupNorms(file.graph())), devices(*file.proto) {
  builder.setListener(&inlinedOps);
  for (const auto &tensor : file.graph().initializer())
    initializers[tensor.name()] = &tensor;
  for (const auto &name : namesDefinedIn(file.graph()))
    takenNames.insert(name.getKey());
}

void GraphImporter::createModule(ArrayRef<InputBinding> inputs) {
  const std::string &name = file.graph().name();
  Location loc = NameLoc::get(builder.getStringAttr(file.path));
  module = name.empty() ? ModuleOp::create(loc) : ModuleOp::create(loc, name);
  builder.setInsertionPointToEnd(module->getBody());

  SmallVector<Type> types;
  for (const InputBinding &input : inputs)
    types.push_back(
        RankedTensorType::get(input.shape, elementType(input.kind, &context)));
  function = func::FuncOp::create(builder, loc, "model",
                                  builder.getFunctionType(types, {}));
  symbols.insert("model");
  symbols.insert(nn::kMetadataName);
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  for (auto [i, input] : llvm::enumerate(inputs)) {
    function.setArgAttr(i, nn::kName, builder.getStringAttr(input.name));
    body->getArgument(i).setLoc(
        NameLoc::get(builder.getStringAttr(input.name)));
    ImportedValue value = computedValue(body->getArgument(i));
    value.format = input.format;
    define(input.name, std::move(value));
  }
}

void GraphImporter::noteRead(const std::string &name, bool asValue) {
  readNames.insert(name);
  if (asValue)
    namesOfValues.insert(name);
}

void GraphImporter::noteReads(const onnx::NodeProto &node) {
  for (auto [i, input] : llvm::enumerate(node.input()))
    noteRead(resolve(input), !isRunningStatistic(node, int(i)));
  auto captured = order->captured.find(&node);
  if (captured == order->captured.end())
    return;
  for (const CapturedName &name : captured->second)
    noteRead(resolve(name.name), name.asValue);
}

LogicalResult GraphImporter::importNodes(ArrayRef<InputBinding> inputs,
                                         const NodeOrder &nodes) {
  order = &nodes;
  createModule(inputs);
  for (const onnx::NodeProto *node : order->nodes)
    noteReads(*node);
  for (const auto &output : file.graph().output())
    noteRead(output.name());
  for (const onnx::NodeProto *node : order->nodes)
    if (failed(importNode(*node)))
      return failure();
  return success();
}

/// Notes the ops behind `before` that are at `loc`: those of the node.
void GraphImporter::recordBuilt(const onnx::NodeProto &node, Operation *before,
                                Location loc) {
  Block &body = function.getBody().front();
  bool givesFloats = llvm::any_of(node.output(), [&](const auto &name) {
    auto it = values.find(resolve(name));
    return it != values.end() && it->second.element == ElementKind::Float;
  });
  auto first = before ? std::next(before->getIterator()) : body.begin();
  for (Operation &op : llvm::make_range(first, body.end()))
    if (op.getLoc() == loc)
      built[node.op_type()].add(&op, givesFloats);
}

/// Floats of 8 bits that an op only moves stay what they are: a cast to what
/// its result is rounds to them.
void GraphImporter::keepFormat(const NodeContext &context,
                               const onnx::NodeProto &node) {
  const bool moves = llvm::StringSwitch<bool>(node.op_type())
                         .Cases({"Flatten", "Identity", "Pad", "Reshape"}, true)
                         .Cases({"Squeeze", "Transpose", "Unsqueeze"}, true)
                         .Default(false);
  if (!moves || context.numInputs() == 0 || context.numOutputs() == 0)
    return;
  auto result = values.find(context.outputName(0));
  if (result != values.end())
    result->second.format = context.input(0).format;
}

LogicalResult GraphImporter::importNode(const onnx::NodeProto &node) {
  NodeContext context(*this, node, namesOf(node));
  noteStages(node, context.getLabel());
  const OpRow *row = findOp(node.op_type());
  assert(row && "checkSupported has looked");
  if (context.opset < row->since)
    return context.error() << "expects opset " << row->since
                           << " or newer for this operator";
  if (failed(context.resolveInputs()) ||
      failed(context.expectInputs(row->inputs)) ||
      failed(context.expectTensors(row->sequenceInputs)))
    return failure();
  if (broadcasts(*row) && failed(context.followBatch()))
    return failure();
  if (row->fold && failed(context.takeUntrainedAsConstants()))
    return failure();
  bool fold = row->fold && context.allConstant();
  if (!fold && !row->import && !context.hasRandomInput())
    return context.error() << "expects constant operands, but they depend on "
                              "the model's inputs or weights";
  OpRow::Function run = context.hasRandomInput() ? importOfRandom
                        : fold                   ? row->fold
                                                 : row->import;
  Block &body = function.getBody().front();
  Operation *before = body.empty() ? nullptr : &body.back();
  if (failed(run(context)) || failed(context.checkAttributes()))
    return failure();
  keepFormat(context, node);
  recordBuilt(node, before, context.b.getLoc());
  if (failed(checkBatch(context)))
    return failure();
  for (unsigned i = 0; i < context.numOutputs(); ++i)
    if (context.isOutputRead(i) && !values.contains(context.outputName(i)))
      return context.error()
             << "output '" << context.outputName(i) << "' is not supported";
  return success();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

FailureOr<ImportedValue> GraphImporter::lookup(StringRef name) {
  if (name.empty())
    return ImportedValue();
  auto it = values.find(name);
  if (it != values.end())
    return it->second;
  FailureOr<ImportedValue> value =
      importInitializer(*initializers.lookup(name));
  if (succeeded(value))
    values[name] = *value;
  return value;
}

void GraphImporter::define(StringRef name, ImportedValue value) {
  values[name] = std::move(value);
}

ImportedValue computedValue(Value value) {
  ImportedValue imported;
  imported.kind = ImportedValue::Computed;
  imported.value = value;
  imported.shape = Shape(shapeOf(value));
  imported.element = kindOf(value);
  return imported;
}

void GraphImporter::define(StringRef name, Value value) {
  define(name, computedValue(value));
}

ImportedValue constantValue(ConstantTensor tensor) {
  ImportedValue imported;
  imported.kind = ImportedValue::Constant;
  imported.shape = Shape(tensor.shape());
  imported.element = tensor.kind();
  imported.constant = std::make_shared<ConstantTensor>(std::move(tensor));
  return imported;
}

void GraphImporter::define(StringRef name, ConstantTensor tensor) {
  define(name, constantValue(std::move(tensor)));
}

//===----------------------------------------------------------------------===//
// Initializers
//===----------------------------------------------------------------------===//

/// Values that no parameter has: masks, padding. A mask has many of them. So of
/// a tensor that is larger than a mask of 2048 x 2048, parts are read that are
/// spread evenly over it, not all of what may be as large as a disk.
static bool looksLikeMask(ArrayRef<char> bytes) {
  ArrayRef<float> floats(reinterpret_cast<const float *>(bytes.data()),
                         bytes.size() / sizeof(float));
  auto hasMasked = [](ArrayRef<float> some) {
    return llvm::any_of(some, [](float value) {
      return !std::isfinite(value) || value <= -1e30f;
    });
  };
  constexpr size_t readWhole = 2048 * 2048, parts = 64, perPart = 1024;
  if (floats.size() <= readWhole)
    return hasMasked(floats);
  for (size_t part = 0; part < parts; ++part)
    if (hasMasked(floats.slice((floats.size() - perPart) / (parts - 1) * part,
                               perPart)))
      return true;
  return false;
}

/// Whether the exporter or the user says that an initializer is a parameter,
/// whatever it looks like.
bool GraphImporter::isSaidToTrain(StringRef name) {
  std::optional<RoleRule::Kind> wish = patterns.match(name);
  if (wish == RoleRule::Train)
    return true;
  auto noted = metadata.initializers.find(name);
  return noted != metadata.initializers.end() &&
         noted->second.kind == ExportedKind::Parameter;
}

FailureOr<ImportedValue>
GraphImporter::importInitializer(const onnx::TensorProto &tensor) {
  std::string what = "initializer '" + tensor.name() + "'";
  FailureOr<Shape> shape = reader.readShape(tensor, what);
  if (failed(shape))
    return failure();
  int64_t count = elementCount(*shape);
  auto asConstant = [&]() -> FailureOr<ImportedValue> {
    FailureOr<ConstantTensor> constant = reader.readConstant(tensor, what);
    if (failed(constant))
      return failure();
    return constantValue(std::move(*constant));
  };
  // Rounded as they are, floats of 8 bits do not train.
  const std::optional<nn::FloatFormat> format =
      floatFormatOf(tensor.data_type());
  if (format && isSaidToTrain(tensor.name()))
    return error() << what << " is of " << elementTypeName(tensor.data_type())
                   << ", which does not train: leave it out of --train";
  bool isFloat =
      !format && elementKindOf(tensor.data_type()) == ElementKind::Float;
  bool generated = isGeneratedName(tensor.name());
  bool trains = isFloat && isSaidToTrain(tensor.name());
  if (!isFloat || (!trains && (shape->empty() || (count <= 1 && generated)))) {
    FailureOr<ImportedValue> constant = asConstant();
    if (succeeded(constant) && isFloat && !generated &&
        !metadata.initializers.contains(tensor.name()))
      untrainedScalars.insert(constant->constant.get());
    if (succeeded(constant))
      constant->format = format;
    return constant;
  }

  FailureOr<FloatBytes> bytes = reader.readFloats(tensor, what);
  if (failed(bytes))
    return failure();
  WeightRecord record;
  record.bytes = std::move(*bytes);
  FailureOr<Value> tied = readTransposedParameter(tensor, record.bytes);
  if (failed(tied))
    return failure();
  if (!*tied)
    tied = readRepeatedParameter(tensor);
  if (failed(tied))
    return failure();
  if (*tied)
    return computedValue(*tied);
  if (!trains && looksLikeMask(record.bytes.bytes)) {
    FailureOr<ImportedValue> constant = asConstant();
    if (failed(constant) || count <= nn::ConstantOp::kMaxElements ||
        matchCausal(*constant->constant).kind != CausalPattern::NotCausal)
      return constant;
    record.role = nn::WeightRole::Constant;
  }
  return addWeight(tensor.name(), std::move(record));
}

FailureOr<ImportedValue>
GraphImporter::asConstantIfUntrained(ImportedValue value) {
  const onnx::TensorProto *tensor =
      value.isWeight() ? initializers.lookup(value.weight) : nullptr;
  if (!tensor || patterns.match(StringRef(value.weight)) == RoleRule::Train ||
      (weightRecords[value.weight].role != nn::WeightRole::Constant &&
       !isNotedAsUntrained(value.weight, metadata)))
    return value;
  FailureOr<ConstantTensor> constant =
      reader.readConstant(*tensor, "initializer '" + value.weight + "'");
  if (failed(constant))
    return failure();
  return constantValue(std::move(*constant));
}

ImportedValue GraphImporter::addWeight(StringRef key, WeightRecord record) {
  ImportedValue imported;
  imported.kind = ImportedValue::Weight;
  imported.weight = key.str();
  imported.shape = record.bytes.shape;
  imported.element = record.element;
  weightRecords[key.str()] = std::move(record);
  return imported;
}

ImportedValue GraphImporter::addConstantAsWeight(
    StringRef key, const ConstantTensor::Ptr &constant, nn::WeightRole role) {
  WeightRecord record;
  record.role = role;
  record.element = constant->kind();
  record.bytes.shape = Shape(constant->shape());
  if (constant->isSplat())
    record.splat = constant;
  record.bytes.bytes = constant->rawBytes();
  record.bytes.owner = constant;
  return addWeight(key, std::move(record));
}

ArrayRef<float> GraphImporter::storedFloats(const ImportedValue &value) const {
  ArrayRef<char> bytes;
  if (value.isConstant())
    bytes = value.constant->rawBytes();
  else if (auto record = weightRecords.find(value.weight);
           value.isWeight() && record != weightRecords.end())
    bytes = record->second.bytes.bytes;
  if (value.element != ElementKind::Float)
    return {};
  return {reinterpret_cast<const float *>(bytes.data()),
          bytes.size() / sizeof(float)};
}

bool GraphImporter::isPlainNorm(const onnx::NodeProto &node) const {
  return node.op_type() == "InstanceNormalization" && node.output_size() > 0 &&
         (groupNorms.contains(node.output(0)) || isNotedAsPlainNorm(node));
}

std::string GraphImporter::unusedName(std::string name) const {
  while (values.contains(name) || initializers.contains(name))
    name += '_';
  return name;
}

void GraphImporter::copyWeight(StringRef name, const ImportedValue &from) {
  if (!from.isWeight()) {
    values[name] = from;
    return;
  }
  WeightRecord record = weightRecords[from.weight];
  record.symbol.clear();
  record.parameter = Value();
  values[name] = addWeight(name, std::move(record));
}

std::string GraphImporter::newSymbol(StringRef name) {
  std::string symbol = name.str();
  for (int i = 1; nn::isKeptForPasses(symbol) || !symbols.insert(symbol).second;
       ++i)
    symbol = (name + "_" + Twine(i)).str();
  return symbol;
}

void GraphImporter::declareWeight(WeightRecord &record, StringRef key) {
  record.symbol = newSymbol(key);
  auto type = RankedTensorType::get(record.bytes.shape,
                                    elementType(record.element, &context));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(function);
  auto weight = nn::WeightOp::create(
      builder, NameLoc::get(builder.getStringAttr(key)),
      builder.getStringAttr(record.symbol), TypeAttr::get(type),
      nn::WeightRoleAttr::get(&context, record.role),
      /*file_rows=*/IntegerAttr(), /*channels_last=*/UnitAttr(),
      /*outputs=*/nn::MatrixOutputsAttr());
  if (record.symbol != key && key != nn::kMetadataName)
    nn::setFileName(weight, key);
  if (record.splat)
    weights.addSplat(record.symbol, record.bytes.bytes, type.getNumElements());
  else
    weights.addBorrowed(record.symbol, record.bytes.bytes, record.bytes.owner);
}

static StringRef roleName(nn::WeightRole role) {
  return nn::stringifyWeightRole(role);
}

FailureOr<std::string> GraphImporter::weightSymbol(StringRef name,
                                                   nn::WeightRole role) {
  FailureOr<ImportedValue> value = lookup(name);
  if (failed(value))
    return failure();
  if (value->isConstant()) {
    values[name] = addConstantAsWeight(name, value->constant, role);
    value = values[name];
  }
  if (!value->isWeight())
    return error() << "'" << name
                   << "' is computed, but a weight is expected here";
  WeightRecord &record = weightRecords[value->weight];
  if (record.symbol.empty()) {
    record.role = role;
    declareWeight(record, value->weight);
  } else if (record.role != role) {
    return error() << "initializer '" << name << "' is used as "
                   << roleName(record.role) << " and as " << roleName(role);
  }
  return record.symbol;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value GraphImporter::readWeight(StringRef key) {
  WeightRecord &record = weightRecords[key.str()];
  if (record.symbol.empty())
    declareWeight(record, key);
  if (!record.parameter) {
    auto type = RankedTensorType::get(record.bytes.shape,
                                      elementType(record.element, &context));
    record.parameter = nn::ParameterOp::create(
        builder, NameLoc::get(builder.getStringAttr(key)), type,
        FlatSymbolRefAttr::get(&context, record.symbol));
  }
  return record.parameter;
}

Value GraphImporter::materializeConstant(const ConstantTensor::Ptr &constant,
                                         StringRef name) {
  Value &cached = constantValues.try_emplace(constant.get(), constant, Value())
                      .first->second.second;
  if (cached)
    return cached;
  if (untrainedScalars.contains(constant.get()))
    warn("initializer '" + name.str() +
         "' has a single value and is taken for a constant, which is not "
         "trained");
  Location loc = NameLoc::get(builder.getStringAttr(name));
  TensorBuilder b(builder, loc, [this] { return error(); });
  CausalPattern causal = matchCausal(*constant);
  if (causal.kind != CausalPattern::NotCausal) {
    auto type = RankedTensorType::get(constant->shape(), builder.getI1Type());
    Value mask = b.create<nn::CausalMaskOp>({}, {}, type);
    if (causal.kind == CausalPattern::NotLower)
      mask = b.create<nn::LogicalNotOp>(mask);
    else if (causal.kind == CausalPattern::Additive)
      mask = b.create<nn::WhereOp>({mask, b.splat(0), b.splat(causal.masked)});
    return cached = mask;
  }
  if (constant->size() > nn::ConstantOp::kMaxElements &&
      !constant->isUniform()) {
    ImportedValue weight =
        addConstantAsWeight(name, constant, nn::WeightRole::Constant);
    return cached = readWeight(weight.weight);
  }
  DenseElementsAttr attr = constant->toAttr(&context);
  return cached = b.create<nn::ConstantOp>(
             {}, builder.getNamedAttr("value", attr), attr.getType());
}

Value GraphImporter::materialize(const ImportedValue &value, StringRef name) {
  switch (value.kind) {
  case ImportedValue::Missing:
    return Value();
  case ImportedValue::Computed:
    return value.value;
  case ImportedValue::Constant:
    return materializeConstant(value.constant, name);
  case ImportedValue::Weight:
    return readWeight(value.weight);
  case ImportedValue::Sequence:
    error() << "'" << name
            << "' is a sequence of tensors, but a tensor is expected here";
    return Value();
  case ImportedValue::Random:
    error() << "'" << name
            << "' is made of random numbers, which are supported only as the "
               "dropout and the stochastic depth that exporters write of "
               "PyTorch's: export the model with a rate of 0 there";
    return Value();
  case ImportedValue::EmptyOptional:
    error() << "'" << name
            << "' is an optional that holds nothing, but a tensor is expected "
               "here";
    return Value();
  }
  llvm_unreachable("covered switch");
}

} // namespace pipewright::frontend
