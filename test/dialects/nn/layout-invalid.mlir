// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'nn.weight' op expects rank 4 with channels_last, but got 'tensor<4x4xf32>'}}
nn.weight @weight_c3_rank role = parameter channels_last : tensor<4x4xf32>

// -----

func.func @conv_c4(%x: tensor<2x8x8x4xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @below {{'nn.conv' op expects filters with 4 input channels, but got 'tensor<6x4x3x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1 channels_last
    : (tensor<2x8x8x4xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @average_pool_c3(%x: tensor<2x2x8x8xf32>) {
  // expected-error @below {{'nn.average_pool' op expects}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.average_pool %x kernel = [3, 3] strides = [1, 1] pads = [0, 0, 0, 0] channels_last
    : tensor<2x2x8x8xf32> -> tensor<2x2x6x6xf32>
  return
}

// -----

func.func @batch_norm_c2(%x: tensor<2x4x8x8xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{'nn.batch_norm' op expects a scale of 8 elements, but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 0.5 momentum = 0.5 channels_last
    : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
