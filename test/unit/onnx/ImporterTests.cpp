//===- ImporterTests.cpp - Files that ONNX text cannot say ----------------===//
//
// Builds small models with protobuf, writes them to a folder of the test, and
// looks at what the importer makes of them or says about them.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOps.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/OpRegistry.h"
#include "support/Text.h"

#include "mlir/IR/MLIRContext.h"
#include "onnx/onnx_pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <cstring>
#include <fstream>
#include <sys/stat.h>

using namespace pipewright;
using onnx::TensorProto;

namespace {

class OnnxImport : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("onnx-import", folder));
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    model.mutable_graph()->set_name("graph");
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string pathOf(llvm::StringRef name) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }

  void write(llvm::StringRef name, llvm::StringRef bytes) {
    std::ofstream(pathOf(name), std::ios::binary) << bytes.str();
  }

  onnx::NodeProto &node(const char *type, std::vector<std::string> inputs,
                        std::string output) {
    onnx::NodeProto &node = *model.mutable_graph()->add_node();
    node.set_op_type(type);
    node.set_name(output + "_node");
    for (std::string &input : inputs)
      node.add_input(input);
    node.add_output(output);
    return node;
  }

  void value(onnx::ValueInfoProto &info, const char *name,
             std::vector<int64_t> dims, int type) {
    info.set_name(name);
    auto &tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (int64_t dim : dims)
      tensor.mutable_shape()->add_dim()->set_dim_value(dim);
  }

  /// x [2, 3] + w, as y.
  TensorProto &addModel(std::vector<int64_t> weightDims) {
    value(*model.mutable_graph()->add_input(), "x", {2, 3}, TensorProto::FLOAT);
    value(*model.mutable_graph()->add_output(), "y", {2, 3},
          TensorProto::FLOAT);
    node("Add", {"x", "w"}, "y");
    return weight("w", weightDims);
  }

  TensorProto &weight(const char *name, std::vector<int64_t> dims) {
    TensorProto &tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(TensorProto::FLOAT);
    for (int64_t dim : dims)
      tensor.add_dims(dim);
    return tensor;
  }

  TensorProto &filled(const char *name, std::vector<int64_t> dims,
                      std::vector<float> values) {
    TensorProto &tensor = weight(name, dims);
    for (float v : values)
      tensor.add_float_data(v);
    return tensor;
  }

  void external(TensorProto &tensor, const char *location,
                const char *offset = nullptr, const char *length = nullptr) {
    tensor.set_data_location(TensorProto::EXTERNAL);
    auto entry = [&](const char *key, const char *text) {
      auto *added = tensor.add_external_data();
      added->set_key(key);
      added->set_value(text);
    };
    entry("location", location);
    if (offset)
      entry("offset", offset);
    if (length)
      entry("length", length);
  }

  llvm::FailureOr<frontend::ImportedModel> import() {
    std::ofstream(pathOf("m.onnx"), std::ios::binary)
        << model.SerializePartialAsString();
    frontend::ImportOptions options;
    options.modelPath = pathOf("m.onnx");
    options.requireLoss = false;
    options.roleRules = roleRules;
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          messages.push_back(diagnostic.str());
          return mlir::success();
        });
    return frontend::importOnnx(options, context);
  }

  /// Imports, and expects exactly one error with `text` in it.
  void expectError(llvm::StringRef text) {
    EXPECT_TRUE(failed(import()));
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_NE(messages[0].find(text.str()), std::string::npos) << messages[0];
  }

  std::vector<float> floats(const frontend::ImportedModel &imported,
                            const char *name) {
    llvm::ArrayRef<char> bytes = imported.weights.lookup(name);
    std::vector<float> result(bytes.size() / sizeof(float));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  bool warns(const frontend::ImportedModel &imported, llvm::StringRef text) {
    return llvm::any_of(imported.warnings, [&](const std::string &warning) {
      return llvm::StringRef(warning).contains(text);
    });
  }

  llvm::SmallString<128> folder;
  onnx::ModelProto model;
  mlir::MLIRContext context;
  std::vector<std::string> messages;
  /// Of --freeze and --train.
  std::vector<frontend::RoleRule> roleRules;
};

std::string bytesOf(const std::vector<float> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(float));
}

using Floats = std::vector<float>;

//===----------------------------------------------------------------------===//
// Stored types
//===----------------------------------------------------------------------===//

