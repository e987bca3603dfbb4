//===- WeightRoleTests.cpp - Which weights are trained --------------------===//
//
// The exporter's notes, hostile ones too, the values that tell a table, and the
// patterns of --freeze and --train.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/RolePatterns.h"
#include "frontends/onnx/BufferTables.h"
#include "frontends/onnx/ExporterMetadata.h"
#include "frontends/onnx/MergedWeights.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace pipewright::frontend;

namespace {

constexpr const char *kKind = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr const char *kFolded = "pkg.onnxscript.optimizer.folded_from";
constexpr const char *kSignature =
    "pkg.torch.export.ExportedProgram.graph_signature";

//===----------------------------------------------------------------------===//
// Notes
//===----------------------------------------------------------------------===//

/// A model whose messages have properties that the installed schema lacks.
struct NotedModel {
  NotedModel() {
    file.path = "noted.onnx";
    file.proto = std::make_shared<onnx::ModelProto>();
  }

  onnx::GraphProto &graph() { return *file.proto->mutable_graph(); }

  template <typename Message>
  static void note(Message &message, int field, const std::string &key,
                   const std::string &value) {
    onnx::StringStringEntryProto entry;
    entry.set_key(key);
    entry.set_value(value);
    message.mutable_unknown_fields()->AddLengthDelimited(
        field, entry.SerializeAsString());
  }

  onnx::ValueInfoProto &initializer(const std::string &name,
                                    std::vector<int64_t> dims = {4}) {
    onnx::TensorProto &tensor = *graph().add_initializer();
    tensor.set_name(name);
    for (int64_t dim : dims)
      tensor.add_dims(dim);
    onnx::ValueInfoProto &info = *graph().add_value_info();
    info.set_name(name);
    return info;
  }

  onnx::NodeProto &node(const std::vector<std::string> &inputs,
                        const std::string &arguments) {
    onnx::NodeProto &node = *graph().add_node();
    for (const std::string &input : inputs)
      node.add_input(input);
    node.add_output("out" + std::to_string(graph().node_size()));
    note(node, 9, "pkg.torch.onnx.fx_node",
         "%n : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor]"
         "(args = (" +
             arguments + "), kwargs = {})");
    return node;
  }

