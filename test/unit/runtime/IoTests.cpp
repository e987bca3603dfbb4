//===- IoTests.cpp - Files: arrays, weights, logs -------------------------===//

#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/io/DataFile.h"
#include "runtime/io/JsonLines.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Source.h"

#include <cstring>
#include <sys/stat.h>

using namespace pipewright::runtime;

TEST(Npy, RoundTrip) {
  Folder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  writeNpy(folder.path("a.npy"), ElementType::F32, {2, 3}, values.data());
  const NpyArray array = readNpy(folder.path("a.npy"));
  EXPECT_EQ(array.type, "f4");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(array.values<float>(), values);
  EXPECT_EQ(array.begin % 64, 0);
  EXPECT_EQ(folder.count(), 1);
}

TEST(Npy, ScalarAndOneDimension) {
  Folder folder;
  const int64_t value = 7;
  writeNpy(folder.path("a.npy"), ElementType::I64, {}, &value);
  EXPECT_TRUE(readNpy(folder.path("a.npy")).shape.empty());
  writeNpy(folder.path("b.npy"), ElementType::I64, {1}, &value);
  EXPECT_EQ(readNpy(folder.path("b.npy")).shape, std::vector<int64_t>{1});
}

/// A .npy file with this dictionary and that many bytes of values.
static std::string npy(const std::string &header, size_t bytes) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header + std::string(bytes, '\0');
}

TEST(Npy, DamagedFilesAreNamed) {
  Folder folder;
  const std::pair<std::string, const char *> files[] = {
      {"hello", "is no .npy file"},
      {std::string("\x93NUMPY\x01\x00\xff\x00 x", 12), "is truncated"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11),
       "shape 3 of 'f4' needs 12 bytes, but it has 11"},
      {npy("{'descr': '>f4', 'fortran_order': False, 'shape': (), }", 4),
       "is big-endian"},
      {npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16),
       "is in Fortran order"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, "
           "'shape': (2,), }",
           16),
       "structured type"},
      {npy("{'fortran_order': False}", 16), "has no 'descr'"}};
  for (const auto &[text, message] : files) {
    folder.write("x.npy", text);
    const std::string error = errorOf([&] { readNpy(folder.path("x.npy")); });
    EXPECT_TRUE(contains(error, message)) << error;
    EXPECT_TRUE(contains(error, "x.npy")) << error;
  }
  folder.write("x.npy", "");
  EXPECT_TRUE(
      contains(errorOf([&] { readNpy(folder.path("x.npy")); }), "is empty"));
  EXPECT_TRUE(
      contains(errorOf([&] { readNpy(folder.path("")); }), "it is not a file"));
}

TEST(Npy, SizesThatNoFileHasAreRefused) {
  Folder folder;
  const auto refuse = [&](const std::string &shape, const char *message) {
    folder.write("x.npy",
                 npy("{'descr': '<f4', 'fortran_order': False, 'shape': " +
                         shape + ", }",
                     32));
    const std::string error = errorOf([&] { readNpy(folder.path("x.npy")); });
    EXPECT_TRUE(contains(error, message)) << shape << ": " << error;
    EXPECT_TRUE(contains(error, "x.npy")) << error;
  };
  // The product is 2^62 elements, or 0 bytes in 64 bits.
  refuse("(576460752303423488, 8)", "more bytes than any file has");
  refuse("(9223372036854775807, 9223372036854775807)",
         "more bytes than any file has");
  // Also where no element is left.
  refuse("(0, 9223372036854775807, 9223372036854775807)",
         "more bytes than any file has");
  refuse("(123456789012345678901234,)",
         "has a dimension of '123456789012345678901234', but a whole number");
  refuse("(-5, 8)", "has a dimension of '-5'");
  refuse("(3 4)", "has a dimension of '3 4'");
  refuse("(3.5,)", "has a dimension of '3.5'");
  refuse("3", "has no shape in its header");
  refuse("(3,", "has no shape in its header");
  refuse("(9,)", "is truncated: shape 9 of 'f4' needs 36 bytes");
  folder.write("x.npy", npy("{'descr': '<U99999999999', 'fortran_order': "
                            "False, 'shape': (1,), }",
                            32));
  EXPECT_TRUE(contains(errorOf([&] { readNpy(folder.path("x.npy")); }),
                       "has values of type 'U99999999999'"));
  folder.write("x.npy", npy("{'descr': '<f4', 'fortran_order': False, "
                            "'shape': (2L, 4L), }",
                            32));
  EXPECT_EQ(readNpy(folder.path("x.npy")).shape, (std::vector<int64_t>{2, 4}));
}

