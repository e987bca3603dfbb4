//===- WeightExportTests.cpp - Trained weights back in the file -----------===//
//
// A model gets weights of which every element is another; what an import reads
// of the file that comes out must be these, to the bit.
//
//===----------------------------------------------------------------------===//

#include "frontends/Frontends.h"
#include "runtime/io/Safetensors.h"
#include "test/unit/runtime/Files.h"

#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNWeightNames.h"
#include "mlir/IR/Diagnostics.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"

#include "gtest/gtest.h"

#include <cmath>
#include <map>

using namespace pipewright;
using namespace pipewright::frontend;
using onnx::TensorProto;
using runtime::Folder;

namespace {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
  bool operator==(const Tensor &) const = default;
};
using Tensors = std::map<std::string, Tensor>;

onnx::ModelProto parse(const std::string &text) {
  onnx::ModelProto model;
  onnx::OnnxParser parser(text.c_str());
  const auto status = parser.Parse(model);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

onnx::ModelProto readModel(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&file)) << path;
  return model;
}

/// The floats that an import finds.
Tensors importWeights(const std::string &path) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.modelPath = path;
  options.requireLoss = false;
  auto imported = importModel(options, context);
  EXPECT_TRUE(succeeded(imported)) << path;
  Tensors tensors;
  if (failed(imported))
    return tensors;
  for (auto weight : imported->module->getOps<nn::WeightOp>()) {
    if (!weight.getTensorType().getElementType().isF32())
      continue;
    llvm::ArrayRef<char> bytes = imported->weights.lookup(weight.getSymName());
    const auto *floats = reinterpret_cast<const float *>(bytes.data());
    tensors[nn::fileNameOf(weight).str()] = {
        weight.getTensorType().getShape().vec(),
        std::vector<float>(floats, floats + bytes.size() / sizeof(float))};
  }
  return tensors;
}

/// Numbers that a bf16 has, too.
Tensors changed(Tensors tensors) {
  int number = 0;
  for (auto &[name, tensor] : tensors)
    for (float &value : tensor.values)
      value = static_cast<float>(++number % 251) / 8;
  return tensors;
}

void writeWeights(const std::string &path, const Tensors &tensors) {
  std::vector<runtime::TensorHeader> headers;
  for (const auto &[name, tensor] : tensors)
    headers.push_back({name, runtime::ElementType::F32, tensor.shape});
  runtime::SafetensorsWriter writer(path, headers);
  for (const auto &[name, tensor] : tensors)
    writer.write(tensor.values.data(), tensor.values.size() * sizeof(float));
  writer.commit();
}

/// A model in a folder of its own.
struct Exporting {
  explicit Exporting(const onnx::ModelProto &model) : model(model) {
    folder.write("model.onnx", model.SerializeAsString());
    options.import.modelPath = folder.path("model.onnx");
    options.output = folder.path("out.onnx");
  }
  explicit Exporting(const std::string &text) : Exporting(parse(text)) {}

  /// Of an export with these weights; the error, or nothing.
  std::string write(const Tensors &tensors) {
    writeWeights(folder.path("w.safetensors"), tensors);
    return exportFrom(folder.path("w.safetensors"));
  }
  std::string exportFrom(const std::string &weights) {
    auto prepared = prepareExport(options);
    if (!prepared)
      return llvm::toString(prepared.takeError());
    auto written = (*prepared)(weights);
    if (!written)
      return llvm::toString(written.takeError());
    warnings = written->warnings;
    return "";
  }
  /// Exports changed weights and compares.
  onnx::ModelProto roundTrip() {
    const Tensors wanted = changed(importWeights(options.import.modelPath));
    EXPECT_FALSE(wanted.empty());
    EXPECT_EQ(write(wanted), "");
    EXPECT_EQ(importWeights(options.output), wanted);
    return readModel(options.output);
  }

  const onnx::ModelProto model;
  Folder folder;
  ExportOptions options;
  std::vector<std::string> warnings;
};

TensorProto &addWeight(onnx::ModelProto &model, const std::string &name,
                       int32_t type) {
  onnx::GraphProto &graph = *model.mutable_graph();
  TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  tensor.add_dims(4);
  onnx::NodeProto &cast = *graph.add_node();
  cast.set_op_type("Cast");
  cast.add_input(name);
  cast.add_output(name + ".f32");
  auto &to = *cast.add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(TensorProto::FLOAT);
  onnx::NodeProto &add = *graph.add_node();
  add.set_op_type("Mul");
  add.add_input(graph.output(0).name());
  add.add_input(name + ".f32");
  add.add_output(name + ".product");
  graph.mutable_output(0)->set_name(name + ".product");
  return tensor;
}

