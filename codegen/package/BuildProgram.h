//===- BuildProgram.h - Compile and link a generated program ----*- C++ -*-===//
//
// Makes the executable of a written folder with the C++ compiler and the
// runtime library of this build, or through the folder's own CMake where the
// library is not there.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_BUILDPROGRAM_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_BUILDPROGRAM_H

#include "codegen/target/Target.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace pipewright::codegen {

/// Builds `folder`/train from `folder`/src.
llvm::Error buildProgram(llvm::StringRef folder, const Target &target);

/// The runtime's sources, which every folder gets a copy of; fails where they
/// are not found.
llvm::Expected<std::string> findRuntimeSources();

/// The CMakeLists.txt of OUT/src.
std::string programCMakeLists(const Target &target);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_BUILDPROGRAM_H
