//===- GpuKernels.h - compile kernels to PTX --------------------*- C++ -*-===//
//
// The GPU's side of Kernels.h: the same module of kernel functions of nn ops
// becomes PTX text and a list of launches. Nothing of CUDA is needed for it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_GPUKERNELS_H
#define PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_GPUKERNELS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <string>
#include <vector>

namespace pipewright::codegen {

/// One launch of an entry point of the PTX; grid and block are
/// one-dimensional.
struct GpuLaunch {
  std::string entry;
  int64_t grid = 1;
  int64_t block = 32;
  /// Bytes of shared memory that the launch asks for.
  int64_t sharedBytes = 0;
};

/// The launches of a kernel run one after the other. All take the same
/// parameters: the pointers of the calling convention in codegen/README.md,
/// then a pointer to scratch memory if the kernel needs any.
struct GpuKernel {
  std::string name;
  llvm::SmallVector<GpuLaunch> launches;
  int64_t scratchBytes = 0;
};

struct PtxText {
  /// 80 is sm_80.
  int architecture;
  std::string text;
};

struct GpuKernels {
  /// In the order of the functions.
  std::vector<GpuKernel> kernels;
  /// All kernels, once for each architecture.
  std::vector<PtxText> ptx;
};

/// Compiles all functions of `kernels` (left unchanged). Reports a diagnostic
/// on failure. Positions have 64 bits where tensors need it, or everywhere.
mlir::FailureOr<GpuKernels> compileGpuKernels(mlir::ModuleOp kernels,
                                              llvm::ArrayRef<int> architectures,
                                              bool widePositions = false);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_GPUKERNELS_H
