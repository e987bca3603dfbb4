//===- Package.cpp - The folder that a compilation writes -----------------===//
//
// Each file of the folder in turn, the executable last.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/Package.h"

#include "codegen/host/EmitHost.h"
#include "codegen/package/BuildProgram.h"
#include "codegen/package/WeightsFile.h"
#include "passes/schedules/drawing/Svg.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace pipewright::codegen {

/// What a copy of the runtime is made of.
static bool isRuntimeSource(StringRef path) {
  static constexpr StringRef extensions[] = {".h",   ".cpp", ".cu",
                                             ".cuh", ".S",   ".cmake"};
  return llvm::is_contained(extensions, llvm::sys::path::extension(path)) ||
         llvm::sys::path::filename(path) == "CMakeLists.txt";
}

namespace {

/// The part of the output folder that a target writes to.
struct OutputSources final : SourceFolder {
  explicit OutputSources(OutputFolder &folder) : folder(folder) {}
  llvm::Error write(StringRef name, StringRef text) override {
    return folder.write(inSources(name), text);
  }
  llvm::Error copy(StringRef source, StringRef name,
                   ArrayRef<StringRef> extensions) override {
    return folder.copyFolder(source, inSources(name), [&](StringRef path) {
      return llvm::is_contained(extensions, llvm::sys::path::extension(path));
    });
  }
  std::string pathOf(StringRef name) const override {
    return folder.pathOf(inSources(name));
  }
  static std::string inSources(StringRef name) { return ("src/" + name).str(); }

  OutputFolder &folder;
};

} // namespace

static llvm::Error writeHostCode(OutputFolder &folder, ModuleOp module,
                                 const Plan &plan,
                                 const std::string &planText) {
  HostOptions options;
  options.target = plan.target;
  options.modelName = plan.model;
  options.timetable = plan.timetable;
  options.planJson = planText;
  options.predictedStepSeconds = plan.simulation.globalStepTime;
  options.predictedCollectiveWait = plan.simulation.longestWorkWait();
  FailureOr<HostFiles> files = emitHost(module, options);
  if (failed(files))
    return diagnosed();
  for (const auto &[name, text] : *files)
    if (llvm::Error error = folder.write("src/" + name, text))
      return error;
  return llvm::Error::success();
}

static llvm::Error writeKernels(OutputFolder &folder, ModuleOp module,
                                const Plan &plan) {
  auto kernels = module.lookupSymbol<ModuleOp>("kernels");
  OwningOpRef<ModuleOp> none;
  if (!kernels) {
    none = ModuleOp::create(module.getLoc());
    kernels = *none;
  }
  OutputSources src(folder);
  return plan.target->writeKernels(kernels, plan.precision, src);
}

/// The program will save over what an older one has trained: not if that is
/// another model's.
static llvm::Error checkTrainedWeights(const OutputFolder &folder,
                                       ModuleOp module) {
  std::string path = folder.place() + "/trained.safetensors";
  if (folder.renames() || !llvm::sys::fs::exists(path))
    return llvm::Error::success();
  llvm::Error error = checkWeightsFit(module, path);
  if (!error)
    return llvm::Error::success();
  return llvm::createStringError(
      "the trained weights in '" + path + "' do not fit the new program (" +
      llvm::toString(std::move(error)) +
      "), and its training would save over them: move them away, choose "
      "another folder with -o, or leave them where they are with --force");
}

static llvm::Error write(ModuleOp module, const nn::WeightStore &weights,
                         const Plan &plan, OutputFolder &folder, bool build) {
  if (llvm::Error error = checkTrainedWeights(folder, module))
    return error;
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
  if (llvm::Error error = writeKernels(folder, module, plan))
    return error;

  llvm::Expected<std::string> runtime = findRuntimeSources();
  if (!runtime)
    return runtime.takeError();
  if (llvm::Error error =
          folder.copyFolder(*runtime, "src/runtime", isRuntimeSource))
    return error;
  if (llvm::Error error =
          folder.write("src/CMakeLists.txt", programCMakeLists(*plan.target)))
    return error;
  if (build)
    if (llvm::Error error = buildProgram(folder.temporary(), *plan.target))
      return error;
  return folder.commit();
}

LogicalResult writePackage(ModuleOp allocated, const nn::WeightStore &weights,
                           const Plan &plan, OutputFolder &folder, bool build) {
  if (llvm::Error error = write(allocated, weights, plan, folder, build)) {
    std::string message = llvm::toString(std::move(error));
    // Empty: said already, through the module's diagnostics.
    if (!message.empty())
      mlir::emitError(UnknownLoc::get(allocated.getContext())) << message;
    return failure();
  }
  return success();
}

} // namespace pipewright::codegen
