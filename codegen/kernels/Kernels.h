//===- Kernels.h - compile kernels to a static library ----------*- C++ -*-===//
//
// What the driver calls: a module of kernel functions of nn ops becomes a
// static library and a header. README.md of codegen/ has the calling
// convention.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_KERNELS_H
#define PIPEWRIGHT_CODEGEN_KERNELS_KERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace pipewright::codegen {

struct KernelOptions {
  /// A CPU as LLVM names it; "native" is the machine that compiles.
  std::string cpu = "native";
  /// Further LLVM features, such as "-avx512f".
  std::string features;
  /// LLVM's optimization level, 0 to 3.
  unsigned optimization = 3;
};

/// Compiles all functions of `kernels` (left unchanged) to a static library
/// with an object for each. It also has `pipewright_kernel_features`, which
/// the runtime looks for without demanding it: link the whole library. Reports
/// a diagnostic on failure.
mlir::LogicalResult compileKernels(mlir::ModuleOp kernels, llvm::StringRef path,
                                   const KernelOptions &options = {});

/// The second half of compileKernels: `module` is in the LLVM dialect.
mlir::LogicalResult emitLibrary(mlir::ModuleOp module, llvm::StringRef path,
                                const KernelOptions &options);

/// Writes the C declarations of the kernels, with a comment on each.
void writeKernelHeader(mlir::ModuleOp kernels, llvm::raw_ostream &os);

/// Comment lines: the types of a kernel, and the ops in it.
void writeKernelComment(mlir::func::FuncOp kernel, llvm::raw_ostream &os);

/// The C declaration of one kernel, without semicolon.
std::string kernelDeclaration(mlir::func::FuncOp kernel);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_KERNELS_H
