//===- WeightExport.cpp - Trained weights back in the file ----------------===//

#include "frontends/onnx/WeightExport.h"

#include "dialects/nn/NNAttributeNames.h"
#include "frontends/onnx/ExportedTensors.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/InferenceMode.h"
#include "frontends/onnx/WeightOrigins.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/io/WeightSource.h"
#include "support/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <google/protobuf/stubs/logging.h>
#include <set>

using namespace mlir;
using onnx::TensorProto;

namespace pipewright::frontend {

namespace {

/// A model whose weights are to be replaced. What goes wrong is thrown as a
/// runtime::Error, whose text is a line.
class WeightExport {
public:
  explicit WeightExport(const ExportOptions &options);

  ExportedModel write(StringRef weights);

private:
  /// A weight's values as the file wrote them, and as they are to be.
  struct Values {
    std::vector<float> elements;
    Shape shape;
  };

  void readModel();
  void checkOutput() const;
  void checkOrigin(const WeightOrigin &origin) const;
  std::vector<std::string>
  checkNames(const runtime::WeightSource &source) const;
  void replace(const WeightOrigin &origin, const Values &values);
  void replaceHolder(const WeightOrigin &origin, const WeightHolder &holder,
                     const Values &values);
  void replaceValue(const WeightOrigin &origin, const Values &values);
  bool ownsTensor(const WeightOrigin &origin, const WeightHolder &holder) const;
  void giveOwn(const WeightOrigin &origin, const WeightHolder &holder,
               const Values &values);
  TensorProto &addInitializer(const TensorProto &like, const std::string &name);
  onnx::NodeProto *producerOf(const std::string &value) const;
  onnx::NodeProto *nodeWithResult(const std::string &result) const;
  void assign(TensorProto &tensor, ArrayRef<float> values);
  bool needsDataFile() const;
  ExportedModel writeFiles();