//===----------------------------------------------------------------------===//
// Where weights are
//===----------------------------------------------------------------------===//

TEST(WeightExport, EveryTypeAndFieldTakesNewValues) {
  onnx::ModelProto model = parse(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y) { y = Identity(x) })");
  TensorProto &floats = addWeight(model, "float.weight", TensorProto::FLOAT);
  TensorProto &doubles = addWeight(model, "double.weight", TensorProto::DOUBLE);
  TensorProto &halves = addWeight(model, "half.weight", TensorProto::FLOAT16);
  TensorProto &rawHalves = addWeight(model, "raw.weight", TensorProto::FLOAT16);
  TensorProto &brains = addWeight(model, "brain.weight", TensorProto::BFLOAT16);
  for (float value : {1.5f, 2.5f, 3.5f, 4.5f}) {
    floats.add_float_data(value);
    doubles.add_double_data(value);
    halves.add_int32_data(0x3C00);
    brains.add_int32_data(0x3F80);
  }
  rawHalves.set_raw_data(std::string(8, '\x3C'));
  Exporting exporting(model);
  const onnx::ModelProto out = exporting.roundTrip();
  for (int i = 0; i < out.graph().initializer_size(); ++i) {
    EXPECT_EQ(out.graph().initializer(i).data_type(),
              model.graph().initializer(i).data_type());
    EXPECT_EQ(out.graph().initializer(i).name(),
              model.graph().initializer(i).name());
  }
}

TEST(WeightExport, WhatStaysKeepsItsBits) {
  onnx::ModelProto model = parse(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y) { y = Identity(x) })");
  TensorProto &doubles = addWeight(model, "double.weight", TensorProto::DOUBLE);
  for (double value : {0.1, 0.2, 0.3, 0.4})
    doubles.add_double_data(value);
  Exporting exporting(model);
  Tensors weights = importWeights(exporting.options.import.modelPath);
  EXPECT_EQ(exporting.write(weights), "");
  EXPECT_EQ(readModel(exporting.options.output).SerializeAsString(),
            model.SerializeAsString());
  weights["double.weight"].values[2] = 7;
  EXPECT_EQ(exporting.write(weights), "");
  const std::string raw =
      readModel(exporting.options.output).graph().initializer(0).raw_data();
  ASSERT_EQ(raw.size(), 32u);
  double now[4];
  std::memcpy(now, raw.data(), 32);
  EXPECT_EQ(now[0], 0.1);
  EXPECT_EQ(now[2], 7);
}

TEST(WeightExport, ConstantsAndCopiesAreWeights) {
  Exporting exporting(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,4,4] x) => (float[1,2,4,4] y)
      <float[2,2,1,1] first_weight = {1, 2, 3, 4}> {
      w = Constant<value = float[2,2,1,1] {5, 6, 7, 8}>()
      a = Conv(x, w)
      copy = Identity(first_weight)
      b = Conv(a, first_weight)
      y = Conv(b, copy)
    })");
  const onnx::ModelProto out = exporting.roundTrip();
  EXPECT_EQ(out.graph().node(0).op_type(), "Constant");
  // They have learned apart.
  EXPECT_EQ(out.graph().initializer_size(), 2);
  EXPECT_EQ(out.graph().node_size(), 4);
}

TEST(WeightExport, TransposedCopiesStayTied) {
  Exporting exporting(
      readModel(PIPEWRIGHT_TEST_INPUTS "/exports/default/groups.onnx"));
  exporting.roundTrip();
}

TEST(WeightExport, NormsThatShareStatisticsGetTheirOwn) {
  Exporting exporting(R"(
    <ir_version: 3, opset_import: ["" : 14]>
    g (float[2,4,3] x) => (float[2,4,3] y)
      <float[4] scale = {1, 1, 1, 1}, float[4] bias = {0, 0, 0, 1},
       float[4] mean = {0, 0, 0, 0}, float[4] var = {1, 1, 1, 1}> {
      a = BatchNormalization(x, scale, bias, mean, var)
      y = BatchNormalization(a, scale, bias, mean, var)
    })");
  const onnx::ModelProto out = exporting.roundTrip();
  EXPECT_EQ(out.graph().initializer_size(), 6);
  EXPECT_EQ(out.graph().input_size(), 3) << "IR 3 wants inputs for them";
}

