//===- CallLinear.td - Matrix products with more -----------*- tablegen -*-===//
//
// What libraries of GPUs compute in the kernel of a matrix product beside it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_CALL_CALLLINEAR_TD
#define PIPEWRIGHT_DIALECTS_CALL_CALLLINEAR_TD

include "dialects/call/CallBase.td"
include "mlir/IR/EnumAttr.td"

def Call_MatmulEpilogue
    : I32Enum<"MatmulEpilogue", "what a product does beside multiplying", [
    I32EnumCase<"Bias", 0, "bias">,
    I32EnumCase<"BiasGelu", 1, "bias_gelu">,
    I32EnumCase<"GeluGradient", 2, "gelu_gradient">,
    I32EnumCase<"GeluBiasGradient", 3, "gelu_bias_gradient">
  ]> {
  let cppNamespace = "::pipewright::call";
}
def Call_MatmulEpilogueAttr
    : EnumAttr<Call_Dialect, Call_MatmulEpilogue, "epilogue">;

def Call_MatmulEpilogueOp : Call_Op<"matmul_epilogue", [
    AttrSizedOperandSegments, NN_Precision<"FollowOperands">]> {
  let summary = "Multiply matrices and work on the product in the same kernel";
  let description = [{
    As `nn.matmul`, for one right matrix, with what GPU libraries can do to a
    product before they store it. GELU is the one of
    `nn.gelu approximate = tanh`.

    | epilogue | computes |
    |---|---|
    | `bias` | `y = a b + bias` |
    | `bias_gelu` | `pre_activation = a b + bias`, `y = gelu(a b + bias)` |
    | `gelu_gradient` | `y = a b * gelu'(pre_activation)` |
    | `gelu_bias_gradient` | the same, and `bias_gradient`: the sums of `y` over rows |

    Every result is rounded once, from f32. So in bf16 `bias` skips the
    rounding of the product that the ops one by one make; `bias_gelu` skips
    that, and applies GELU to the sum before it is rounded; `gelu_gradient`
    skips the rounding of the product.

    Made by `call-fuse-epilogues` after differentiation; it has no gradient.

    Constraints:
    - (C1) the operands are those of an `nn.matmul`; `b` has rank 2, and so has
      `a` if it is transposed.
    - (C2) there is a `bias` exactly with `bias` and `bias_gelu`: one element
      for each column, of the operands' element type.
    - (C3) there is a `pre_activation` operand exactly with `gelu_gradient` and
      `gelu_bias_gradient`: of the type of `y`.
    - (C4) the number of columns is a multiple of 8, except with `bias`: what
      cuBLASLt needs of a pre-activation.
    - (C5) `gelu_bias_gradient` is for f32: cuBLASLt writes the gradient of a
      bias in the type of `y`, and gradients of weights are f32.

    Example:

    ```mlir
    %y, %h = call.matmul_epilogue %x, %w transpose_b bias %b
        epilogue = bias_gelu
      : (tensor<4x128x64xf32>, tensor<256x64xf32>, tensor<256xf32>)
        -> (tensor<4x128x256xf32>, tensor<4x128x256xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b,
                       Optional<NN_FloatTensor>:$bias,
                       Optional<NN_FloatTensor>:$pre_activation,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       Call_MatmulEpilogueAttr:$epilogue);
  // What is beside y: the pre-activation, or the gradient of the bias.
  let results = (outs NN_FloatTensor:$y, Optional<NN_FloatTensor>:$beside);
  let assemblyFormat = [{
    $a `,` $b (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)?
    (`bias` $bias^)? (`pre_activation` $pre_activation^)?
    `epilogue` `=` $epilogue attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // PIPEWRIGHT_DIALECTS_CALL_CALLLINEAR_TD
