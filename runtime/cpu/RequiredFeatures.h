//===- RequiredFeatures.h - What the runtime's kernels need ----*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_REQUIREDFEATURES_H
#define PIPEWRIGHT_RUNTIME_CPU_REQUIREDFEATURES_H

namespace pipewright::runtime {

/// The instruction sets that this folder was compiled for, beyond those that
/// all such CPUs have: names of LLVM between commas.
const char *runtimeKernelFeatures();

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_REQUIREDFEATURES_H
