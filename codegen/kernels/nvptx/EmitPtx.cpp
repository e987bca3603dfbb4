//===- EmitPtx.cpp - LLVM dialect to PTX ----------------------------------===//
//
// Translates to LLVM IR, optimizes for an architecture and writes PTX text, all
// in this process: the NVPTX target is part of LLVM.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/nvptx/EmitPtx.h"

#include "codegen/kernels/CodeCache.h"
#include "codegen/kernels/CodeGeneration.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace pipewright::codegen {

/// PTX 8.0 came with CUDA 12.0; sm_90 needs 7.8.
static constexpr const char *kPtxVersion = "+ptx80";

static std::unique_ptr<llvm::TargetMachine> createNvptx(int architecture,
                                                        Location loc) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) {
    emitError(loc) << "expects an LLVM with the NVPTX target, but got: "
                   << message;
    return nullptr;
  }
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, "sm_" + std::to_string(architecture), kPtxVersion, {},
      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Shared memory of a size that the launch says is an external array without
/// one in PTX; MLIR makes an internal array of no elements.
static void declareDynamicShared(llvm::Module &module) {
  constexpr unsigned kShared = 3;
  for (llvm::GlobalVariable &variable : module.globals()) {
    auto *type = dyn_cast<llvm::ArrayType>(variable.getValueType());
    if (variable.getAddressSpace() != kShared || !type ||
        type->getNumElements() != 0)
      continue;
    variable.setInitializer(nullptr);
    variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
  }
}

FailureOr<std::string> emitPtx(ModuleOp module, int architecture) {
  Location loc = module.getLoc();
  MLIRContext *mlirContext = module.getContext();
  registerBuiltinDialectTranslation(*mlirContext);
  registerGPUDialectTranslation(*mlirContext);
  registerLLVMDialectTranslation(*mlirContext);
  registerNVVMDialectTranslation(*mlirContext);
  std::unique_ptr<llvm::TargetMachine> machine = createNvptx(architecture, loc);
  if (!machine)
    return failure();
  llvm::LLVMContext context;
  auto all = std::make_unique<llvm::Module>("kernels", context);
  all->setDataLayout(machine->createDataLayout());
  all->setTargetTriple(machine->getTargetTriple());
  for (auto part : module.getOps<gpu::GPUModuleOp>()) {
    std::unique_ptr<llvm::Module> ir =
        translateModuleToLLVMIR(part, context, part.getName());
    if (!ir) {
      emitError(loc) << "cannot translate the GPU kernels to LLVM IR";
      return failure();
    }
    ir->setDataLayout(machine->createDataLayout());
    ir->setTargetTriple(machine->getTargetTriple());
    if (llvm::Linker::linkModules(*all, std::move(ir))) {
      emitError(loc) << "cannot join the GPU kernels";
      return failure();
    }
  }
  declareDynamicShared(*all);
  constexpr unsigned level = 3;
  auto isPtx = [&](StringRef code) {
    return code.contains((".target " + machine->getTargetCPU()).str());
  };
  return cachedCode(
      *all, *machine, level, isPtx, [&]() -> FailureOr<std::string> {
        optimizeModule(*all, *machine, level);
        llvm::SmallString<0> text;
        llvm::raw_svector_ostream os(text);
        llvm::legacy::PassManager passes;
        if (machine->addPassesToEmitFile(passes, os, nullptr,
                                         llvm::CodeGenFileType::AssemblyFile)) {
          emitError(loc) << "the NVPTX target cannot write PTX";
          return failure();
        }
        passes.run(*all);
        return text.str().str();
      });
}

} // namespace pipewright::codegen
