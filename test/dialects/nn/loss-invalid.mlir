// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of the losses, one violation each.

func.func @softmax_cross_entropy_c1_logits_rank(%x: tensor<2x4x8xf32>, %l: tensor<2x4xi64>) {
  // expected-error @below {{expects logits of rank 2, but got 'tensor<2x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %loss, %lse = nn.softmax_cross_entropy %x, %l ignore_index = -100
    : (tensor<2x4x8xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<2x4xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_c2_label_count(%x: tensor<4x8xf32>, %l: tensor<5xi64>) {
  // expected-error @below {{expects 4 labels, but got 'tensor<5xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %loss, %lse = nn.softmax_cross_entropy %x, %l ignore_index = -100
    : (tensor<4x8xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_backward_c3_lse_size(%d: tensor<f32>, %x: tensor<4x8xf32>, %l: tensor<4xi64>, %lse: tensor<8xf32>) {
  // expected-error @below {{expects a scalar gradient and an lse of 4 elements, but got 'tensor<f32>' and 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %lse ignore_index = -100
    : (tensor<f32>, tensor<4x8xf32>, tensor<4xi64>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}
