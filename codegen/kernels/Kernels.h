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

/// An optimizer as the command line names it, with its constants under the
/// names of torch.optim; those that an optimizer lacks are ignored.
struct OptimizerSpec {
  /// sgd, adam, adamw or rmsprop.
  std::string name = "sgd";
  double momentum = 0.0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, alpha = 0.99;
  double epsilon = 1e-8;
  double weightDecay = 0.0;

  /// How many state buffers of the size of the weights it keeps.
  unsigned numStates() const;
};

/// Adds the kernel `<name>_<size>` that updates `size` weights in place and
/// zeroes the gradient: (weights, gradient, states..., const hyper). The kernel
/// `<name>_bf16_<size>`, where it `lowers`, also writes the new weights as
/// bf16:
/// (..., const hyper, lowered). An equal kernel that is there already is
/// returned instead. Reports a diagnostic for an unknown name.
mlir::FailureOr<mlir::func::FuncOp>
buildOptimizerKernel(mlir::ModuleOp kernels, const OptimizerSpec &spec,
                     int64_t size, bool lowers = false);

/// Adds the kernel `lower_<size>`: (const weights, lowered), weights as bf16.
mlir::func::FuncOp buildLowerKernel(mlir::ModuleOp kernels, int64_t size);

/// Adds the kernel `accumulate_<size>`: (gradient, const x), gradient += x.
mlir::func::FuncOp buildAccumulateKernel(mlir::ModuleOp kernels, int64_t size);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_KERNELS_H
