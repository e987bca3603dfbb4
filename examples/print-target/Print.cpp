// A target that runs nowhere: its programs print each call that they would
// make, in the order of each rank.

#include "codegen/target/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace pipewright;
using namespace pipewright::codegen;

struct Print : Target {
  llvm::StringRef name() const override { return "print"; }
  llvm::StringRef noun() const override { return "a printer"; }
  const HostStyle &hostStyle() const override {
    static constexpr HostStyle style = {.rankClass = "PrintRank",
                                        .runtimeHeader = "Print.h",
                                        .hasKernelObjects = true};
    return style;
  }
  llvm::ArrayRef<TargetOption> options() const override {
    static const TargetOption all[] = {
        {"images",
         "NAME",
         "Where images have their channels: first, unless given, or last "
         "(print)",
         {"first", "last"},
         "first"}};
    return all;
  }
  TargetDecisions decide(Precision,
                         llvm::function_ref<llvm::StringRef(llvm::StringRef)>
                             valueOf) const override {
    TargetDecisions decisions;
    decisions.channelsLast = valueOf("images") == "last";
    return decisions;
  }
  const BuildRules &buildRules() const override {
    static const BuildRules rules = {
        .sources = {},
        .link = {},
        .cmakeLanguages = "CXX",
        .cmakeSettings = "set(PIPEWRIGHT_CUDA OFF)\n",
        .cmakeExecutable = "add_executable(train main.cpp ranks.cpp "
                           "stages.cpp)\ntarget_include_directories(train "
                           "PRIVATE \"${CMAKE_CURRENT_SOURCE_DIR}\")\n"};
    return rules;
  }
  llvm::Error writeKernels(mlir::ModuleOp kernels, Precision,
                           SourceFolder &src) const override {
    std::string header = "#pragma once\n\n#include \"runtime/Print.h\"\n\n";
    for (auto kernel : kernels.getOps<mlir::func::FuncOp>()) {
      std::string name = kernel.getName().str();
      header += "inline const pipewright::runtime::PrintedKernel " + name +
                " = {\"" + name + "\"};\n";
    }
    if (llvm::Error error = src.write("kernels.h", header))
      return error;
    return src.copy(PRINT_TARGET_RUNTIME, "runtime", {".h"});
  }
};

static const Print print;
extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "print", LLVM_VERSION_STRING,
          [] { registerTarget(print); }};
}
