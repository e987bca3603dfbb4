//===- NodeTests.cpp - The ONNX project's op tests, imported --------------===//
//
// Imports each node test of a folder, computes it with the reference
// interpreter, and compares with the outputs that ONNX expects. A test's
// inputs stay inputs, or become initializers (all but the first, or all):
// that way shapes are constants, and the folds are tested as well. What does
// not import is not compared: refusing is tested elsewhere.
//
// There are three folders: libonnx-testdata's, test/Inputs/node-tests with a
// few tests of newer ops, and the one that the environment's variable
// PIPEWRIGHT_NODE_TESTS names, as tools/reference/make_node_tests.py writes it:
// of this one it is told which tests are refused, and why.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Importer.h"
#include "frontends/onnx/TensorReader.h"
#include "test/unit/nn/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "onnx/onnx_pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

using namespace pipewright;
using nn::reference::Tensor;

namespace {

constexpr llvm::StringLiteral kFolder = "/usr/share/libonnx-testdata/data/node";

/// Tests whose models import, but whose outputs a program need not give.
bool isLeftOut(llvm::StringRef name) {
  // Random by nature.
  return name.starts_with("test_training_dropout") ||
         // nn.embedding takes no negative indices; the program refuses them.
         name == "test_gather_negative_indices" ||
         // The package's bfloat16 data hold other numbers than its outputs.
         name.contains("BFLOAT16") ||
         // The reference interpreter divides integers as it does floats.
         name == "test_div_uint8";
}

template <typename T>
bool parse(const std::string &path, T &message) {
  std::ifstream stream(path, std::ios::binary);
  return stream && message.ParseFromIstream(&stream);
}

class NodeTest {
public:
  NodeTest(std::string path) : path(std::move(path)) {}

  /// A folder with the model and files of tensors, or one file of
  /// tools/reference/make_node_tests.py.
  bool load() {
    if (llvm::StringRef(path).ends_with(".onnx"))
      return parse(path, model) && takeInitializers();
    if (!parse(path + "/model.onnx", model))
      return false;
    return loadTensors("input", model.graph().input_size(), inputs) &&
           loadTensors("output", model.graph().output_size(), outputs);
  }

  /// Imports with the inputs from `firstConstant` on as initializers. False
  /// if the importer refuses; otherwise the results are compared.
  bool run(int firstConstant);

  int numInputs() const { return int(inputs.size()); }
  /// Why the importer refused the last time.
  const std::string &getRefusal() const { return refusal; }

private:
  bool takeInitializers() {
    auto &graph = *model.mutable_graph();
    auto &tensors = *graph.mutable_initializer();
    if (tensors.size() != graph.input_size() + graph.output_size())
      return false;
    auto firstOutput = tensors.begin() + graph.input_size();
    inputs.assign(tensors.begin(), firstOutput);
    outputs.assign(firstOutput, tensors.end());
    tensors.Clear();
    return true;
  }

  bool loadTensors(const char *kind, int count,
                   std::vector<onnx::TensorProto> &into) {
    for (int i = 0; i < count; ++i) {
      onnx::TensorProto &tensor = into.emplace_back();
      if (!parse(path + "/test_data_set_0/" + kind + "_" + std::to_string(i) +
                     ".pb",
                 tensor))
        return false;
    }
    return true;
  }

  std::optional<Tensor> convert(const onnx::TensorProto &proto);
  void compare(const std::string &name, const Tensor &got,
               const onnx::TensorProto &expected);
  void evaluate(frontend::ImportedModel &imported, int firstConstant);