TEST_F(OnnxImport, WeightsComeFromRawAndTypedFields) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  node("Mul", {"y", "v"}, "z");
  value(*model.mutable_graph()->add_output(), "z", {2, 3}, TensorProto::FLOAT);
  filled("v", {3}, {4, 5, 6});
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_EQ(floats(*imported, "w"), Floats({1, 2, 3}));
  EXPECT_EQ(floats(*imported, "v"), Floats({4, 5, 6}));
}

TEST_F(OnnxImport, HalfAndDoubleWeightsBecomeFloat32) {
  TensorProto &half = addModel({3});
  half.set_data_type(TensorProto::FLOAT16);
  for (int bits : {0x3c00, 0xc000, 0x3800})
    half.add_int32_data(bits);
  node("Mul", {"y", "v"}, "z");
  node("Mul", {"z", "u"}, "o");
  value(*model.mutable_graph()->add_output(), "o", {2, 3}, TensorProto::FLOAT);
  TensorProto &wide = weight("v", {3});
  wide.set_data_type(TensorProto::DOUBLE);
  for (double v : {0.25, 8.0, -1.5})
    wide.add_double_data(v);
  TensorProto &brain = weight("u", {3});
  brain.set_data_type(TensorProto::BFLOAT16);
  brain.set_raw_data(std::string("\x80\x3f\x00\x40\x40\x40", 6));
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_EQ(floats(*imported, "w"), Floats({1, -2, 0.5}));
  EXPECT_EQ(floats(*imported, "v"), Floats({0.25, 8, -1.5}));
  EXPECT_EQ(floats(*imported, "u"), Floats({1, 2, 3}));
}

TEST_F(OnnxImport, TooFewBytesAreAnError) {
  addModel({3}).set_raw_data(bytesOf({1, 2}));
  expectError("initializer 'w': expects 12 bytes for float32 [3], but got 8");
}

TEST_F(OnnxImport, NegativeDimensionIsAnError) {
  addModel({-3}).set_raw_data("");
  expectError("initializer 'w': expects dimensions of 0 or more, but got -3");
}

TEST_F(OnnxImport, HugeDimensionsAreAnError) {
  addModel({int64_t(1) << 40, int64_t(1) << 40}).set_raw_data("");
  expectError(
      "initializer 'w': expects a tensor of at most 1099511627776 elements");
}

TEST_F(OnnxImport, UnsupportedElementTypeIsAnError) {
  addModel({3}).set_data_type(TensorProto::COMPLEX64);
  expectError("initializer 'w': element type");
}

TEST_F(OnnxImport, NewFieldsAndOpsetsAreNoObstacle) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  model.set_ir_version(13);
  model.mutable_opset_import(0)->set_version(25);
  EXPECT_TRUE(succeeded(import()));
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

TEST_F(OnnxImport, ExternalDataIsRead) {
  external(addModel({3}), "data.bin", "4", "12");
  write("data.bin", bytesOf({9, 1, 2, 3, 9}));
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_EQ(floats(*imported, "w"), Floats({1, 2, 3}));
}

TEST_F(OnnxImport, MissingExternalFileIsAnError) {
  external(addModel({3}), "data.bin");
  expectError("data.bin' cannot be read: No such file or directory");
}

TEST_F(OnnxImport, ExternalPathMustStayInTheFolder) {
  external(addModel({3}), "../data.bin");
  expectError("external data file '../data.bin' leads out of the model's "
              "folder");
}

TEST_F(OnnxImport, ExternalPathMustNotLeaveHalfWay) {
  external(addModel({3}), "a/../../data.bin");
  expectError("leads out of the model's folder");
}

TEST_F(OnnxImport, ExternalPathMustBeRelative) {
  external(addModel({3}), "/etc/passwd");
  expectError("external data file '/etc/passwd' leads out");
}

TEST_F(OnnxImport, ExternalLinksMustStayInTheFolder) {
  llvm::SmallString<128> other;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("onnx-other", other));
  std::ofstream(other.str().str() + "/secret.bin", std::ios::binary)
      << bytesOf({1, 2, 3});
  ASSERT_FALSE(
      llvm::sys::fs::create_link(other + "/secret.bin", pathOf("link.bin")));
  ASSERT_FALSE(llvm::sys::fs::create_link(other, pathOf("folder")));
  TensorProto &w = addModel({3});
  for (const char *location : {"link.bin", "folder/secret.bin"}) {
    messages.clear();
    w.clear_external_data();
    external(w, location);
    expectError("leads out of the model's folder through a link; copy the file "
                "into the folder");
  }
  // One that stays is as good as a file.
  messages.clear();
  write("data.bin", bytesOf({1, 2, 3}));
  ASSERT_FALSE(
      llvm::sys::fs::create_link(pathOf("data.bin"), pathOf("here.bin")));
  w.clear_external_data();
  external(w, "here.bin");
  EXPECT_TRUE(succeeded(import()));
  llvm::sys::fs::remove_directories(other);
}

