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

def KernelSelectBuffers : Pass<"kernel-select-buffers"> {
  let summary = "Choose between buffers, not between what is loaded from them";
  let description = [{
    Where more than eight buffers are read at the same place and conditions that
    do not change in the loop around them take one of the numbers, the buffer is
    chosen and read once. LLVM moves the choice out of the loop. Behind the
    conversion to LLVM's dialect the pass does the same with fields of chosen
    descriptors.

    ```mlir
    %x = memref.load %a[%i] : memref<8xf32>
    %y = memref.load %b[%i] : memref<8xf32>
    %z = arith.select %c, %x, %y : f32
    // ... and so on, becomes
    %d = arith.select %c, %a, %b : memref<8xf32>
    // ... and so on
    %z = memref.load %d[%i] : memref<8xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

def KernelExpandBFloat16 : Pass<"kernel-expand-bfloat16"> {
  let summary = "Convert between f32 and bf16 by integer arithmetic";
  let description = [{
    Replaces `arith.extf` from and `arith.truncf` to bf16: to the nearest, ties
    to even; NaNs stay NaNs, and small numbers are not flushed to zero. An
    `arith.select` of bf16 numbers becomes one of their bits.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
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

//===----------------------------------------------------------------------===//
// GPU kernels (gpu/)
//===----------------------------------------------------------------------===//

def KernelFuseRowsGpu : Pass<"kernel-fuse-rows-gpu", "::mlir::ModuleOp"> {
  let summary = "Write each kernel's linalg ops as launches on a GPU";
  let description = [{
    Replaces functions over tensors by functions over flat memrefs that launch
    functions of the gpu.module `@kernels`, or of `@large_kernels` where
    positions need 64 bits. Loop nests are those of `kernel-fuse-rows`; each
    becomes a launch, and a second one where sums over rows are finished. Sizes
    of grids and blocks are constants. All launches of a kernel get its buffers,
    and scratch memory if there is any (the function's only `memref.alloc`).

    ```mlir
    func.func @f(%x: tensor<64x256xf32>) -> tensor<64xf32> { ... }
    // becomes
    func.func @f(%x: memref<16384xf32>, %y: memref<64xf32>) {
      gpu.launch_func @kernels::@f blocks in (%c16, ...) threads in (%c128, ...)
          args(%x : ..., %y : ...)
    }
    gpu.module @kernels {
      gpu.func @f(%x: memref<16384xf32>, %y: memref<64xf32>) kernel { ... }
    }
    ```
  }];
  let options = [
    Option<"widePositions", "wide-positions", "bool", "false",
           "Positions of 64 bits for all kernels, so that what large tensors "
           "need can be tried with small ones">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::DLTIDialect",
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def KernelApproximateMathGpu : Pass<"kernel-approximate-math-gpu",
                                    "::mlir::gpu::GPUModuleOp"> {
  let summary = "Compute math functions by a GPU's instructions and formulas";
  let description = [{
    exp, division and square root become approximate instructions
    (`ex2.approx`, `div.full`, `rcp.approx`, `sqrt.approx`) within a few units in
    the last place, exp with `afn` within 6e-8 times its operand; log, erf and
    tanh the formulas of `kernel-approximate-math`; pow is made from exp and log.
    No function is called.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect"
  ];
}

def KernelGpuToNvvm : Pass<"kernel-gpu-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower GPU kernels to the LLVM and NVVM dialects";
  let description = [{
    As upstream's `convert-gpu-to-nvvm`, with bare pointers and without calls of
    libdevice.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def KernelPrintPtx : Pass<"kernel-print-ptx", "::mlir::ModuleOp"> {
  let summary = "Print the PTX of GPU kernels to the standard output";
  let description = [{
    For tests and for people; the module stays as it is. Its gpu.modules are in
    the LLVM dialect.
  }];
  let options = [
    Option<"architecture", "architecture", "int", "80",
           "80 for sm_80, 90 for sm_90">
  ];
}

#endif // PIPEWRIGHT_CODEGEN_KERNELS_PASSES_TD
