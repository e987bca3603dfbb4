// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of the losses, one violation each.

func.func @softmax_cross_entropy_c1_logits_rank(%x: tensor<2x4x8xf32>, %l: tensor<2x4xi64>) {
  // expected-error @below {{expects logits of rank 2, but got 'tensor<2x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = -100
    : (tensor<2x4x8xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_c2_label_count(%x: tensor<4x8xf32>, %l: tensor<5xi64>) {
  // expected-error @below {{expects 4 labels, but got 'tensor<5xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = -100
    : (tensor<4x8xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_c3_classes(%x: tensor<4x8xf32>, %l: tensor<4xi64>) {
  // expected-error @below {{expects 1 to 8 classes, but got 9}}
  // expected-error @below {{failed to infer returned types}}
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = -100 classes = 9
    : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_c4_divisor(%x: tensor<4x8xf32>, %l: tensor<4xi64>, %d: tensor<1xf32>) {
  // expected-error @below {{expects a scalar divisor, but got 'tensor<1xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l divisor %d ignore_index = -100
    : (tensor<4x8xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_backward_c5_size_of_sum(%d: tensor<f32>, %x: tensor<4x8xf32>, %l: tensor<4xi64>, %largest: tensor<4xf32>, %sum: tensor<8xf32>) {
  // expected-error @below {{expects a scalar gradient and a largest logit and a sum for each of 4 rows, but got 'tensor<f32>' and 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %largest, %sum ignore_index = -100
    : (tensor<f32>, tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @softmax_cross_entropy_c3_no_class(%x: tensor<4x8xf32>, %l: tensor<4xi64>) {
  // expected-error @below {{expects 1 to 8 classes, but got 0}}
  // expected-error @below {{failed to infer returned types}}
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = -100 classes = 0
    : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_backward_c1_logits_rank(%d: tensor<f32>, %x: tensor<2x4x8xf32>, %l: tensor<2x4xi64>, %row: tensor<2x4xf32>) {
  // expected-error @below {{expects logits of rank 2, but got 'tensor<2x4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %row, %row ignore_index = -100
    : (tensor<f32>, tensor<2x4x8xf32>, tensor<2x4xi64>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @softmax_cross_entropy_backward_c2_label_count(%d: tensor<f32>, %x: tensor<4x8xf32>, %l: tensor<5xi64>, %row: tensor<4xf32>) {
  // expected-error @below {{expects 4 labels, but got 'tensor<5xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %row, %row ignore_index = -100
    : (tensor<f32>, tensor<4x8xf32>, tensor<5xi64>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @softmax_cross_entropy_backward_c3_classes(%d: tensor<f32>, %x: tensor<4x8xf32>, %l: tensor<4xi64>, %row: tensor<4xf32>) {
  // expected-error @below {{expects 1 to 8 classes, but got 9}}
  // expected-error @below {{failed to infer returned types}}
  %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %row, %row ignore_index = -100 classes = 9
    : (tensor<f32>, tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @softmax_cross_entropy_backward_c4_divisor(%d: tensor<f32>, %x: tensor<4x8xf32>, %l: tensor<4xi64>, %row: tensor<4xf32>, %n: tensor<1xf32>) {
  // expected-error @below {{expects a scalar divisor, but got 'tensor<1xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %row, %row divisor %n ignore_index = -100
    : (tensor<f32>, tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>, tensor<1xf32>) -> tensor<4x8xf32>
  return
}
