//===- NNElementwise.td - Pointwise ops --------------------*- tablegen -*-===//
//
// Pointwise ops. Binary ops, compare and where broadcast as NumPy does:
// trailing dimensions are aligned, and a dimension of 1 stretches.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNELEMENTWISE_TD
#define PIPEWRIGHT_DIALECTS_NN_NNELEMENTWISE_TD

include "dialects/nn/NNEnums.td"

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

class NN_UnaryOp<string mnemonic, Type type, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(
          [Pure, SameOperandsAndResultType, NN_Differentiable,
           DeclareOpInterfaceMethods<CostOpInterface>], traits)> {
  let arguments = (ins type:$x);
  let results = (outs type:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def NN_NegOp : NN_UnaryOp<"neg", NN_NumericTensor> {
  let summary = "Negate each element";
  let description = [{
    `-x`.

    Example:

    ```mlir
    %y = nn.neg %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ExpOp : NN_UnaryOp<"exp", NN_FloatTensor> {
  let summary = "Take e to the power of each element";
  let description = [{
    `e^x`.

    Example:

    ```mlir
    %y = nn.exp %x : tensor<4x8xf32>
    ```
  }];
}

def NN_LogOp : NN_UnaryOp<"log", NN_FloatTensor> {
  let summary = "Take the natural logarithm of each element";
  let description = [{
    `ln x`.

    Example:

    ```mlir
    %y = nn.log %x : tensor<4x8xf32>
    ```
  }];
}

def NN_SqrtOp : NN_UnaryOp<"sqrt", NN_FloatTensor> {
  let summary = "Take the square root of each element";
  let description = [{
    `sqrt(x)`.

    Example:

    ```mlir
    %y = nn.sqrt %x : tensor<4x8xf32>
    ```
  }];
}

def NN_RsqrtOp : NN_UnaryOp<"rsqrt", NN_FloatTensor> {
  let summary = "Take one over the square root of each element";
  let description = [{
    `1 / sqrt(x)`.

    Example:

    ```mlir
    %y = nn.rsqrt %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ReciprocalOp : NN_UnaryOp<"reciprocal", NN_FloatTensor> {
  let summary = "Take one over each element";
  let description = [{
    `1 / x`.

    Example:

    ```mlir
    %y = nn.reciprocal %x : tensor<4x8xf32>
    ```
  }];
}

def NN_AbsOp : NN_UnaryOp<"abs", NN_NumericTensor> {
  let summary = "Take the absolute value of each element";
  let description = [{
    `|x|`; the gradient at 0 is 0.

    Example:

    ```mlir
    %y = nn.abs %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ErfOp : NN_UnaryOp<"erf", NN_FloatTensor> {
  let summary = "Apply the Gauss error function to each element";
  let description = [{
    `erf(x)`.

    Example:

    ```mlir
    %y = nn.erf %x : tensor<4x8xf32>
    ```
  }];
}

def NN_TanhOp : NN_UnaryOp<"tanh", NN_FloatTensor> {
  let summary = "Apply the hyperbolic tangent to each element";
  let description = [{
    `tanh(x)`.

    Example:

    ```mlir
    %y = nn.tanh %x : tensor<4x8xf32>
    ```
  }];
}

def NN_SigmoidOp : NN_UnaryOp<"sigmoid", NN_FloatTensor> {
  let summary = "Apply the logistic function to each element";
  let description = [{
    `1 / (1 + e^-x)`.

    Example:

    ```mlir
    %y = nn.sigmoid %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ReluOp : NN_UnaryOp<"relu", NN_FloatTensor> {
  let summary = "Replace negative elements by zero";
  let description = [{
    `max(x, 0)`; the gradient at 0 is 0.

    Example:

    ```mlir
    %y = nn.relu %x : tensor<4x8xf32>
    ```
  }];
}

def NN_LogicalNotOp : NN_Op<"logical_not", [
    Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "Negate each truth value";
  let description = [{
    No gradient flows.

    Example:

    ```mlir
    %y = nn.logical_not %x : tensor<4x8xi1>
    ```
  }];
  let arguments = (ins NN_BoolTensor:$x);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def NN_GeluOp : NN_Op<"gelu", [
    Pure, SameOperandsAndResultType, NN_Differentiable, NN_Cost]> {
  let summary = "Apply the Gaussian error linear unit to each element";
  let description = [{
    With `approximate = none`: `x/2 * (1 + erf(x / sqrt 2))`. With
    `approximate = tanh`:
    `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))`.

    Example:

    ```mlir
    %y = nn.gelu %x approximate = tanh : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x,
                       NN_GeluApproximationAttr:$approximate);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat =
      "$x `approximate` `=` $approximate attr-dict `:` type($result)";
}

def NN_GeluBackwardOp : NN_Op<"gelu_backward", [
    Pure, SameOperandsAndResultType, NN_Cost]> {
  let summary = "Multiply a gradient by the derivative of gelu at x";
  let description = [{
    Example:

    ```mlir
    %dx = nn.gelu_backward %dy, %x approximate = tanh : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x,
                       NN_GeluApproximationAttr:$approximate);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat =
      "$dy `,` $x `approximate` `=` $approximate attr-dict `:` type($result)";
}

def NN_CastOp : NN_Op<"cast", [Pure, NN_Differentiable]> {
  let summary = "Convert each element to another type";
  let description = [{
    To `i1`: whether the element is not zero. From `i1`: 0 or 1. From floats
    to `i64`: rounds towards zero. From `f32` to `bf16`: to the nearest, ties
    to even. Gradients flow between floats only.

    Constraints:
    - (C1) operand and result have the same shape.

    Example:

    ```mlir
    %y = nn.cast %mask : tensor<4x8xi1> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

class NN_BinaryOp<string mnemonic, Type type, list<Trait> traits = []>
    : NN_InferredOp<mnemonic, !listconcat(
          [DeclareOpInterfaceMethods<CostOpInterface>], traits)> {
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

def NN_AddOp : NN_BinaryOp<"add", NN_NumericTensor, [NN_Differentiable]> {
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

def NN_SubOp : NN_BinaryOp<"sub", NN_NumericTensor, [NN_Differentiable]> {
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

def NN_MulOp : NN_BinaryOp<"mul", NN_NumericTensor, [NN_Differentiable]> {
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

def NN_DivOp : NN_BinaryOp<"div", NN_NumericTensor, [NN_Differentiable]> {
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

def NN_PowOp : NN_BinaryOp<"pow", NN_FloatTensor, [NN_Differentiable]> {
  let summary = "Take the power of two tensors, element by element";
  let description = [{
    `a^b`, with broadcasting. The exponent gets a gradient only when it is not a constant;
    it is `dy * y * ln a`, so the base must then be positive.

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

def NN_MaximumOp : NN_BinaryOp<"maximum", NN_NumericTensor, [NN_Differentiable]> {
  let summary = "Take the larger of two tensors, element by element";
  let description = [{
    `max(a, b)`, with broadcasting. Where both are equal the first gets the gradient.

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

def NN_MinimumOp : NN_BinaryOp<"minimum", NN_NumericTensor, [NN_Differentiable]> {
  let summary = "Take the smaller of two tensors, element by element";
  let description = [{
    `min(a, b)`, with broadcasting. Where both are equal the first gets the gradient.

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

def NN_LogicalAndOp : NN_BinaryOp<"logical_and", NN_BoolTensor> {
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

def NN_LogicalOrOp : NN_BinaryOp<"logical_or", NN_BoolTensor> {
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
    DeclareOpInterfaceMethods<CostOpInterface>]> {
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
    NN_Differentiable, DeclareOpInterfaceMethods<CostOpInterface>]> {
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
