//===- CheckpointFolderTests.cpp - Checkpoints of a run on disk -----------===//

#include "test/unit/KillAtEachCall.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/core/Hash.h"
#include "runtime/io/CheckpointFolder.h"
#include "runtime/io/Safetensors.h"

#include <csignal>
#include <memory>
#include <sys/resource.h>

using namespace pipewright::runtime;
using namespace pipewright::test;
namespace fs = std::filesystem;

static CheckpointManifest manifestOf(int64_t step) {
  CheckpointManifest manifest;
  manifest.model = "m";
  manifest.optimizer = "sgd";
  manifest.step = step;
  manifest.samples = 8 * step;
  return manifest;
}

/// Writes files of two ranks and makes a checkpoint of them.
static void save(CheckpointFolder &folder, int64_t step, int64_t keep = 2) {
  CheckpointManifest manifest = manifestOf(step);
  for (const char *name : {"rank-0.safetensors", "rank-1.safetensors"}) {
    const std::vector<float> values(5, static_cast<float>(step));
    SafetensorsWriter writer(folder.begin(step) + "/" + name,
                             {{"w", ElementType::F32, {5}}});
    writer.write(values.data(), 20);
    writer.commit();
    manifest.files.push_back({name, writer.bytes(), writer.checksum()});
  }
  folder.commit(manifest);
  folder.prune(step, keep);
}

static int64_t newestOf(const CheckpointFolder &folder) {
  std::vector<std::string> skipped;
  return folder.newest(INT64_MAX, skipped).value_or(-1);
}

TEST(CheckpointFolder, KeepsTheNewest) {
  Folder temporary;
  CheckpointFolder folder(temporary.path("c"));
  folder.open();
  EXPECT_EQ(newestOf(folder), -1);
  for (const int64_t step : {9, 10, 100})
    save(folder, step);
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{10, 100}));
  EXPECT_EQ(newestOf(folder), 100);
  std::vector<std::string> skipped;
  EXPECT_EQ(folder.newest(50, skipped), 10);
  const CheckpointManifest read = readCheckpoint(folder.folderOf(100));
  EXPECT_EQ(read.samples, 800);
  EXPECT_EQ(read.files.size(), 2u);
  // What is not ours stays, and is nothing to go on from.
  for (const char *name : {"c/step-007", "c/step-x", "c/mine"})
    fs::create_directories(temporary.path(name));
  save(folder, 101, 1);
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{101}));
  EXPECT_TRUE(temporary.exists("c/step-007"));
}

TEST(CheckpointFolder, PassesOverWhatIsDamaged) {
  Folder temporary;
  CheckpointFolder folder(temporary.path("c"));
  folder.open();
  save(folder, 1, 9);
  save(folder, 2, 9);
  save(folder, 3, 9);
  const std::string file = "c/step-3/rank-1.safetensors",
                    whole = temporary.read(file);
  const auto problem = [&] {
    std::vector<std::string> skipped;
    EXPECT_EQ(folder.newest(INT64_MAX, skipped), 2);
    return skipped.size() == 1 ? skipped[0] : "";
  };
  // Any bit, wherever it is.
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string other = whole;
    other[i] = static_cast<char>(other[i] ^ (1 << i % 8));
    temporary.write(file, other);
    EXPECT_TRUE(contains(problem(), "is damaged: its checksum is not"));
  }
  temporary.write(file, whole.substr(0, 50));
  EXPECT_TRUE(contains(problem(), "has 50 bytes, but had"));
  fs::remove(temporary.path(file));
  EXPECT_TRUE(contains(problem(), "cannot be read: No such file"));
  temporary.write(file, whole);
  EXPECT_EQ(newestOf(folder), 3);
  const std::string manifest = temporary.read("c/step-3/manifest.json");
  for (const char *text :
       {"", "{}", "[]", "{\"format\": 1}", "[[[[[[[[[[[[]]]]]]]]]]]]"}) {
    temporary.write("c/step-3/manifest.json", text);
    EXPECT_TRUE(contains(problem(), "manifest.json'")) << text;
  }
  for (const auto &[from, to] :
       {std::pair("rank-1", "../x"), std::pair("\"step\": 3", "\"step\": -3"),
        std::pair("\"step\": 3", "\"step\": 4"),
        std::pair("\"step\": 3", "\"step\": 1e3"),
        std::pair("checkpoint 1", "checkpoint 2")}) {
    std::string other = manifest;
    other.replace(other.find(from), strlen(from), to);
    temporary.write("c/step-3/manifest.json", other);
    EXPECT_NE(problem(), "") << to;
  }
  // The next one takes its place.
  save(folder, 3, 9);
  EXPECT_EQ(newestOf(folder), 3);
}

