//===- InputFileTests.cpp - Files that others have written ----------------===//

#include "support/FileBeneath.h"
#include "support/InputFile.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace pipewright;
namespace fs = std::filesystem;

namespace {

class InputFileTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "input-file-").string() +
                       std::string(6, 'X');
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
    std::ofstream(path("file")) << "text";
    fs::create_symlink("file", path("link"));
  }
  void TearDown() override { fs::remove_all(root); }

  std::string path(const std::string &name) const {
    return (root / name).string();
  }
  fs::path root;
};

} // namespace

template <class T>
static std::string errorOf(llvm::Expected<T> value) {
  return value ? "" : llvm::toString(value.takeError());
}

TEST_F(InputFileTest, RegularFilesAreReadWhole) {
  for (const char *name : {"file", "link"}) {
    llvm::Expected<FileBuffer> buffer = readTextFile(path(name));
    ASSERT_TRUE(static_cast<bool>(buffer));
    EXPECT_EQ((*buffer)->getBuffer(), "text");
    EXPECT_EQ(*(*buffer)->getBufferEnd(), '\0');
  }
}

TEST_F(InputFileTest, NothingElseIsOpenedForLong) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(errorOf(readTextFile(path("pipe"))),
            "expects a regular file, but got a pipe");
  EXPECT_EQ(errorOf(readTextFile("/dev/zero")),
            "expects a regular file, but got a device");
  EXPECT_EQ(errorOf(readRegularFile(root.string())),
            "expects a regular file, but got a folder");
  EXPECT_EQ(errorOf(readRegularFile(path("none"))),
            "cannot be read: No such file or directory");
  EXPECT_EQ(errorOf(readRegularFile(llvm::StringRef("/dev/null\0.mlir", 15))),
            "expects a name without a zero byte");
}

TEST_F(InputFileTest, RulesAreAskedOfTheOpenFile) {
  EXPECT_EQ(errorOf(readRegularFile(path("file"), {.maxBytes = 3})),
            "expects at most 3 bytes, but it has 4");
  EXPECT_EQ(errorOf(readRegularFile(path("file"), {.maxBytes = 4})), "");
  EXPECT_NE(errorOf(readRegularFile(path("link"), {.followsLinks = false})),
            "");
  EXPECT_EQ(errorOf(readRegularFile(path("file"), {.isOurs = true})), "");
  fs::permissions(path("file"), fs::perms(0666));
  EXPECT_EQ(errorOf(readRegularFile(path("file"), {.isOurs = true})),
            "expects a file that only this user can write to");
}

TEST_F(InputFileTest, SparseFilesOfAnySizeAreRefusedByTheirSize) {
  fs::resize_file(path("file"), uint64_t(1) << 40);
  EXPECT_EQ(errorOf(readTextFile(path("file"))),
            "expects at most 268435456 bytes, but it has 1099511627776");
}

TEST_F(InputFileTest, NoLinkLeadsOutOfTheFolder) {
  fs::create_directory(path("model"));
  fs::create_symlink("../file", path("model/out"));
  std::ofstream(path("model/inside")) << "text";
  fs::create_symlink("inside", path("model/in"));
  EXPECT_EQ(errorOf(findBeneath(path("model"), "in")), "");
  for (const char *name : {"out", "../file", "/dev/null"})
    EXPECT_NE(errorOf(findBeneath(path("model"), name)), "") << name;
}