TEST(WeightExport, WeightsOfSubgraphsAreWrittenWhereTheyAre) {
  Exporting exporting(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y)
      <int64 trips = {3}, bool go = {1}, float[4] w = {9, 9, 9, 8}> {
      z = Mul(x, w)
      y = Loop(trips, go, z)<body = body (int64 i, bool c, float[2,4] in)
        => (bool again, float[2,4] out)
        <float[4] w = {1, 2, 3, 4}> {
        again = Identity(c)
        out = Mul(in, w)
      }>
    })");
  const onnx::ModelProto out = exporting.roundTrip();
  EXPECT_EQ(out.graph().initializer_size(), 3);
  EXPECT_EQ(out.graph().node(1).attribute(0).g().initializer(0).name(), "w");
}

TEST(WeightExport, AllElseStaysAsItCame) {
  onnx::ModelProto model = parse(R"(
    <ir_version: 8, opset_import: ["" : 13, "own" : 1],
     producer_name: "somebody", doc_string: "what it is",
     metadata_props: ["license": "mine"]>
    g (float[2,4] x) => (float[2,4] y) <float[4] w = {1, 2, 3, 4}> {
      z = own.twice(x)
      y = Mul(z, w)
    }
    <opset_import: ["" : 13], domain: "own">
    twice (a) => (b) { b = Add(a, a) })");
  model.mutable_unknown_fields()->AddLengthDelimited(30001, "newer");
  model.mutable_graph()->mutable_node(0)->mutable_unknown_fields()->AddVarint(
      30002, 5);
  Exporting exporting(model);
  onnx::ModelProto out = exporting.roundTrip();
  *out.mutable_graph()->mutable_initializer() = model.graph().initializer();
  EXPECT_EQ(out.SerializeAsString(), model.SerializeAsString());
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

constexpr const char *kLarge = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  g (float[2,512] x) => (float[2,512] y)
    <float[512] bias = {1}, float[2] small_weight = {1, 2}> {
    y = Add(x, bias)
  })";

onnx::ModelProto largeModel() {
  onnx::ModelProto model = parse(kLarge);
  TensorProto &bias = *model.mutable_graph()->mutable_initializer(0);
  bias.clear_float_data();
  bias.set_raw_data(std::string(2048, '\1'));
  return model;
}

TEST(WeightExport, LargeModelsHaveTheirWeightsBesideThem) {
  Exporting exporting(largeModel());
  exporting.options.externalDataAbove = 1000;
  const onnx::ModelProto out = exporting.roundTrip();
  const TensorProto &bias = out.graph().initializer(0);
  EXPECT_EQ(bias.data_location(), TensorProto::EXTERNAL);
  EXPECT_FALSE(bias.has_raw_data());
  const std::string data = bias.external_data(0).value();
  EXPECT_TRUE(llvm::StringRef(data).starts_with("out.onnx.")) << data;
  EXPECT_EQ(exporting.folder.read(data).size(), 2048u);
  EXPECT_NE(out.graph().initializer(1).data_location(), TensorProto::EXTERNAL);
  // model.onnx, w.safetensors and the two.
  EXPECT_EQ(exporting.folder.count(), 4);
}

TEST(WeightExport, ExternalDataComesBackInWhereThereIsRoom) {
  Exporting first(largeModel());
  first.options.externalDataAbove = 1000;
  first.roundTrip();
  Exporting exporting(readModel(first.options.output));
  const std::string data =
      exporting.model.graph().initializer(0).external_data(0).value();
  exporting.folder.write(data, first.folder.read(data));
  const onnx::ModelProto out = exporting.roundTrip();
  EXPECT_TRUE(out.graph().initializer(0).has_raw_data());
  // The model, its data, the weights and what was written.
  EXPECT_EQ(exporting.folder.count(), 4);
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

constexpr const char *kTraining = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  g (float[2,4,3] x, int64[2] labels)
    => (float loss, float[2,12] scores, float[4] statistics)
    <float[4] scale = {1, 1, 1, 1}, float[4] bias = {0, 0, 0, 1},
     float[4] mean = {0, 0, 0, 0}, float[4] var = {1, 1, 1, 1},
     float rate = {0.5}, bool train = {1}, int64[2] to = {2, 12}> {
    a, newMean, newVar =
      BatchNormalization<training_mode = 1>(x, scale, bias, mean, var)
    statistics = Identity(newMean)
    b, mask = Dropout(a, rate, train)
    scores = Reshape(b, to)
    loss = SoftmaxCrossEntropyLoss(scores, labels)
  })";

TEST(WeightExport, InferenceHasNoTrainingLeft) {
  Exporting exporting(kTraining);
  const Tensors weights =
      changed(importWeights(exporting.options.import.modelPath));
  exporting.options.forInference = true;
  ASSERT_EQ(exporting.write(weights), "");
  const onnx::ModelProto out = readModel(exporting.options.output);
  ASSERT_EQ(out.graph().output_size(), 1);
  EXPECT_EQ(out.graph().output(0).name(), "scores");
  EXPECT_EQ(out.graph().input_size(), 1);
  ASSERT_EQ(out.graph().node_size(), 3);
  EXPECT_EQ(out.graph().node(0).attribute_size(), 0);
  EXPECT_EQ(out.graph().node(0).output_size(), 1);
  EXPECT_EQ(out.graph().node(1).input_size(), 2);
  for (const TensorProto &tensor : out.graph().initializer())
    EXPECT_NE(tensor.name(), "train");
  EXPECT_EQ(importWeights(exporting.options.output), weights);
}

