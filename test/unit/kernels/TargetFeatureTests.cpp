//===- TargetFeatureTests.cpp - What object files say about their CPU -----===//

#include "codegen/kernels/Kernels.h"
#include "passes/nn/kernels/OptimizerKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright;

/// The bytes of a library of kernels for that CPU.
static std::string libraryFor(const codegen::KernelOptions &options) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  nn::buildRoundingKernel(*kernels, 64);
  llvm::SmallString<64> path;
  if (llvm::sys::fs::createTemporaryFile("kernels", "a", path))
    return "";
  llvm::FileRemover remover(path);
  if (failed(codegen::compileKernels(*kernels, path, options)))
    return "";
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

TEST(TargetFeatures, LibrariesSayWhatTheyNeed) {
  if (llvm::Triple(llvm::sys::getDefaultTargetTriple()).getArch() !=
      llvm::Triple::x86_64)
    GTEST_SKIP() << "only told for x86-64";
  std::string old = libraryFor({.cpu = "x86-64-v2", .features = ""});
  EXPECT_NE(old.find("sse3,ssse3,sse4.1,sse4.2,popcnt,"), std::string::npos);
  EXPECT_EQ(old.find("avx,"), std::string::npos);
  std::string newer = libraryFor({.cpu = "x86-64-v4", .features = ""});
  EXPECT_NE(newer.find("avx,avx2,fma,"), std::string::npos);
  EXPECT_NE(newer.find("avx512f,"), std::string::npos);
  std::string less = libraryFor({.cpu = "x86-64-v4", .features = "-avx512f"});
  EXPECT_NE(less.find("avx,avx2,fma,"), std::string::npos);
  EXPECT_EQ(less.find("avx512f,"), std::string::npos);
}
