//===- CodeCacheTests.cpp - What is compiled once, and what again ---------===//

#include "codegen/kernels/CodeCache.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace pipewright;

namespace {

/// A folder for the cache, and a compiler that counts its calls.
class CodeCache : public ::testing::Test {
protected:
  void SetUp() override {
    if (const char *value = std::getenv("PIPEWRIGHT_CACHE_DIR"))
      before = value;
    llvm::SmallString<64> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("code-cache", path));
    parent = path.str().str();
    use(parent + "/cache");
    llvm::InitializeNativeTarget();
    llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
    std::string message;
    const llvm::Target *target =
        llvm::TargetRegistry::lookupTarget(triple, message);
    ASSERT_NE(target, nullptr) << message;
    machine.reset(target->createTargetMachine(triple, "", "", {}, {}));
  }
  void TearDown() override {
    if (before)
      use(*before);
    else
      unsetenv("PIPEWRIGHT_CACHE_DIR");
    llvm::sys::fs::remove_directories(parent);
  }

  void use(const std::string &folder) {
    setenv("PIPEWRIGHT_CACHE_DIR", folder.c_str(), 1);
  }

  /// The code of a module of that name.
  std::string codeOf(const char *name, unsigned level = 3) {
    llvm::LLVMContext context;
    llvm::Module module(name, context);
    auto code = codegen::cachedCode(
        module, *machine, level,
        [](llvm::StringRef code) { return code.starts_with("code "); },
        [&]() -> mlir::FailureOr<std::string> {
          return written + std::to_string(++calls);
        });
    return mlir::succeeded(code) ? *code : "";
  }

  /// The files of kept code.
  std::vector<std::string> files() {
    std::vector<std::string> found;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator at(parent + "/cache/kernels", error),
         end;
         !error && at != end; at.increment(error))
      if (!llvm::StringRef(at->path()).ends_with(".timestamp"))
        found.push_back(at->path());
    return found;
  }

  std::optional<std::string> before;
  std::string parent;
  std::unique_ptr<llvm::TargetMachine> machine;
  int calls = 0;
  std::string written = "code ";
};

} // namespace

TEST_F(CodeCache, TheSameIsCompiledOnce) {
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_EQ(codeOf("b"), "code 2");
  EXPECT_EQ(codeOf("a", /*level=*/0), "code 3");
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(CodeCache, DamagedFilesAreNotTaken) {
  EXPECT_EQ(codeOf("a"), "code 1");
  ASSERT_EQ(files().size(), 1u);
  const std::string path = files()[0];
  for (const char *damage :
       {"", "short", "a hash that is not of this code ..."}) {
    std::ofstream(path) << damage;
    const int before = calls;
    codeOf("a");
    EXPECT_EQ(calls, before + 1) << damage;
    codeOf("a");
    EXPECT_EQ(calls, before + 1) << "was not kept again after: " << damage;
  }
}

TEST_F(CodeCache, WhatIsNoFileOfOursIsRemoved) {
  EXPECT_EQ(codeOf("a"), "code 1");
  const std::string path = files()[0], kept = parent + "/kept";
  ASSERT_FALSE(llvm::sys::fs::copy_file(path, kept));
  auto place = [&](auto make) {
    unlink(path.c_str());
    make();
    const int before = calls;
    codeOf("a");
    EXPECT_EQ(calls, before + 1);
    codeOf("a");
    EXPECT_EQ(calls, before + 1);
  };
  place([&] { mkfifo(path.c_str(), 0600); });
  place([&] { EXPECT_EQ(symlink("/dev/zero", path.c_str()), 0); });
  place([&] { EXPECT_EQ(symlink(kept.c_str(), path.c_str()), 0); });
  place([&] {
    EXPECT_FALSE(llvm::sys::fs::copy_file(kept, path));
    EXPECT_EQ(chmod(path.c_str(), 0666), 0);
  });
  EXPECT_TRUE(llvm::sys::fs::exists(kept));
}

TEST_F(CodeCache, CodeOfAnotherNameOrKindIsNotTaken) {
  EXPECT_EQ(codeOf("a"), "code 1");
  const std::string first = files()[0];
  written = "other ";
  EXPECT_EQ(codeOf("b"), "other 2");
  EXPECT_EQ(codeOf("b"), "other 3");
  ASSERT_EQ(files().size(), 2u);
  const std::string second = files()[files()[0] == first];
  ASSERT_FALSE(llvm::sys::fs::copy_file(first, second));
  EXPECT_EQ(codeOf("b"), "other 4");
}

TEST_F(CodeCache, FilesOfOthersStayInTheFolder) {
  ASSERT_FALSE(llvm::sys::fs::create_directory(parent + "/cache"));
  ASSERT_EQ(chmod((parent + "/cache").c_str(), 0755), 0);
  const std::string other = parent + "/cache/llvmcache-of-another";
  std::ofstream(other) << "code";
  // Long unused: LLVM would remove it.
  const timespec past[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, other.c_str(), past, 0), 0);
  mkdir((parent + "/cache/kernels").c_str(), 0700);
  mkfifo((parent + "/cache/kernels/llvmcache.timestamp").c_str(), 0600);
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_TRUE(llvm::sys::fs::exists(other));
}

TEST_F(CodeCache, AFolderBehindALinkIsNotUsed) {
  ASSERT_FALSE(llvm::sys::fs::create_directory(parent + "/cache"));
  ASSERT_EQ(chmod((parent + "/cache").c_str(), 0755), 0);
  ASSERT_FALSE(llvm::sys::fs::create_directory(parent + "/elsewhere"));
  ASSERT_EQ(symlink("../elsewhere", (parent + "/cache/kernels").c_str()), 0);
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_EQ(codeOf("a"), "code 2");
}

TEST_F(CodeCache, EmptyTurnsItOff) {
  use("");
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_EQ(codeOf("a"), "code 2");
}

TEST_F(CodeCache, FoldersThatOthersWriteToAreNotUsed) {
  EXPECT_EQ(codeOf("a"), "code 1");
  ASSERT_EQ(chmod((parent + "/cache").c_str(), 0777), 0);
  EXPECT_EQ(codeOf("a"), "code 2");
}

TEST_F(CodeCache, AFolderThatCannotBeMadeIsNoError) {
  std::ofstream(parent + "/file") << "not a folder";
  use(parent + "/file/cache");
  EXPECT_EQ(codeOf("a"), "code 1");
  EXPECT_EQ(codeOf("a"), "code 2");
}

TEST_F(CodeCache, WhatFailsIsNotKept) {
  llvm::LLVMContext context;
  llvm::Module module("a", context);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(mlir::failed(codegen::cachedCode(
        module, *machine, 3, [](llvm::StringRef) { return true; },
        [&]() -> mlir::FailureOr<std::string> {
          ++calls;
          return mlir::failure();
        })));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(files().empty());
}
