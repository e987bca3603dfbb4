//===- KernelTesting.h - compile kernels and run them -----------*- C++ -*-===//
//
// Compiles kernels given as text into a shared object in a temporary folder,
// and to PTX; calls them on the CPU and in the interpreter of PTX, and compares
// with the reference interpreter of nn ops.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_KERNELS_KERNELTESTING_H
#define PIPEWRIGHT_TEST_UNIT_KERNELS_KERNELTESTING_H

#include "codegen/kernels/Kernels.h"
#include "codegen/kernels/nvptx/GpuKernels.h"
#include "test/doubles/ptx/Ptx.h"
#include "test/unit/nn/Reference.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::codegen::testing {

/// One argument of a kernel in memory.
struct Buffer {
  mlir::RankedTensorType type;
  std::vector<char> bytes;

  explicit Buffer(mlir::RankedTensorType type);
  double get(int64_t i) const;
  void set(int64_t i, double value);
  int64_t size() const { return type.getNumElements(); }
};

class Program {
public:
  /// Parses `text` and compiles it, on the GPU's side for sm_90 or what is
  /// given; `ok` tells whether that worked.
  explicit Program(llvm::StringRef text, int architecture = 90);
  ~Program();

  bool ok = false;
  mlir::ModuleOp module() { return *kernels; }
  mlir::MLIRContext &getContext() { return context; }
  /// Compiles the module once more, after it was changed.
  bool compile();
  void call(llvm::StringRef name, std::vector<Buffer> &arguments);
  /// The same in the interpreter of PTX.
  void callOnGpu(llvm::StringRef name, std::vector<Buffer> &arguments);
  /// The same with kernels of `module`, which are compiled for GPUs alone.
  void callOnGpu(mlir::ModuleOp module, llvm::StringRef name,
                 std::vector<Buffer> &arguments, bool widePositions = false);
  const GpuKernels &onGpu() const { return gpuKernels; }

private:
  static void run(const GpuKernels &compiled, const ptx::Module &code,
                  llvm::StringRef name, std::vector<Buffer> &arguments);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> kernels;
  std::string folder;
  void *library = nullptr;
  int architecture;
  GpuKernels gpuKernels;
  std::optional<ptx::Module> ptxModule;
};

/// Runs every kernel of `text` on random numbers, on the CPU and on a GPU, and
/// compares all results with the reference. Arguments may have the attributes
/// `test.positive` and `test.below = n` (integers from 0 to n - 1).
void expectLikeReference(llvm::StringRef text, double tolerance = 2e-6);

/// The same for kernels that are too large for the reference: compares what a
/// GPU computes with what the CPU computes.
void expectGpuLikeCpu(llvm::StringRef text, double tolerance = 2e-6,
                      int architecture = 90);

} // namespace pipewright::codegen::testing

#endif // PIPEWRIGHT_TEST_UNIT_KERNELS_KERNELTESTING_H