TEST_F(OnnxImport, ExternalDataMustBeARegularFile) {
  ASSERT_EQ(mkfifo(pathOf("pipe").c_str(), 0600), 0);
  ASSERT_FALSE(llvm::sys::fs::create_directory(pathOf("folder")));
  TensorProto &w = addModel({3});
  for (auto [location, kind] :
       {std::pair("pipe", "a pipe"), std::pair("folder", "a folder")}) {
    messages.clear();
    w.clear_external_data();
    external(w, location);
    expectError((llvm::Twine("external data file '") + location +
                 "' expects a regular file, but got " + kind)
                    .str());
  }
}

TEST_F(OnnxImport, ExternalDataMayBeginAnywhere) {
  external(addModel({3}), "data.bin", "1", "12");
  write("data.bin", "-" + bytesOf({1, 2, 3}));
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_EQ(floats(*imported, "w"), Floats({1, 2, 3}));
}

TEST_F(OnnxImport, ExternalRangeMustLieInTheFile) {
  external(addModel({3}), "data.bin", "8", "12");
  write("data.bin", bytesOf({1, 2, 3}));
  expectError("has 12 bytes, but offset 8 and length 12 lead beyond its end");
}

TEST_F(OnnxImport, ExternalOffsetMustBeANumber) {
  external(addModel({3}), "data.bin", "-1");
  write("data.bin", bytesOf({1, 2, 3}));
  expectError("expects a number for external data offset, but got '-1'");
}

//===----------------------------------------------------------------------===//
// Forms that are refused
//===----------------------------------------------------------------------===//

TEST_F(OnnxImport, NoGraphIsAnError) { expectError("the graph has no nodes"); }

TEST_F(OnnxImport, NoOpsetIsAnError) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  model.clear_opset_import();
  expectError("it imports no operator set");
}

TEST_F(OnnxImport, SparseInitializersAreRefused) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name(
      "s");
  expectError("sparse initializers ('s') are not supported");
}

TEST_F(OnnxImport, SequenceInputIsRefused) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  auto &input = *model.mutable_graph()->add_input();
  input.set_name("s");
  input.mutable_type()->mutable_sequence_type();
  expectError("input 's' is a sequence of tensors: make each of them an input "
              "of its own");
}

TEST_F(OnnxImport, ZeroDimensionIsRefused) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  value(*model.mutable_graph()->add_input(), "e", {0, 3}, TensorProto::FLOAT);
  expectError("input 'e' dimension 0: expects 1 or more, but got 0");
}

TEST_F(OnnxImport, AnyTruncationIsOneError) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  std::string whole = model.SerializeAsString();
  for (size_t size = 0; size < whole.size(); ++size) {
    write("cut.onnx", llvm::StringRef(whole).take_front(size));
    frontend::ImportOptions options;
    options.modelPath = pathOf("cut.onnx");
    options.requireLoss = false;
    int errors = 0;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &) {
      ++errors;
      return mlir::success();
    });
    bool parses = succeeded(frontend::importOnnx(options, context));
    EXPECT_EQ(errors, parses ? 0 : 1) << size;
  }
}

//===----------------------------------------------------------------------===//
// Names, locations, warnings
//===----------------------------------------------------------------------===//

TEST_F(OnnxImport, OpsCarryTheNamesOfTheirNodes) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  auto imported = import();
  ASSERT_TRUE(succeeded(imported));
  int found = 0;
  imported->module->walk([&](nn::AddOp op) {
    auto name = mlir::dyn_cast<mlir::NameLoc>(op.getLoc());
    found += name && name.getName() == "y_node";
  });
  EXPECT_EQ(found, 1);
}

TEST_F(OnnxImport, WeightNamedLikeTheFunctionIsRenamed) {
  addModel({3}).set_raw_data(bytesOf({1, 2, 3}));
  model.mutable_graph()->mutable_initializer(0)->set_name("model");
  model.mutable_graph()->mutable_node(0)->set_input(1, "model");
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_EQ(floats(*imported, "model_1"), Floats({1, 2, 3}));
}

