//===- Cuda.cpp - Programs whose ranks are GPUs of NVIDIA -----------------===//
//
// Kernels become PTX, which the executable holds; streams and events order the
// work; decisions are made for tensor cores and what CUDA's libraries like.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Passes.h"
#include "codegen/kernels/nvptx/GpuKernels.h"
#include "codegen/target/Target.h"
#include "codegen/target/cuda/KernelFiles.h"
#include "dialects/call/CallDialect.h"

#include "llvm/Support/FileSystem.h"

// CMakeLists.txt of codegen/target defines PIPEWRIGHT_RUNTIME_PTX, where this
// build leaves the PTX of the runtime's own kernels, and, where its runtime
// knows GPUs, PIPEWRIGHT_RUNTIME_HAS_CUDA.

using namespace mlir;

namespace pipewright::codegen {

namespace {

struct Cuda final : Target {
  StringRef name() const override { return "cuda"; }
  StringRef noun() const override { return "a GPU"; }

  PlanWords planWords() const override {
    return {.runsOn = "GPUs",
            .besideArenas =
                "beside the arenas: what libraries and kernels need, and "
                "pinned memory of the host, as OUT/train --dry-run lists them",
            .machine = "an H100 for each rank"};
  }

  ArrayRef<Precision> precisions() const override {
    static constexpr Precision all[] = {Precision::F32, Precision::Tf32,
                                        Precision::BF16};
    return all;
  }

  ArrayRef<TargetOption> options() const override {
    static const TargetOption all[] = {
        {"gpu",
         "NAME",
         "Architecture that decisions are made for: sm_80 or sm_90, unless "
         "given (cuda; programs run on both)",
         {"sm_80", "sm_90"},
         "sm_90"},
        {"epilogues",
         "NAME",
         "What cuBLASLt does to products before it stores them: auto (bias; in "
         "bf16 for sm_90 all), none, bias or all (GELU and its gradient too) "
         "(cuda)",
         {"auto", "none", "bias", "all"},
         "auto"},
        packAttentionOption()};
    return all;
  }

  TargetDecisions
  decide(Precision precision,
         llvm::function_ref<StringRef(StringRef)> valueOf) const override {
    TargetDecisions decisions;
    // cuDNN's engines for tensor cores want the channels last; those for full
    // f32 want them second, and would reorder images each time.
    decisions.channelsLast = precision != Precision::F32;
    decisions.vocabularyMultiple = 64;
    decisions.epilogues = valueOf("epilogues").str();
    decisions.longestAttention = call::longestAttention();
    decisions.packAttention = valueOf("pack-attention") == "auto";
    decisions.architecture = valueOf("gpu") == "sm_80" ? 80 : 90;
    return decisions;
  }

  std::string machineName(Precision precision) const override {
    return ("h100-" + nameOf(precision)).str();
  }

  /// NCCL chooses one by what it finds of links between the members.
  bool addsInOneOrder() const override { return false; }

  const HostStyle &hostStyle() const override {
    static constexpr HostStyle style = {.rankClass = "DeviceRank",
                                        .runtimeHeader = "DeviceRuntime.h",
                                        .hasStreams = true,
                                        .givesTasks = true,
                                        .hasKernelObjects = true,
                                        .preparesCalls = true,
                                        .deviceProgram = "&deviceProgram"};
    return style;
  }

  bool canCall(Operation *op) const override {
    return isa<call::MatmulEpilogueOp, nn::AttentionOpInterface>(op);
  }

  const BuildRules &buildRules() const override {
    static const BuildRules rules = {
        .sources = {"kernels.cpp", "kernels.S"},
        .link = {},
        .cmakeLanguages = "CXX ASM",
        // It needs no oneDNN.
        .cmakeSettings = "set(PIPEWRIGHT_CPU OFF)\n",
        .cmakeExecutable = R"cmake(if(NOT PIPEWRIGHT_HAS_CUDA)
  message(FATAL_ERROR "This program runs on GPUs: building it needs the headers "
    "of CUDA, NCCL, cuBLASLt and cuDNN (set CUDA_HOME or PIPEWRIGHT_CUDA_INCLUDE)")
endif()
add_executable(train main.cpp ranks.cpp stages.cpp kernels.cpp kernels.S)
set_target_properties(train PROPERTIES
  CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
# kernels.S includes the PTX from here.
target_include_directories(train PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
file(GLOB ptx CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/kernels.*.ptx")
set_source_files_properties(kernels.S PROPERTIES OBJECT_DEPENDS "${ptx}")
)cmake"};
    return rules;
  }

  llvm::Error checkBuild() const override {
#ifndef PIPEWRIGHT_RUNTIME_HAS_CUDA
    return llvm::createStringError(
        "--target cuda expects a runtime that was built with CUDA's headers; "
        "install a CUDA toolkit with NCCL and cuDNN (no GPU is needed), or set "
        "CUDA_HOME, and build pipewright again; or write the sources alone "
        "with --no-build, and build them where these headers are");
#else
    return llvm::Error::success();
#endif
  }

  llvm::Error writeKernels(ModuleOp kernels, Precision precision,
                           SourceFolder &src) const override {
    auto compiled = compileGpuKernels(kernels, gpuArchitectures());
    if (failed(compiled))
      return diagnosed();
    for (const auto &[name, text] :
         kernelFiles(kernels, *compiled, precision == Precision::Tf32))
      if (llvm::Error error = src.write(name, text))
        return error;
    // Kernels of the runtime itself, so that the folder builds without clang.
    if (!llvm::sys::fs::exists(PIPEWRIGHT_RUNTIME_PTX "/Builtin.ptx"))
      return llvm::Error::success();
    return src.copy(PIPEWRIGHT_RUNTIME_PTX, "runtime/cuda/kernels", {".ptx"});
  }

  void buildKernelLowering(OpPassManager &pm) const override {
    buildGpuKernelLoweringPipeline(pm);
  }

  StringRef assembly() const override { return "ptx"; }

  FailureOr<std::string> emitAssembly(ModuleOp kernels,
                                      int64_t architecture) const override {
    auto compiled =
        compileGpuKernels(kernels, {static_cast<int>(architecture)});
    if (failed(compiled))
      return failure();
    return std::move(compiled->ptx.front().text);
  }
};

} // namespace

const Target &cudaTarget() {
  static const Cuda target;
  return target;
}

} // namespace pipewright::codegen
