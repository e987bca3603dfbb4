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
    NN_Differentiable, NN_Cost]> {
  let summary = "Mean negative log-likelihood of the labels under softmax";
  let description = [{
    `loss` is the mean of `lse[n] - logits[n, labels[n]]` over the rows whose
    label is not `ignore_index`; `lse[n]` is the logarithm of the row's sum of
    exponentials. With `classes` only so many columns count, as if the others
    were minus infinity; without, all do. The labels that are not ignored must
    lie in `[0, classes)`.

    Constraints:
    - (C1) the logits have rank 2.
    - (C2) the labels are `[N]`.
    - (C3) `classes` is at least 1 and at most the number of columns.

    Example:

    ```mlir
    %loss, %lse = nn.softmax_cross_entropy %logits, %labels ignore_index = -100
      : (tensor<512x256xf32>, tensor<512xi64>) -> (tensor<f32>, tensor<512xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IndexTensor:$labels,
                       I64Attr:$ignore_index, OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_F32Tensor:$loss, NN_F32Tensor:$lse);
  let assemblyFormat = [{
    $logits `,` $labels `ignore_index` `=` $ignore_index
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
    : NN_InferredOp<"softmax_cross_entropy_backward", [NN_Cost]> {
  let summary = "Gradient of softmax_cross_entropy with respect to the logits";
  let description = [{
    `dloss / count * (e^(logits - lse) - onehot(labels))`, zero in ignored
    rows and in columns from `classes` on; `count` is the number of rows that
    are not ignored.

    Constraints:
    - (C1) the logits have rank 2.
    - (C2) the labels are `[N]`.
    - (C3) `classes` is at least 1 and at most the number of columns.
    - (C4) `lse` is `[N]`, and `dloss` has rank 0.

    Example:

    ```mlir
    %dlogits = nn.softmax_cross_entropy_backward %dloss, %logits, %labels, %lse
        ignore_index = -100
      : (tensor<f32>, tensor<512x256xf32>, tensor<512xi64>, tensor<512xf32>)
        -> tensor<512x256xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$dloss, NN_FloatTensor:$logits,
                       NN_IndexTensor:$labels, NN_F32Tensor:$lse,
                       I64Attr:$ignore_index, OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $dloss `,` $logits `,` $labels `,` $lse `ignore_index` `=` $ignore_index
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
