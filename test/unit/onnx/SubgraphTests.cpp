//===- SubgraphTests.cpp - Subgraphs that ONNX text cannot say ------------===//
//
// Parses small models, changes what the parser has no words for, and looks at
// what the importer makes of them: left out inputs, defaults of functions'
// attributes, names that nobody can read, and the names that ops get.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOps.h"
#include "frontends/onnx/Importer.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <fstream>

#include <google/protobuf/unknown_field_set.h>

using namespace pipewright;

namespace {

constexpr const char *kLoop = R"(
<ir_version: 8, opset_import: ["" : 17]>
loop (float[2, 3] x) => (float[2, 3] y)
<int64 most = {3}, bool yes = {1}>
{
  y = Loop(most, yes, x) <
    body = step (int64 i, bool go, float[2, 3] h) => (bool more, float[2, 3] h2) {
      h2 = Relu(h)
      last = Constant<value = int64 {4}>()
      more = Less(i, last)
    }
  >
})";

class OnnxSubgraphs : public ::testing::Test {
protected:
  void parse(const char *text) {
    onnx::OnnxParser parser(text);
    auto status = parser.Parse(model);
    ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
  }

  /// The subgraph in the first attribute of a node.
  onnx::GraphProto &subgraph(int node) {
    return *model.mutable_graph()
                ->mutable_node(node)
                ->mutable_attribute(0)
                ->mutable_g();
  }

  /// Imports the model; `errors` has what is said about it.
  bool import() {
    llvm::SmallString<128> file;
    if (llvm::sys::fs::createTemporaryFile("subgraphs", "onnx", file))
      return false;
    std::ofstream(file.c_str(), std::ios::binary) << model.SerializeAsString();
    frontend::ImportOptions options;
    options.modelPath = file.str().str();
    options.requireLoss = false;
    mlir::ScopedDiagnosticHandler keep(&context, [&](mlir::Diagnostic &diag) {
      errors.push_back(diag.str());
      return mlir::success();
    });
    auto result = frontend::importOnnx(options, context);
    llvm::sys::fs::remove(file);
    if (failed(result))
      return false;
    imported = std::move(*result);
    return true;
  }

  void expectError(llvm::StringRef message) {
    EXPECT_FALSE(import());
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_NE(errors[0].find(message.str()), std::string::npos) << errors[0];
  }

  /// The names of the locations of all ops of a kind.
  template <typename OpTy>
  std::vector<std::string> placesOf() {
    std::vector<std::string> places;
    imported->module->walk([&](OpTy op) {
      if (auto name = mlir::dyn_cast<mlir::NameLoc>(op->getLoc()))
        places.push_back(name.getName().str());
    });
    return places;
  }

  onnx::ModelProto model;
  mlir::MLIRContext context;
  std::optional<frontend::ImportedModel> imported;
  std::vector<std::string> errors;
};

using Places = std::vector<std::string>;

TEST_F(OnnxSubgraphs, OpsAreNamedByNodeAndIteration) {
  parse(kLoop);
  model.mutable_graph()->mutable_node(0)->set_name("steps");
  ASSERT_TRUE(import());
  EXPECT_EQ(placesOf<nn::ReluOp>(),
            (Places{"steps[0]/h2", "steps[1]/h2", "steps[2]/h2"}));
}

TEST_F(OnnxSubgraphs, LoopWithoutNumberRunsUntilItsConditionIsFalse) {
  parse(kLoop);
  auto &loop = *model.mutable_graph()->mutable_node(0);
  loop.set_input(0, "");
  loop.set_input(1, "");
  ASSERT_TRUE(import());
  // The condition is false in iteration 4, which is the fifth.
  EXPECT_EQ(placesOf<nn::ReluOp>().size(), 5u);
}

TEST_F(OnnxSubgraphs, EndlessLoopIsRefused) {
  parse(kLoop);
  auto &loop = *model.mutable_graph()->mutable_node(0);
  loop.set_input(0, "");
  subgraph(0).mutable_output(0)->set_name("yes");
  expectError("has more than 4096 iterations");
}

TEST_F(OnnxSubgraphs, CarriedValueThatIsLeftOutIsRefused) {
  parse(kLoop);
  model.mutable_graph()->mutable_node(0)->set_input(2, "");
  expectError("node 'y' (Loop, opset 17): expects input 2, but it is left out");
}

TEST_F(OnnxSubgraphs, SparseInitializerIsRefused) {
  parse(kLoop);
  subgraph(0).add_sparse_initializer()->mutable_values()->set_name("s");
  expectError("subgraph 'y.body': sparse initializers ('s') are not supported");
}

TEST_F(OnnxSubgraphs, NamesOfInitializersAreChecked) {
  parse(kLoop);
  subgraph(0).add_initializer()->set_name("a\nb");
  expectError("initializer 'a\\x0ab': ");
}

TEST_F(OnnxSubgraphs, NamesOfValuesAreMadePrintable) {
  parse(kLoop);
  auto &body = subgraph(0);
  body.mutable_node(0)->set_output(0, "h\x07");
  body.mutable_output(1)->set_name("h\x07");
  ASSERT_TRUE(import());
  EXPECT_EQ(placesOf<nn::ReluOp>().front(), "y[0]/h\\x07");
}

TEST_F(OnnxSubgraphs, FunctionHasDefaultsOfAttributes) {
  parse(R"(
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
model (float[2, 3] x) => (float[2, 3] y)
{ y = local.leaky(x) }
<domain: "local", opset_import: ["" : 17]>
leaky (a) => (b) { b = LeakyRelu<alpha : float = @slope>(a) }
)");
  onnx::AttributeProto value;
  value.set_name("slope");
  value.set_type(onnx::AttributeProto::FLOAT);
  value.set_f(0.25f);
  auto &function = *model.mutable_functions(0);
  constexpr int attributeProto = 11;
  function.mutable_unknown_fields()->AddLengthDelimited(
      attributeProto, value.SerializeAsString());
  ASSERT_TRUE(import());
  std::vector<float> slopes;
  imported->module->walk([&](nn::ConstantOp op) {
    slopes.push_back(op.getValue().getSplatValue<float>());
  });
  EXPECT_EQ(slopes, (std::vector<float>{0.0f, 0.25f}));
  EXPECT_EQ(placesOf<nn::WhereOp>(), (Places{"y/b"}));
}

TEST_F(OnnxSubgraphs, OptionalOutputIsRefused) {
  parse(R"(
<ir_version: 8, opset_import: ["" : 18]>
model (float[2, 3] x) => (float[2, 3] y)
{ y = Optional() }
)");
  expectError("output 'y' is an optional that holds nothing");
}

TEST_F(OnnxSubgraphs, OptionalInputIsRefused) {
  parse(kLoop);
  auto &input = *model.mutable_graph()->add_input();
  input.set_name("o");
  input.mutable_type()->mutable_optional_type();
  expectError("input 'o' is an optional: make what it holds an input, or leave "
              "it out of the model");
}

} // namespace