TEST(WeightExport, TrainingStaysAsItWas) {
  Exporting exporting(kTraining);
  const onnx::ModelProto out = exporting.roundTrip();
  EXPECT_EQ(out.graph().output_size(), 3);
  EXPECT_EQ(out.graph().node(0).output_size(), 3);
}

TEST(WeightExport, InferenceWarnsOfRandomNumbers) {
  Exporting exporting(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,4] y)
      <float[4] w = {1, 2, 3, 4}, float keep = {0.5}> {
      a = Mul(x, w)
      noise = RandomUniformLike<low = 0.0, high = 1.0>(a)
      kept = Less(noise, keep)
      mask = Cast<to = 1>(kept)
      scaled = Div(mask, keep)
      y = Mul(a, scaled)
    })");
  exporting.options.forInference = true;
  ASSERT_EQ(exporting.write(importWeights(exporting.options.import.modelPath)),
            "");
  ASSERT_EQ(exporting.warnings.size(), 1u);
  EXPECT_NE(exporting.warnings[0].find("RandomUniformLike"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Weights that do not fit
//===----------------------------------------------------------------------===//

constexpr const char *kTwo = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  g (float[2,4] x) => (float[2,4] y)
    <float[4] a_weight = {1, 2, 3, 4}, float[4] b_weight = {5, 6, 7, 8}> {
    z = Mul(x, a_weight)
    y = Mul(z, b_weight)
  })";

void expectError(Exporting &exporting, const Tensors &tensors,
                 const std::string &text) {
  const std::string error = exporting.write(tensors);
  EXPECT_NE(error.find(text), std::string::npos) << error;
  EXPECT_FALSE(exporting.folder.exists("out.onnx"));
}

TEST(WeightExport, WhatDoesNotFitIsOneError) {
  Exporting exporting(kTwo);
  const Tensor four{{4}, {1, 2, 3, 4}};
  expectError(exporting, {{"a_weight", four}}, "has no tensor 'b_weight'");
  expectError(exporting, {{"other", four}}, "has a tensor 'other'");
  expectError(exporting,
              {{"a_weight", four}, {"b_weight", {{2, 2}, four.values}}},
              "is F32 2x2, but the program expects F32 4");
  expectError(exporting, {{"a_weight", four}, {"b_weight", four}, {"c", four}},
              "has a tensor 'c', which is no weight");
  EXPECT_NE(exporting.exportFrom(exporting.options.import.modelPath)
                .find("is no safetensors file"),
            std::string::npos);
  EXPECT_NE(exporting.exportFrom(exporting.folder.path("none")).find("none"),
            std::string::npos);
}

TEST(WeightExport, WritesNeitherOverTheModelNorOtherFormats) {
  Exporting exporting(kTwo);
  const Tensor four{{4}, {1, 2, 3, 4}};
  exporting.options.output = exporting.options.import.modelPath;
  expectError(exporting, {{"a_weight", four}}, "is the model itself");
  exporting.options.output = exporting.folder.path("out.pt");
  expectError(exporting, {{"a_weight", four}}, "ends in .onnx");
}

TEST(WeightExport, PartialWeightsLeaveTheOthers) {
  Exporting exporting(kTwo);
  exporting.options.isPartial = true;
  const Tensor four{{4}, {9, 9, 9, 9}};
  EXPECT_EQ(exporting.write({{"b_weight", four}, {"more", four}}), "");
  const Tensors out = importWeights(exporting.options.output);
  EXPECT_EQ(out.at("a_weight").values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(out.at("b_weight"), four);
  ASSERT_EQ(exporting.warnings.size(), 1u);
  EXPECT_NE(exporting.warnings[0].find("has not 'a_weight'"),
            std::string::npos);
}

TEST(WeightExport, NamesOfOthersAreRenamed) {
  Exporting exporting(kTwo);
  exporting.options.renames = {"^model[.](.*)$=$1"};
  const Tensor four{{4}, {9, 8, 7, 6}};
  EXPECT_EQ(exporting.write({{"model.a_weight", four}, {"b_weight", four}}),
            "");
  EXPECT_EQ(importWeights(exporting.options.output).at("a_weight"), four);
}

} // namespace
