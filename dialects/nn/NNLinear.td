//===- NNLinear.td - Matrix products and convolutions ------*- tablegen -*-===//
//
// The ops where the arithmetic is; all of them are library calls.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLINEAR_TD
#define PIPEWRIGHT_DIALECTS_NN_NNLINEAR_TD

include "dialects/nn/NNEnums.td"

def NN_MatmulOp : NN_InferredOp<"matmul", [
    NN_Differentiable, NN_Cost, NN_Library, NN_Precision<"BF16">]> {
  let summary = "Multiply matrices, batched over the leading dimensions";
  let description = [{
    `a[..., M, K] * b[K, N]`, or `b[..., K, N]` with the batch dimensions of
    `a`. `transpose_a` and `transpose_b` say that the last two dimensions are
    stored the other way round. Sums are f32; `f32_result` says that they are
    not rounded to the operands' element type.

    Constraints:
    - (C1) both operands have rank 2 or more.
    - (C2) `b` has rank 2 or the batch dimensions of `a`.
    - (C3) the contracted dimensions are equal.
    - (C4) the operands have one element type.

    Example:

    ```mlir
    %y = nn.matmul %x, %w transpose_b
      : (tensor<4x128x64xf32>, tensor<32x64xf32>) -> tensor<4x128x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       UnitAttr:$f32_result);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)?
    (`f32_result` $f32_result^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_MatmulEpilogueOp : NN_InferredOp<"matmul_epilogue", [
    AttrSizedOperandSegments, NN_Cost, NN_Library,
    NN_Precision<"OfOperands">]> {
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

    Made by `nn-fuse-epilogues` after differentiation, for GPUs alone.

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
    %y, %h = nn.matmul_epilogue %x, %w transpose_b bias %b
        epilogue = bias_gelu
      : (tensor<4x128x64xf32>, tensor<256x64xf32>, tensor<256xf32>)
        -> (tensor<4x128x256xf32>, tensor<4x128x256xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$a, NN_FloatTensor:$b,
                       Optional<NN_FloatTensor>:$bias,
                       Optional<NN_FloatTensor>:$pre_activation,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       NN_MatmulEpilogueAttr:$epilogue);
  // What is beside y: the pre-activation, or the gradient of the bias.
  let results = (outs NN_FloatTensor:$y, Optional<NN_FloatTensor>:$beside);
  let assemblyFormat = [{
    $a `,` $b (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)?
    (`bias` $bias^)? (`pre_activation` $pre_activation^)?
    `epilogue` `=` $epilogue attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_ConvOp : NN_InferredOp<"conv", [
    NN_Differentiable, NN_Cost, NN_Library, NN_Precision<"BF16">]> {
  let summary = "Convolve images with a filter per output channel";
  let description = [{
    `x[N, C, H, W]` with `w[O, C/groups, kh, kw]` and an optional `bias[O]`.
    As everywhere in this field the filter is not flipped. `pads` is
    `[top, left, bottom, right]`. With `channels_last` it is
    `x[N, H, W, C]` with `w[O, kh, kw, C/groups]`; its gradients likewise.

    Constraints:
    - (C1) `x` and `w` have rank 4, and `bias` is `[O]`.
    - (C2) there are 2 strides and 2 dilations, all at least 1, and 4 pads,
      none negative.
    - (C3) `groups` is at least 1 and divides `C` and `O`.
    - (C4) `w` has `C / groups` input channels.
    - (C5) the dilated filter is not larger than the padded image.
    - (C6) the operands have one element type.

    Example:

    ```mlir
    %y = nn.conv %x, %w bias %b strides = [1, 1] pads = [1, 1, 1, 1]
        dilations = [1, 1] groups = 1
      : (tensor<8x3x32x32xf32>, tensor<64x3x3x3xf32>, tensor<64xf32>)
        -> tensor<8x64x32x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$w,
                       Optional<NN_FloatTensor>:$bias,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations, I64Attr:$groups,
                       UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $w (`bias` $bias^)? `strides` `=` $strides `pads` `=` $pads
    `dilations` `=` $dilations `groups` `=` $groups
    (`channels_last` $channels_last^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_ConvBackwardDataOp : NN_Op<"conv_backward_data", [
    Pure, NN_Cost, NN_Library, NN_Precision<"OfOperands">]> {
  let summary = "Gradient of a convolution with respect to its images";
  let description = [{
    Constraints:
    - (C1) `nn.conv` of the result and `w` with these attributes has the type
      of `dy`.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %dx = nn.conv_backward_data %dy, %w strides = [1, 1] pads = [1, 1, 1, 1]
        dilations = [1, 1] groups = 1
      : (tensor<8x64x32x32xf32>, tensor<64x3x3x3xf32>)
        -> tensor<8x3x32x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$w,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations, I64Attr:$groups,
                       UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $dy `,` $w `strides` `=` $strides `pads` `=` $pads
    `dilations` `=` $dilations `groups` `=` $groups
    (`channels_last` $channels_last^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_ConvBackwardWeightOp : NN_Op<"conv_backward_weight", [
    Pure, NN_Cost, NN_Library, NN_Precision<"OfOperands">]> {
  let summary = "Gradient of a convolution with respect to its filters";
  let description = [{
    Summed in f32, and left so.

    Constraints:
    - (C1) `nn.conv` of `x` and the result with these attributes has the type
      of `dy`, but for the result's element type.

    Example:

    ```mlir
    %dw = nn.conv_backward_weight %dy, %x strides = [1, 1]
        pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      : (tensor<8x64x32x32xf32>, tensor<8x3x32x32xf32>)
        -> tensor<64x3x3x3xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations, I64Attr:$groups,
                       UnitAttr:$channels_last);
  let results = (outs NN_F32Tensor:$result);
  let assemblyFormat = [{
    $dy `,` $x `strides` `=` $strides `pads` `=` $pads
    `dilations` `=` $dilations `groups` `=` $groups
    (`channels_last` $channels_last^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNLINEAR_TD