TEST(CheckpointFolder, IsOfOneRun) {
  Folder temporary;
  CheckpointFolder one(temporary.path("c")), other(temporary.path("c"));
  one.open();
  EXPECT_TRUE(
      contains(errorOf([&] { other.open(); }), "another run writes to"));
  temporary.write("f", "");
  EXPECT_TRUE(
      contains(errorOf([&] { CheckpointFolder(temporary.path("f")).open(); }),
               "cannot make the folder"));
}

TEST(CheckpointFolder, LeavesNothingOfAKilledRun) {
  Folder temporary;
  {
    CheckpointFolder folder(temporary.path("c"));
    folder.open();
    fs::create_directories(folder.begin(4) + "/more");
  }
  CheckpointFolder folder(temporary.path("c"));
  folder.open();
  EXPECT_FALSE(temporary.exists("c/step-4.tmp"));
}

TEST(CheckpointFolder, LosesOneAtMostWhereverTheProcessIsKilled) {
  std::unique_ptr<Folder> temporary;
  int news = 0;
  const int kills = killAtEachCall(
      [&] {
        temporary = std::make_unique<Folder>();
        CheckpointFolder folder(temporary->path("c"));
        folder.open();
        save(folder, 1);
        save(folder, 2);
      },
      [&] {
        CheckpointFolder folder(temporary->path("c"));
        folder.open();
        save(folder, 3);
      },
      [&](int call) {
        CheckpointFolder folder(temporary->path("c"));
        folder.open();
        const int64_t newest = newestOf(folder);
        EXPECT_TRUE(newest == 2 || newest == 3) << "call " << call;
        news += newest == 3;
        for (const int64_t step : folder.steps())
          readCheckpoint(folder.folderOf(step));
        // And goes on as if nothing had been.
        save(folder, 3);
        save(folder, 4);
        EXPECT_EQ(folder.steps(), (std::vector<int64_t>{3, 4}));
      });
  if (kills < 0)
    GTEST_SKIP() << "tracing is not allowed here";
  EXPECT_GT(kills, 20);
  EXPECT_GE(news, 1);
}

TEST(CheckpointFolder, LosesNothingWhileOneIsMadeAnew) {
  std::unique_ptr<Folder> temporary;
  const int kills = killAtEachCall(
      [&] {
        temporary = std::make_unique<Folder>();
        CheckpointFolder folder(temporary->path("c"));
        folder.open();
        save(folder, 3, 1);
      },
      [&] {
        CheckpointFolder folder(temporary->path("c"));
        folder.open();
        save(folder, 3, 1);
      },
      [&](int call) {
        CheckpointFolder folder(temporary->path("c"));
        folder.open();
        EXPECT_EQ(newestOf(folder), 3) << "call " << call;
      });
  if (kills < 0)
    GTEST_SKIP() << "tracing is not allowed here";
  EXPECT_GT(kills, 20);
}

TEST(CheckpointFolder, SaysWhenTheDiskIsFull) {
  Folder temporary;
  CheckpointFolder folder(temporary.path("c"));
  folder.open();
  save(folder, 1);
  // Files of more than a few bytes cannot be written.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  for (const rlim_t limit : {0, 10, 60, 100}) {
    const rlimit few = {limit, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &few);
    const std::string error = errorOf([&] { save(folder, 2); });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_TRUE(contains(error, "cannot write")) << error;
    folder.abandon(2);
    EXPECT_EQ(folder.steps(), (std::vector<int64_t>{1}));
    EXPECT_EQ(newestOf(folder), 1);
  }
}

TEST(StreamHash, DoesNotDependOnHowBytesCome) {
  std::string bytes;
  for (int i = 0; i < 61; ++i)
    bytes += static_cast<char>(i * 37);
  Hash whole;
  whole.addBytes(bytes.data(), 61);
  for (int first = 0; first < 20; ++first)
    for (int second = first; second < 40; ++second) {
      StreamHash hash;
      hash.addBytes(bytes.data(), first);
      hash.addBytes(bytes.data() + first, second - first);
      hash.addBytes(bytes.data() + second, 61 - second);
      EXPECT_EQ(hash.value(), whole.value());
    }
}
