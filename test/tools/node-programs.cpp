//===- node-programs.cpp - The ONNX project's op tests as programs --------===//
//
// Takes node tests into models that `pipewright compile` makes programs of, for
// tools/checks/nodes:
//
//   node-programs list FOLDER...
//       prints the cases, and why tests are refused, in lines of JSON
//   node-programs write OUT PATH VARIANT [PATH VARIANT]...
//       writes OUT/model.onnx with all of these cases, c0, c1 ..., and their
//       values: OUT/inputs/c0.i0.npy, OUT/expected/c0.o0.npy ...
//   node-programs compare OUT
//       compares OUT/outputs with OUT/expected, and prints what is wrong; as
//       float32 where no OUT/model.onnx says that an output is another type
//
// A case is a test and a variant: how many of its inputs stay inputs, while the
// others become initializers. A program has a batch, inputs of equal length and
// something that trains: so each input and output gets a dimension of size 1 in
// front, by a Reshape, and the loss is a product apart from the tests.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Importer.h"
#include "runtime/io/Npy.h"
#include "test/unit/onnx/NodeTestFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>
#include <map>

using namespace pipewright;
using frontend::ElementKind;
using test::NodeTestFile;

namespace {

constexpr llvm::StringLiteral kUsage =
    "usage: node-programs list FOLDER... | write OUT PATH VARIANT... | "
    "compare OUT\n";

/// One model of several cases.
class MergedModel {
public:
  /// `values`: where .npy files of inputs and expected outputs go; may be null.
  explicit MergedModel(const std::string *values) : values(values) {
    model.set_ir_version(10);
    model.mutable_graph()->set_name("cases");
    addLoss();
  }

  /// False if an input or output is no tensor that programs have.
  bool add(const NodeTestFile &test, int firstConstant);
  void write(llvm::StringRef path) const {
    std::ofstream(path.str(), std::ios::binary) << model.SerializeAsString();
  }

private:
  onnx::GraphProto &graph() { return *model.mutable_graph(); }
  void addLoss();
  void addConstant(const std::string &name, llvm::ArrayRef<int64_t> values);
  void addNode(const char *op, llvm::ArrayRef<std::string> inputs,
               const std::string &output);
  void prefixNames(onnx::GraphProto &part, const std::string &prefix);
  bool addValue(const onnx::TensorProto &data, const std::string &name,
                const char *folder, onnx::ValueInfoProto &info);

  onnx::ModelProto model;
  const std::string *values;
  int numCases = 0;
  mlir::MLIRContext context;
};

void describe(onnx::ValueInfoProto &info, const std::string &name, int type,
              llvm::ArrayRef<int64_t> shape) {
  info.set_name(name);
  auto &tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (int64_t size : shape)
    tensor.mutable_shape()->add_dim()->set_dim_value(size);
}

void MergedModel::addNode(const char *op, llvm::ArrayRef<std::string> inputs,
                          const std::string &output) {
  auto &node = *graph().add_node();
  node.set_op_type(op);
  node.set_name(output);
  node.add_output(output);
  for (const std::string &input : inputs)
    node.add_input(input);
}

void MergedModel::addLoss() {
  constexpr int kFloat = onnx::TensorProto::FLOAT;
  describe(*graph().add_input(), "unit", kFloat, {1, 1});
  describe(*graph().add_output(), "loss", kFloat, {});
  auto &weight = *graph().add_initializer();
  weight.set_name("weight");
  weight.set_data_type(kFloat);
  weight.add_dims(1);
  weight.add_dims(1);
  weight.add_float_data(1);
  addNode("MatMul", {"unit", "weight"}, "product");
  addNode("ReduceMean", {"product"}, "loss");
  auto &keep = *graph().mutable_node()->rbegin()->add_attribute();
  keep.set_name("keepdims");
  keep.set_type(onnx::AttributeProto::INT);
  keep.set_i(0);
}

void MergedModel::addConstant(const std::string &name,
                              llvm::ArrayRef<int64_t> elements) {
  auto &tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(int64_t(elements.size()));
  for (int64_t element : elements)
    tensor.add_int64_data(element);
}

/// Puts `prefix` before the names of values and nodes, in graphs of attributes
/// as well.
void MergedModel::prefixNames(onnx::GraphProto &part,
                              const std::string &prefix) {
  auto change = [&](std::string &name) {
    if (!name.empty())
      name = prefix + name;
  };
  for (auto *list : {part.mutable_input(), part.mutable_output()})
    for (auto &value : *list)
      change(*value.mutable_name());
  for (auto &tensor : *part.mutable_initializer())
    change(*tensor.mutable_name());
  for (auto &node : *part.mutable_node()) {
    change(*node.mutable_name());
    for (std::string &name : *node.mutable_input())
      change(name);
    for (std::string &name : *node.mutable_output())
      change(name);
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        prefixNames(*attribute.mutable_g(), prefix);
  }
}

void writeValues(const std::string &path,
                 const frontend::ConstantTensor &tensor) {
  std::vector<int64_t> shape = {1};
  llvm::append_range(shape, tensor.shape());
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<char> bools;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    floats.push_back(float(test::elementOf(tensor, i)));
    if (tensor.kind() == ElementKind::Int)
      ints.push_back(tensor.intAt(i));
    bools.push_back(test::elementOf(tensor, i) != 0);
  }
  if (tensor.kind() == ElementKind::Float)
    runtime::writeNpy(path, runtime::ElementType::F32, shape, floats.data());
  else if (tensor.kind() == ElementKind::Int)
    runtime::writeNpy(path, runtime::ElementType::I64, shape, ints.data());
  else
    runtime::writeNpy(path, runtime::ElementType::I1, shape, bools.data());
}

