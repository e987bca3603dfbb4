//===- NNKernel.td - Calls of compiled kernels -------------*- tablegen -*-===//
//
// What is left of the compiled ops after nn-form-kernels: calls, and what they
// read where it lies.
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

def NN_SubviewOp : NN_Op<"subview", [
    Pure, NN_KnownByName, NN_Integers<"Picked">]> {
  let summary = "See some elements that follow each other, where they lie";
  let description = [{
    The elements from number `start` on, in row-major order, under another
    shape. It needs no code and no buffer: its place is in its operand's.
    Created by `nn-form-subviews` of slices; no gradient flows.

    Constraints:
    - (C1) the operand has as many elements from `start` on.
    - (C2) operand and result have one element type.
    - (C3) the first element lies at a multiple of 64 bytes, as all buffers do.

    Example:

    ```mlir
    %y = nn.subview %x at 2048 : tensor<4x8x128xf32> -> tensor<8x128xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, I64Attr:$start);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $x `at` $start attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kAlignment = 64;
    /// Bytes in front of the first element.
    int64_t getByteOffset();
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNKERNEL_TD
