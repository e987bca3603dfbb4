//===- CpuFeatures.h - Whether this CPU can run a program ------*- C++ -*-===//
//
// Compiled kernels use the instructions of the CPU that compiled them, and say
// which. A program asks before it runs any of them: an error is told, an
// illegal instruction is not.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_CPUFEATURES_H
#define PIPEWRIGHT_RUNTIME_CPU_CPUFEATURES_H

#include "runtime/core/Program.h"

#include <optional>
#include <string>
#include <string_view>

namespace pipewright::runtime {

/// Whether this CPU has an instruction set, as LLVM names it; nothing where we
/// cannot tell.
std::optional<bool> hasCpuFeature(std::string_view name);

/// Those of a list (names between commas) that this CPU lacks, or that we do
/// not know, as text: "avx2, fma".
std::string missingCpuFeatures(std::string_view list);

/// Throws an error if this CPU lacks what the program's kernels need.
void checkKernelFeatures();
/// The same of the runtime's own, and of bf16 where the program has it.
void checkCpuLibrary(const Program &program);

/// Whether oneDNN has products of bf16 here: it needs AVX-512.
bool hasBFloat16Products();

/// What users should know about this CPU before they wait for it, in lines.
std::string cpuRemarks(const Program &program);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_CPUFEATURES_H
