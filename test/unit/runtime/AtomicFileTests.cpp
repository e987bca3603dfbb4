//===- AtomicFileTests.cpp - All of a file, or nothing --------------------===//

#include "test/unit/KillAtEachCall.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/OneRank.h"

#include "runtime/io/AtomicFile.h"

#include <memory>
#include <sys/stat.h>

using namespace pipewright::runtime;
using namespace pipewright::test;
namespace fs = std::filesystem;

static void save(const std::string &path, const std::string &text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
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
  save(folder.path("a"), "new");
  EXPECT_EQ(folder.read("a"), "new");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, PlacesThatCannotBeWrittenTo) {
  Folder folder;
  EXPECT_EQ(errorOf([] { AtomicFile file("/nowhere/x"); }),
            "cannot write '/nowhere/x': No such file or directory");
  EXPECT_TRUE(contains(errorOf([&] { AtomicFile file(folder.path("")); }),
                       "it is a folder"));
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(errorOf([&] { AtomicFile file(folder.path("pipe")); }),
                       "cannot write"));
}

TEST(AtomicFile, LinksAreNeverWrittenThroughByTheTemporaryFile) {
  Folder folder;
  folder.write("victim", "victim");
  // Whatever its name may be, among these: nobody can know it before.
  for (int i = 0; i < 100; ++i)
    fs::create_symlink("victim", folder.path("w.st.tmp" + std::to_string(i)));
  for (const char *name : {"w.st.tmp", "w.st.saving-abcdef"})
    fs::create_symlink("victim", folder.path(name));
  save(folder.path("w.st"), "new");
  EXPECT_EQ(folder.read("victim"), "victim");
  EXPECT_EQ(folder.read("w.st"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path("w.st.saving-abcdef")));
}

TEST(AtomicFile, ALinkAsTargetStaysAndItsFileIsReplaced) {
  Folder folder;
  fs::create_directory(folder.path("disk"));
  folder.write("disk/run1", "old");
  fs::create_symlink("disk/run1", folder.path("latest"));
  fs::create_symlink("latest", folder.path("again"));
  save(folder.path("again"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path("latest")));
  EXPECT_EQ(folder.read("disk/run1"), "new");
  // One whose file is not there yet.
  fs::create_symlink("disk/run2", folder.path("next"));
  save(folder.path("next"), "first");
  EXPECT_EQ(folder.read("disk/run2"), "first");
  fs::create_symlink("circle", folder.path("circle"));
  EXPECT_TRUE(contains(errorOf([&] { AtomicFile file(folder.path("circle")); }),
                       "Too many levels of symbolic links"));
}

TEST(AtomicFile, WhoMayReadTheOldOneMayReadTheNewOne) {
  Folder folder;
  folder.write("a", "old");
  chmod(folder.path("a").c_str(), 0640);
  save(folder.path("a"), "new");
  struct stat status;
  stat(folder.path("a").c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, OnlyWhatDeadProcessesHaveLeftIsRemoved) {
  Folder folder;
  folder.write("a.saving-dead00", "half");
  folder.write("a.saving-dead0", "mine");
  folder.write("b.saving-dead00", "another file's");
  AtomicFile live(folder.path("a"));
  live.write("live", 4);
  save(folder.path("a"), "new");
  EXPECT_FALSE(folder.exists("a.saving-dead00"));
  EXPECT_EQ(folder.count(), 4);
  live.commit();
  EXPECT_EQ(folder.read("a"), "live");
  EXPECT_EQ(folder.count(), 3);
}

TEST(AtomicFile, IsOldOrNewWhereverTheProcessIsKilled) {
  std::unique_ptr<Folder> folder;
  int news = 0;
  const int kills = killAtEachCall(
      [&] {
        folder = std::make_unique<Folder>();
        folder->write("a", "old");
      },
      [&] { save(folder->path("a"), "new"); },
      [&](int call) {
        const std::string found = folder->read("a");
        EXPECT_TRUE(found == "old" || found == "new") << "call " << call;
        news += found == "new";
        // The next one removes what is left, even if it comes to nothing.
        AtomicFile(folder->path("a"));
        EXPECT_EQ(folder->read("a"), found) << "call " << call;
        EXPECT_EQ(folder->count(), 1) << "call " << call;
      });
  if (kills < 0)
    GTEST_SKIP() << "tracing is not allowed here";
  EXPECT_GT(kills, 4);
  EXPECT_GE(news, 1);
}
