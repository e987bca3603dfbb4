//===- Passes.td - conversions out of the nn dialect -------*- tablegen -*-===//
//
// One entry per pass. The flag convert-x-to-y is implemented in XToY.cpp and
// tested in test/codegen/kernels/linalg/x-to-y.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_CONVERSION_PASSES_TD
#define PIPEWRIGHT_PASSES_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertNNToLinalg : Pass<"convert-nn-to-linalg"> {
  let summary = "Say what each compiled nn op means in linalg on tensors";
  let description = [{
    Every compiled op becomes `linalg.generic` ops with one result each; shape
    ops become tensor views where they can. Library ops are an error: they are
    never part of a kernel.

    ```mlir
    %s = nn.reduce_sum %x axes = [1] : tensor<8x16xf32> -> tensor<8xf32>
    // becomes
    %s = linalg.generic {iterator_types = ["parallel", "reduction"], ...}
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // PIPEWRIGHT_PASSES_CONVERSION_PASSES_TD
