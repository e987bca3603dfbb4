//===- DatasetTests.cpp - Which sample each input gets --------------------===//

#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/io/Dataset.h"
#include "runtime/io/Npy.h"
#include "runtime/train/Batches.h"

#include <cstring>
#include <set>

using namespace pipewright::runtime;

namespace {

/// A program of two samples per micro-batch with these inputs.
Program programOf(std::vector<InputInfo> inputs) {
  Program program;
  program.microBatches = 2;
  program.microBatchSize = 2;
  program.inputs = std::move(inputs);
  return program;
}

const InputInfo tokenInput = {"tokens", ElementType::I64, {2, 4}, 256};
const InputInfo targetInput = {"targets", ElementType::I64, {8}, 256};

std::vector<int64_t> readInts(const Dataset &data, int64_t input,
                              int64_t sample) {
  std::vector<int64_t> values(data.slot(input).sampleElements);
  data.read(input, sample, values.data());
  return values;
}

std::string openError(const Program &program,
                      const std::vector<DataSpec> &specs) {
  return errorOf([&] { Dataset(program, specs, "--data"); });
}

} // namespace

TEST(Dataset, TargetsAreTheNextTokens) {
  Folder folder;
  folder.write("t", "abcdefgh");
  const Program program = programOf({tokenInput, targetInput});
  const Dataset data(program, {{"tokens", "bytes:" + folder.path("t")}},
                     "--data");
  EXPECT_EQ(data.samples(), 4);
  EXPECT_EQ(data.tokensPerSample(), 4);
  EXPECT_EQ(readInts(data, 0, 3), (std::vector<int64_t>{'d', 'e', 'f', 'g'}));
  EXPECT_EQ(readInts(data, 1, 3), (std::vector<int64_t>{'e', 'f', 'g', 'h'}));
}

TEST(Dataset, WindowsNeverCrossFiles) {
  Folder folder;
  folder.write("a", "abcdef");
  folder.write("b", "ABCDEF");
  const Program program = programOf({tokenInput, targetInput});
  const Dataset data(
      program,
      {{"tokens", "bytes:" + folder.path("a") + "," + folder.path("b")},
       {"targets", "from:tokens"}},
      "--data");
  EXPECT_EQ(data.samples(), 4);
  EXPECT_EQ(readInts(data, 0, 1), (std::vector<int64_t>{'b', 'c', 'd', 'e'}));
  EXPECT_EQ(readInts(data, 0, 2), (std::vector<int64_t>{'A', 'B', 'C', 'D'}));
}

