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

#include "dialects/nn/NNDialect.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/OpRegistry.h"
#include "test/unit/nn/Reference.h"
#include "test/unit/onnx/NodeTestFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

using namespace pipewright;
using nn::reference::Tensor;

namespace {

constexpr llvm::StringLiteral kFolder = "/usr/share/libonnx-testdata/data/node";

class NodeTest : public test::NodeTestFile {
public:
  using NodeTestFile::NodeTestFile;

  /// Imports with the inputs from `firstConstant` on as initializers. False
  /// if the importer refuses; otherwise the results are compared.
  bool run(int firstConstant);

  /// Why the importer refused the last time.
  const std::string &getRefusal() const { return refusal; }

private:
  std::optional<Tensor> convert(const onnx::TensorProto &proto);
  void compare(const std::string &name, const Tensor &got,
               const onnx::TensorProto &expected);
  void evaluate(frontend::ImportedModel &imported, int firstConstant);

  std::string refusal;
  mlir::MLIRContext context;
};

std::optional<Tensor> NodeTest::convert(const onnx::TensorProto &proto) {
  auto read = test::readTensor(proto, context);
  if (!read)
    return std::nullopt;
  Tensor result(read->shape());
  for (int64_t i = 0; i < read->size(); ++i)
    result.data[i] = test::elementOf(*read, i);
  return result;
}

bool NodeTest::run(int firstConstant) {
  llvm::SmallString<128> file;
  if (llvm::sys::fs::createTemporaryFile("node-test", "onnx", file))
    return false;
  std::ofstream(file.c_str(), std::ios::binary)
      << withConstants(firstConstant).SerializeAsString();
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
  for (const std::string &message :
       frontend::unsaidOps(frontend::onnxFrontend(), *imported))
    ADD_FAILURE() << message;
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
  if (!isOfTraining())
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
    ASSERT_TRUE(test::isWithinTolerance(got.data[i], wanted->data[i],
                                        expected.data_type()))
        << name << " element " << i << ": " << got.data[i] << ", expected "
        << wanted->data[i];
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
  for (const std::string &path : test::listNodeTests(folder)) {
    NodeTest test(path);
    std::string name = test.getName();
    // The reference interpreter divides integers as it does floats.
    if (!test.load() || name == "test_div_uint8")
      continue;
    SCOPED_TRACE(name);
    int compared = runVariants(test);
    ++counts.tests;
    counts.imported += compared > 0;
    counts.compared += compared;
    if (compared == 0 && tellRefused)
      std::printf("refused: %s: %s\n", name.c_str(), test.getRefusal().c_str());
  }
  std::printf("%d of %d tests, %d variants compared\n", counts.imported,
              counts.tests, counts.compared);
  return counts;
}

TEST(BuiltOps, ListsNameOperatorsAndOpsThatExist) {
  mlir::MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  auto check = [&](llvm::StringRef ops) {
    llvm::SmallVector<llvm::StringRef> names;
    ops.split(names, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (llvm::StringRef name : names)
      EXPECT_TRUE(
          mlir::RegisteredOperationName::lookup(("nn." + name).str(), &context))
          << name.str();
  };
#define BUILT(op, floats, others)                                              \
  EXPECT_TRUE(frontend::findOp(#op)) << #op;                                   \
  check(floats);                                                               \
  check(others);
#include "frontends/onnx/BuiltOps.def"
#undef BUILT
}

TEST(BuiltOps, AnOpThatNoListHasIsTold) {
  frontend::ImportedModel model;
  model.built["Abs"].floats = {"abs", "matmul"};
  model.built["Equal"].others = {"compare", "where"};
  std::vector<std::string> messages = {
      "'Abs' builds 'nn.matmul' for float results, which its list of nn ops "
      "does not have",
      "'Equal' builds 'nn.where' for other results, which its list of nn ops "
      "does not have"};
  EXPECT_EQ(frontend::unsaidOps(frontend::onnxFrontend(), model), messages);
}

TEST(OnnxNodeTests, ImportedOpsMeanWhatOnnxSays) {
  if (!llvm::sys::fs::is_directory(kFolder))
    GTEST_SKIP() << "needs Debian's package libonnx-testdata";
  EXPECT_GE(runFolder(kFolder, /*tellRefused=*/false).imported, 785);
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
