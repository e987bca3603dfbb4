//===- EmitLibrary.cpp - LLVM dialect to a static library -----------------===//
//
// Translates to LLVM IR, optimizes for the target CPU and writes the objects,
// all in this process. Each kernel is an object of its own, so that one that
// was compiled before need not be compiled again (CodeCache.h).
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/CodeCache.h"
#include "codegen/kernels/CodeGeneration.h"
#include "codegen/kernels/Kernels.h"
#include "codegen/kernels/cpu/TargetFeatures.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

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

/// A module of the function, its constants, and what it calls, which is
/// outside.
static FailureOr<OwningOpRef<ModuleOp>> moduleOf(LLVM::LLVMFuncOp function,
                                                 SymbolTable &symbols) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  module->push_back(function->clone());
  llvm::SmallDenseSet<StringAttr> known;
  auto uses = SymbolTable::getSymbolUses(function);
  for (SymbolTable::SymbolUse use : *uses) {
    StringAttr name = use.getSymbolRef().getRootReference();
    if (!known.insert(name).second)
      continue;
    Operation *used = symbols.lookup(name);
    auto constant = dyn_cast_or_null<LLVM::GlobalOp>(used);
    auto called = dyn_cast_or_null<LLVM::LLVMFuncOp>(used);
    bool isConstant =
        constant && constant.getConstant() &&
        llvm::is_contained({LLVM::Linkage::Private, LLVM::Linkage::Internal},
                           constant.getLinkage());
    if (!isConstant && !(called && called.isExternal()))
      return use.getUser()->emitError()
             << "expects kernels to use constants of their own and functions "
                "of libraries only, but got '"
             << name.getValue() << "'";
    module->push_back(used->clone());
  }
  return module;
}

namespace {
/// Makes object files of LLVM modules.
class ObjectWriter {
public:
  ObjectWriter(llvm::TargetMachine &machine, const KernelOptions &options,
               Location loc)
      : machine(machine), options(options), loc(loc) {}

  void prepare(llvm::Module &module) {
    module.setDataLayout(machine.createDataLayout());
    module.setTargetTriple(machine.getTargetTriple());
  }

  FailureOr<std::string> write(llvm::Module &module) {
    prepare(module);
    for (llvm::Function &function : module) {
      if (function.isDeclaration())
        continue;
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("target-features", machine.getTargetFeatureString());
      function.addFnAttr(llvm::Attribute::NoUnwind);
    }
    return cachedCode(
        module, machine, options.optimization,
        [&](StringRef code) { return isObject(code); },
        [&] { return generate(module); });
  }

private:
  /// Whether bytes are an object file for the target.
  bool isObject(StringRef code) {
    auto object = llvm::object::ObjectFile::createObjectFile(
        llvm::MemoryBufferRef(code, "kernel"));
    if (object)
      return (*object)->isRelocatableObject() &&
             (*object)->getArch() == machine.getTargetTriple().getArch();
    llvm::consumeError(object.takeError());
    return false;
  }

  FailureOr<std::string> generate(llvm::Module &module) {
    optimizeModule(module, machine, options.optimization);
    llvm::SmallString<0> object;
    llvm::raw_svector_ostream os(object);
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, os, nullptr,
                                    llvm::CodeGenFileType::ObjectFile)) {
      emitError(loc) << "the target cannot write object files";
      return failure();
    }
    passes.run(module);
    return object.str().str();
  }

  llvm::TargetMachine &machine;
  const KernelOptions &options;
  Location loc;
};
} // namespace

/// Writes the objects, with their names, as a static library.
static LogicalResult
writeLibrary(ArrayRef<std::pair<std::string, std::string>> objects,
             StringRef path, Location loc) {
  std::vector<llvm::NewArchiveMember> members;
  for (const auto &[name, object] : objects)
    members.emplace_back(llvm::MemoryBufferRef(object, name));
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return emitError(loc) << "cannot write '" << path
                          << "': " << error.message();
  llvm::Error failed = llvm::writeArchiveToStream(
      os, members, llvm::SymtabWritingMode::NormalSymtab,
      llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  if (failed)
    return emitError(loc) << "cannot write '" << path
                          << "': " << llvm::toString(std::move(failed));
  os.flush();
  if (os.has_error()) {
    std::string message = os.error().message();
    os.clear_error();
    return emitError(loc) << "cannot write '" << path << "': " << message;
  }
  return success();
}

/// Moves bf16 numbers as the integers of their bits: on CPUs without such a
/// type LLVM converts what it only moves, by calls of a library.
static void moveAsIntegers(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      llvm::IRBuilder<> builder(&instruction);
      auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
      if (!load && !store)
        continue;
      llvm::Type *type = llvm::getLoadStoreType(&instruction);
      if (!type->getScalarType()->isBFloatTy())
        continue;
      llvm::Type *bits = type->getWithNewType(builder.getInt16Ty());
      if (load) {
        llvm::Value *moved = builder.CreateAlignedLoad(
            bits, load->getPointerOperand(), load->getAlign());
        load->replaceAllUsesWith(builder.CreateBitCast(moved, type));
      } else {
        builder.CreateAlignedStore(
            builder.CreateBitCast(store->getValueOperand(), bits),
            store->getPointerOperand(), store->getAlign());
      }
      instruction.eraseFromParent();
    }
}

LogicalResult emitLibrary(ModuleOp module, StringRef path,
                          const KernelOptions &options) {
  Location loc = module.getLoc();
  registerBuiltinDialectTranslation(*module->getContext());
  registerLLVMDialectTranslation(*module->getContext());
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(options, loc);
  if (!machine)
    return failure();
  ObjectWriter writer(*machine, options, loc);
  llvm::LLVMContext context;
  std::vector<std::pair<std::string, std::string>> objects;
  auto add = [&](StringRef name, llvm::Module &ir) -> LogicalResult {
    FailureOr<std::string> object = writer.write(ir);
    if (failed(object))
      return failure();
    objects.emplace_back((name + ".o").str(), std::move(*object));
    return success();
  };

  SymbolTable symbols(module);
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    FailureOr<OwningOpRef<ModuleOp>> part = moduleOf(function, symbols);
    if (failed(part))
      return failure();
    std::unique_ptr<llvm::Module> ir =
        translateModuleToLLVMIR(**part, context, "kernels");
    if (!ir)
      return emitError(loc) << "cannot translate the kernels to LLVM IR";
    moveAsIntegers(*ir);
    if (failed(add(function.getName(), *ir)))
      return failure();
  }
  llvm::Module features("kernels", context);
  writer.prepare(features);
  recordTargetFeatures(features, *machine);
  if (failed(add("features", features)))
    return failure();
  return writeLibrary(objects, path, loc);
}

} // namespace pipewright::codegen
