// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of attention by strides, one violation each.

func.func @attention_c1_types_differ(%q: tensor<2x16x4x8xf32>, %k: tensor<2x32x4x8xf32>) {
  // expected-error @below {{expects k and v of one type, that of q but for heads, of which q has a multiple, but got 'tensor<2x16x4x8xf32>', 'tensor<2x32x4x8xf32>' and 'tensor<2x32x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.attention %q, %k, %k scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x32x4x8xf32>, tensor<2x32x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

// The mask is one of rows and columns, although heads lie between them.
func.func @attention_c2_mask_of_heads(%q: tensor<2x16x4x8xf32>, %m: tensor<4x4xf32>) {
  // expected-error @below {{expects a mask that broadcasts to [2, 4, 16, 16], but got 'tensor<4x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.attention %q, %q, %q mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<4x4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_c3_rate_of_one(%q: tensor<2x16x4x8xf32>) {
  // expected-error @below {{expects a dropout rate in [0, 1), but got 1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.attention %q, %q, %q scale = 0.5 dropout_rate = 1.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_backward_c1_rank(%q: tensor<16x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects rank 4 and one type, but got 'tensor<16x4x8xf32>' and 'tensor<16x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %d:3 = call.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<16x4x8xf32>, tensor<16x4x8xf32>, tensor<16x4x8xf32>, tensor<16x4x8xf32>, tensor<16x4x8xf32>, tensor<2x4x16x2xf32>)
    -> (tensor<16x4x8xf32>, tensor<16x4x8xf32>, tensor<16x4x8xf32>)
  return
}

// -----

func.func @attention_backward_c2_mask_does_not_broadcast(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16x2xf32>, %m: tensor<4x4xf32>) {
  // expected-error @below {{expects a mask that broadcasts to [2, 4, 16, 16], but got 'tensor<4x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %d:3 = call.attention_backward %q, %q, %q, %q, %q, %l mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>, tensor<4x4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @attention_backward_c3_negative_rate(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a dropout rate in [0, 1), but got -0.500000}}
  // expected-error @below {{failed to infer returned types}}
  %d:3 = call.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 dropout_rate = -0.5 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @attention_backward_c6_stats_of_rows_first(%q: tensor<2x16x4x8xf32>, %l: tensor<2x16x4x2xf32>) {
  // expected-error @below {{expects stats of type 'tensor<2x4x16x2xf32>', but got 'tensor<2x16x4x2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %d:3 = call.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @packed_attention_c1_parts(%x: tensor<2x16x2x4x8xf32>) {
  // expected-error @below {{expects q, k and v as [B, T, 3, H, D], but got 'tensor<2x16x2x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.packed_attention %x scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x2x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @packed_attention_c1_rank(%x: tensor<2x16x96xf32>) {
  // expected-error @below {{expects q, k and v as [B, T, 3, H, D], but got 'tensor<2x16x96xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.packed_attention %x scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x96xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @packed_attention_c2_mask_does_not_broadcast(%x: tensor<2x16x3x4x8xf32>, %m: tensor<16x8xf32>) {
  // expected-error @below {{expects a mask that broadcasts to [2, 4, 16, 16], but got 'tensor<16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.packed_attention %x mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x3x4x8xf32>, tensor<16x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @packed_attention_c3_negative_rate(%x: tensor<2x16x3x4x8xf32>) {
  // expected-error @below {{expects a dropout rate in [0, 1), but got -0.500000}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.packed_attention %x scale = 0.5 dropout_rate = -0.5 dropout_id = 0
    : (tensor<2x16x3x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @packed_attention_backward_c6_heads_first(%x: tensor<2x16x3x4x8xf32>, %o: tensor<2x4x16x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects 'tensor<2x16x4x8xf32>' for the result and its gradient, but got 'tensor<2x4x16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %d = call.packed_attention_backward %o, %x, %o, %l scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>) -> tensor<2x16x3x4x8xf32>
  return
}

// -----

func.func @packed_attention_backward_c6_stats_shape(%x: tensor<2x16x3x4x8xf32>, %o: tensor<2x16x4x8xf32>, %l: tensor<2x16x4x2xf32>) {
  // expected-error @below {{expects stats of type 'tensor<2x4x16x2xf32>', but got 'tensor<2x16x4x2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %d = call.packed_attention_backward %o, %x, %o, %l scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x2xf32>) -> tensor<2x16x3x4x8xf32>
  return
}

// -----

func.func @packed_attention_backward_c1_parts(%x: tensor<2x16x2x4x8xf32>, %o: tensor<2x16x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects q, k and v as [B, T, 3, H, D], but got 'tensor<2x16x2x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %d = call.packed_attention_backward %o, %x, %o, %l scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x2x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> tensor<2x16x2x4x8xf32>
  return
}

// -----

func.func @packed_attention_backward_c2_mask_does_not_broadcast(%x: tensor<2x16x3x4x8xf32>, %o: tensor<2x16x4x8xf32>, %l: tensor<2x4x16x2xf32>, %m: tensor<16x8xf32>) {
  // expected-error @below {{expects a mask that broadcasts to [2, 4, 16, 16], but got 'tensor<16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %d = call.packed_attention_backward %o, %x, %o, %l mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>, tensor<16x8xf32>) -> tensor<2x16x3x4x8xf32>
  return
}

// -----

func.func @packed_attention_backward_c3_negative_rate(%x: tensor<2x16x3x4x8xf32>, %o: tensor<2x16x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a dropout rate in [0, 1), but got -0.500000}}
  // expected-error @below {{failed to infer returned types}}
  %d = call.packed_attention_backward %o, %x, %o, %l scale = 0.5 dropout_rate = -0.5 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> tensor<2x16x3x4x8xf32>
  return
}

// -----

func.func @attention_c4_negative_softcap(%q: tensor<2x16x4x8xf32>) {
  // expected-error @below {{expects a softcap of at least 0, but got -1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.attention %q, %q, %q scale = 0.5 softcap = -1.0 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_backward_c4_negative_softcap(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a softcap of at least 0, but got -1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %d:3 = call.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 softcap = -1.0 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @attention_c5_mask_of_columns(%q: tensor<2x16x4x8xf32>, %m: tensor<2x1x1x16xf32>) {
  // expected-error @below {{expects a mask whose last dimensions are [16, 16], because it has a gradient}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.attention %q, %q, %q mask %m mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x1x1x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_backward_c5_gradient_without_mask(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a mask whose last dimensions are [16, 16], because it has a gradient}}
  // expected-error @below {{failed to infer returned types}}
  %d:3 = call.attention_backward %q, %q, %q, %q, %q, %l mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @packed_attention_c4_negative_softcap(%x: tensor<2x16x3x4x8xf32>) {
  // expected-error @below {{expects a softcap of at least 0, but got -1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.packed_attention %x scale = 0.5 softcap = -1.0 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x3x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @packed_attention_c5_gradient_without_mask(%x: tensor<2x16x3x4x8xf32>) {
  // expected-error @below {{expects a mask whose last dimensions are [16, 16], because it has a gradient}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = call.packed_attention %x mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x3x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @packed_attention_backward_c4_negative_softcap(%o: tensor<2x16x4x8xf32>, %x: tensor<2x16x3x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a softcap of at least 0, but got -1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %d = call.packed_attention_backward %o, %x, %o, %l scale = 0.5 softcap = -1.0 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> tensor<2x16x3x4x8xf32>
  return
}

// -----

func.func @packed_attention_backward_c5_gradient_without_mask(%o: tensor<2x16x4x8xf32>, %x: tensor<2x16x3x4x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a mask whose last dimensions are [16, 16], because it has a gradient}}
  // expected-error @below {{failed to infer returned types}}
  %d = call.packed_attention_backward %o, %x, %o, %l mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x16x4x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> tensor<2x16x3x4x8xf32>
  return
}
