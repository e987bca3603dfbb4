//===- OutputFolderTests.cpp - A folder that appears whole or not ---------===//

#include "codegen/package/Manifest.h"
#include "codegen/package/OutputFolder.h"
#include "test/unit/codegen/TemporaryRoot.h"

#include <sys/stat.h>

using namespace pipewright::codegen;
using namespace pipewright::test;

namespace {

class OutputFolderTest : public testing::Test {
protected:
  std::string wanted() const { return root.path("out"); }
  void writeProgram(llvm::StringRef text,
                    InTheWay inTheWay = InTheWay::Refuse) {
    auto folder = OutputFolder::create(wanted(), inTheWay);
    ASSERT_TRUE(static_cast<bool>(folder))
        << llvm::toString(folder.takeError());
    ASSERT_FALSE(folder->write("plan.json", "{}"));
    ASSERT_FALSE(folder->write("src/main.cpp", text));
    llvm::Error error = folder->commit();
    ASSERT_FALSE(error) << llvm::toString(std::move(error));
  }
  std::string refusal() const { return refusal(wanted()); }
  static std::string refusal(const std::string &path) {
    auto folder = OutputFolder::create(path);
    return folder ? "" : llvm::toString(folder.takeError());
  }

  TemporaryRoot root;
};

} // namespace

TEST_F(OutputFolderTest, AppearsOnCommit) {
  {
    auto folder = OutputFolder::create(wanted() + "/");
    ASSERT_TRUE(static_cast<bool>(folder));
    ASSERT_FALSE(folder->write("src/a.txt", "a"));
    EXPECT_FALSE(root.exists("out"));
    ASSERT_FALSE(folder->commit());
  }
  EXPECT_EQ(root.read("out/src/a.txt"), "a");
  EXPECT_TRUE(root.exists("out/pipewright.manifest"));
  EXPECT_EQ(root.entries(), 1u);
}

TEST_F(OutputFolderTest, LeavesNothingWithoutCommit) {
  {
    auto folder = OutputFolder::create(wanted());
    ASSERT_TRUE(static_cast<bool>(folder));
    ASSERT_FALSE(folder->write("src/a.txt", "a"));
  }
  EXPECT_EQ(root.entries(), 0u);
}

TEST_F(OutputFolderTest, ReplacesAnOlderOneOfOurs) {
  writeProgram("old");
  writeProgram("new");
  EXPECT_EQ(root.read("out/src/main.cpp"), "new");
  EXPECT_EQ(root.entries(), 1u);
  EXPECT_EQ(root.entries("out"), 3u);
}