llvm::SmallVector<int64_t> sizesOf(const onnx::TensorProto &data) {
  return llvm::SmallVector<int64_t>(data.dims().begin(), data.dims().end());
}

/// Describes an input or output with a dimension in front, and writes its data.
bool MergedModel::addValue(const onnx::TensorProto &data,
                           const std::string &name, const char *folder,
                           onnx::ValueInfoProto &info) {
  auto tensor = test::readTensor(data, context);
  if (!tensor)
    return false;
  llvm::SmallVector<int64_t> shape = {1};
  llvm::append_range(shape, tensor->shape());
  describe(info, name, data.data_type(), shape);
  if (values)
    writeValues(*values + "/" + folder + "/" + name + ".npy", *tensor);
  return true;
}

bool MergedModel::add(const NodeTestFile &test, int firstConstant) {
  onnx::ModelProto variant = test.withConstants(firstConstant);
  const std::string number = "c" + std::to_string(numCases++);
  onnx::GraphProto &part = *variant.mutable_graph();
  prefixNames(part, number + ".");
  // All cases of a model have the same versions of operator sets.
  *model.mutable_opset_import() = variant.opset_import();
  for (int i = 0; i < part.input_size(); ++i) {
    std::string name = number + ".i" + std::to_string(i);
    const auto &data = test.inputs[i];
    if (!addValue(data, name, "inputs", *graph().add_input()))
      return false;
    addConstant(name + "-shape", sizesOf(data));
    addNode("Reshape", {name, name + "-shape"}, part.input(i).name());
  }
  graph().mutable_initializer()->MergeFrom(part.initializer());
  graph().mutable_node()->MergeFrom(part.node());
  for (int i = 0; i < part.output_size(); ++i) {
    std::string name = number + ".o" + std::to_string(i);
    auto &info = *graph().add_output();
    if (!addValue(test.outputs[i], name, "expected", info))
      return false;
    llvm::SmallVector<int64_t> shape = {1};
    llvm::append_range(shape, test.outputs[i].dims());
    addConstant(name + "-shape", shape);
    addNode("Reshape", {part.output(i).name(), name + "-shape"}, name);
  }
  return true;
}

