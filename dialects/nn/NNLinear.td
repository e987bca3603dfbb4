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
    Pure, NN_Differentiable, NN_Cost, NN_Library, NN_Precision<"BF16">]> {
  let summary = "Gradient of a convolution with respect to its images";
  let description = [{
    In a model it is a transposed convolution of the images `dy`.

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
    Pure, NN_Cost, NN_Library, NN_Precision<"FollowOperands">]> {
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
