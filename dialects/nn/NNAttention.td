//===- NNAttention.td - Scaled dot-product attention -------*- tablegen -*-===//
//
// Attention in row blocks: what is kept for the backward op is two numbers per
// row (stats), never a T x T buffer.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNATTENTION_TD
#define PIPEWRIGHT_DIALECTS_NN_NNATTENTION_TD

include "dialects/nn/NNEnums.td"

def NN_AttentionOp : NN_InferredOp<"attention", [
    NN_Differentiable, NN_Cost, NN_Library, AttentionOpInterface,
    DeclareOpInterfaceMethods<PrecisionOpInterface>,
    DeclareOpInterfaceMethods<StatefulOpInterface>]> {
  let summary = "Attend: softmax(softcap(scale * q k^T) + mask) v";
  let description = [{
    `q` and `o` are `[B, H, T, D]`. `k` and `v` are, too, or they have fewer
    heads, `[B, H / r, T, D]`: then head `h` of `q` reads their head `h / r`. The
    additive mask broadcasts to `[B, H, T, T]`, or it is of fewer samples, `P`
    that divide `B`: then sample `b` reads its sample `b mod P`, as windows of
    images do. With `causal` a row sees only columns up to its own.
    `stats[B, H, T, 2]` is what the softmax of each row is made from: its
    largest score, and 1 / the sum of `e^(score - largest)`. The two are kept
    apart because the logarithm of the sum is lost beside a large maximum, as
    rows have that are masked by -1e9 in every column. A row whose scores are
    all minus infinity has `o` 0, `stats` (0, 0) and the gradient 0. With a
    dropout rate above 0, elements of the softmax are dropped as `nn.dropout`
    does, by their position in `[B, H, T, T]` and `dropout_id`. With a `softcap`
    `c` above 0 a scaled score `z` becomes `c tanh(z / c)` before the mask is
    added. With `mask_gradient` the mask has a gradient: that of the scores,
    summed over what the mask is broadcast along.

    Constraints:
    - (C1) `q` has rank 4; `k` and `v` have one type, which differs from `q`'s
      in the number of heads alone, and that divides `q`'s.
    - (C2) the mask's shape broadcasts to `[B, H, T, T]`, or to `[P, H, T, T]`
      with a `P` that divides `B`.
    - (C3) `dropout_rate` is at least 0 and less than 1.
    - (C4) `softcap` is a number of at least 0.
    - (C5) with `mask_gradient` the mask's last two dimensions are `[T, T]`.

    Example:

    ```mlir
    %o, %stats = nn.attention %q, %k, %v scale = 1.250000e-01 causal
        dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<4x8x128x64xf32>, tensor<4x8x128x64xf32>,
         tensor<4x8x128x64xf32>)
        -> (tensor<4x8x128x64xf32>, tensor<4x8x128x2xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k,
                       NN_FloatTensor:$v, Optional<NN_F32Tensor>:$mask,
                       F32Attr:$scale, UnitAttr:$causal,
                       F32Attr:$dropout_rate, I64Attr:$dropout_id,
                       DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
                       UnitAttr:$mask_gradient);
  let results = (outs NN_FloatTensor:$o, NN_F32Tensor:$stats);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` $mask^)? (`mask_gradient` $mask_gradient^)?
    `scale` `=` $scale (`softcap` `=` $softcap^)? (`causal` $causal^)?
    `dropout_rate` `=` $dropout_rate `dropout_id` `=` $dropout_id attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_AttentionBackwardOp : NN_InferredOp<"attention_backward", [
    NN_Cost, NN_Library, AttentionOpInterface,
    NN_Precision<"FollowOperands">]> {
  let summary = "Gradients of attention with respect to q, k and v";
  let description = [{
    `grad` is the gradient of `o`. The softmax is recomputed from `stats`, block
    by block: `e^(score - stats[0]) * stats[1]`. `dk` and `dv` are sums over the
    heads of `q` that read a head of `k` and `v`, in their order. `dmask`, with
    `mask_gradient`, has the mask's type; it is a sum over samples and heads, in
    their order.

    Constraints:
    - (C1) `grad`, `q` and `o` have rank 4 and one type; `k` and `v` have one
      type, which differs from it in the number of heads alone, and that divides
      `q`'s.
    - (C2) the mask's shape broadcasts to `[B, H, T, T]`, or to `[P, H, T, T]`
      with a `P` that divides `B`.
    - (C3) `dropout_rate` is at least 0 and less than 1.
    - (C4) `softcap` is a number of at least 0.
    - (C5) with `mask_gradient` the mask's last two dimensions are `[T, T]`.
    - (C6) `stats` is `[B, H, T, 2]`.

    Example:

    ```mlir
    %dq, %dk, %dv = nn.attention_backward %grad, %q, %k, %v, %o, %stats
        scale = 1.250000e-01 causal dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<4x8x128x64xf32>, tensor<4x8x128x64xf32>,
         tensor<4x8x128x64xf32>, tensor<4x8x128x64xf32>,
         tensor<4x8x128x64xf32>, tensor<4x8x128x2xf32>)
        -> (tensor<4x8x128x64xf32>, tensor<4x8x128x64xf32>,
            tensor<4x8x128x64xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$grad, NN_FloatTensor:$q,
                       NN_FloatTensor:$k, NN_FloatTensor:$v,
                       NN_FloatTensor:$o, NN_F32Tensor:$stats,
                       Optional<NN_F32Tensor>:$mask, F32Attr:$scale,
                       UnitAttr:$causal, F32Attr:$dropout_rate,
                       I64Attr:$dropout_id,
                       DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
                       UnitAttr:$mask_gradient);
  let results = (outs NN_FloatTensor:$dq, NN_FloatTensor:$dk,
                      NN_FloatTensor:$dv, Optional<NN_F32Tensor>:$dmask);
  let assemblyFormat = [{
    $grad `,` $q `,` $k `,` $v `,` $o `,` $stats (`mask` $mask^)?
    (`mask_gradient` $mask_gradient^)? `scale` `=` $scale
    (`softcap` `=` $softcap^)? (`causal` $causal^)?
    `dropout_rate` `=` $dropout_rate `dropout_id` `=` $dropout_id attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // PIPEWRIGHT_DIALECTS_NN_NNATTENTION_TD
