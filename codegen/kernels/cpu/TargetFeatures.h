//===- TargetFeatures.h - Instruction sets of compiled kernels --*- C++ -*-===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_CPU_TARGETFEATURES_H
#define PIPEWRIGHT_CODEGEN_KERNELS_CPU_TARGETFEATURES_H

#include "codegen/kernels/Kernels.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace pipewright::codegen {

/// LLVM's features for the CPU of the options: of the machine at hand those
/// that a program can look for when it starts, and no others.
std::string targetFeatures(const KernelOptions &options);

/// Adds the constant string `pipewright_kernel_features`: the instruction sets
/// that the machine has beyond those of all such CPUs, between commas. The
/// runtime refuses to run on a CPU that lacks one (runtime/cpu/CpuFeatures.h).
void recordTargetFeatures(llvm::Module &module,
                          const llvm::TargetMachine &machine);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_CPU_TARGETFEATURES_H
