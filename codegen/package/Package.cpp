//===- Package.cpp - The folder that a compilation writes -----------------===//
//
// Each file of the folder in turn, the executable last.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/Package.h"

#include "codegen/host/EmitHost.h"
#include "codegen/kernels/Kernels.h"
#include "codegen/package/BuildProgram.h"
#include "codegen/package/WeightsFile.h"
#include "passes/schedules/drawing/Svg.h"

#include "llvm/Support/Path.h"

using namespace mlir;

namespace pipewright::codegen {

/// What a copy of the runtime is made of.
static bool isRuntimeSource(StringRef path) {
  StringRef extension = llvm::sys::path::extension(path);
  return extension == ".h" || extension == ".cpp" ||
         llvm::sys::path::filename(path) == "CMakeLists.txt";
}

static llvm::Error diagnosed() {
  return llvm::createStringError(std::string());
}

static llvm::Error writeHostCode(OutputFolder &folder, ModuleOp module,
                                 const Plan &plan,
                                 const std::string &planText) {
  HostOptions options;
  options.modelName = plan.model;
  options.timetable = plan.timetable;
  options.planJson = planText;
  options.predictedStepSeconds = plan.predictedStepSeconds;
  auto emitted = emitHost(module, options);
  if (failed(emitted))
    return diagnosed();
  auto files = translateHost(**emitted);
  if (failed(files))
    return diagnosed();
  for (const auto &[name, text] : *files)
    if (llvm::Error error = folder.write("src/" + name, text))
      return error;
  return llvm::Error::success();
}

static llvm::Error writeKernels(OutputFolder &folder, ModuleOp module) {
  auto kernels = module.lookupSymbol<ModuleOp>("kernels");
  OwningOpRef<ModuleOp> none;
  if (!kernels) {
    none = ModuleOp::create(module.getLoc());
    kernels = *none;
  }
  if (llvm::Error error =
          folder.write("src/kernels.h", [&](llvm::raw_ostream &os) {
            writeKernelHeader(kernels, os);
          }))
    return error;
  if (failed(compileKernels(kernels, folder.pathOf("src/kernels.o"))))
    return diagnosed();
  return llvm::Error::success();
}

static llvm::Error write(ModuleOp module, const nn::WeightStore &weights,
                         const Plan &plan, OutputFolder &folder) {
  std::string planText = llvm::formatv("{0:2}", plan.toJson()).str() + "\n";
  if (llvm::Error error = folder.write("plan.json", planText))
    return error;
  if (llvm::Error error = folder.write("timetable.txt", plan.timetable))
    return error;
  if (llvm::Error error =
          folder.write("timetable.svg", schedules::drawSvg(plan.picture())))
    return error;
  if (llvm::Error error = writeHostCode(folder, module, plan, planText))
    return error;
  llvm::Error inWeights = llvm::Error::success();
  llvm::Error error =
      folder.write("weights.safetensors", [&](llvm::raw_ostream &os) {
        inWeights = llvm::joinErrors(std::move(inWeights),
                                     writeWeights(module, weights, os));
      });
  if (inWeights) {
    llvm::consumeError(std::move(error));
    return inWeights;
  }
  if (error)
    return error;
  if (llvm::Error error = writeKernels(folder, module))
    return error;

  llvm::Expected<std::string> runtime = findRuntimeSources();
  if (!runtime)
    return runtime.takeError();
  if (llvm::Error error =
          folder.copyFolder(*runtime, "src/runtime", isRuntimeSource))
    return error;
  if (llvm::Error error =
          folder.write("src/CMakeLists.txt", programCMakeLists()))
    return error;
  if (llvm::Error error = buildProgram(folder.temporary()))
    return error;
  return folder.commit();
}

LogicalResult writePackage(ModuleOp allocated, const nn::WeightStore &weights,
                           const Plan &plan, OutputFolder &folder) {
  if (llvm::Error error = write(allocated, weights, plan, folder)) {
    std::string message = llvm::toString(std::move(error));
    // Empty: said already, through the module's diagnostics.
    if (!message.empty())
      mlir::emitError(UnknownLoc::get(allocated.getContext())) << message;
    return failure();
  }
  return success();
}

} // namespace pipewright::codegen
