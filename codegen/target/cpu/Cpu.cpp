//===- Cpu.cpp - Programs whose ranks are threads or processes ------------===//
//
// Kernels become a static library of functions in C; times are those of the
// machine that compiles.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Kernels.h"
#include "codegen/kernels/Passes.h"
#include "codegen/target/Target.h"
#include "dialects/call/CallDialect.h"
#include "passes/planning/MachineFile.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace pipewright::codegen {

namespace {

struct Cpu final : Target {
  StringRef name() const override { return "cpu"; }
  StringRef noun() const override { return "a CPU"; }
  PlanWords planWords() const override {
    return {
        .runsOn = "", .besideArenas = "", .machine = "a core for each rank"};
  }

  ArrayRef<Precision> precisions() const override {
    static constexpr Precision all[] = {Precision::F32, Precision::BF16};
    return all;
  }

  ArrayRef<TargetOption> options() const override {
    static const TargetOption all[] = {packAttentionOption()};
    return all;
  }

  TargetDecisions
  decide(Precision precision,
         llvm::function_ref<StringRef(StringRef)> valueOf) const override {
    TargetDecisions decisions;
    // oneDNN's fast products of bf16 want dense operands.
    decisions.packAttention =
        valueOf("pack-attention") == "auto" && precision == Precision::F32;
    decisions.cachedAttention = true;
    return decisions;
  }

  const MachineModel &machine(Precision precision) const override {
    return measuredMachine().models.at(precision);
  }
  bool isMeasuredHere() const override { return true; }
  bool sharesCores() const override { return true; }

  const HostStyle &hostStyle() const override {
    static const HostStyle style;
    return style;
  }

  bool canCall(Operation *op) const override {
    return isa<nn::AttentionOpInterface>(op) &&
           getElementTypeOrSelf(op->getOperand(0)).isF32();
  }

  const BuildRules &buildRules() const override {
    // All of the library: nothing refers to the features that its objects say
    // they need.
    static const BuildRules rules = {
        .sources = {},
        .link = {"-Wl,--whole-archive", "kernels.a", "-Wl,--no-whole-archive"},
        .cmakeLanguages = "CXX",
        // It needs nothing of CUDA, even where that is installed.
        .cmakeSettings = "set(PIPEWRIGHT_CUDA OFF)\n",
        .cmakeExecutable =
            R"cmake(add_executable(train main.cpp ranks.cpp stages.cpp)
set_target_properties(train PROPERTIES
  CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
# All of it: nothing refers to the features that its objects say they need.
target_link_libraries(train PRIVATE
  "$<LINK_LIBRARY:WHOLE_ARCHIVE,${CMAKE_CURRENT_SOURCE_DIR}/kernels.a>")
)cmake"};
    return rules;
  }

  llvm::Error writeKernels(ModuleOp kernels, Precision,
                           SourceFolder &src) const override {
    std::string header;
    llvm::raw_string_ostream os(header);
    writeKernelHeader(kernels, os);
    if (llvm::Error error = src.write("kernels.h", header))
      return error;
    if (failed(compileKernels(kernels, src.pathOf("kernels.a"))))
      return diagnosed();
    return llvm::Error::success();
  }

  void buildKernelLowering(OpPassManager &pm) const override {
    buildKernelLoweringPipeline(pm);
  }
};

} // namespace

const Target &cpuTarget() {
  static const Cpu target;
  return target;
}

} // namespace pipewright::codegen
