//===- IoTests.cpp - Files: arrays, weights, all or nothing ---------------===//

#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonLines.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"

using namespace pipewright::runtime;

TEST(Npy, RoundTrip) {
  Folder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  writeNpy(folder.path("a.npy"), ElementType::F32, {2, 3}, values.data());
  const NpyArray array = readNpy(folder.path("a.npy"));
  EXPECT_EQ(array.type, "f4");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(reinterpret_cast<const float *>(array.values)[5], 6);
  EXPECT_EQ((array.values - array.file->data()) % 64, 0);
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
  EXPECT_EQ(reinterpret_cast<const float *>(view.data)[1], -2);
  EXPECT_EQ(view.bytes, 8);
  EXPECT_TRUE(contains(errorOf([&] { file.find("c", ElementType::F32, {2}); }),
                       "has no tensor 'c'"));
  EXPECT_TRUE(contains(errorOf([&] { file.find("b", ElementType::F32, {}); }),
                       "is I64 scalar, but the program expects F32 scalar"));
  EXPECT_TRUE(contains(
      errorOf([&] { file.find("a \"quoted\"", ElementType::F32, {2, 1}); }),
      "is F32 2, but the program expects F32 2x1"));
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
                       "is truncated: tensor 'a' ends at byte 4000"));
  folder.write("w", whole.substr(0, 20));
  EXPECT_TRUE(contains(errorOf([&] { SafetensorsReader(folder.path("w")); }),
                       "is no safetensors file"));
  folder.write("w", std::string("\x08\0\0\0\0\0\0\0{broken}", 16));
  EXPECT_TRUE(contains(errorOf([&] { SafetensorsReader(folder.path("w")); }),
                       "is no safetensors file"));
}

TEST(AtomicFile, NothingStaysWithoutCommit) {
  Folder folder;
  folder.write("a", "old");
  {
    AtomicFile file(folder.path("a"));
    file.write("new", 3);
  }
  EXPECT_EQ(folder.read("a"), "old");
  EXPECT_EQ(folder.count(), 1);
  AtomicFile file(folder.path("a"));
  file.write("new", 3);
  file.commit();
  EXPECT_EQ(folder.read("a"), "new");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, FolderThatIsNotThere) {
  EXPECT_EQ(errorOf([] { AtomicFile file("/nowhere/x"); }),
            "cannot write '/nowhere/x': No such file or directory");
}

TEST(JsonLines, NumbersSurvive) {
  Folder folder;
  {
    JsonLines log(folder.path("l"));
    log.write({{"step", 1}, {"loss", 0.1f}});
    log.write({{"loss", std::nan("")}});
  }
  EXPECT_EQ(folder.read("l"),
            "{\"step\":1,\"loss\":0.100000001}\n{\"loss\":null}\n");
  EXPECT_TRUE(contains(errorOf([] {
                         JsonLines log("/dev/full");
                         log.write({{"a", 1}});
                       }),
                       "No space left on device"));
}
