//===- Passes.td - lowering kernels to LLVM ----------------*- tablegen -*-===//
//
// One entry per pass. The flag kernel-x-y is implemented in XY.cpp and tested
// in test/codegen/kernels/x-y.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_PASSES_TD
#define PIPEWRIGHT_CODEGEN_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def KernelFuseRows : Pass<"kernel-fuse-rows", "::mlir::ModuleOp"> {
  let summary = "Write each kernel's linalg ops as few loops over rows";
  let description = [{
    Replaces functions over tensors by functions over flat memrefs: first the
    inputs, then the results. Results and reductions share loop nests of rows
    and columns; every other op is computed where it is used. What is costly and
    used in two passes over a row is kept for that row.

    A result with the attribute `nn.in_place = k` has no argument of its own: it
    is written to argument `k`.

    ```mlir
    func.func @f(%x: tensor<8x16xf32>) -> tensor<8xf32> { ... }
    // becomes
    func.func @f(%x: memref<128xf32>, %y: memref<8xf32>) {
      scf.for %row = ... {
        %sum = scf.for %column = ... iter_args(...) { ... }
        memref.store %sum, %y[%row]
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def KernelApproximateMath : Pass<"kernel-approximate-math"> {
  let summary = "Compute exp, log, erf and tanh by short vectorizable formulas";
  let description = [{
    Replaces f32 functions of the math dialect by polynomials or rational
    functions without branches or calls, so that loops over them vectorize.
    Infinities and NaNs come out as the C library has them; the error is at most
    a few units in the last place.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"
  ];
}

#endif // PIPEWRIGHT_CODEGEN_KERNELS_PASSES_TD
