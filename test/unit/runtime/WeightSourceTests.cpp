//===- WeightSourceTests.cpp - Weights of others --------------------------===//
//
// Files that other tools write: numbers of 16 bits, several files with an
// index, and names with something in front.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/Half.h"
#include "runtime/io/WeightSource.h"
#include "test/unit/runtime/Files.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace pipewright::runtime;

namespace {

/// A file of one tensor.
void writeTensor(const Folder &folder, const std::string &file,
                 const std::string &name, const std::string &type,
                 const std::vector<uint16_t> &values) {
  const std::string bytes(reinterpret_cast<const char *>(values.data()),
                          2 * values.size());
  std::string header = R"({")" + name + R"(":{"dtype":")" + type +
                       R"(","shape":[)" + std::to_string(values.size()) +
                       R"(],"data_offsets":[0,)" +
                       std::to_string(bytes.size()) + "]}}";
  const uint64_t length = header.size();
  folder.write(file, std::string(reinterpret_cast<const char *>(&length), 8) +
                         header + bytes);
}

std::string errorOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(HalfNumbers, EachIsOneFloat) {
  EXPECT_EQ(widenHalf(0x3C00), 1.0f);
  EXPECT_EQ(widenHalf(0xC500), -5.0f);
  EXPECT_EQ(widenHalf(0x7BFF), 65504.0f);
  EXPECT_EQ(widenHalf(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(widenHalf(0x03FF), std::ldexp(1023.0f, -24));
  EXPECT_EQ(widenHalf(0x0400), std::ldexp(1.0f, -14));
  EXPECT_TRUE(std::signbit(widenHalf(0x8000)));
  EXPECT_EQ(widenHalf(0x7C00), INFINITY);
  EXPECT_EQ(widenHalf(0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(widenHalf(0x7E01)));
}

#ifdef __FLT16_MAX__
TEST(HalfNumbers, AreWhatTheCompilerSays) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    _Float16 number;
    std::memcpy(&number, &half, 2);
    const float expected = static_cast<float>(number), got = widenHalf(half);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(got)) << bits;
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected))
          << bits;
  }
}
#endif

TEST(WeightSource, NumbersOf16BitsAreReadAsFloats) {
  const Folder folder;
  std::vector<uint16_t> halves(40000, 0x3C00);
  halves[39999] = 0xC500;
  writeTensor(folder, "h", "w", "F16", halves);
  writeTensor(folder, "b", "w", "BF16", {0x3F80, 0xC0A0});
  const auto view =
      WeightSource(folder.path("h")).find("w", ElementType::F32, {40000});
  const auto values = view.values<float>();
  EXPECT_EQ(values.size(), 40000u);
  EXPECT_EQ(values.front(), 1);
  EXPECT_EQ(values.back(), -5);
  float last;
  view.read(39999 * 4, 4, &last);
  EXPECT_EQ(last, -5);
  EXPECT_EQ(WeightSource(folder.path("b"))
                .find("w", ElementType::F32, {2})
                .values<float>(),
            (std::vector<float>{1, -5}));
  // Nothing else is: integers, or floats where 16 bits are wanted.
  writeTensor(folder, "i", "w", "I16", {1, 2});
  EXPECT_NE(errorOf([&] {
              WeightSource(folder.path("i")).find("w", ElementType::F32, {2});
            }).find("is I16 2, but the program expects F32 2"),
            std::string::npos);
  EXPECT_NE(
      errorOf([&] {
        WeightSource(folder.path("h")).find("w", ElementType::BF16, {40000});
      }).find("expects BF16"),
      std::string::npos);
}

TEST(WeightSource, AnIndexNamesItsFiles) {
  const Folder folder;
  writeTensor(folder, "model-1.safetensors", "model.a", "BF16", {0x3F80});
  writeTensor(folder, "model-2.safetensors", "model.b", "BF16", {0x4000});
  folder.write("model.safetensors.index.json", R"({"weight_map":
    {"model.a": "model-1.safetensors", "model.b": "model-2.safetensors"}})");
  const WeightSource source(folder.path("model.safetensors.index.json"),
                            {"^model[.]=layers."});
  EXPECT_EQ(source.names(), (std::vector<std::string>{"layers.a", "layers.b"}));
  EXPECT_EQ(source.find("layers.b", ElementType::F32, {1}).values<float>()[0],
            2);
}

TEST(WeightSource, RenamesOneAfterTheOther) {
  const Folder folder;
  writeTensor(folder, "w", "model.h.0.w", "BF16", {0x3F80});
  auto names = [&](const std::vector<std::string> &renames) {
    return WeightSource(folder.path("w"), renames).names().at(0);
  };
  EXPECT_EQ(names({"^model[.]="}), "h.0.w");
  EXPECT_EQ(names({"[.]=/"}), "model/h.0.w");
  EXPECT_EQ(names({"^model[.]=", "^h[.]([0-9]+)=block$1"}), "block0.w");
}

TEST(WeightSource, WrongRulesAreOneError) {
  const Folder folder;
  writeTensor(folder, "w", "w1", "BF16", {0x3F80});
  auto problem = [&](const std::string &rule) {
    return errorOf([&] { WeightSource(folder.path("w"), {rule}); });
  };
  EXPECT_EQ(problem("model"), "--weights-rename expects FROM=TO, but got "
                              "'model'");
  EXPECT_EQ(problem("=x"), "--weights-rename expects FROM=TO, but got '=x'");
  EXPECT_NE(problem("(=x").find("'(' is no regular expression"),
            std::string::npos);
  EXPECT_NE(problem("model=x").find("matches no tensor"), std::string::npos);
}

TEST(WeightSource, TwoTensorsKeepTwoNames) {
  const Folder folder;
  writeTensor(folder, "1", "a.w", "BF16", {0x3F80});
  writeTensor(folder, "2", "b.w", "BF16", {0x3F80});
  folder.write("index.json", R"({"weight_map": {"a.w": "1", "b.w": "2"}})");
  EXPECT_NE(errorOf([&] {
              WeightSource(folder.path("index.json"), {"^[ab][.]="});
            }).find("are then called 'w'"),
            std::string::npos);
}

TEST(WeightSource, NotesAreNoTensors) {
  const Folder folder;
  SafetensorsWriter writer(folder.path("w"), {{"a", ElementType::F32, {1}}},
                           {{"by", "loss"}});
  const float value = 3;
  writer.write(&value, 4);
  writer.commit();
  const SafetensorsReader reader(folder.path("w"));
  EXPECT_EQ(reader.notes(), (Notes{{"by", "loss"}}));
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"a"}));
}

} // namespace
