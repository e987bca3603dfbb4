//===- NNShape.td - Ops that move elements -----------------*- tablegen -*-===//
//
// Views, permutations, slices and gathers: no arithmetic, except where the
// gradient of a gather adds up.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNSHAPE_TD
#define PIPEWRIGHT_DIALECTS_NN_NNSHAPE_TD

include "dialects/nn/NNEnums.td"

def NN_ReshapeOp : NN_Op<"reshape", [
    Pure, NN_Differentiable, ViewOpInterface, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">, NN_Integers<"Moved">]> {
  let summary = "See the same elements, in row-major order, under another shape";
  let description = [{
    Constraints:
    - (C1) operand and result have as many elements.
    - (C2) operand and result have one element type.

    Example:

    ```mlir
    %y = nn.reshape %x : tensor<4x8x16xf32> -> tensor<32x16xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_TransposeOp : NN_InferredOp<"transpose", [
    NN_Differentiable, NN_Kernel, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">, NN_Integers<"Moved">]> {
  let summary = "Permute the dimensions";
  let description = [{
    Dimension `i` of the result is dimension `permutation[i]` of the operand.

    Constraints:
    - (C1) the permutation has each dimension of the operand once.

    Example:

    ```mlir
    %y = nn.transpose %x permutation = [0, 2, 1, 3]
      : tensor<2x128x4x64xf32> -> tensor<2x4x128x64xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $x `permutation` `=` $permutation attr-dict
    `:` type($x) `->` type($result)
  }];
  let hasFolder = 1;
}

def NN_SliceOp : NN_InferredOp<"slice", [
    NN_Differentiable, NN_Kernel, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">, NN_Integers<"Picked">]> {
  let summary = "Take a strided box out of a tensor";
  let description = [{
    Element `i` of the result along a dimension is element
    `start + i * step` of the operand. A negative step walks backwards.

    Constraints:
    - (C1) `starts`, `sizes` and `steps` have one entry per dimension.
    - (C2) sizes are at least 1 and steps are not 0.
    - (C3) first and last element along each dimension lie in the operand.

    Example:

    ```mlir
    %y = nn.slice %x starts = [0, 64] sizes = [4, 64] steps = [1, 1]
      : tensor<4x192xf32> -> tensor<4x64xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $x `starts` `=` $starts `sizes` `=` $sizes `steps` `=` $steps attr-dict
    `:` type($x) `->` type($result)
  }];
  let hasFolder = 1;
}

def NN_PadOp : NN_InferredOp<"pad", [
    NN_Differentiable, NN_Kernel, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">, NN_Integers<"Moved">]> {
  let summary = "Put zeros around a tensor";
  let description = [{
    `low[i]` zeros before and `high[i]` zeros after dimension `i`.

    Constraints:
    - (C1) `low` and `high` have one entry per dimension, none negative.

    Example:

    ```mlir
    %y = nn.pad %x low = [0, 1] high = [0, 2]
      : tensor<4x8xf32> -> tensor<4x11xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $x `low` `=` $low `high` `=` $high attr-dict
    `:` type($x) `->` type($result)
  }];
  let hasFolder = 1;
}

def NN_ConcatOp : NN_InferredOp<"concat", [
    NN_Differentiable, NN_Kernel, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">, NN_Integers<"Moved">]> {
  let summary = "Put tensors after each other along one dimension";
  let description = [{
    Constraints:
    - (C1) there is at least one operand, and all have one element type.
    - (C2) the axis is a dimension of the operands.
    - (C3) the operands agree in rank and in every dimension but the axis.

    Example:

    ```mlir
    %c = nn.concat %a, %b axis = 1
      : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $inputs `axis` `=` $axis attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def NN_BroadcastToOp : NN_Op<"broadcast_to", [
    Pure, NN_Differentiable, NN_Elementwise<"Cheap">, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">, NN_Integers<"Moved">]> {
  let summary = "Repeat a tensor up to a larger shape";
  let description = [{
    Constraints:
    - (C1) the operand's shape broadcasts to the result's shape.
    - (C2) operand and result have one element type.

    Example:

    ```mlir
    %y = nn.broadcast_to %x : tensor<8x1xf32> -> tensor<4x8x16xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_EmbeddingOp : NN_InferredOp<"embedding", [
    NN_Differentiable, NN_Library, NN_Indexes, NN_FlopsPerElement<0>,
    NN_Precision<"FollowOperands">]> {
  let summary = "Look up rows of a table";
  let description = [{
    Row `indices[i]` of the table for each index. Every index must lie in
    `[0, V)`: the program refuses data with others, before it runs where an
    input's values reach the op as they are, else in the step. `padding_row`
    is a row whose lookups give it no gradient (PyTorch's `padding_idx`).

    Constraints:
    - (C1) the table has rank 2.
    - (C2) `padding_row` is a row of the table.

    Example:

    ```mlir
    %y = nn.embedding %table, %tokens
      : (tensor<512x64xf32>, tensor<4x128xi64>) -> tensor<4x128x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$table, NN_IndexTensor:$indices,
                   OptionalAttr<I64Attr>:$padding_row);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $table `,` $indices attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// How many rows the model's file has: padding adds rows behind them.
    int64_t countRows();
  }];
  let hasVerifier = 1;
}

def NN_EmbeddingBackwardOp : NN_Op<"embedding_backward", [
    Pure, NN_Differentiable, NN_Cost, NN_Library, NN_Indexes,
    NN_Precision<"F32">]> {
  let summary = "Add gradients into the rows that were looked up";
  let description = [{
    Rows that are looked up several times are summed in index order and in
    f32; rows that are not are zero, and so is `padding_row`. In a model it
    adds rows `dy` at computed places.

    Constraints:
    - (C1) the result has rank 2.
    - (C2) `dy` has the indices' shape followed by the result's columns.
    - (C3) `padding_row` is a row of the result.

    Example:

    ```mlir
    %dtable = nn.embedding_backward %dy, %tokens
      : (tensor<4x128x64xf32>, tensor<4x128xi64>) -> tensor<512x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_IndexTensor:$indices,
                   OptionalAttr<I64Attr>:$padding_row);
  let results = (outs NN_F32Tensor:$result);
  let assemblyFormat = [{
    $dy `,` $indices attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNSHAPE_TD
