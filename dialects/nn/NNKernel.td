//===- NNKernel.td - Calls of compiled kernels -------------*- tablegen -*-===//
//
// What is left of the compiled ops after nn-form-kernels: calls.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNKERNEL_TD
#define PIPEWRIGHT_DIALECTS_NN_NNKERNEL_TD

include "dialects/nn/NNEnums.td"
include "mlir/IR/SymbolInterfaces.td"

def NN_LaunchOp : NN_Op<"launch", [
    Pure, NN_KnownByName, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Call a compiled kernel";
  let description = [{
    The kernel's body is a `func.func` of nn ops in the nested module
    `@kernels`; equal bodies share one. Created by `nn-form-kernels`, consumed
    by codegen.

    Constraints:
    - (C1) the symbol names a function.
    - (C2) as long as the function takes and returns tensors, its type is that
      of operands and results.

    Example:

    ```mlir
    %y = nn.launch @kernels::@bias_gelu_4096x1024 (%x, %b)
      : (tensor<4096x1024xf32>, tensor<1024xf32>) -> tensor<4096x1024xf32>
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Variadic<NN_Tensor>:$inputs);
  let results = (outs Variadic<NN_Tensor>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNKERNEL_TD