  const ExportOptions options;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string problem;
  ScopedDiagnosticHandler collect;
  ModelFile file;
  std::vector<WeightOrigin> origins;
  /// The output that is the loss; empty if none is.
  std::string loss;
  /// By their numbers. Initializers that are added do not move them.
  std::vector<TensorProto *> initializers;
  std::set<const TensorProto *> inGraph;
  /// Which weight an initializer has got.
  std::map<const TensorProto *, std::string> assigned;
};

} // namespace

WeightExport::WeightExport(const ExportOptions &options)
    : options(options), collect(&context, [this](Diagnostic &diagnostic) {
        problem = diagnostic.str();
        return success();
      }) {
  checkOutput();
  readModel();
  for (const WeightOrigin &origin : origins)
    checkOrigin(origin);
}

void WeightExport::checkOutput() const {
  const std::string &model = options.import.modelPath;
  if (!StringRef(options.output).ends_with(".onnx"))
    runtime::fail("expects a file that ends in .onnx to write to, but got '",
                  options.output, "'");
  bool isSame = false;
  if (!llvm::sys::fs::equivalent(model, options.output, isSame) && isSame)
    runtime::fail("'", options.output,
                  "' is the model itself: write to another file");
  // Nothing stays of it; where there is no folder, this is known now.
  const runtime::AtomicFile probe(options.output);
}

/// A loss is the first result of the function that is imported, a scalar of
/// that name; the others have the names of the other outputs.
static std::string lossOf(ModuleOp imported, const onnx::GraphProto &graph) {
  func::FuncOp function = *imported.getOps<func::FuncOp>().begin();
  auto nameOf = [&](unsigned result) {
    auto name = function.getResultAttrOfType<StringAttr>(result, nn::kName);
    return name ? name.getValue() : StringRef();
  };
  auto first = cast<RankedTensorType>(function.getResultTypes().front());
  if (nameOf(0) != "loss" || first.getRank() != 0 ||
      !first.getElementType().isF32())
    return "";
  llvm::StringSet<> others;
  for (unsigned i = 1; i < function.getNumResults(); ++i)
    others.insert(nameOf(i));
  for (const auto &output : graph.output())
    if (!others.contains(output.name()))
      return output.name();
  return "";
}

void WeightExport::readModel() {
  FailureOr<ModelFile> parsed =
      parseModelFile(options.import.modelPath, context);
  if (failed(parsed))
    runtime::fail(problem);
  file = *parsed;
  ModelFile copy = file;
  copy.proto = std::make_shared<onnx::ModelProto>(*file.proto);
  numberInitializers(*copy.proto);
  ImportOptions import = options.import;
  import.requireLoss = false;
  import.loss.clear();
  if (failed(prepareModelFile(copy, context)))
    runtime::fail(problem);
  FailureOr<ImportedModel> imported =
      importFile(copy, import, context, &origins);
  if (failed(imported))
    runtime::fail(problem);
  loss = lossOf(*imported->module, file.graph());
  initializers = initializersOf(*file.proto);
  for (const TensorProto &tensor : file.graph().initializer())
    inGraph.insert(&tensor);
}

//===----------------------------------------------------------------------===//
// What can be written
//===----------------------------------------------------------------------===//

onnx::NodeProto *WeightExport::nodeWithResult(const std::string &result) const {
  for (onnx::NodeProto &node : *file.proto->mutable_graph()->mutable_node())
    if (node.output_size() > 0 && node.output(0) == result)
      return &node;
  return nullptr;
}

onnx::NodeProto *WeightExport::producerOf(const std::string &value) const {
  onnx::NodeProto *node = nodeWithResult(value);
  return node && node->output_size() == 1 ? node : nullptr;
}

/// Whether an initializer is the weight, and not also another one.
bool WeightExport::ownsTensor(const WeightOrigin &origin,
                              const WeightHolder &holder) const {
  const TensorProto *tensor = initializers[holder.number];
  return holder.isTransposed || holder.isRepeated ||
         !inGraph.contains(tensor) || tensor->name() == origin.name;
}

void WeightExport::checkOrigin(const WeightOrigin &origin) const {
  auto refuse = [&](const std::string &why) {
    runtime::fail(file.path, ": weight '", text::shortened(origin.name), "' ",
                  why, ": a new value has no place in the file");
  };
  if (!origin.isTrained)
    return;
  if (origin.holders.empty() && !producerOf(origin.value))
    refuse("is made within a function or a subgraph");
  for (const WeightHolder &holder : origin.holders)
    if (!ownsTensor(origin, holder))
      for (const NodeInput &own : holder.own)
        if (const onnx::NodeProto *node = nodeWithResult(own.result);
            !node || static_cast<int>(own.input) >= node->input_size())
          refuse("is read within a function or a subgraph, under the name of "
                 "another");
}

/// Of a checkpoint: states of the optimizer, and older versions of weights.
static bool isState(StringRef name, const llvm::StringSet<> &weights) {
  auto [weight, state] = name.rsplit('#');
  return !state.empty() && weights.contains(weight);
}

/// Returns the weights that the source has not.
std::vector<std::string>
WeightExport::checkNames(const runtime::WeightSource &source) const {
  llvm::StringSet<> known;
  std::vector<std::string> missing;
  for (const WeightOrigin &origin : origins) {
    known.insert(origin.name);
    if (origin.isTrained && !source.contains(origin.name))
      missing.push_back(origin.name);
  }
  for (const std::string &name : source.names())
    if (!known.contains(name) && !isState(name, known) && !options.isPartial)
      runtime::fail("'", source.name(), "' has a tensor '",
                    text::shortened(name), "', which is no weight of ",
                    file.path);
  if (missing.size() == known.size() && !known.empty())
    runtime::fail("'", source.name(), "' has no weight of ", file.path);
  if (!missing.empty() && !options.isPartial)
    runtime::fail("'", source.name(), "' has no tensor '",
                  text::shortened(missing[0]), "'",
                  missing.size() == 1
                      ? ""
                      : " and " + std::to_string(missing.size() - 1) + " more",
                  ", which ", file.path,
                  " has: --weights-partial leaves them as they are");
  return missing;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// A row-major matrix with rows and columns exchanged.
static std::vector<float> transposed(ArrayRef<float> values,
                                     ArrayRef<int64_t> shape) {
  std::vector<float> result(values.size());
  const int64_t rows = shape[0], columns = shape[1];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result[column * rows + row] = values[row * columns + column];
  return result;
}

/// A tensor of `shape` broadcast to dimensions `wanted`.
static std::vector<float> repeated(ArrayRef<float> values,
                                   ArrayRef<int64_t> shape,
                                   ArrayRef<int64_t> wanted) {
  std::vector<float> result(elementCount(wanted));
  const size_t front = wanted.size() - shape.size();
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (size_t d = wanted.size(); d-- > front;) {
      const int64_t size = shape[d - front];
      from += size == 1 ? 0 : rest % wanted[d] * stride;
      rest /= wanted[d];
      stride *= size;
    }
    result[i] = values[from];
  }
  return result;
}

void WeightExport::assign(TensorProto &tensor, ArrayRef<float> values) {
  TensorReader reader(file, context);
  FailureOr<FloatBytes> old =
      reader.readFloats(tensor, "initializer '" + tensor.name() + "'");
  if (failed(old) || failed(takeIn(tensor, reader)))
    runtime::fail(problem);
  setFloats(tensor, values,
            {reinterpret_cast<const float *>(old->bytes.data()),
             old->bytes.size() / sizeof(float)});
}

TensorProto &WeightExport::addInitializer(const TensorProto &like,
                                          const std::string &name) {
  onnx::GraphProto &graph = *file.proto->mutable_graph();
  TensorProto &tensor = *graph.add_initializer();
  tensor = like;
  tensor.set_name(name);
  // Until then every initializer is an input, too.
  constexpr int64_t irVersion = 4;
  if (file.proto->ir_version() >= irVersion)
    return tensor;
  auto &input = *graph.add_input();
  input.set_name(name);
  auto &type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(tensor.data_type());
  for (int64_t size : tensor.dims())
    type.mutable_shape()->add_dim()->set_dim_value(size);
  return tensor;
}

void WeightExport::giveOwn(const WeightOrigin &origin,
                           const WeightHolder &holder, const Values &values) {
  const TensorProto &shared = *initializers[holder.number];
  assign(addInitializer(shared, origin.name), values.elements);
  for (const NodeInput &own : holder.own)
    nodeWithResult(own.result)->set_input(own.input, origin.name);
}

void WeightExport::replaceHolder(const WeightOrigin &origin,
                                 const WeightHolder &holder,
                                 const Values &values) {
  if (!ownsTensor(origin, holder))
    return giveOwn(origin, holder, values);
  TensorProto &tensor = *initializers[holder.number];
  auto [it, isNew] = assigned.try_emplace(&tensor, origin.name);
  if (!isNew && it->second != origin.name)
    runtime::fail(file.path, ": '", text::shortened(tensor.name()),
                  "' of a function that is called more than once would have "
                  "the values of '",
                  text::shortened(it->second), "' and of '",
                  text::shortened(origin.name), "'");
  if (holder.isTransposed)
    return assign(tensor, transposed(values.elements, values.shape));
  if (holder.isRepeated)
    return assign(tensor,
                  repeated(values.elements, values.shape,
                           Shape(tensor.dims().begin(), tensor.dims().end())));
  assign(tensor, values.elements);
}

/// Puts the values in the place of a node.
void WeightExport::replaceValue(const WeightOrigin &origin,
                                const Values &values) {
  onnx::NodeProto &node = *producerOf(origin.value);
  TensorProto tensor;
  tensor.set_data_type(TensorProto::FLOAT);
  for (int64_t size : values.shape)
    tensor.add_dims(size);
  setFloats(tensor, values.elements, {});
  if (node.op_type() != "Constant") {
    addInitializer(tensor, origin.value);
    auto &nodes = *file.proto->mutable_graph()->mutable_node();
    nodes.erase(llvm::find_if(
        nodes, [&](const onnx::NodeProto &each) { return &each == &node; }));
    return;
  }
  auto *value = node.mutable_attribute(0);
  if (value->has_t())
    return assign(*value->mutable_t(), values.elements);
  value->Clear();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  *value->mutable_t() = std::move(tensor);
}

void WeightExport::replace(const WeightOrigin &origin, const Values &values) {
  for (const WeightHolder &holder : origin.holders)
    replaceHolder(origin, holder, values);
  // What was not trained is what it was.
  if (origin.holders.empty() && origin.isTrained)
    replaceValue(origin, values);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

bool WeightExport::needsDataFile() const {
  size_t bytes = file.proto->ByteSizeLong();
  return bytes > static_cast<size_t>(options.externalDataAbove);
}

/// A name by which a model finds its own data until another model stands in its
/// place.
static std::string dataPathOf(const std::string &model,
                              ArrayRef<TensorProto *> tensors) {
  runtime::StreamHash hash;
  for (const TensorProto *tensor : tensors)
    hash.addBytes(tensor->raw_data().data(),
                  static_cast<int64_t>(tensor->raw_data().size()));
  return model + "." + llvm::utohexstr(hash.value(), /*LowerCase=*/true) +
         ".data";
}

ExportedModel WeightExport::writeFiles() {
  ExportedModel written;
  TensorReader reader(file, context);
  const std::vector<TensorProto *> tensors = initializersOf(*file.proto);
  for (TensorProto *tensor : tensors)
    if (failed(takeIn(*tensor, reader)))
      runtime::fail(problem);
  std::optional<ExternalDataWriter> data;
  if (needsDataFile()) {
    const std::string dataPath = dataPathOf(options.output, tensors);
    data.emplace(dataPath, llvm::sys::path::filename(dataPath).str());
    for (TensorProto *tensor : tensors)
      data->add(*tensor);
    written.files.push_back(dataPath);
  }
  std::string bytes;
  google::protobuf::LogSilencer silence;
  if (!file.proto->SerializeToString(&bytes))
    runtime::fail("'", options.output, "' becomes larger than 2 GiB");
  runtime::AtomicFile model(options.output);
  model.write(bytes.data(), bytes.size());
  if (data)
    data->commit();
  model.commit();
  written.files.push_back(options.output);
  return written;
}

static std::string listOf(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "'" : ", '") + text::shortened(name) + "'";
  return list;
}

ExportedModel WeightExport::write(StringRef weights) {
  const runtime::WeightSource source(weights.str(), options.renames);
  const std::vector<std::string> missing = checkNames(source);
  for (const WeightOrigin &origin : origins) {
    if (!origin.isFloat || !source.contains(origin.name))
      continue;
    const std::vector<int64_t> shape(origin.shape.begin(), origin.shape.end());
    replace(origin, {source.find(origin.name, runtime::ElementType::F32, shape)
                         .values<float>(),
                     origin.shape});
  }
  std::vector<std::string> warnings;
  if (options.forInference) {
    auto entered = enterInference(*file.proto, loss);
    if (!entered)
      runtime::fail(file.path, ": ", llvm::toString(entered.takeError()));
    warnings = std::move(*entered);
  }
  if (!missing.empty())
    warnings.push_back("'" + source.name() + "' has not " + listOf(missing) +
                       ": they stay as they are");
  ExportedModel written = writeFiles();
  written.warnings = std::move(warnings);
  return written;
}

llvm::Expected<ExportWeights> prepareOnnxExport(const ExportOptions &options) {
  auto attempt = [](auto body) -> llvm::Expected<decltype(body())> {
    try {
      return body();
    } catch (const std::exception &error) {
      return llvm::createStringError(error.what());
    }
  };
  auto prepared =
      attempt([&] { return std::make_shared<WeightExport>(options); });
  if (!prepared)
    return prepared.takeError();
  return ExportWeights([attempt, made = *prepared](StringRef weights) {
    return attempt([&] { return made->write(weights); });
  });
}

} // namespace pipewright::frontend