  ModelFile file;
};

TEST(ExporterNotes, ListsAreReadStrictly) {
  using List = std::vector<std::string>;
  EXPECT_EQ(parseStringList("[]"), List());
  EXPECT_EQ(parseStringList("['a', \"b'c\", 'd\\'e']"),
            (List{"a", "b'c", "d'e"}));
  for (const char *text :
       {"", "[", "['a'", "['a',]", "['a' 'b']", "['a']x", "[a]", "['a\\n']",
        "['a\\", "['a',  'b']", "[['a']]"})
    EXPECT_EQ(parseStringList(text), std::nullopt) << text;
  EXPECT_EQ(parseStringList(std::string(1 << 20, '[')), std::nullopt);
}

TEST(ExporterNotes, KindsAndSourcesAreFoundByFieldNumber) {
  NotedModel model;
  NotedModel::note(model.initializer("w"), 4, kKind, "PARAMETER");
  NotedModel::note(model.initializer("cos"), 4, kKind, "BUFFER");
  NotedModel::note(model.initializer("val_1"), 4, kFolded, "['w', 'cos']");
  NotedModel::note(model.graph(), 16, kSignature,
                   "\n# inputs\np_w: PARAMETER target='w'\n"
                   "b_cos: BUFFER target='cos' persistent=True\n"
                   "tokens: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
  ExporterMetadata notes = readExporterMetadata(model.file);
  EXPECT_EQ(notes.ignored, 0);
  EXPECT_EQ(notes.initializers["w"].kind, ExportedKind::Parameter);
  EXPECT_EQ(notes.initializers["cos"].kind, ExportedKind::Buffer);
  EXPECT_EQ(notes.initializers["val_1"].foldedFrom,
            (std::vector<std::string>{"w", "cos"}));
  EXPECT_EQ(notes.placeholders["p_w"].name, "w");
  EXPECT_EQ(notes.tensors["cos"], ExportedKind::Buffer);
  EXPECT_EQ(notes.placeholders.count("y"), 0u);
}

TEST(ExporterNotes, WhatDoesNotParseIsLeftOutAndCounted) {
  NotedModel model;
  NotedModel::note(model.initializer("a"), 4, kKind, "PARAMETERS");
  NotedModel::note(model.initializer("b"), 4, kFolded, "['a'");
  onnx::ValueInfoProto &c = model.initializer("c");
  c.mutable_unknown_fields()->AddLengthDelimited(4, "\xff\xff\xff");
  NotedModel::note(c, 4, kKind, "BUFFER");
  model.initializer("d").mutable_unknown_fields()->AddVarint(4, 7);
  NotedModel::note(model.graph(), 16, kSignature,
                   "# inputs\np_w: PARAMETER\np w: PARAMETER target='w'\n"
                   "p_v: PARAMETER target='v\np_u: WEIGHT target='u'\n");
  ExporterMetadata notes = readExporterMetadata(model.file);
  EXPECT_EQ(notes.ignored, 8);
  EXPECT_EQ(notes.firstIgnored, "the graph's signature");
  EXPECT_EQ(notes.initializers.count("a"), 0u);
  EXPECT_EQ(notes.initializers.count("b"), 0u);
  EXPECT_EQ(notes.initializers["c"].kind, ExportedKind::Buffer);
  EXPECT_TRUE(notes.placeholders.empty());
}

TEST(ExporterNotes, MergedTensorsAreApartAgain) {
  NotedModel model;
  NotedModel::note(model.initializer("ln1.w"), 4, kKind, "PARAMETER");
  NotedModel::note(model.graph(), 16, kSignature,
                   "# inputs\np_ln1_w: PARAMETER target='ln1.w'\n"
                   "p_ln2_w: PARAMETER target='ln2.w'\n"
                   "b_ones: BUFFER target='ones'\n");
  model.node({"x", "ln1.w"}, "%x, %p_ln1_w");
  model.node({"out1", "ln1.w"}, "%out1, %p_ln2_w");
  model.node({"out2", "ln1.w"}, "%out2, %b_ones");
  // Two that are gone and one input: nothing says which it is.
  model.node({"out3", "ln1.w"}, "%p_ln2_w, %b_ones");
  ExporterMetadata notes = readExporterMetadata(model.file);
  EXPECT_EQ(partMergedWeights(model.file, notes), 2);
  EXPECT_EQ(model.graph().node(0).input(1), "ln1.w");
  EXPECT_EQ(model.graph().node(1).input(1), "ln2.w");
  EXPECT_EQ(model.graph().node(2).input(1), "ones");
  EXPECT_EQ(model.graph().node(3).input(1), "ln1.w");
  EXPECT_EQ(notes.initializers["ln2.w"].kind, ExportedKind::Parameter);
  EXPECT_EQ(notes.initializers["ones"].kind, ExportedKind::Buffer);
}

TEST(ExporterNotes, LargeTensorsAndTakenNamesAreNotParted) {
  NotedModel model;
  NotedModel::note(model.initializer("a", {1 << 20, 1 << 20, 1 << 30}), 4,
                   kKind, "PARAMETER");
  NotedModel::note(model.initializer("b"), 4, kKind, "PARAMETER");
  NotedModel::note(model.graph(), 16, kSignature,
                   "# inputs\np_a: PARAMETER target='a'\n"
                   "p_b: PARAMETER target='b'\np_c: PARAMETER target='c'\n"
                   "p_out: PARAMETER target='out1'\n");
  model.node({"a"}, "%p_c");
  model.node({"b"}, "%p_out");
  ExporterMetadata notes = readExporterMetadata(model.file);
  EXPECT_EQ(partMergedWeights(model.file, notes), 0);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::vector<float> table(int64_t rows, int64_t columns, auto element) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      values.push_back(static_cast<float>(element(i, j)));
  return values;
}

double rate(int64_t column, int64_t columns) {
  return std::pow(10000.0, -double(column) / double(columns));
}

TEST(BufferTable, WavesAndLinesAreTables) {
  auto cosines =
      table(64, 16, [](auto p, auto j) { return std::cos(p * rate(j, 16)); });
  EXPECT_TRUE(isWaveTable(cosines, {64, 16}));
  EXPECT_TRUE(isWaveTable(cosines, {1, 1, 64, 16}));
  EXPECT_TRUE(isWaveTable(cosines, {64, 1, 16}));
  auto sinusoids = table(8, 32, [](auto p, auto j) {
    double angle = p * rate(j / 2, 16);
    return j % 2 ? std::cos(angle) : std::sin(angle);
  });
  EXPECT_TRUE(isWaveTable(sinusoids, {1, 8, 32}));
  // Of 4096 positions the angles are rounded to float32.
  auto longTable = table(4096, 8, [](auto p, auto j) {
    return std::cos(float(p) * float(rate(j, 8)));
  });
  EXPECT_TRUE(isWaveTable(longTable, {4096, 8}));
  auto distances = table(8, 8, [](auto i, auto j) { return 0.25 * (j - i); });
  EXPECT_TRUE(isWaveTable(distances, {8, 8}));
}

TEST(BufferTable, WhatIsLearnedIsNoTable) {
  uint32_t state = 1;
  auto noise = [&](int64_t, int64_t) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) / double(1 << 24) - 0.5;
  };
  EXPECT_FALSE(isWaveTable(table(64, 16, noise), {64, 16}));
  EXPECT_FALSE(isWaveTable(table(1, 16, noise), {16}));
  EXPECT_FALSE(isWaveTable(table(4, 1, noise), {4}));
  // Fresh parameters.
  EXPECT_FALSE(isWaveTable(std::vector<float>(64, 0.0f), {8, 8}));
  EXPECT_FALSE(isWaveTable(std::vector<float>(64, 1.0f), {8, 8}));
  // A learned table that began as sinusoids.
  auto tuned = table(64, 16, [&](auto p, auto j) {
    return std::cos(p * rate(j, 16)) + 0.05 * noise(p, j);
  });
  EXPECT_FALSE(isWaveTable(tuned, {64, 16}));
  EXPECT_FALSE(isWaveTable({}, {0, 8}));
  EXPECT_FALSE(isWaveTable({NAN, 1, 2, 3, 4, 5, 6, 7}, {8}));
}