  std::string path, refusal;
  onnx::ModelProto model;
  std::vector<onnx::TensorProto> inputs, outputs;
  mlir::MLIRContext context;
};

std::optional<Tensor> NodeTest::convert(const onnx::TensorProto &proto) {
  frontend::ModelFile file;
  file.proto = std::make_shared<onnx::ModelProto>();
  frontend::TensorReader reader(file, context);
  auto read = reader.readConstant(proto, "test data");
  if (failed(read))
    return std::nullopt;
  Tensor result(read->shape());
  for (int64_t i = 0; i < read->size(); ++i)
    result.data[i] =
        read->kind() == frontend::ElementKind::Float ? read->floatAt(i)
        : read->kind() == frontend::ElementKind::Int ? double(read->intAt(i))
                                                     : read->boolAt(i);
  return result;
}

bool NodeTest::run(int firstConstant) {
  onnx::ModelProto variant = model;
  auto &graph = *variant.mutable_graph();
  for (int i = firstConstant; i < numInputs(); ++i) {
    *graph.add_initializer() = inputs[i];
    graph.mutable_initializer()->rbegin()->set_name(graph.input(i).name());
  }
  while (graph.input_size() > firstConstant)
    graph.mutable_input()->RemoveLast();

  llvm::SmallString<128> file;
  if (llvm::sys::fs::createTemporaryFile("node-test", "onnx", file))
    return false;
  std::ofstream(file.c_str(), std::ios::binary) << variant.SerializeAsString();
  frontend::ImportOptions options;
  options.modelPath = file.str().str();
  options.requireLoss = false;
  mlir::ScopedDiagnosticHandler keep(&context, [&](mlir::Diagnostic &diag) {
    refusal = diag.str();
    return mlir::success();
  });
  auto imported = frontend::importOnnx(options, context);
  llvm::sys::fs::remove(file);
  if (failed(imported))
    return false;
  evaluate(*imported, firstConstant);
  return true;
}

/// Dropout and batch normalization as they are in evaluation.
void useInferenceForm(mlir::ModuleOp module) {
  module.walk([](nn::StatefulOpInterface op) {
    mlir::OpBuilder builder(op);
    llvm::SmallVector<mlir::Value> values;
    if (failed(op.buildInference(builder, values)))
      return;
    for (auto [result, value] : llvm::zip(op->getResults(), values))
      if (value)
        result.replaceAllUsesWith(value);
    op.erase();
  });
}

void NodeTest::evaluate(frontend::ImportedModel &imported, int firstConstant) {
  auto function = *imported.module->getOps<mlir::func::FuncOp>().begin();
  if (!llvm::StringRef(path).contains("training"))
    useInferenceForm(*imported.module);
  nn::reference::Values values;
  for (int i = 0; i < firstConstant; ++i) {
    auto input = convert(inputs[i]);
    ASSERT_TRUE(input);
    values[function.getArgument(i)] = *input;
  }
  for (mlir::Operation &op : function.getBody().front()) {
    if (auto parameter = mlir::dyn_cast<nn::ParameterOp>(op)) {
      auto bytes = imported.weights.lookup(parameter.getWeight());
      Tensor tensor(parameter.getType().getShape());
      if (!parameter.getType().getElementType().isF32())
        return;
      auto *floats = reinterpret_cast<const float *>(bytes.data());
      ASSERT_EQ(bytes.size(), tensor.data.size() * sizeof(float));
      std::copy(floats, floats + tensor.size(), tensor.data.begin());
      values[parameter.getResult()] = tensor;
    } else if (auto mask = mlir::dyn_cast<nn::CausalMaskOp>(op)) {
      Tensor tensor(mask.getType().getShape());
      int64_t n = tensor.shape.back();
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.data[i] = i % n <= i / n % n;
      values[mask.getResult()] = tensor;
    } else if (!mlir::isa<mlir::func::ReturnOp>(op)) {
      ASSERT_TRUE(nn::reference::evaluate(&op, values))
          << op.getName().getStringRef().str();
      if (auto cast = mlir::dyn_cast<nn::CastOp>(op))
        if (!cast.getType().getElementType().isF32())
          for (double &v : values[cast.getResult()].data)
            v = cast.getType().getElementType().isInteger(1) ? v != 0
                                                             : std::trunc(v);
    }
  }
  // A scalar output comes first, as the loss.
  auto terminator = function.getBody().front().getTerminator();
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto name = function.getResultAttrOfType<mlir::StringAttr>(i, "nn.name");
    for (int k = 0; k < model.graph().output_size(); ++k) {
      bool isLoss =
          name.getValue() == "loss" && model.graph().output_size() == 1;
      if (name.getValue() == model.graph().output(k).name() || isLoss)
        compare(model.graph().output(k).name(),
                values[terminator->getOperand(i)], outputs[k]);
    }
  }
}

void NodeTest::compare(const std::string &name, const Tensor &got,
                       const onnx::TensorProto &expected) {
  auto wanted = convert(expected);
  ASSERT_TRUE(wanted);
  ASSERT_EQ(got.data.size(), wanted->data.size()) << name;
  for (int64_t i = 0; i < got.size(); ++i) {
    double a = got.data[i], b = wanted->data[i];
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    // The ONNX project's own tolerance; its data are float32.
    ASSERT_LE(std::abs(a - b), 1e-5 + 1e-3 * std::abs(b))
        << name << " element " << i;
  }
}

/// How many variants of a test import; all that do are compared.
int runVariants(NodeTest &test) {
  int compared = 0;
  for (int firstConstant : {test.numInputs(), 1, 0})
    if (firstConstant <= test.numInputs())
      compared += test.run(firstConstant);
  return compared;
}

struct Counts {
  int tests = 0, imported = 0, compared = 0;
};

Counts runFolder(llvm::StringRef folder, bool tellRefused) {
  Counts counts;
  std::error_code ignored;
  for (llvm::sys::fs::directory_iterator it(folder, ignored), end; it != end;
       it.increment(ignored)) {
    llvm::StringRef name = llvm::sys::path::stem(it->path());
    NodeTest test(it->path());
    if (isLeftOut(name) || !test.load())
      continue;
    SCOPED_TRACE(name.str());
    int compared = runVariants(test);
    ++counts.tests;
    counts.imported += compared > 0;
    counts.compared += compared;
    if (compared == 0 && tellRefused)
      std::printf("refused: %s: %s\n", name.str().c_str(),
                  test.getRefusal().c_str());
  }
  std::printf("%d of %d tests, %d variants compared\n", counts.imported,
              counts.tests, counts.compared);
  return counts;
}

TEST(OnnxNodeTests, ImportedOpsMeanWhatOnnxSays) {
  if (!llvm::sys::fs::is_directory(kFolder))
    GTEST_SKIP() << "needs Debian's package libonnx-testdata";
  EXPECT_GE(runFolder(kFolder, /*tellRefused=*/false).imported, 770);
}

TEST(OnnxNodeTests, NewerOpsMeanWhatOnnxSays) {
  Counts counts = runFolder(PIPEWRIGHT_TEST_INPUTS "/node-tests",
                            /*tellRefused=*/true);
  EXPECT_GT(counts.tests, 0);
  EXPECT_EQ(counts.imported, counts.tests);
}

TEST(OnnxNodeTests, ThoseOfAFolder) {
  const char *folder = std::getenv("PIPEWRIGHT_NODE_TESTS");
  if (!folder)
    GTEST_SKIP() << "needs PIPEWRIGHT_NODE_TESTS, a folder of node tests";
  EXPECT_GT(runFolder(folder, /*tellRefused=*/true).imported, 0);
}

} // namespace
