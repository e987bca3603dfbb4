//===- NNNormalization.td - Normalizations and softmax -----*- tablegen -*-===//
//
// Row statistics and what is computed from them. Each op keeps the statistics
// as results, because its backward op needs them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNNORMALIZATION_TD
#define PIPEWRIGHT_DIALECTS_NN_NNNORMALIZATION_TD

include "dialects/nn/NNEnums.td"
include "mlir/IR/SymbolInterfaces.td"

def NN_LayerNormOp : NN_InferredOp<"layer_norm", [
    NN_Differentiable, NN_Cost, NN_Kernel, NN_Precision<"FollowOperands">]> {
  let summary = "Normalize the last dimension to mean 0 and variance 1";
  let description = [{
    `y = (x - mean) * rstd * scale + bias` with the biased variance and
    `rstd = 1 / sqrt(variance + epsilon)`. `mean` and `rstd` have the shape of
    `x` without its last dimension.

    Constraints:
    - (C1) `x` has rank 1 or more.
    - (C2) `scale` and `bias` have the shape of the last dimension of `x`.

    Example:

    ```mlir
    %y, %mean, %rstd = nn.layer_norm %x, %scale, %bias epsilon = 1.0e-5
      : (tensor<4x128x64xf32>, tensor<64xf32>, tensor<64xf32>)
        -> (tensor<4x128x64xf32>, tensor<4x128xf32>, tensor<4x128xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale,
                       NN_FloatTensor:$bias, F32Attr:$epsilon);
  let results = (outs NN_FloatTensor:$y, NN_F32Tensor:$mean,
                      NN_F32Tensor:$rstd);
  let assemblyFormat = [{
    $x `,` $scale `,` $bias `epsilon` `=` $epsilon attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_LayerNormBackwardOp : NN_InferredOp<"layer_norm_backward", [
    NN_Cost, NN_Kernel, NN_Precision<"FollowOperands">]> {
  let summary = "Gradients of layer_norm with respect to its operands";
  let description = [{
    Constraints:
    - (C1) `dy` has the type of `x`, which has rank 1 or more.
    - (C2) `scale` has the shape of the last dimension of `x`.
    - (C3) `mean` and `rstd` have the shape of `x` without its last dimension.

    Example:

    ```mlir
    %dx, %dscale, %dbias = nn.layer_norm_backward %dy, %x, %scale, %mean, %rstd
      : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<64xf32>, tensor<4xf32>,
         tensor<4xf32>) -> (tensor<4x64xf32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x,
                       NN_FloatTensor:$scale, NN_F32Tensor:$mean,
                       NN_F32Tensor:$rstd);
  let results = (outs NN_FloatTensor:$dx, NN_F32Tensor:$dscale,
                      NN_F32Tensor:$dbias);
  let assemblyFormat = [{
    $dy `,` $x `,` $scale `,` $mean `,` $rstd attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_BatchNormOp : NN_Op<"batch_norm", [
    InferTypeOpAdaptor, NN_Differentiable, NN_Cost, NN_Kernel,
    NN_Precision<"FollowOperands">,
    DeclareOpInterfaceMethods<StatefulOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Normalize each channel over the micro-batch";
  let description = [{
    Dimension 1 is the channel; with `channels_last` the last one is. `y = (x - mean) / sqrt(variance + epsilon) *
    scale + bias` with mean and biased variance over all other dimensions.

    With the two symbols it also updates the running statistics,
    `running = momentum * running + (1 - momentum) * batch`, and has an effect
    on state; without them it is pure. In evaluation it uses the running
    statistics instead of the batch's. The running variance takes the batch's
    biased variance, or with `sample_variance` the unbiased one, which is
    n / (n - 1) times as large for n values per channel.

    Constraints:
    - (C1) `x` has rank 2 or more.
    - (C2) `scale` and `bias` have the shape of the channels of `x`.
    - (C3) both running statistics are given or none is.
    - (C4) a running statistic names an `nn.weight` whose role is `state` and
      whose type is that of `mean`.
    - (C5) `sample_variance` stands beside running statistics only, and a
      channel then has two values or more.

    Example:

    ```mlir
    %y, %mean, %variance = nn.batch_norm %x, %scale, %bias epsilon = 1.0e-5
        momentum = 0.9 running_mean = @bn.mean running_variance = @bn.variance
      : (tensor<8x64x16x16xf32>, tensor<64xf32>, tensor<64xf32>)
        -> (tensor<8x64x16x16xf32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale,
                       NN_FloatTensor:$bias, F32Attr:$epsilon,
                       F32Attr:$momentum,
                       OptionalAttr<FlatSymbolRefAttr>:$running_mean,
                       OptionalAttr<FlatSymbolRefAttr>:$running_variance,
                       UnitAttr:$sample_variance, UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$y, NN_F32Tensor:$mean,
                      NN_F32Tensor:$variance);
  let assemblyFormat = [{
    $x `,` $scale `,` $bias `epsilon` `=` $epsilon `momentum` `=` $momentum
    (`running_mean` `=` $running_mean^)?
    (`running_variance` `=` $running_variance^)?
    (`sample_variance` $sample_variance^)?
    (`channels_last` $channels_last^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_BatchNormBackwardOp : NN_InferredOp<"batch_norm_backward", [
    NN_Cost, NN_Kernel, NN_Precision<"FollowOperands">]> {
  let summary = "Gradients of batch_norm with respect to its operands";
  let description = [{
    `mean` and `variance` are those of the micro-batch.

    Constraints:
    - (C1) `dy` has the type of `x`, which has rank 2 or more.
    - (C2) `scale`, `mean` and `variance` have the shape of the channels of
      `x`.

    Example:

    ```mlir
    %dx, %dscale, %dbias = nn.batch_norm_backward %dy, %x, %scale, %mean,
        %variance epsilon = 1.0e-5
      : (tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32>,
         tensor<64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x,
                       NN_FloatTensor:$scale, NN_F32Tensor:$mean,
                       NN_F32Tensor:$variance, F32Attr:$epsilon,
                       UnitAttr:$channels_last);
  let results = (outs NN_FloatTensor:$dx, NN_F32Tensor:$dscale,
                      NN_F32Tensor:$dbias);
  let assemblyFormat = [{
    $dy `,` $x `,` $scale `,` $mean `,` $variance `epsilon` `=` $epsilon
    (`channels_last` $channels_last^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_GroupNormOp : NN_InferredOp<"group_norm", [
    NN_Differentiable, NN_Cost, NN_Kernel, NN_Precision<"FollowOperands">]> {
  let summary = "Normalize each sample's groups of channels";
  let description = [{
    Dimension 1 is the channel; its `groups` equal parts are normalized together
    with all dimensions behind it: `y = (x - mean) / sqrt(variance + epsilon) *
    scale + bias` with the mean and the biased variance of the group, which have
    the shape `[x.dim(0), groups]`. As many groups as channels are instance
    normalization.

    Constraints:
    - (C1) `x` has rank 3 or more.
    - (C2) `groups` is positive and divides the number of channels.
    - (C3) `scale` and `bias` have the shape of the channels of `x`.

    Example:

    ```mlir
    %y, %mean, %variance = nn.group_norm %x, %scale, %bias groups = 8
        epsilon = 1.0e-5
      : (tensor<2x64x16x16xf32>, tensor<64xf32>, tensor<64xf32>)
        -> (tensor<2x64x16x16xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale,
                       NN_FloatTensor:$bias, I64Attr:$groups,
                       F32Attr:$epsilon);
  let results = (outs NN_FloatTensor:$y, NN_F32Tensor:$mean,
                      NN_F32Tensor:$variance);
  let assemblyFormat = [{
    $x `,` $scale `,` $bias `groups` `=` $groups `epsilon` `=` $epsilon
    attr-dict `:` functional-type(operands, results)
  }];
}

def NN_GroupNormBackwardOp : NN_InferredOp<"group_norm_backward", [
    NN_Cost, NN_Kernel, NN_Precision<"FollowOperands">]> {
  let summary = "Gradients of group_norm with respect to its operands";
  let description = [{
    With `h = dy * scale` and the normalized `n`, `sum` and `dot` are the sums of
    `h` and of `h * n` over each group, of which `dx` is made.

    Constraints:
    - (C1) `dy` has the type of `x`, which has rank 3 or more.
    - (C2) `scale` has the shape of the channels of `x`.
    - (C3) `mean` and `variance` have the same shape `[x.dim(0), groups]`, and
      the groups divide the number of channels.

    Example:

    ```mlir
    %dx, %dscale, %dbias, %sum, %dot = nn.group_norm_backward %dy, %x, %scale,
        %mean, %variance epsilon = 1.0e-5
      : (tensor<2x64x9xf32>, tensor<2x64x9xf32>, tensor<64xf32>, tensor<2x8xf32>,
         tensor<2x8xf32>)
        -> (tensor<2x64x9xf32>, tensor<64xf32>, tensor<64xf32>, tensor<2x8xf32>,
            tensor<2x8xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x,
                       NN_FloatTensor:$scale, NN_F32Tensor:$mean,
                       NN_F32Tensor:$variance, F32Attr:$epsilon);
  let results = (outs NN_FloatTensor:$dx, NN_F32Tensor:$dscale,
                      NN_F32Tensor:$dbias, NN_F32Tensor:$sum,
                      NN_F32Tensor:$dot);
  let assemblyFormat = [{
    $dy `,` $x `,` $scale `,` $mean `,` $variance `epsilon` `=` $epsilon
    attr-dict `:` functional-type(operands, results)
  }];
}

class NN_SoftmaxOpBase<string mnemonic>
    : NN_Op<mnemonic, [
          Pure, SameOperandsAndResultType, NN_Differentiable, NN_Cost,
          NN_Kernel, NN_Precision<"FollowOperands">]> {
  let results = (outs NN_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDefinition = [{
    RowSpace $cppClass::getRowSpace() {
      return rowSpace(getResult(), ResultForm::Element);
    }
    // Maximum, subtraction, exponential, sum, and one op with the sum.
    int64_t $cppClass::getFlops() {
      return 5 * getX().getType().getNumElements();
    }
    ::llvm::LogicalResult $cppClass::verify() {
      // (C1)
      if (getX().getType().getRank() == 0)
        return emitOpError("expects rank 1 or more, but got rank 0");
      return ::mlir::success();
    }
  }];
}

def NN_SoftmaxOp : NN_SoftmaxOpBase<"softmax"> {
  let summary = "Make each row of the last dimension positive with sum 1";
  let description = [{
    `e^(x - max) / sum(e^(x - max))` over the last dimension. A row that is
    minus infinity everywhere gives NaN, or zeros (and the gradient 0) where the
    op is `safe`.

    Constraints:
    - (C1) the operand has rank 1 or more.

    Example:

    ```mlir
    %y = nn.softmax %x : tensor<4x128xf32>
    %z = nn.softmax %x safe : tensor<4x128xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, UnitAttr:$safe);
  let assemblyFormat = "$x (`safe` $safe^)? attr-dict `:` type($result)";
}

def NN_LogSoftmaxOp : NN_SoftmaxOpBase<"log_softmax"> {
  let summary = "Logarithm of softmax over the last dimension";
  let description = [{
    `x - max - ln sum(e^(x - max))` over the last dimension, in this order.

    Constraints:
    - (C1) the operand has rank 1 or more.

    Example:

    ```mlir
    %y = nn.log_softmax %x : tensor<4x128xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

class NN_SoftmaxBackwardOpBase<string mnemonic>
    : NN_Op<mnemonic, [
          Pure, SameOperandsAndResultType, NN_Cost, NN_Kernel,
          NN_Precision<"FollowOperands">]> {
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$y);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$dy `,` $y attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    RowSpace $cppClass::getRowSpace() {
      return rowSpace(getResult(), ResultForm::Element);
    }
    int64_t $cppClass::getFlops() {
      return 4 * getY().getType().getNumElements();
    }
    ::llvm::LogicalResult $cppClass::verify() {
      // (C1)
      if (getY().getType().getRank() == 0)
        return emitOpError("expects rank 1 or more, but got rank 0");
      return ::mlir::success();
    }
  }];
}

def NN_SoftmaxBackwardOp : NN_SoftmaxBackwardOpBase<"softmax_backward"> {
  let summary = "Gradient of softmax from its result";
  let description = [{
    `y * (dy - sum(dy * y))` over the last dimension.

    Constraints:
    - (C1) the operands have rank 1 or more.

    Example:

    ```mlir
    %dx = nn.softmax_backward %dy, %y : tensor<4x128xf32>
    ```
  }];
}

def NN_LogSoftmaxBackwardOp
    : NN_SoftmaxBackwardOpBase<"log_softmax_backward"> {
  let summary = "Gradient of log_softmax from its result";
  let description = [{
    `dy - e^y * sum(dy)` over the last dimension.

    Constraints:
    - (C1) the operands have rank 1 or more.

    Example:

    ```mlir
    %dx = nn.log_softmax_backward %dy, %y : tensor<4x128xf32>
    ```
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNNORMALIZATION_TD
