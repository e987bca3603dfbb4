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
#include <fstream>
#include <sys/stat.h>

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
    auto code = codegen::cachedCode(module, *machine, level,
                                    [&]() -> mlir::FailureOr<std::string> {
                                      return "code " + std::to_string(++calls);
                                    });
    return mlir::succeeded(code) ? *code : "";
  }

  /// The files of kept code.
  std::vector<std::string> files() {
    std::vector<std::string> found;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator at(parent + "/cache", error), end;
         !error && at != end; at.increment(error))
      if (!llvm::StringRef(at->path()).ends_with(".timestamp"))
        found.push_back(at->path());
    return found;
  }

  std::optional<std::string> before;
  std::string parent;
  std::unique_ptr<llvm::TargetMachine> machine;
  int calls = 0;
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
        module, *machine, 3, [&]() -> mlir::FailureOr<std::string> {
          ++calls;
          return mlir::failure();
        })));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(files().empty());
}
