//===- NNLoss.td - Losses ----------------------------------*- tablegen -*-===//
//
// Losses that are more than a few pointwise ops. Mean squared error is
// composed from pointwise ops and reduce_mean.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNLOSS_TD
#define PIPEWRIGHT_DIALECTS_NN_NNLOSS_TD

include "dialects/nn/NNEnums.td"

def NN_SoftmaxCrossEntropyOp : NN_InferredOp<"softmax_cross_entropy", [
    NN_Differentiable, NN_Cost, NN_Kernel, NN_Indexes,
    NN_Precision<"F32Inside">]> {
  let summary = "Mean negative log-likelihood of the labels under softmax";
  let description = [{
    `loss` is the sum of `ln sum[n] - (logits[n, labels[n]] - largest[n])` over
    the rows whose label is not `ignore_index`, divided by `divisor`, or without
    one by the number of these rows, at least 1. `largest[n]` is the largest
    logit of a row and `sum[n]` the sum of `e^(logits[n] - largest[n])`: apart,
    because a large maximum would swallow the logarithm of the sum. With
    `classes` only so many columns count, as if the others were minus infinity;
    without, all do. The labels that are not ignored must lie in `[0, classes)`:
    the program refuses others as `nn.embedding` does.

    A `divisor` makes the mean over micro-batches the mean over the labels of
    the whole batch; `nn-divide-by-batch` says where it comes from.

    Constraints:
    - (C1) the logits have rank 2.
    - (C2) the labels are `[N]`.
    - (C3) `classes` is at least 1 and at most the number of columns.
    - (C4) `divisor` has rank 0.

    Example:

    ```mlir
    %loss, %largest, %sum = nn.softmax_cross_entropy %logits, %labels
        divisor %count ignore_index = -100
      : (tensor<512x256xf32>, tensor<512xi64>, tensor<f32>)
        -> (tensor<f32>, tensor<512xf32>, tensor<512xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IndexTensor:$labels,
                       Optional<NN_F32Tensor>:$divisor, I64Attr:$ignore_index,
                       OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_F32Tensor:$loss, NN_F32Tensor:$largest,
                      NN_F32Tensor:$sum);
  let assemblyFormat = [{
    $logits `,` $labels (`divisor` $divisor^)? `ignore_index` `=` $ignore_index
    (`classes` `=` $classes^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// How many columns count.
    int64_t countClasses() {
      return getClasses().value_or(getLogits().getType().getDimSize(1));
    }
  }];
}

def NN_SoftmaxCrossEntropyBackwardOp
    : NN_InferredOp<"softmax_cross_entropy_backward", [
          NN_Cost, NN_Kernel, NN_Indexes, NN_Precision<"FollowOperands">]> {
  let summary = "Gradient of softmax_cross_entropy with respect to the logits";
  let description = [{
    `dloss / count * (e^(logits - largest) / sum - onehot(labels))`, zero in
    ignored rows and in columns from `classes` on; `count` is `divisor`, or
    without one the number of rows that are not ignored.

    Constraints:
    - (C1) the logits have rank 2.
    - (C2) the labels are `[N]`.
    - (C3) `classes` is at least 1 and at most the number of columns.
    - (C4) `divisor` has rank 0.
    - (C5) `largest` and `sum` are `[N]`, and `dloss` has rank 0.

    Example:

    ```mlir
    %dlogits = nn.softmax_cross_entropy_backward %dloss, %logits, %labels,
        %largest, %sum divisor %count ignore_index = -100
      : (tensor<f32>, tensor<512x256xf32>, tensor<512xi64>, tensor<512xf32>,
         tensor<512xf32>, tensor<f32>) -> tensor<512x256xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$dloss, NN_FloatTensor:$logits,
                       NN_IndexTensor:$labels, NN_F32Tensor:$largest,
                       NN_F32Tensor:$sum, Optional<NN_F32Tensor>:$divisor,
                       I64Attr:$ignore_index, OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $dloss `,` $logits `,` $labels `,` $largest `,` $sum
    (`divisor` $divisor^)? `ignore_index` `=` $ignore_index
    (`classes` `=` $classes^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// How many columns count.
    int64_t countClasses() {
      return getClasses().value_or(getLogits().getType().getDimSize(1));
    }
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNLOSS_TD