TEST_F(OnnxImport, TransposedTwinIsALostTie) {
  value(*model.mutable_graph()->add_input(), "x", {2, 3}, TensorProto::FLOAT);
  value(*model.mutable_graph()->add_output(), "z", {2, 3}, TensorProto::FLOAT);
  node("MatMul", {"x", "table"}, "y");
  node("MatMul", {"y", "onnx::MatMul_7"}, "z");
  filled("table", {3, 2}, {1, 2, 3, 4, 5, 6});
  filled("onnx::MatMul_7", {2, 3}, {1, 3, 5, 2, 4, 6});
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_TRUE(warns(*imported, "'onnx::MatMul_7' is 'table' transposed"));
  EXPECT_TRUE(warns(*imported, "exported in evaluation mode"));
}

TEST_F(OnnxImport, FoldedBatchNormIsTold) {
  value(*model.mutable_graph()->add_input(), "x", {1, 1, 2, 2},
        TensorProto::FLOAT);
  value(*model.mutable_graph()->add_output(), "y", {1, 1, 2, 2},
        TensorProto::FLOAT);
  node("Conv", {"x", "onnx::Conv_1", "onnx::Conv_2"}, "y");
  filled("onnx::Conv_1", {1, 1, 1, 1}, {2});
  filled("onnx::Conv_2", {1}, {2});
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_TRUE(warns(*imported, "folded"));
}

TEST_F(OnnxImport, RunningStatisticsOfTwoNodesArePartedAndWarnedAbout) {
  value(*model.mutable_graph()->add_input(), "x", {2, 3}, TensorProto::FLOAT);
  value(*model.mutable_graph()->add_output(), "z", {2, 3}, TensorProto::FLOAT);
  node("BatchNormalization", {"x", "s", "b", "m", "v"}, "y");
  node("BatchNormalization", {"y", "s", "b", "m", "v"}, "z");
  filled("s", {3}, {1, 1, 1});
  filled("b", {3}, {0, 0, 0});
  filled("m", {3}, {0, 0, 0});
  filled("v", {3}, {1, 1, 1});
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  llvm::DenseSet<mlir::StringAttr> states;
  imported->module->walk([&](nn::BatchNormOp op) {
    states.insert(op.getRunningMeanAttr().getAttr());
    states.insert(op.getRunningVarianceAttr().getAttr());
  });
  EXPECT_EQ(states.size(), 4u);
  EXPECT_TRUE(warns(*imported, "2 BatchNormalization nodes"));
}

TEST_F(OnnxImport, LargeMaskBecomesAConstantWeight) {
  value(*model.mutable_graph()->add_input(), "x", {80, 80}, TensorProto::FLOAT);
  value(*model.mutable_graph()->add_output(), "y", {80, 80},
        TensorProto::FLOAT);
  node("Add", {"x", "mask"}, "y");
  Floats mask(80 * 80, 0);
  mask[17] = -INFINITY;
  weight("mask", {80, 80}).set_raw_data(bytesOf(mask));
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  auto weights = llvm::to_vector(imported->module->getOps<nn::WeightOp>());
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].getRole(), nn::WeightRole::Constant);
}

//===----------------------------------------------------------------------===//
// Hostile models
//===----------------------------------------------------------------------===//

