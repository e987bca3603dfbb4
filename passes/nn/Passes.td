//===- Passes.td - passes over nn ops ----------------------*- tablegen -*-===//
//
// One entry per pass. The flag nn-x-y is implemented in XY.cpp and tested in
// test/passes/nn/x-y.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_PASSES_TD
#define PIPEWRIGHT_PASSES_NN_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// nn-form-kernels
//===----------------------------------------------------------------------===//

def NNFormKernels : Pass<"nn-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Group compiled nn ops into kernels";
  let description = [{
    Groups every maximal connected set of compiled ops (those that are neither
    library calls, views nor structure) that fits one loop nest over rows into
    a function in the nested module `@kernels`, and calls it with `nn.launch`.
    Kernels with equal bodies are shared. Runs on every function of the module
    and on every region of another dialect's ops that holds nn ops.

    Idempotent: a launch is never grouped again.

    ```mlir
    %0 = nn.add %x, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    %1 = nn.gelu %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    // becomes
    %1 = nn.launch @kernels::@bias_gelu_8x16 (%x, %b) : ...
    ```
  }];
}

#endif // PIPEWRIGHT_PASSES_NN_PASSES_TD
