//===- EmitObject.cpp - LLVM dialect to object file -----------------------===//
//
// Translates to LLVM IR, optimizes for the target CPU and writes the object,
// all in this process.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/CodeGeneration.h"
#include "codegen/kernels/Kernels.h"
#include "codegen/kernels/TargetFeatures.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace pipewright::codegen {

static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const KernelOptions &options, Location loc) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) {
    emitError(loc) << "expects a target for '" << triple.str()
                   << "', but got: " << message;
    return nullptr;
  }
  StringRef cpu = options.cpu;
  if (cpu == "native")
    cpu = llvm::sys::getHostCPUName();
  auto level = options.optimization >= 3   ? llvm::CodeGenOptLevel::Aggressive
               : options.optimization == 0 ? llvm::CodeGenOptLevel::None
                                           : llvm::CodeGenOptLevel::Default;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, cpu, targetFeatures(options), {},
                                  llvm::Reloc::PIC_, std::nullopt, level));
}

void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine,
                    unsigned level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel chosen = levels[std::min(level, 3u)];
  llvm::ModulePassManager passes =
      level == 0 ? builder.buildO0DefaultPipeline(chosen)
                 : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

static LogicalResult writeCode(llvm::Module &module,
                               llvm::TargetMachine &machine, StringRef path,
                               llvm::CodeGenFileType type, Location loc) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return emitError(loc) << "cannot write '" << path
                          << "': " << error.message();
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return emitError(loc) << "the target cannot write object files";
  passes.run(module);
  os.flush();
  if (os.has_error()) {
    std::string message = os.error().message();
    os.clear_error();
    return emitError(loc) << "cannot write '" << path << "': " << message;
  }
  return success();
}

LogicalResult emitObject(ModuleOp module, StringRef objectPath,
                         const KernelOptions &options) {
  Location loc = module.getLoc();
  registerBuiltinDialectTranslation(*module->getContext());
  registerLLVMDialectTranslation(*module->getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> ir =
      translateModuleToLLVMIR(module, context, "kernels");
  if (!ir)
    return emitError(loc) << "cannot translate the kernels to LLVM IR";
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(options, loc);
  if (!machine)
    return failure();
  ir->setDataLayout(machine->createDataLayout());
  ir->setTargetTriple(machine->getTargetTriple());
  for (llvm::Function &function : *ir) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine->getTargetCPU());
    function.addFnAttr("target-features", machine->getTargetFeatureString());
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  recordTargetFeatures(*ir, *machine);
  optimizeModule(*ir, *machine, options.optimization);
  if (options.keepIntermediates) {
    std::error_code error;
    llvm::raw_fd_ostream os((objectPath + ".ll").str(), error);
    if (!error)
      ir->print(os, nullptr);
    auto copy = llvm::CloneModule(*ir);
    if (failed(writeCode(*copy, *machine, (objectPath + ".s").str(),
                         llvm::CodeGenFileType::AssemblyFile, loc)))
      return failure();
  }
  return writeCode(*ir, *machine, objectPath, llvm::CodeGenFileType::ObjectFile,
                   loc);
}

} // namespace pipewright::codegen
