//===- TargetFeatures.cpp - Instruction sets of compiled kernels ----------===//

#include "codegen/kernels/cpu/TargetFeatures.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

namespace pipewright::codegen {

/// What runtime/cpu/CpuFeatures.cpp can look for.
static constexpr llvm::StringRef checkedFeatures[] = {"sse3",
                                                      "ssse3",
                                                      "sse4.1",
                                                      "sse4.2",
                                                      "popcnt",
                                                      "avx",
                                                      "avx2",
                                                      "fma",
                                                      "f16c",
                                                      "bmi",
                                                      "bmi2",
                                                      "lzcnt",
                                                      "movbe",
                                                      "gfni",
                                                      "avx512f",
                                                      "avx512cd",
                                                      "avx512vl",
                                                      "avx512bw",
                                                      "avx512dq",
                                                      "avx512ifma",
                                                      "avx512vbmi",
                                                      "avx512vbmi2",
                                                      "avx512vnni",
                                                      "avx512bitalg",
                                                      "avx512vpopcntdq",
                                                      "avx512bf16"};

/// What all CPUs of x86-64 have, or loops of arithmetic never use.
static constexpr llvm::StringRef harmlessFeatures[] = {
    "64bit", "cmov", "crc32", "cx16",  "cx8",    "fxsr",     "mmx",
    "sahf",  "sse",  "sse2",  "xsave", "xsavec", "xsaveopt", "xsaves"};

static bool isX86(const llvm::Triple &triple) {
  return triple.getArch() == llvm::Triple::x86_64;
}

std::string targetFeatures(const KernelOptions &options) {
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string features;
  if (options.cpu == "native")
    for (const auto &[name, isThere] : llvm::sys::getHostCPUFeatures()) {
      bool isUsed = isThere && (!isX86(triple) ||
                                llvm::is_contained(checkedFeatures, name) ||
                                llvm::is_contained(harmlessFeatures, name));
      features += (isUsed ? "+" : "-") + name.str() + ",";
    }
  // Full vectors: these kernels stream, they are not short bursts. What goes to
  // places that lie apart is stored one by one: a transposition of 1 MiB takes
  // a fifth of the time that it takes with scatters, on a Xeon of 2023.
  if (isX86(triple))
    features += "-prefer-256-bit,+prefer-no-scatter,";
  features += options.features;
  return llvm::StringRef(features).rtrim(',').str();
}

void recordTargetFeatures(llvm::Module &module,
                          const llvm::TargetMachine &machine) {
  std::string list;
  if (isX86(machine.getTargetTriple()))
    for (llvm::StringRef name : checkedFeatures)
      if (machine.getMCSubtargetInfo()->checkFeatures("+" + name.str()))
        list += name.str() + ",";
  llvm::Constant *text =
      llvm::ConstantDataArray::getString(module.getContext(), list);
  new llvm::GlobalVariable(module, text->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, text,
                           "pipewright_kernel_features");
}

} // namespace pipewright::codegen
