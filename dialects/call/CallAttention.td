//===- CallAttention.td - Attention by strides -------------*- tablegen -*-===//
//
// Attention over q, k and v where matrix products leave them: rows before
// heads, each in a tensor of its own or all three in one. Kernels read them
// there by strides, so that nothing is transposed before.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_CALL_CALLATTENTION_TD
#define PIPEWRIGHT_DIALECTS_CALL_CALLATTENTION_TD

include "dialects/call/CallBase.td"

//===----------------------------------------------------------------------===//
// q, k and v in tensors of their own
//===----------------------------------------------------------------------===//

def Call_AttentionOp : Call_Op<"attention", [
    NN_Differentiable, AttentionOpInterface,
    DeclareOpInterfaceMethods<PrecisionOpInterface>,
    DeclareOpInterfaceMethods<StatefulOpInterface>]> {
  let summary = "Attend over q, k and v that have rows before heads";
  let description = [{
    `nn.attention` for `q` and `o` of `[B, T, H, D]` and `k` and `v` that are
    the same or have fewer heads, `[B, T, H / r, D]`. The mask broadcasts to `[B, H, T, T]` and `stats` is `[B, H, T, 2]`, as there.

    Constraints:
    - (C1) `q` has rank 4; `k` and `v` have one type, which differs from `q`'s
      in the number of heads alone, and that divides `q`'s.
    - (C2) the mask's shape broadcasts to `[B, H, T, T]`, or to `[P, H, T, T]`
      with a `P` that divides `B`.
    - (C3) `dropout_rate` is at least 0 and less than 1.
    - (C4) `softcap` is a number of at least 0.
    - (C5) with `mask_gradient` the mask's last two dimensions are `[T, T]`.

    Life span: created by `call-pack-attention`.

    Example:

    ```mlir
    %o, %stats = call.attention %q, %k, %v scale = 1.250000e-01 causal
        dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<4x128x8x64xf32>, tensor<4x128x8x64xf32>,
         tensor<4x128x8x64xf32>)
        -> (tensor<4x128x8x64xf32>, tensor<4x8x128x2xf32>)
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

def Call_AttentionBackwardOp : Call_Op<"attention_backward", [
    AttentionOpInterface, NN_Precision<"FollowOperands">]> {
  let summary = "Gradients of attention with rows before heads";
  let description = [{
    `nn.attention_backward` for tensors of `[B, T, H, D]`, `k` and `v` maybe of
    fewer heads.

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
    %dq, %dk, %dv = call.attention_backward %grad, %q, %k, %v, %o, %stats
        scale = 1.250000e-01 causal dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<4x128x8x64xf32>, tensor<4x128x8x64xf32>,
         tensor<4x128x8x64xf32>, tensor<4x128x8x64xf32>,
         tensor<4x128x8x64xf32>, tensor<4x8x128x2xf32>)
        -> (tensor<4x128x8x64xf32>, tensor<4x128x8x64xf32>,
            tensor<4x128x8x64xf32>)
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

//===----------------------------------------------------------------------===//
// q, k and v in one tensor
//===----------------------------------------------------------------------===//

def Call_PackedAttentionOp : Call_Op<"packed_attention", [
    NN_Differentiable, AttentionOpInterface,
    DeclareOpInterfaceMethods<PrecisionOpInterface>,
    DeclareOpInterfaceMethods<StatefulOpInterface>]> {
  let summary = "Attend over q, k and v that lie in one tensor";
  let description = [{
    `call.attention` on `qkv[:, :, 0]`, `qkv[:, :, 1]` and `qkv[:, :, 2]`: `qkv`
    is `[B, T, 3, H, D]`, as one product with all three weights leaves it. `o`
    is `[B, T, H, D]`, `stats` `[B, H, T, 2]`.

    Constraints:
    - (C1) `qkv` has rank 5 and three parts.
    - (C2) the mask's shape broadcasts to `[B, H, T, T]`, or to `[P, H, T, T]`
      with a `P` that divides `B`.
    - (C3) `dropout_rate` is at least 0 and less than 1.
    - (C4) `softcap` is a number of at least 0.
    - (C5) with `mask_gradient` the mask's last two dimensions are `[T, T]`.

    Life span: created by `call-pack-attention`.

    Example:

    ```mlir
    %o, %stats = call.packed_attention %qkv scale = 1.250000e-01 causal
        dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<4x128x3x8x64xf32>)
        -> (tensor<4x128x8x64xf32>, tensor<4x8x128x2xf32>)
    ```
  }];
  let arguments = (ins NN_FloatTensor:$qkv, Optional<NN_F32Tensor>:$mask,
                       F32Attr:$scale, UnitAttr:$causal,
                       F32Attr:$dropout_rate, I64Attr:$dropout_id,
                       DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
                       UnitAttr:$mask_gradient);
  let results = (outs NN_FloatTensor:$o, NN_F32Tensor:$stats);
  let assemblyFormat = [{
    $qkv (`mask` $mask^)? (`mask_gradient` $mask_gradient^)?
    `scale` `=` $scale (`softcap` `=` $softcap^)? (`causal` $causal^)?
    `dropout_rate` `=` $dropout_rate `dropout_id` `=` $dropout_id attr-dict
    `:` functional-type(operands, results)
  }];
}

def Call_PackedAttentionBackwardOp : Call_Op<"packed_attention_backward", [
    AttentionOpInterface, NN_Precision<"FollowOperands">]> {
  let summary = "Gradient of packed attention with respect to q, k and v";
  let description = [{
    As `nn.attention_backward`; the three gradients lie in `dqkv` as q, k and v
    lie in `qkv`.

    Constraints:
    - (C1) `qkv` has rank 5 and three parts.
    - (C2) the mask's shape broadcasts to `[B, H, T, T]`, or to `[P, H, T, T]`
      with a `P` that divides `B`.
    - (C3) `dropout_rate` is at least 0 and less than 1.
    - (C4) `softcap` is a number of at least 0.
    - (C5) with `mask_gradient` the mask's last two dimensions are `[T, T]`.
    - (C6) `grad` and `o` are `[B, T, H, D]`, of `qkv`'s element type, and
      `stats` is `[B, H, T, 2]`.

    Example:

    ```mlir
    %dqkv = call.packed_attention_backward %grad, %qkv, %o, %stats
        scale = 1.250000e-01 causal dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<4x128x8x64xf32>, tensor<4x128x3x8x64xf32>,
         tensor<4x128x8x64xf32>, tensor<4x8x128x2xf32>)
        -> tensor<4x128x3x8x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$grad, NN_FloatTensor:$qkv,
                       NN_FloatTensor:$o, NN_F32Tensor:$stats,
                       Optional<NN_F32Tensor>:$mask, F32Attr:$scale,
                       UnitAttr:$causal, F32Attr:$dropout_rate,
                       I64Attr:$dropout_id,
                       DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
                       UnitAttr:$mask_gradient);
  let results = (outs NN_FloatTensor:$dqkv, Optional<NN_F32Tensor>:$dmask);
  let assemblyFormat = [{
    $grad `,` $qkv `,` $o `,` $stats (`mask` $mask^)?
    (`mask_gradient` $mask_gradient^)? `scale` `=` $scale
    (`softcap` `=` $softcap^)? (`causal` $causal^)?
    `dropout_rate` `=` $dropout_rate `dropout_id` `=` $dropout_id attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // PIPEWRIGHT_DIALECTS_CALL_CALLATTENTION_TD