TEST(BufferTable, SlopesAreAlibis) {
  EXPECT_TRUE(areAlibiSlopes({1.0f / 16, 1.0f / 256}));
  EXPECT_TRUE(areAlibiSlopes({0.25f, 0.0625f, 0.015625f, 0.00390625f}));
  EXPECT_TRUE(areAlibiSlopes({1.0f / 16, 1.0f / 256, 0.25f}));
  EXPECT_FALSE(areAlibiSlopes({0.5f, 0.25f}));
  EXPECT_FALSE(areAlibiSlopes({1.0f}));
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

std::string problemOf(const std::string &pattern) {
  llvm::Error error = checkRoleRule({RoleRule::Freeze, pattern});
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(RolePattern, HostilePatternsAreRefused) {
  EXPECT_EQ(problemOf("^h\\.[0-5]\\.(attn|mlp)\\."), "");
  EXPECT_EQ(problemOf("a{2,3}b{4}"), "");
  EXPECT_NE(problemOf(""), "");
  EXPECT_NE(problemOf("(").find("--freeze expects a regular expression but "
                                "got '(': parentheses not balanced"),
            std::string::npos);
  EXPECT_NE(problemOf("(a*)*\\1").find("back references"), std::string::npos);
  EXPECT_NE(problemOf("((a{99}){99}){99}").find("fewer repetitions"),
            std::string::npos);
  EXPECT_NE(problemOf(std::string(1001, 'a')), "");
  EXPECT_NE(problemOf("\xff"), "");
}

TEST(RolePattern, TheLastThatMatchesWins) {
  RolePatterns patterns({{RoleRule::Freeze, "."},
                         {RoleRule::Train, "head"},
                         {RoleRule::Freeze, "bias$"},
                         {RoleRule::Train, "tail"}});
  EXPECT_EQ(patterns.match({"h.0.weight"}), RoleRule::Freeze);
  EXPECT_EQ(patterns.match({"head.weight"}), RoleRule::Train);
  EXPECT_EQ(patterns.match({"head.bias"}), RoleRule::Freeze);
  EXPECT_EQ(patterns.match({"val_3", "head.weight"}), RoleRule::Train);
  ASSERT_NE(patterns.firstUnused(), nullptr);
  EXPECT_EQ(patterns.firstUnused()->pattern, "tail");
  EXPECT_EQ(RolePatterns({}).match({"w"}), std::nullopt);
}

TEST(RolePattern, NearNamesAreThoseLikeIt) {
  std::vector<std::string> names = {"wte.weight", "h.0.attn.weight",
                                    "head.weight", "ln_f.bias"};
  EXPECT_EQ(nearNames("^heads", names).front(), "head.weight");
  EXPECT_EQ(nearNames("x", {}).size(), 0u);
}

} // namespace