TEST_F(OutputFolderTest, KeepsEveryFileOfOthers) {
  writeProgram("old");
  root.write("out/trained.safetensors", "weights");
  root.write("out/src/mine.cpp", "code");
  root.write("out/runs/1/log", "log");
  llvm::sys::fs::create_directory(root.path("out/empty"));
  ASSERT_EQ(symlink("nowhere", root.path("out/link").c_str()), 0);
  chmod(wanted().c_str(), 0750);
  struct stat before, after;
  stat(root.path("out/runs/1/log").c_str(), &before);
  writeProgram("new");
  EXPECT_EQ(root.read("out/src/main.cpp"), "new");
  EXPECT_EQ(root.read("out/trained.safetensors"), "weights");
  EXPECT_EQ(root.read("out/src/mine.cpp"), "code");
  EXPECT_EQ(root.read("out/runs/1/log"), "log");
  EXPECT_TRUE(root.exists("out/empty"));
  EXPECT_TRUE(llvm::sys::fs::is_symlink_file(root.path("out/link")));
  EXPECT_EQ(root.entries(), 1u);
  // The very same file, in a folder that the same people may read.
  stat(root.path("out/runs/1/log").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(after.st_nlink, 1u);
  stat(wanted().c_str(), &after);
  EXPECT_EQ(after.st_mode & 0777, 0750u);
}

TEST_F(OutputFolderTest, RefusesWhatIsNotOurs) {
  root.write("out/mine", "x");
  EXPECT_NE(refusal().find("was not made by pipewright (it has no "
                           "pipewright.manifest); in it are 'mine'"),
            std::string::npos)
      << refusal();
  EXPECT_NE(refusal(wanted() + "/mine").find("exists and is not a folder"),
            std::string::npos);
  EXPECT_EQ(root.entries(), 1u);
}

TEST_F(OutputFolderTest, APlanOfOthersMakesNoFolderOurs) {
  root.write("out/plan.json", "x");
  root.write("out/thesis.txt", "keep");
  EXPECT_NE(refusal().find("'plan.json', 'thesis.txt'; choose another folder "
                           "with -o, move them away, or keep them"),
            std::string::npos)
      << refusal();
  writeProgram("new", InTheWay::Rename);
  EXPECT_EQ(root.read("out/plan.json"), "{}");
  EXPECT_EQ(root.read("out/plan.json.kept"), "x");
  EXPECT_EQ(root.read("out/thesis.txt"), "keep");
  EXPECT_EQ(root.entries("out"), 5u);
  // Now it is ours.
  writeProgram("newer");
  EXPECT_EQ(root.read("out/src/main.cpp"), "newer");
  EXPECT_EQ(root.read("out/plan.json.kept"), "x");
}

TEST_F(OutputFolderTest, RefusesWhatSomebodyHasChanged) {
  writeProgram("old");
  root.write("out/src/main.cpp", "own");
  EXPECT_NE(refusal().find("somebody has changed since pipewright wrote them: "
                           "'src/main.cpp'"),
            std::string::npos)
      << refusal();
  writeProgram("new", InTheWay::Rename);
  EXPECT_EQ(root.read("out/src/main.cpp"), "new");
  EXPECT_EQ(root.read("out/src/main.cpp.kept"), "own");
  root.write("out/src/main.cpp", "again");
  writeProgram("newer", InTheWay::Rename);
  EXPECT_EQ(root.read("out/src/main.cpp.kept"), "own");
  EXPECT_EQ(root.read("out/src/main.cpp.kept-2"), "again");
}

TEST_F(OutputFolderTest, RefusesNewFilesOverThoseOfOthers) {
  writeProgram("old");
  root.write("out/train", "own");
  auto folder = OutputFolder::create(wanted());
  ASSERT_TRUE(static_cast<bool>(folder));
  ASSERT_FALSE(folder->write("train/inner", "new"));
  std::string message = llvm::toString(folder->commit());
  EXPECT_NE(message.find("did not write: 'train'"), std::string::npos)
      << message;
  EXPECT_EQ(root.read("out/train"), "own");
  EXPECT_EQ(root.read("out/src/main.cpp"), "old");
}

TEST_F(OutputFolderTest, AManifestOfOthersIsNone) {
  root.write("out/pipewright.manifest", "{\"files\": []}");
  EXPECT_NE(refusal().find("has a file 'pipewright.manifest' that was not made "
                           "by pipewright"),
            std::string::npos)
      << refusal();
  // It may list what it wants: nothing outside of the folder is looked at.
  std::string text = llvm::cantFail(Manifest::of(root.path("out"))).toText();
  EXPECT_TRUE(static_cast<bool>(Manifest::parse(text)));
  for (const char *bad :
       {"", "[]", "{}", "{\"mark\": 1}",
        "{\"mark\": \"output folder of pipewright\", \"format\": 2}",
        "{\"mark\": \"output folder of pipewright\", \"format\": 1, "
        "\"files\": [{\"path\": \"a\", \"bytes\": -1, \"xxh3\": \"\"}]}"}) {
    auto parsed = Manifest::parse(bad);
    EXPECT_FALSE(static_cast<bool>(parsed)) << bad;
    llvm::consumeError(parsed.takeError());
  }
  root.write("out/pipewright.manifest", std::string(1 << 20, '['));
  EXPECT_NE(refusal().find("(its lists are nested more than 64 deep)"),
            std::string::npos)
      << refusal();
}

TEST_F(OutputFolderTest, ALinkStandsForWhatItLeadsTo) {
  llvm::sys::fs::create_directory(root.path("disk"));
  ASSERT_EQ(symlink("disk", wanted().c_str()), 0);
  writeProgram("old");
  writeProgram("new");
  EXPECT_TRUE(llvm::sys::fs::is_symlink_file(wanted()));
  EXPECT_EQ(root.read("disk/src/main.cpp"), "new");
  EXPECT_EQ(root.entries(), 2u);
  ASSERT_EQ(symlink("nowhere", root.path("loose").c_str()), 0);
  EXPECT_NE(refusal(root.path("loose")).find("is a link that leads nowhere"),
            std::string::npos);
}

TEST_F(OutputFolderTest, RefusesTheFolderThatOneStandsIn) {
  writeProgram("old");
  llvm::SmallString<128> before;
  ASSERT_FALSE(llvm::sys::fs::current_path(before));
  ASSERT_FALSE(llvm::sys::fs::set_current_path(root.path("out/src")));
  for (const std::string &path : {std::string(".."), wanted()})
    EXPECT_NE(refusal(path).find("this command runs there"), std::string::npos)
        << refusal(path);
  ASSERT_FALSE(llvm::sys::fs::set_current_path(before));
}

TEST_F(OutputFolderTest, RemovesOnlyWhatDeadProcessesHaveLeft) {
  // Three folders with names like ours: of a process that lives, of one that
  // is dead, and somebody else's.
  auto live = OutputFolder::create(wanted());
  ASSERT_TRUE(static_cast<bool>(live));
  ASSERT_FALSE(live->write("live", "x"));
  root.write("out.partial-dead00/lock", "unfinished work of pipewright\n");
  root.write("out.partial-dead00/building/src/STALE.cpp", "x");
  root.write("out.partial-mine00/lock", "x");
  root.write("out.partial-mine00/building/thesis.txt", "x");
  root.write("out.partial-mine01/building/thesis.txt", "x");
  llvm::sys::fs::create_directory(root.path("out.partial-empty0"));
  writeProgram("new");
  EXPECT_EQ(root.entries("out"), 3u);
  EXPECT_FALSE(root.exists("out.partial-dead00"));
  EXPECT_FALSE(root.exists("out.partial-empty0"));
  EXPECT_TRUE(root.exists("out.partial-mine00/building/thesis.txt"));
  EXPECT_TRUE(root.exists("out.partial-mine01/building/thesis.txt"));
  EXPECT_TRUE(llvm::sys::fs::exists(live->pathOf("live")));
  EXPECT_EQ(root.entries(), 4u);
}

TEST_F(OutputFolderTest, TakesFilesOfOthersOutOfWhatDeadProcessesHaveLeft) {
  writeProgram("new");
  // An older folder, from which a file was not yet taken over.
  root.write("out.partial-dead00/lock", "unfinished work of pipewright\n");
  root.write("out.partial-dead00/ready/late.txt", "late");
  root.write("out.partial-dead00/ready/src/main.cpp", "own");
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(root.read("out/late.txt"), "late");
  EXPECT_EQ(root.read("out/src/main.cpp"), "new");
  EXPECT_EQ(root.read("out/src/main.cpp.kept"), "own");
  EXPECT_EQ(root.entries(), 1u);
}

TEST_F(OutputFolderTest, CopiesWhatIsAccepted) {
  writeProgram("text");
  auto folder = OutputFolder::create(root.path("second"));
  ASSERT_TRUE(static_cast<bool>(folder));
  ASSERT_FALSE(folder->copyFolder(wanted(), "copy", [](llvm::StringRef path) {
    return path.ends_with(".cpp");
  }));
  EXPECT_TRUE(llvm::sys::fs::exists(folder->pathOf("copy/src/main.cpp")));
  EXPECT_FALSE(llvm::sys::fs::exists(folder->pathOf("copy/plan.json")));
}
