// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of attention, one violation each.

func.func @attention_c1_types_differ(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x32x8xf32>) {
  // expected-error @below {{expects k and v of one type, that of q but for heads, of which q has a multiple, but got 'tensor<2x4x16x8xf32>', 'tensor<2x4x32x8xf32>' and 'tensor<2x4x32x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %k, %k scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x32x8xf32>, tensor<2x4x32x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_c1_heads_do_not_divide(%q: tensor<2x4x16x8xf32>, %k: tensor<2x3x16x8xf32>) {
  // expected-error @below {{expects k and v of one type, that of q but for heads, of which q has a multiple, but got 'tensor<2x4x16x8xf32>', 'tensor<2x3x16x8xf32>' and 'tensor<2x3x16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %k, %k scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x3x16x8xf32>, tensor<2x3x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_c1_heads_of_k_and_v_differ(%q: tensor<2x4x16x8xf32>, %k: tensor<2x2x16x8xf32>) {
  // expected-error @below {{expects k and v of one type, that of q but for heads, of which q has a multiple, but got 'tensor<2x4x16x8xf32>', 'tensor<2x2x16x8xf32>' and 'tensor<2x4x16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %k, %q scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_c2_mask_does_not_broadcast(%q: tensor<2x4x16x8xf32>, %m: tensor<16x8xf32>) {
  // expected-error @below {{expects a mask that broadcasts to [2, 4, 16, 16], but got 'tensor<16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %q, %q mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_c2_samples_do_not_divide(%q: tensor<4x4x16x8xf32>, %m: tensor<3x1x16x16xf32>) {
  // expected-error @below {{expects a mask that broadcasts to [4, 4, 16, 16], but got 'tensor<3x1x16x16xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %q, %q mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<4x4x16x8xf32>, tensor<4x4x16x8xf32>, tensor<4x4x16x8xf32>, tensor<3x1x16x16xf32>) -> (tensor<4x4x16x8xf32>, tensor<4x4x16x2xf32>)
  return
}

// -----

func.func @attention_c3_rate_of_one(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{expects a dropout rate in [0, 1), but got 1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %q, %q scale = 0.5 dropout_rate = 1.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_backward_c1_rank(%q: tensor<4x16x8xf32>, %l: tensor<4x16xf32>) {
  // expected-error @below {{expects rank 4 and one type, but got 'tensor<4x16x8xf32>' and 'tensor<4x16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<4x16xf32>)
    -> (tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<4x16x8xf32>)
  return
}

// -----

func.func @attention_backward_c6_stats_shape(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x8x2xf32>) {
  // expected-error @below {{expects stats of type 'tensor<2x4x16x2xf32>', but got 'tensor<2x4x8x2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x8x2xf32>)
    -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_backward_c2_mask_does_not_broadcast(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16x2xf32>, %m: tensor<16x8xf32>) {
  // expected-error @below {{expects a mask that broadcasts to [2, 4, 16, 16], but got 'tensor<16x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.attention_backward %q, %q, %q, %q, %q, %l mask %m scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>, tensor<16x8xf32>)
    -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_backward_c3_rate_of_one(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a dropout rate in [0, 1), but got 1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1, %2 = nn.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 dropout_rate = 1.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
    -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_c4_negative_softcap(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{expects a softcap of at least 0, but got -1.000000}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %q, %q scale = 0.5 softcap = -1.0 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_c5_gradient_without_mask(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{expects a mask whose last dimensions are [16, 16], because it has a gradient}}
  // expected-error @below {{failed to infer returned types}}
  %o, %stats = nn.attention %q, %q, %q mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// -----

func.func @attention_backward_c4_infinite_softcap(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16x2xf32>) {
  // expected-error @below {{expects a softcap of at least 0, but got inf}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = nn.attention_backward %q, %q, %q, %q, %q, %l scale = 0.5 softcap = 0x7F800000 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
    -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_backward_c5_mask_of_columns(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16x2xf32>, %m: tensor<4x1x16xf32>) {
  // expected-error @below {{expects a mask whose last dimensions are [16, 16], because it has a gradient}}
  // expected-error @below {{failed to infer returned types}}
  %0:4 = nn.attention_backward %q, %q, %q, %q, %q, %l mask %m mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
    : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>, tensor<4x1x16xf32>)
    -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<4x1x16xf32>)
  return
}