TEST(DataFile, OnlyFilesAreRead) {
  Folder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const std::string &path :
       {folder.path("pipe"), std::string("/dev/zero")})
    EXPECT_EQ(errorOf([&] { DataFile file(path); }),
              "cannot read '" + path +
                  "': it is not a file but a pipe or a device");
  EXPECT_TRUE(contains(errorOf([&] { DataFile file(folder.path("")); }),
                       "it is not a file but a folder"));
}

TEST(DataFile, ReadsWhatIsThereInAnyOrder) {
  Folder folder;
  std::string text(300'000, ' ');
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i * 7 % 251);
  folder.write("x", text);
  DataFile file(folder.path("x"));
  // Small ones in a row, jumps, backwards, over the window's end, large ones.
  const std::pair<int64_t, int64_t> parts[] = {
      {0, 10},      {10, 10},     {20, 70'000}, {90'020, 5},
      {90'025, 5},  {90'024, 9},  {155'000, 9}, {3, 1},
      {0, 300'000}, {299'999, 1}, {100, 0}};
  for (const auto &[offset, bytes] : parts) {
    std::string got(bytes, '\0');
    file.read(offset, bytes, got.data());
    EXPECT_EQ(got, text.substr(offset, bytes)) << offset;
    if (bytes) {
      EXPECT_EQ(std::memcmp(file.view(offset, bytes), got.data(), bytes), 0);
    }
  }
}

TEST(DataFile, OneThatBecomesShorterIsNamed) {
  Folder folder;
  folder.write("x", std::string(200'000, 'x'));
  DataFile file(folder.path("x"));
  file.checkSize();
  std::filesystem::resize_file(folder.path("x"), 1000);
  const std::string message = "x' has become shorter while it was in use: it "
                              "had 200000 bytes, now it has 1000";
  EXPECT_TRUE(contains(errorOf([&] { file.checkSize(); }), message));
  char piece[100];
  file.read(900, 100, piece);
  EXPECT_TRUE(contains(errorOf([&] { file.read(950, 100, piece); }), message));
  EXPECT_TRUE(
      contains(errorOf([&] { file.read(150'000, 8, piece); }), message));
}

TEST(Source, ElementsAreCountedOrRefused) {
  EXPECT_EQ(elementCount({}), 1);
  EXPECT_EQ(elementCount({3, 0, 5}), 0);
  EXPECT_EQ(checkedBytes({1L << 40, 1 << 20}, 4), int64_t{1} << 62);
  EXPECT_FALSE(checkedBytes({1L << 40, 1 << 20}, 8));
  EXPECT_FALSE(checkedBytes({-1, 0}, 4));
  EXPECT_TRUE(contains(errorOf([] { elementCount({1L << 62, 2}); }),
                       "4611686018427387904x2 has more elements"));
}

TEST(Safetensors, RoundTripOfAllTypes) {
  Folder folder;
  const float a[2] = {1.5f, -2};
  const int64_t b = 77;
  {
    SafetensorsWriter file(
        folder.path("w"),
        {{"a \"quoted\"", ElementType::F32, {2}}, {"b", ElementType::I64, {}}});
    file.write(a, sizeof a);
    file.write(&b, sizeof b);
    file.commit();
  }
  const SafetensorsReader file(folder.path("w"));
  const TensorView view = file.find("a \"quoted\"", ElementType::F32, {2});
  EXPECT_EQ(view.values<float>()[1], -2);
  EXPECT_EQ(view.bytes, 8);
  EXPECT_TRUE(contains(errorOf([&] { file.find("c", ElementType::F32, {2}); }),
                       "has no tensor 'c'"));
  EXPECT_TRUE(contains(errorOf([&] { file.find("b", ElementType::F32, {}); }),
                       "is I64 scalar, but the program expects F32 scalar"));
  EXPECT_TRUE(contains(
      errorOf([&] { file.find("a \"quoted\"", ElementType::F32, {2, 1}); }),
      "is F32 2, but the program expects F32 2x1"));
}

TEST(Safetensors, SizesThatNoIntegerHoldsAreRefused) {
  Folder folder;
  auto errorFor = [&](const std::string &shape, const std::string &offsets) {
    const std::string header = R"({"w": {"dtype": "F32", "shape": )" + shape +
                               R"(, "data_offsets": )" + offsets + "}}";
    const uint64_t length = header.size();
    folder.write("w", std::string(reinterpret_cast<const char *>(&length), 8) +
                          header);
    return errorOf([&] { SafetensorsReader(folder.path("w")); });
  };
  EXPECT_EQ(errorFor("[0]", "[0, 0]"), "");
  const std::string wanted =
      "' is no safetensors file: a size or an offset of tensor 'w' expects a "
      "whole number below 2^63, but got ";
  for (const auto &[text, named] :
       {std::pair("1e30", "1e+30"),
        {"0.5", "0.5"},
        {"18446744073709551615", "18446744073709551615"},
        {"9223372036854775808", "9223372036854775808"},
        {"null", "null"},
        {"true", "boolean"},
        {"\"1\"", "string"},
        {"[1]", "array"}}) {
    const std::string number = text;
    EXPECT_TRUE(
        contains(errorFor("[" + number + "]", "[0, 0]"), wanted + named))
        << errorFor("[" + number + "]", "[0, 0]");
    EXPECT_TRUE(
        contains(errorFor("[0]", "[0, " + number + "]"), wanted + named))
        << errorFor("[0]", "[0, " + number + "]");
  }
  EXPECT_TRUE(contains(errorFor("7", "[0, 0]"), "is no safetensors file"));
  EXPECT_TRUE(
      contains(errorFor("{\"a\": 7}", "[0, 0]"), "is no safetensors file"));
}

TEST(Safetensors, DeepHeadersAreRefused) {
  Folder folder;
  for (const char *bracket : {"[", "{\"a\":"}) {
    std::string header;
    for (int i = 0; i < 100000; ++i)
      header += bracket;
    const uint64_t length = header.size();
    folder.write("w", std::string(reinterpret_cast<const char *>(&length), 8) +
                          header);
    EXPECT_TRUE(contains(errorOf([&] { SafetensorsReader(folder.path("w")); }),
                         "' is no safetensors file: it has lists nested more "
                         "than 8 deep"));
  }
}

TEST(Safetensors, TruncatedFileIsRefused) {
  Folder folder;
  {
    SafetensorsWriter file(folder.path("w"), {{"a", ElementType::F32, {1000}}});
    const std::vector<float> values(1000);
    file.write(values.data(), 4000);
    file.commit();
  }
  const std::string whole = folder.read("w");
  folder.write("w", whole.substr(0, whole.size() - 100));
  EXPECT_TRUE(contains(errorOf([&] { SafetensorsReader(folder.path("w")); }),
                       "is truncated: tensor 'a' ends at byte "));
  folder.write("w", whole.substr(0, 20));
  EXPECT_TRUE(contains(errorOf([&] { SafetensorsReader(folder.path("w")); }),
                       "is no safetensors file"));
  folder.write("w", std::string("\x08\0\0\0\0\0\0\0{broken}", 16));
  EXPECT_TRUE(contains(errorOf([&] { SafetensorsReader(folder.path("w")); }),
                       "is no safetensors file"));
}

TEST(JsonLines, NumbersSurvive) {
  Folder folder;
  {
    JsonLines log;
    log.open(folder.path("l"), 0);
    log.write({{"step", 1}, {"loss", 0.1f}});
    log.write({{"loss", std::nan("")}});
  }
  EXPECT_EQ(folder.read("l"),
            "{\"step\":1,\"loss\":0.100000001}\n{\"loss\":null}\n");
  EXPECT_TRUE(contains(errorOf([] {
                         JsonLines log;
                         log.open("/dev/full", 0);
                         log.write({{"a", 1}});
                       }),
                       "No space left on device"));
}
