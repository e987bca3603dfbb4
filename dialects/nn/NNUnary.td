//===- NNUnary.td - Pointwise ops of one tensor -------------*- tablegen -*-===//
//
// Functions of each element by itself, and conversions.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNUNARY_TD
#define PIPEWRIGHT_DIALECTS_NN_NNUNARY_TD

include "dialects/nn/NNEnums.td"

/// `walk` says whether it may be computed again where its result is repeated.
class NN_UnaryOp<string mnemonic, Type type, string walk>
    : NN_Op<mnemonic, [
          Pure, SameOperandsAndResultType, NN_Differentiable,
          NN_Elementwise<walk>, NN_FlopsPerElement<1>,
          NN_Precision<"FollowOperands">, NN_Integers<"Computed">]> {
  let arguments = (ins type:$x);
  let results = (outs type:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def NN_NegOp : NN_UnaryOp<"neg", NN_NumericTensor, "Cheap"> {
  let summary = "Negate each element";
  let description = [{
    `-x`.

    Example:

    ```mlir
    %y = nn.neg %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ExpOp : NN_UnaryOp<"exp", NN_FloatTensor, "Costly"> {
  let summary = "Take e to the power of each element";
  let description = [{
    `e^x`.

    Example:

    ```mlir
    %y = nn.exp %x : tensor<4x8xf32>
    ```
  }];
}

def NN_LogOp : NN_UnaryOp<"log", NN_FloatTensor, "Costly"> {
  let summary = "Take the natural logarithm of each element";
  let description = [{
    `ln x`.

    Example:

    ```mlir
    %y = nn.log %x : tensor<4x8xf32>
    ```
  }];
}

def NN_Expm1Op : NN_UnaryOp<"expm1", NN_FloatTensor, "Costly"> {
  let summary = "Take e to the power of each element, minus one";
  let description = [{
    `e^x - 1`, precise near 0, where the difference would lose its digits.

    Example:

    ```mlir
    %y = nn.expm1 %x : tensor<4x8xf32>
    ```
  }];
}

def NN_Log1pOp : NN_UnaryOp<"log1p", NN_FloatTensor, "Costly"> {
  let summary = "Take the natural logarithm of one plus each element";
  let description = [{
    `ln(1 + x)`, precise near 0, where the sum would lose the digits of `x`.

    Example:

    ```mlir
    %y = nn.log1p %x : tensor<4x8xf32>
    ```
  }];
}

def NN_SqrtOp : NN_UnaryOp<"sqrt", NN_FloatTensor, "Costly"> {
  let summary = "Take the square root of each element";
  let description = [{
    `sqrt(x)`.

    Example:

    ```mlir
    %y = nn.sqrt %x : tensor<4x8xf32>
    ```
  }];
}

def NN_RsqrtOp : NN_UnaryOp<"rsqrt", NN_FloatTensor, "Costly"> {
  let summary = "Take one over the square root of each element";
  let description = [{
    `1 / sqrt(x)`.

    Example:

    ```mlir
    %y = nn.rsqrt %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ReciprocalOp : NN_UnaryOp<"reciprocal", NN_FloatTensor, "Costly"> {
  let summary = "Take one over each element";
  let description = [{
    `1 / x`.

    Example:

    ```mlir
    %y = nn.reciprocal %x : tensor<4x8xf32>
    ```
  }];
}

def NN_AbsOp : NN_UnaryOp<"abs", NN_NumericTensor, "Costly"> {
  let summary = "Take the absolute value of each element";
  let description = [{
    `|x|`; the gradient at 0 is 0.

    Example:

    ```mlir
    %y = nn.abs %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ErfOp : NN_UnaryOp<"erf", NN_FloatTensor, "Costly"> {
  let summary = "Apply the Gauss error function to each element";
  let description = [{
    `erf(x)`.

    Example:

    ```mlir
    %y = nn.erf %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ErfcOp : NN_UnaryOp<"erfc", NN_FloatTensor, "Costly"> {
  let summary = "Apply the complementary error function to each element";
  let description = [{
    `1 - erf(x)`, without the digits that the difference loses where `erf(x)` is
    near 1.

    Example:

    ```mlir
    %y = nn.erfc %x : tensor<4x8xf32>
    ```
  }];
}

def NN_SinOp : NN_UnaryOp<"sin", NN_FloatTensor, "Costly"> {
  let summary = "Take the sine of each element, in radians";
  let description = [{
    `sin x`, within 2e-7 for `|x|` up to 1e6, such as positions times
    frequencies. Beyond that digits are lost, as the argument has few left; the
    result stays between -1 and 1.

    Example:

    ```mlir
    %y = nn.sin %x : tensor<4x8xf32>
    ```
  }];
}

def NN_CosOp : NN_UnaryOp<"cos", NN_FloatTensor, "Costly"> {
  let summary = "Take the cosine of each element, in radians";
  let description = [{
    `cos x`, as precise as `nn.sin`.

    Example:

    ```mlir
    %y = nn.cos %x : tensor<4x8xf32>
    ```
  }];
}

def NN_AtanOp : NN_UnaryOp<"atan", NN_FloatTensor, "Costly"> {
  let summary = "Take the arc tangent of each element, in radians";
  let description = [{
    `atan x`, between -pi / 2 and pi / 2; the gradient is `1 / (1 + x^2)`.

    Example:

    ```mlir
    %y = nn.atan %x : tensor<4x8xf32>
    ```
  }];
}

def NN_TanhOp : NN_UnaryOp<"tanh", NN_FloatTensor, "Costly"> {
  let summary = "Apply the hyperbolic tangent to each element";
  let description = [{
    `tanh(x)`.

    Example:

    ```mlir
    %y = nn.tanh %x : tensor<4x8xf32>
    ```
  }];
}

def NN_SigmoidOp : NN_UnaryOp<"sigmoid", NN_FloatTensor, "Costly"> {
  let summary = "Apply the logistic function to each element";
  let description = [{
    `1 / (1 + e^-x)`.

    Example:

    ```mlir
    %y = nn.sigmoid %x : tensor<4x8xf32>
    ```
  }];
}

def NN_ReluOp : NN_UnaryOp<"relu", NN_FloatTensor, "Costly"> {
  let summary = "Replace negative elements by zero";
  let description = [{
    `max(x, 0)`; the gradient at 0 is 0.

    Example:

    ```mlir
    %y = nn.relu %x : tensor<4x8xf32>
    ```
  }];
}

def NN_SoftplusOp : NN_UnaryOp<"softplus", NN_FloatTensor, "Costly"> {
  let summary = "Apply a smooth form of relu to each element";
  let description = [{
    `ln(1 + e^x)`, computed as `max(x, 0) + ln(1 + e^-|x|)`, which neither
    overflows nor loses digits. The gradient is `sigmoid(x)`.

    Example:

    ```mlir
    %y = nn.softplus %x : tensor<4x8xf32>
    ```
  }];
}

def NN_LogicalNotOp : NN_Op<"logical_not", [
    Pure, SameOperandsAndResultType, NN_Elementwise<"Cheap">,
    NN_FlopsPerElement<1>, NN_Precision<"FollowOperands">]> {
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
    Pure, SameOperandsAndResultType, NN_Differentiable,
    NN_Elementwise<"Costly">, NN_Cost, NN_Precision<"FollowOperands">]> {
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
    Pure, SameOperandsAndResultType, NN_Elementwise<"Costly">, NN_Cost,
    NN_Precision<"FollowOperands">]> {
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

def NN_CastOp : NN_Op<"cast", [
    Pure, NN_Differentiable, NN_Elementwise<"Cheap">, NN_FlopsPerElement<0>,
    NN_Precision<"Any">, NN_Integers<"Computed">]> {
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

def NN_FakeQuantizeOp : NN_Op<"fake_quantize", [
    Pure, SameOperandsAndResultType, NN_Differentiable,
    NN_Elementwise<"Costly">, NN_FlopsPerElement<1>,
    NN_Precision<"FollowOperands">]> {
  let summary = "Round each element to a number that a float of 8 bits can have";
  let description = [{
    To the nearest, ties to even, as ONNX casts to float8 and back. What is too
    large becomes the largest number of its sign with `saturate`, and without it
    infinity, or NaN in formats that have none. NaN stays NaN.

    The gradient passes as it is (the straight-through estimator of Bengio,
    Léonard and Courville, 2013): the derivative is 0 nearly everywhere.

    Example:

    ```mlir
    %y = nn.fake_quantize %x to f8E4M3FN saturate : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatFormatAttr:$format,
                       UnitAttr:$saturate);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `to` $format (`saturate` $saturate^)? attr-dict `:` type($result)
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNUNARY_TD