/// Whether results depend on all inputs. A program has no others: Shape, for
/// one, reads no input.
bool readsInputs(mlir::ModuleOp module) {
  auto function = *module.getOps<mlir::func::FuncOp>().begin();
  for (mlir::Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (mlir::isOpTriviallyDead(&op))
      op.erase();
  return llvm::none_of(function.getArguments(),
                       [](auto argument) { return argument.use_empty(); });
}

/// Why a case is not imported; empty if it is.
std::string refusalOf(const NodeTestFile &test, int firstConstant) {
  MergedModel merged(nullptr);
  if (!merged.add(test, firstConstant))
    return "inputs or outputs of a type that programs have not";
  llvm::SmallString<128> file;
  if (llvm::sys::fs::createTemporaryFile("node-test", "onnx", file))
    return "no temporary file";
  merged.write(file);
  mlir::MLIRContext context;
  std::string refusal;
  mlir::ScopedDiagnosticHandler keep(&context, [&](mlir::Diagnostic &diag) {
    if (refusal.empty())
      refusal = diag.str();
    return mlir::success();
  });
  frontend::ImportOptions options;
  options.modelPath = file.str().str();
  auto imported = frontend::importOnnx(options, context);
  llvm::sys::fs::remove(file);
  if (failed(imported))
    return refusal;
  return readsInputs(*imported->module) ? "" : "an input is not read";
}

/// Cases of the same group may share a model: they agree on operator sets.
std::string groupOf(const NodeTestFile &test) {
  std::string group;
  for (const auto &opset : test.model.opset_import())
    group += opset.domain() + " " + std::to_string(opset.version()) + " ";
  return group;
}

void printLine(llvm::json::Object line) {
  llvm::outs() << llvm::json::Value(std::move(line)) << "\n";
}

/// Prints a line for each variant that imports; or one why none does.
void listTest(const std::string &path) {
  NodeTestFile test(path);
  if (!test.load())
    return;
  std::string refusal;
  if (test.isOfTraining() || test.model.functions_size())
    return printLine(llvm::json::Object{
        {"name", test.getName()},
        {"refusal", "training's outputs, or local functions"}});
  bool any = false;
  llvm::SmallVector<int> variants = {test.numInputs(), 1, 0};
  variants.erase(std::unique(variants.begin(), variants.end()), variants.end());
  for (int variant : variants) {
    if (variant > test.numInputs() || (variant == 0 && any))
      continue;
    std::string reason = refusalOf(test, variant);
    if (!reason.empty()) {
      refusal = refusal.empty() ? reason : refusal;
      continue;
    }
    any = true;
    printLine(llvm::json::Object{{"name", test.getName()},
                                 {"path", path},
                                 {"variant", variant},
                                 {"group", groupOf(test)}});
  }
  if (!any)
    printLine(
        llvm::json::Object{{"name", test.getName()}, {"refusal", refusal}});
}

int writeProgram(const std::string &out, llvm::ArrayRef<char *> cases) {
  for (const char *folder : {"/inputs", "/expected", "/outputs"})
    llvm::sys::fs::create_directories(out + folder);
  MergedModel merged(&out);
  for (size_t i = 0; i + 1 < cases.size(); i += 2) {
    NodeTestFile test(cases[i]);
    int variant = 0;
    if (llvm::StringRef(cases[i + 1]).getAsInteger(10, variant) ||
        !test.load() || !merged.add(test, variant)) {
      llvm::errs() << cases[i] << ": is no node test with a variant '"
                   << cases[i + 1] << "'\n";
      return 2;
    }
  }
  merged.write(out + "/model.onnx");
  return 0;
}

std::vector<double> elementsOf(const runtime::NpyArray &array) {
  auto widen = [](const auto &all) {
    return std::vector<double>(all.begin(), all.end());
  };
  return array.type == "f4"   ? widen(array.values<float>())
         : array.type == "i8" ? widen(array.values<int64_t>())
                              : widen(array.values<uint8_t>());
}

/// What is wrong with an output, which has an ONNX type; empty if nothing is.
std::string mistakeIn(const std::string &got, const std::string &expected,
                      int32_t type) {
  if (!llvm::sys::fs::exists(got))
    return "the program did not write it";
  auto a = runtime::readNpy(got), b = runtime::readNpy(expected);
  if (a.shape != b.shape)
    return "another shape";
  if (a.type != b.type)
    return "type " + a.type + ", expected " + b.type;
  auto values = elementsOf(a), wanted = elementsOf(b);
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    if (!test::isWithinTolerance(values[i], wanted[i], type)) {
      llvm::raw_string_ostream(text) << "element " << i << " is " << values[i]
                                     << ", expected " << wanted[i];
      break;
    }
  return text;
}

/// By the names of files, the types that the outputs have in OUT/model.onnx;
/// none if there is no model.
std::map<std::string, int32_t> typesOfOutputs(const std::string &out) {
  std::map<std::string, int32_t> types;
  std::ifstream file(out + "/model.onnx", std::ios::binary);
  if (!file)
    return types;
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file))
    throw std::runtime_error(out + "/model.onnx: is no model");
  for (const auto &output : model.graph().output())
    types[output.name() + ".npy"] = output.type().tensor_type().elem_type();
  return types;
}

int compareOutputs(const std::string &out) {
  const std::map<std::string, int32_t> types = typesOfOutputs(out);
  for (const std::string &path : test::listNodeTests(out + "/expected")) {
    std::string name = path.substr(path.rfind('/') + 1);
    auto type = types.find(name);
    std::string mistake = mistakeIn(
        out + "/outputs/" + name, path,
        type == types.end() ? int32_t(onnx::TensorProto::FLOAT) : type->second);
    if (!mistake.empty())
      printLine(llvm::json::Object{{"output", name}, {"mistake", mistake}});
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  llvm::StringRef command = argc > 2 ? argv[1] : "";
  try {
    if (command == "write" && argc > 4)
      return writeProgram(argv[2], {argv + 3, argv + argc});
    if (command == "compare" && argc == 3)
      return compareOutputs(argv[2]);
  } catch (const std::exception &error) {
    llvm::errs() << "error: " << error.what() << "\n";
    return 1;
  }
  if (command != "list") {
    llvm::errs() << kUsage;
    return 2;
  }
  for (const char *folder : llvm::ArrayRef(argv + 2, argv + argc))
    for (const std::string &path : test::listNodeTests(folder))
      listTest(path);
  return 0;
}
