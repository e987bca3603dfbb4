//===- CodeGeneration.h - LLVM's part of compiling kernels ------*- C++ -*-===//
//
// What the targets share of the way from LLVM IR to code.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_CODEGENERATION_H
#define PIPEWRIGHT_CODEGEN_KERNELS_CODEGENERATION_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace pipewright::codegen {

/// Runs LLVM's pipeline of this level (0 to 3) for the machine.
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine,
                    unsigned level);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_CODEGENERATION_H