static std::string shard(int32_t magic, int32_t version, int32_t count,
                         size_t bytes) {
  std::string text(1024, '\0');
  const int32_t header[3] = {magic, version, count};
  std::memcpy(text.data(), header, sizeof header);
  for (size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(i % 2 == 0 ? i / 2 : 0);
  return text;
}

TEST(Dataset, TokenShards) {
  Folder folder;
  folder.write("s", shard(20240520, 1, 10, 20));
  const Program program = programOf({tokenInput, targetInput});
  const std::string path = folder.path("s");
  const Dataset data(program, {{"tokens", "tokens:" + path}}, "--data");
  EXPECT_EQ(data.samples(), 6);
  EXPECT_EQ(readInts(data, 1, 2), (std::vector<int64_t>{3, 4, 5, 6}));

  folder.write("s", shard(20240520, 1, 10, 18));
  EXPECT_TRUE(contains(openError(program, {{"tokens", "tokens:" + path}}),
                       "is truncated: 10 tokens need 1044 bytes"));
  folder.write("s", shard(1, 1, 10, 20));
  EXPECT_TRUE(contains(openError(program, {{"tokens", "tokens:" + path}}),
                       "is no token shard"));
  folder.write("s", shard(20240520, 3, 10, 20));
  EXPECT_TRUE(contains(openError(program, {{"tokens", "tokens:" + path}}),
                       "of version 3"));
  folder.write("s", std::string(21, '\1'));
  EXPECT_TRUE(contains(openError(program, {{"tokens", "u16:" + path}}),
                       "no multiple of 2"));
}

TEST(Dataset, TokenOutOfRange) {
  Folder folder;
  folder.write("s", std::string("\x01\0\x02\0\x03\0\x04\0\0\x01\x05\0", 12));
  const Program program = programOf({tokenInput, targetInput});
  const Dataset data(program, {{"tokens", "u16:" + folder.path("s")}},
                     "--data");
  EXPECT_TRUE(contains(errorOf([&] { data.validate(); }),
                       "input 'tokens' expects values in [0, 256), but "
                       "sample 1"));
}

TEST(Dataset, CifarImagesAndLabels) {
  Folder folder;
  std::string records;
  for (int r = 0; r < 4; ++r)
    records += static_cast<char>(r) + std::string(3072, '\xff');
  folder.write("c", records);
  const InputInfo image = {"x", ElementType::F32, {2, 3, 32, 32}};
  const InputInfo label = {"y", ElementType::I64, {2}, 10};
  const Program program = programOf({image, label});
  const Dataset data(program, {{"x", "cifar10:" + folder.path("c")}}, "--data");
  std::vector<float> pixels(3072);
  data.read(0, 2, pixels.data());
  EXPECT_NEAR(pixels[0], (1 - 0.4914) / 0.2470, 1e-5);
  EXPECT_EQ(readInts(data, 1, 2), std::vector<int64_t>{2});

  folder.write("c", records + "x");
  EXPECT_TRUE(
      contains(openError(program, {{"x", "cifar10:" + folder.path("c")}}),
               "is no cifar10 file"));
  EXPECT_TRUE(
      contains(openError(programOf({tokenInput}), {{"tokens", "cifar10:c"}}),
               "gives f32 images of 3x32x32"));
}

TEST(Dataset, Cifar100TakesTheFineLabel) {
  Folder folder;
  std::string records;
  for (int r = 0; r < 4; ++r)
    records += std::string(1, '\x09') + static_cast<char>(90 + r) +
               std::string(3072, '\0');
  folder.write("c", records);
  const Program program = programOf({{"x", ElementType::F32, {2, 3, 32, 32}},
                                     {"y", ElementType::I64, {2}, 100}});
  const Dataset data(program, {{"x", "cifar100:" + folder.path("c")}},
                     "--data");
  EXPECT_EQ(readInts(data, 1, 3), std::vector<int64_t>{93});
}

TEST(Dataset, ArraysAreConvertedAndChecked) {
  Folder folder;
  const std::vector<float> x(6 * 3, 0.5f);
  const std::vector<int64_t> y = {0, 1, 2, 3, 4, -100};
  writeNpy(folder.path("x.npy"), ElementType::F32, {6, 3}, x.data());
  writeNpy(folder.path("y.npy"), ElementType::I64, {6}, y.data());
  writeNpy(folder.path("z.npy"), ElementType::I64, {5}, y.data());
  InputInfo label = {"y", ElementType::I64, {2}, 5};
  const InputInfo input = {"x", ElementType::F32, {2, 3}};
  const std::vector<DataSpec> specs = {{"x", folder.path("x.npy")},
                                       {"y", folder.path("y.npy")}};
  EXPECT_TRUE(
      contains(errorOf([&] {
                 Dataset(programOf({input, label}), specs, "--data").validate();
               }),
               "expects values in [0, 5), but sample 5 of"));
  label.ignored = -100;
  Dataset(programOf({input, label}), specs, "--data").validate();

  const Program program = programOf({input, label});
  EXPECT_TRUE(contains(openError(program, {{"x", folder.path("x.npy")},
                                           {"y", folder.path("z.npy")}}),
                       "input 'x' has 6 samples"));
  EXPECT_TRUE(contains(openError(program, {{"x", folder.path("y.npy")},
                                           {"y", folder.path("y.npy")}}),
                       "input 'x' expects f32, but"));
  EXPECT_TRUE(contains(openError(programOf({{"x", ElementType::F32, {2, 4}}}),
                                 {{"x", folder.path("x.npy")}}),
                       "expects samples of shape 4, but"));
  EXPECT_TRUE(contains(openError(program, {specs[0], specs[1], specs[0]}),
                       "gives input 'x' twice"));
  EXPECT_TRUE(contains(openError(program, {specs[0], {"y", "from:x"}}),
                       "has nothing beside it"));
  EXPECT_TRUE(contains(openError(program, {specs[0], {"y", "same:x"}}),
                       "has samples of 3 f32, but 'y' expects scalar i64"));
}

/// Floats go round: there are 65536 to begin with.
TEST(Dataset, GeneratedImages) {
  constexpr int64_t elements = 150000, period = 65536;
  const Program program = programOf({{"r", ElementType::F32, {2, elements}}});
  const Dataset data(program, {{"r", "random:8"}}, "--data");
  std::vector<float> values(elements);
  data.read(0, 5, values.data());
  for (int64_t i = period; i < elements; ++i)
    ASSERT_EQ(values[i], values[i - period]) << i;
  EXPECT_GT(std::set<float>(values.begin(), values.end()).size(),
            static_cast<size_t>(period) * 9 / 10);
}

TEST(Dataset, GeneratedInputs) {
  const Program program = programOf({{"r", ElementType::F32, {2, 1000}},
                                     {"i", ElementType::I64, {2, 1000}, 7},
                                     {"p", ElementType::I64, {2, 4}},
                                     {"o", ElementType::F32, {2, 4}},
                                     {"c", ElementType::F32, {3}}});
  const Dataset data(program,
                     {{"r", "random:8"},
                      {"i", "random"},
                      {"p", "range"},
                      {"o", "ones"},
                      {"c", "zeros"}},
                     "--data");
  EXPECT_EQ(data.samples(), 8);
  std::vector<float> values(1000), again(1000);
  data.read(0, 3, values.data());
  data.read(0, 3, again.data());
  EXPECT_EQ(values, again);
  double sum = 0, squares = 0;
  for (float v : values) {
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / 1000, 0, 0.15);
  EXPECT_NEAR(squares / 1000, 1, 0.2);
  data.read(0, 4, again.data());
  EXPECT_NE(values, again);
  std::set<int64_t> seen;
  for (int64_t v : readInts(data, 1, 0))
    seen.insert(v);
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(readInts(data, 2, 5), (std::vector<int64_t>{0, 1, 2, 3}));
  // Three values for two samples: the same for every micro-batch.
  EXPECT_FALSE(data.slot(4).batched);
  EXPECT_TRUE(contains(
      openError(programOf({{"i", ElementType::I64, {2}}}), {{"i", "random"}}),
      "has no known limit"));
}

TEST(Dataset, EachPassSeesEverySampleOnce) {
  const Program program = programOf({{"x", ElementType::F32, {2}}});
  const Dataset data(program, {{"x", "random:37"}}, "--data");
  std::vector<int64_t> passes[2];
  for (int64_t p = 0; p < 74; ++p)
    passes[p / 37].push_back(data.shuffled(p, 5));
  EXPECT_NE(passes[0], passes[1]);
  for (auto &pass : passes)
    EXPECT_EQ(std::set<int64_t>(pass.begin(), pass.end()).size(), 37u);
  EXPECT_NE(data.shuffled(0, 5) * 37 + data.shuffled(1, 5),
            data.shuffled(0, 6) * 37 + data.shuffled(1, 6));
  EXPECT_EQ(data.inOrder(40), 3);
}

TEST(Batches, MicroBatchesAreConsecutive) {
  Folder folder;
  const std::vector<int64_t> values = {10, 11, 12, 13, 14, 15, 16, 17};
  writeNpy(folder.path("v.npy"), ElementType::I64, {8}, values.data());
  const Program program = programOf({{"v", ElementType::I64, {2}}});
  const Dataset data(program, {{"v", folder.path("v.npy")}}, "--data");
  Batches batches(program, data, Share());
  batches.setOrder([](int64_t position) { return 4 + position; });
  int64_t read[2];
  batches.load(0, 1, read, sizeof read);
  EXPECT_EQ(read[0], 16);
  EXPECT_EQ(read[1], 17);
  EXPECT_TRUE(contains(errorOf([&] { batches.load(0, 0, read, 8); }),
                       "has 16 bytes in a micro-batch, but its buffer 8"));
}

TEST(Batches, ReplicasTakeConsecutivePartsOfABatch) {
  Folder folder;
  const std::vector<int64_t> values = {10, 11, 12, 13, 14, 15, 16, 17};
  writeNpy(folder.path("v.npy"), ElementType::I64, {8}, values.data());
  Program program = programOf({{"v", ElementType::I64, {1}}});
  program.microBatches = 2;
  program.microBatchSize = 1;
  const Dataset data(program, {{"v", folder.path("v.npy")}}, "--data");
  Batches batches(program, data, {.replica = 2, .replicas = 3});
  batches.setOrder([](int64_t position) { return position; });
  EXPECT_EQ(batches.batchSamples(), 6);
  EXPECT_EQ(batches.ownPosition(0), 4);
  int64_t read = 0;
  batches.load(0, 0, &read, sizeof read);
  EXPECT_EQ(read, 14);
  batches.load(0, 1, &read, sizeof read);
  EXPECT_EQ(read, 15);
}

/// Two updates of two micro-batches each: each takes the samples that come next
/// from both replicas.
TEST(Batches, ReplicasTakePartsOfTheBatchOfEachUpdate) {
  Folder folder;
  const std::vector<int64_t> values = {10, 11, 12, 13, 14, 15, 16, 17};
  writeNpy(folder.path("v.npy"), ElementType::I64, {8}, values.data());
  Program program = programOf({{"v", ElementType::I64, {1}}});
  program.microBatches = 4;
  program.updates = 2;
  program.microBatchSize = 1;
  const Dataset data(program, {{"v", folder.path("v.npy")}}, "--data");
  const int64_t expected[2][4] = {{10, 11, 14, 15}, {12, 13, 16, 17}};
  for (int64_t replica = 0; replica < 2; ++replica) {
    Batches batches(program, data, {.replica = replica, .replicas = 2});
    batches.setOrder([](int64_t position) { return position; });
    for (int64_t m = 0; m < 4; ++m) {
      int64_t read = 0;
      batches.load(0, m, &read, sizeof read);
      EXPECT_EQ(read, expected[replica][m]);
      EXPECT_EQ(batches.ownPosition(m), read - 10);
      EXPECT_EQ(program.numberInBatch(m, replica, 2), read - 10);
    }
  }
}

/// Labels and the number that a loss divides by: of each row the second and
/// third are the loss's.
static Program withCountedLabels() {
  Program program = programOf(
      {{"y", ElementType::I64, {2, 3}, 10, -100},
       {.name = "y_divisor",
        .counted = {.input = 0, .ignored = -100, .ranges = {{1, 3}}}}});
  program.microBatches = 2;
  return program;
}

/// Of four samples: one label, none, two, none.
static const std::vector<int64_t> countedLabels = {1, -100, 2, 3, -100, -100,
                                                   4, 5,    6, 7, -100, -100};

static std::vector<float> divisorsOf(Batches &batches) {
  std::vector<float> divisors(2);
  for (int64_t m = 0; m < 2; ++m)
    batches.load(1, m, &divisors[m], sizeof(float));
  return divisors;
}

TEST(Batches, LossesDivideByTheLabelsOfTheWholeBatch) {
  Folder folder;
  writeNpy(folder.path("y.npy"), ElementType::I64, {4, 3},
           countedLabels.data());
  const std::vector<DataSpec> specs = {{"y", folder.path("y.npy")}};
  Program program = withCountedLabels();
  const Dataset data(program, specs, "--data");
  data.validate();
  auto inOrder = [&](int64_t position) { return data.inOrder(position); };
  Batches batches(program, data, Share());
  batches.setOrder(inOrder);
  EXPECT_EQ(divisorsOf(batches), std::vector<float>({1.5f, 1.5f}));
  // The next step counts anew; a batch without labels divides by 1.
  batches.setOrder([](int64_t) { return 1; });
  EXPECT_EQ(divisorsOf(batches), std::vector<float>({1, 1}));
  batches.setOrder([](int64_t) { return 2; });
  EXPECT_EQ(divisorsOf(batches), std::vector<float>({4, 4}));

  // An update for each micro-batch: that is its batch.
  program.updates = 2;
  Batches each(program, data, Share());
  each.setOrder(inOrder);
  EXPECT_EQ(divisorsOf(each), std::vector<float>({1, 2}));

  // All replicas divide by the labels of their batch.
  program.updates = 1;
  for (int64_t replica : {0, 1}) {
    Batches half(program, data, {replica, 2});
    half.setOrder(inOrder);
    EXPECT_EQ(divisorsOf(half), std::vector<float>({1.5f, 1.5f}));
  }

  // Several batches of an evaluation are divided by together.
  Batches all(program, data, Share(), 4);
  all.setOrder([](int64_t position) { return position % 4; });
  EXPECT_EQ(divisorsOf(all), std::vector<float>({1.5f, 1.5f}));
  all.moveTo(2);
  EXPECT_EQ(divisorsOf(all), std::vector<float>({1.5f, 1.5f}));
}

TEST(Dataset, NobodyGivesDataForWhatIsCounted) {
  Folder folder;
  writeNpy(folder.path("y.npy"), ElementType::I64, {4, 3},
           countedLabels.data());
  const Program program = withCountedLabels();
  EXPECT_EQ(
      errorOf([&] { Dataset(program, {{"y_divisor", "zeros"}}, "--data"); }),
      "--data: the model has no input 'y_divisor'; its inputs are 'y'");
}
