//===- NNPooling.td - Pooling over windows -----------------*- tablegen -*-===//
//
// Spatial pooling. max_pool keeps where each maximum was, as its position in
// the window: one byte, whatever the size of the image.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNPOOLING_TD
#define PIPEWRIGHT_DIALECTS_NN_NNPOOLING_TD

include "dialects/nn/NNEnums.td"

def NN_MaxPoolOp : NN_InferredOp<"max_pool", [
    NN_Differentiable, NN_Cost, NN_Library, NN_Precision<"FollowOperands">]> {
  let summary = "Take the largest element of each window of an image";
  let description = [{
    `x[N, C, H, W]`, or `x[N, H, W, C]` with `channels_last`; `pads` is
    `[top, left, bottom, right]`. Padding is never the maximum. `window` is the row-major position of the maximum inside its
    window, the first of several. Sizes are rounded down.

    Constraints:
    - (C1) `x` has rank 4.
    - (C2) there are 2 kernel sizes, strides and dilations, all at least 1, and
      4 pads, none negative.
    - (C3) the dilated window is not larger than the padded image.
    - (C4) the window has at most 127 positions.
    - (C5) every window has an element that is not padding.

    Example:

    ```mlir
    %y, %window = nn.max_pool %x kernel = [2, 2] strides = [2, 2]
        pads = [0, 0, 0, 0] dilations = [1, 1]
      : tensor<8x64x32x32xf32>
        -> (tensor<8x64x16x16xf32>, tensor<8x64x16x16xi8>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations,
                       UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$y, NN_WindowTensor:$window);
  let assemblyFormat = [{
    $x `kernel` `=` $kernel `strides` `=` $strides `pads` `=` $pads
    `dilations` `=` $dilations
    (`channels_last` $channels_last^)? attr-dict
    `:` type($x) `->` `(` type($y) `,` type($window) `)`
  }];
}

def NN_MaxPoolBackwardOp : NN_Op<"max_pool_backward", [
    Pure, NN_Cost, NN_Library, NN_Precision<"FollowOperands">]> {
  let summary = "Add each gradient to the element that was the maximum";
  let description = [{
    Constraints:
    - (C1) `dy` and `window` have the same shape.
    - (C2) `nn.max_pool` of the result with these attributes has the type of
      `dy`.

    Example:

    ```mlir
    %dx = nn.max_pool_backward %dy, %window kernel = [2, 2] strides = [2, 2]
        pads = [0, 0, 0, 0] dilations = [1, 1]
      : (tensor<8x64x16x16xf32>, tensor<8x64x16x16xi8>)
        -> tensor<8x64x32x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_WindowTensor:$window,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
                       UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $dy `,` $window `kernel` `=` $kernel `strides` `=` $strides
    `pads` `=` $pads `dilations` `=` $dilations
    (`channels_last` $channels_last^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_AveragePoolOp : NN_InferredOp<"average_pool", [
    NN_Differentiable, NN_Cost, NN_Library, NN_Precision<"FollowOperands">]> {
  let summary = "Average each window of an image";
  let description = [{
    `x[N, C, H, W]`, or `x[N, H, W, C]` with `channels_last`; `pads` is
    `[top, left, bottom, right]`. With `count_include_pad` every window is divided by its full size, else by the
    number of elements that are not padding. Sizes are rounded down.

    Constraints:
    - (C1) `x` has rank 4.
    - (C2) there are 2 kernel sizes and strides, all at least 1, and 4 pads,
      none negative.
    - (C3) the window is not larger than the padded image.
    - (C4) every window has an element that is not padding.

    Example:

    ```mlir
    %y = nn.average_pool %x kernel = [2, 2] strides = [2, 2]
        pads = [0, 0, 0, 0] count_include_pad
      : tensor<8x64x32x32xf32> -> tensor<8x64x16x16xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       UnitAttr:$count_include_pad,
                       UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `kernel` `=` $kernel `strides` `=` $strides `pads` `=` $pads
    (`count_include_pad` $count_include_pad^)?
    (`channels_last` $channels_last^)? attr-dict
    `:` type($x) `->` type($result)
  }];
}

def NN_AveragePoolBackwardOp : NN_Op<"average_pool_backward", [
    Pure, NN_Cost, NN_Library, NN_Precision<"FollowOperands">]> {
  let summary = "Spread each gradient over its window";
  let description = [{
    Constraints:
    - (C1) `nn.average_pool` of the result with these attributes has the type
      of `dy`.

    Example:

    ```mlir
    %dx = nn.average_pool_backward %dy kernel = [2, 2] strides = [2, 2]
        pads = [0, 0, 0, 0] count_include_pad
      : tensor<8x64x16x16xf32> -> tensor<8x64x32x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       UnitAttr:$count_include_pad,
                       UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $dy `kernel` `=` $kernel `strides` `=` $strides `pads` `=` $pads
    (`count_include_pad` $count_include_pad^)?
    (`channels_last` $channels_last^)? attr-dict
    `:` type($dy) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNPOOLING_TD
