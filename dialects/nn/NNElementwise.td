//===- NNElementwise.td - Pointwise ops of several tensors -*- tablegen -*-===//
//
// Binary ops, compare and where; operands broadcast as NumPy does:
// trailing dimensions are aligned, and a dimension of 1 stretches.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNELEMENTWISE_TD
#define PIPEWRIGHT_DIALECTS_NN_NNELEMENTWISE_TD

include "dialects/nn/NNEnums.td"

/// `walk` says whether it may be computed again where its result is repeated.
class NN_BinaryOp<string mnemonic, Type type, string walk,
                  list<Trait> traits = []>
    : NN_InferredOp<mnemonic, !listconcat(
          [NN_Elementwise<walk>, NN_FlopsPerElement<1>,
           NN_Precision<"FollowOperands">, NN_Integers<"Computed">], traits)> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat =
      "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context,
        ::std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferElementwise({location, getOperationName()},
                              adaptor.getLhs(), adaptor.getRhs(), types);
    }
  }];
}

def NN_AddOp : NN_BinaryOp<"add", NN_NumericTensor, "Cheap",
    [NN_Differentiable]> {
  let summary = "Add two tensors, element by element";
  let description = [{
    `a + b`, with broadcasting.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.add %a, %b
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
}

def NN_SubOp : NN_BinaryOp<"sub", NN_NumericTensor, "Cheap",
    [NN_Differentiable]> {
  let summary = "Subtract two tensors, element by element";
  let description = [{
    `a - b`, with broadcasting.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.sub %a, %b
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
}

def NN_MulOp : NN_BinaryOp<"mul", NN_NumericTensor, "Cheap",
    [NN_Differentiable]> {
  let summary = "Multiply two tensors, element by element";
  let description = [{
    `a * b`, with broadcasting.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.mul %a, %b
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
}

def NN_DivOp : NN_BinaryOp<"div", NN_NumericTensor, "Costly",
    [NN_Differentiable]> {
  let summary = "Divide two tensors, element by element";
  let description = [{
    `a / b`, rounded towards zero for i64; `a / 0` is undefined for i64, with broadcasting.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.div %a, %b
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
}

def NN_PowOp : NN_BinaryOp<"pow", NN_FloatTensor, "Costly",
    [NN_Differentiable]> {
  let summary = "Take the power of two tensors, element by element";
  let description = [{
    `a^b`, with broadcasting. The base's gradient is 0 where the exponent is 0.
    The exponent gets a gradient only when it is not a constant: `dy * y * ln a`,
    and 0 where the base is 0 and the exponent is not negative.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.pow %a, %b
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
}

def NN_MaximumOp : NN_BinaryOp<"maximum", NN_NumericTensor, "Costly",
    [NN_Differentiable]> {
  let summary = "Take the larger of two tensors, element by element";
  let description = [{
    `max(a, b)`, with broadcasting. Where both are equal each gets half of the
    gradient.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.maximum %a, %b
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
}

def NN_MinimumOp : NN_BinaryOp<"minimum", NN_NumericTensor, "Costly",
    [NN_Differentiable]> {
  let summary = "Take the smaller of two tensors, element by element";
  let description = [{
    `min(a, b)`, with broadcasting. Where both are equal each gets half of the
    gradient.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.minimum %a, %b
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
}

def NN_LogicalAndOp : NN_BinaryOp<"logical_and", NN_BoolTensor, "Cheap"> {
  let summary = "And two tensors, element by element";
  let description = [{
    `a and b`, with broadcasting. No gradient flows.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.logical_and %a, %b
      : (tensor<4x8xi1>, tensor<8xi1>) -> tensor<4x8xi1>
    ```
  }];
}

def NN_LogicalOrOp : NN_BinaryOp<"logical_or", NN_BoolTensor, "Cheap"> {
  let summary = "Or two tensors, element by element";
  let description = [{
    `a or b`, with broadcasting. No gradient flows.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.logical_or %a, %b
      : (tensor<4x8xi1>, tensor<8xi1>) -> tensor<4x8xi1>
    ```
  }];
}

def NN_CompareOp : NN_InferredOp<"compare", [
    NN_Elementwise<"Cheap">, NN_FlopsPerElement<1>,
    NN_Precision<"FollowOperands">, NN_Integers<"Computed">]> {
  let summary = "Compare two tensors, element by element";
  let description = [{
    Ordered comparison with broadcasting: a NaN compares false except for
    `ne`. No gradient flows.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) the operands have one element type.

    Example:

    ```mlir
    %c = nn.compare %a, %b predicate = le
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
    ```
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs,
                       NN_ComparePredicateAttr:$predicate);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `predicate` `=` $predicate attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_WhereOp : NN_InferredOp<"where", [
    NN_Differentiable, NN_Elementwise<"Cheap">, NN_FlopsPerElement<1>,
    NN_Precision<"FollowOperands">, NN_Integers<"Computed">]> {
  let summary = "Choose between two tensors, element by element";
  let description = [{
    The element of `a` where the condition holds, else that of `b`. All three
    operands broadcast.

    Constraints:
    - (C1) the operands' shapes broadcast.
    - (C2) `a` and `b` have one element type.

    Example:

    ```mlir
    %c = nn.where %mask, %a, %b
      : (tensor<8x8xi1>, tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
    ```
  }];
  let arguments = (ins NN_BoolTensor:$cond, NN_Tensor:$a, NN_Tensor:$b);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $cond `,` $a `,` $b attr-dict `:` functional-type(operands, results)
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNELEMENTWISE_TD