TEST_F(OnnxImport, EveryOpTellsItsWrongInputs) {
  static const char *const forms[] = {"x", "ints", "one", "none", ""};
  for (const frontend::OpRow *each : frontend::allOps()) {
    const frontend::OpRow &row = *each;
    for (const char *form : forms)
      for (unsigned count = 0; count <= 7; ++count) {
        messages.clear();
        model.clear_graph();
        model.mutable_opset_import(0)->set_version(24);
        value(*model.mutable_graph()->add_input(), "x", {2, 3},
              TensorProto::FLOAT);
        value(*model.mutable_graph()->add_output(), "y", {}, 0);
        model.mutable_graph()
            ->mutable_output(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->clear_shape();
        TensorProto &ints = weight("ints", {2});
        ints.set_data_type(TensorProto::INT64);
        ints.add_int64_data(1);
        ints.add_int64_data(0);
        filled("one", {}, {1});
        filled("none", {0}, {});
        node(row.name.str().c_str(), std::vector<std::string>(count, form),
             "y");
        bool isImported = succeeded(import());
        EXPECT_EQ(messages.size(), isImported ? 0u : 1u)
            << row.name.str() << " with " << count << " of '" << form << "'";
        bool fits = count >= row.inputs.least && count <= row.inputs.most;
        EXPECT_TRUE(fits || !isImported)
            << row.name.str() << " with " << count << " of '" << form << "'";
      }
  }
}

TEST_F(OnnxImport, NamesThatNobodyKnowsAreRepaired) {
  value(*model.mutable_graph()->add_input(), "x", {2}, TensorProto::FLOAT);
  value(*model.mutable_graph()->add_output(), "y", {2}, TensorProto::FLOAT);
  // These two look the same when they are shown.
  node("Exp", {"x"}, "a\nb");
  node("Tanh", {"x"}, "a\\x0ab");
  node("Sub", {"a\nb", "a\\x0ab"}, "y").set_name("sub\x1b[31m\xff");
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  imported->module->walk([&](nn::SubOp op) {
    EXPECT_TRUE(op->getOperand(0).getDefiningOp<nn::ExpOp>());
    EXPECT_TRUE(op->getOperand(1).getDefiningOp<nn::TanhOp>());
    auto loc = mlir::dyn_cast<mlir::NameLoc>(op.getLoc());
    ASSERT_TRUE(loc);
    EXPECT_EQ(loc.getName().getValue(), "sub\\x1b[31m\\xff");
  });
}

TEST_F(OnnxImport, Float8WeightsAreConstantsAndDoNotTrain) {
  onnx::TensorProto &scale = *model.mutable_graph()->add_initializer();
  scale.set_name("scale");
  scale.add_dims(2);
  scale.set_data_type(17);
  scale.set_raw_data("\x38\xc4"); // 1 and -3 of E4M3FN.
  value(*model.mutable_graph()->add_input(), "x", {3, 2}, TensorProto::FLOAT);
  value(*model.mutable_graph()->add_output(), "y", {3, 2}, TensorProto::FLOAT);
  // What is like float8 is rounded to it, also where that was moved.
  node("Flatten", {"scale"}, "row");
  node("CastLike", {"x", "row"}, "rounded");
  node("Transpose", {"rounded"}, "turned");
  node("CastLike", {"x", "turned"}, "again");
  node("CastLike", {"rounded", "x"}, "first");
  node("CastLike", {"again", "x"}, "second");
  node("Add", {"first", "second"}, "wide");
  node("CastLike", {"scale", "x"}, "factor");
  node("Mul", {"wide", "factor"}, "y");
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_FALSE(imported->weights.contains("scale"));
  int64_t quantized = 0;
  imported->module->walk([&](nn::FakeQuantizeOp op) {
    EXPECT_EQ(op.getFormat(), nn::FloatFormat::E4M3FN);
    EXPECT_TRUE(op.getSaturate());
    ++quantized;
  });
  EXPECT_EQ(quantized, 2);
  imported->module->walk([&](nn::ConstantOp op) {
    auto values = op.getValue().getValues<float>();
    EXPECT_EQ(values[0], 1.0f);
    EXPECT_EQ(values[1], -3.0f);
  });
  roleRules = {{frontend::RoleRule::Train, "scale"}};
  expectError("initializer 'scale' is of float8e4m3fn, which does not train");
}

TEST_F(OnnxImport, NamesThatPeopleUseAreKeptOrRefused) {
  filled("scale=\xd1\x81 %s*/", {3}, {1, 2, 3});
  value(*model.mutable_graph()->add_input(), "x", {2, 3}, TensorProto::FLOAT);
  value(*model.mutable_graph()->add_output(), "y", {2, 3}, TensorProto::FLOAT);
  node("Mul", {"x", "scale=\xd1\x81 %s*/"}, "y");
  auto imported = import();
  ASSERT_TRUE(succeeded(imported)) << messages.front();
  EXPECT_TRUE(imported->weights.contains("scale=\xd1\x81 %s*/"));
  auto &initializer = *model.mutable_graph()->mutable_initializer(0);
  for (const std::string &name :
       {std::string("a\0b", 3), std::string("a\nb"), std::string("\xff"),
        std::string("\xe2\x80\xae"), std::string(1025, 'q')}) {
    messages.clear();
    initializer.set_name(name);
    expectError("m.onnx: initializer '");
    EXPECT_TRUE(text::isPrintable(messages[0]));
    EXPECT_LT(messages[0].size(), 500u);
  }
  messages.clear();
  initializer.set_name("__metadata__");
  expectError("initializer '__metadata__' has the name that files of weights");
}

} // namespace
