//===- OutputFolderTests.cpp - A folder that appears whole or not ---------===//

#include "codegen/package/OutputFolder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace pipewright::codegen;

namespace {

class OutputFolderTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("output-folder", root));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(root); }

  std::string wanted() const { return (root + "/out").str(); }
  size_t entries() const {
    std::error_code error;
    size_t count = 0;
    for (llvm::sys::fs::directory_iterator it(root, error), end; it != end;
         it.increment(error))
      ++count;
    return count;
  }
  void writeProgram(llvm::StringRef text) {
    auto folder = OutputFolder::create(wanted());
    ASSERT_TRUE(static_cast<bool>(folder));
    ASSERT_FALSE(folder->write("plan.json", "{}"));
    ASSERT_FALSE(folder->write("src/main.cpp", text));
    ASSERT_FALSE(folder->commit());
  }

  llvm::SmallString<128> root;
};

} // namespace

TEST_F(OutputFolderTest, AppearsOnCommit) {
  {
    auto folder = OutputFolder::create(wanted() + "/");
    ASSERT_TRUE(static_cast<bool>(folder));
    ASSERT_FALSE(folder->write("src/a.txt", "a"));
    EXPECT_FALSE(llvm::sys::fs::exists(wanted()));
    ASSERT_FALSE(folder->commit());
  }
  EXPECT_TRUE(llvm::sys::fs::exists(wanted() + "/src/a.txt"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFolderTest, LeavesNothingWithoutCommit) {
  {
    auto folder = OutputFolder::create(wanted());
    ASSERT_TRUE(static_cast<bool>(folder));
    ASSERT_FALSE(folder->write("src/a.txt", "a"));
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputFolderTest, ReplacesAnOlderOneOfOurs) {
  writeProgram("old");
  writeProgram("new");
  auto text = llvm::MemoryBuffer::getFile(wanted() + "/src/main.cpp");
  ASSERT_TRUE(static_cast<bool>(text));
  EXPECT_EQ((*text)->getBuffer(), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFolderTest, RefusesWhatIsNotOurs) {
  llvm::sys::fs::create_directory(wanted());
  std::error_code error;
  llvm::raw_fd_ostream(wanted() + "/mine", error) << "x";
  auto folder = OutputFolder::create(wanted());
  ASSERT_FALSE(static_cast<bool>(folder));
  std::string message = llvm::toString(folder.takeError());
  EXPECT_NE(message.find("was not made by pipewright"), std::string::npos);
  auto file = OutputFolder::create(wanted() + "/mine");
  ASSERT_FALSE(static_cast<bool>(file));
  message = llvm::toString(file.takeError());
  EXPECT_NE(message.find("exists and is not a folder"), std::string::npos);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFolderTest, CopiesWhatIsAccepted) {
  writeProgram("text");
  auto folder = OutputFolder::create((root + "/second").str());
  ASSERT_TRUE(static_cast<bool>(folder));
  ASSERT_FALSE(folder->copyFolder(wanted(), "copy", [](llvm::StringRef path) {
    return path.ends_with(".cpp");
  }));
  EXPECT_TRUE(llvm::sys::fs::exists(folder->pathOf("copy/src/main.cpp")));
  EXPECT_FALSE(llvm::sys::fs::exists(folder->pathOf("copy/plan.json")));
}
