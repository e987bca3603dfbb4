// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of pooling, one violation each.

func.func @max_pool_c1_rank(%x: tensor<4x8x8xf32>) {
  // expected-error @below {{expects images of rank 4, but got 'tensor<4x8x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %w = nn.max_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1]
    : tensor<4x8x8xf32> -> (tensor<4x4x4xf32>, tensor<4x4x4xi8>)
  return
}

// -----

func.func @max_pool_c2_kernel(%x: tensor<1x4x8x8xf32>) {
  // expected-error @below {{expects 2 kernel sizes of at least 1, but got [2]}}
  // expected-error @below {{failed to infer returned types}}
  %y, %w = nn.max_pool %x kernel = [2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1]
    : tensor<1x4x8x8xf32> -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xi8>)
  return
}

// -----

func.func @max_pool_c3_window_larger_than_image(%x: tensor<1x4x8x8xf32>) {
  // expected-error @below {{expects a window of at most the padded image's size 8, but got 9 along height}}
  // expected-error @below {{failed to infer returned types}}
  %y, %w = nn.max_pool %x kernel = [9, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1]
    : tensor<1x4x8x8xf32> -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xi8>)
  return
}

// -----

func.func @max_pool_c4_window_beyond_a_byte(%x: tensor<1x4x16x16xf32>) {
  // expected-error @below {{expects at most 127 positions in a window, but got 144}}
  // expected-error @below {{failed to infer returned types}}
  %y, %w = nn.max_pool %x kernel = [12, 12] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1]
    : tensor<1x4x16x16xf32> -> (tensor<1x4x3x3xf32>, tensor<1x4x3x3xi8>)
  return
}

// -----

func.func @max_pool_c5_window_of_padding(%x: tensor<1x4x8x8xf32>) {
  // expected-error @below {{expects an element that is not padding in every window, but got pads [2, 0, 0, 0] for a kernel of [2, 2]}}
  // expected-error @below {{failed to infer returned types}}
  %y, %w = nn.max_pool %x kernel = [2, 2] strides = [2, 2] pads = [2, 0, 0, 0] dilations = [1, 1]
    : tensor<1x4x8x8xf32> -> (tensor<1x4x5x4xf32>, tensor<1x4x5x4xi8>)
  return
}

// -----

func.func @max_pool_backward_c1_window_shape(%dy: tensor<1x4x4x4xf32>, %w: tensor<1x4x4x5xi8>) {
  // expected-error @below {{expects a gradient and windows of one shape}}
  %dx = nn.max_pool_backward %dy, %w kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1]
    : (tensor<1x4x4x4xf32>, tensor<1x4x4x5xi8>) -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @max_pool_backward_c2_gradient_type(%dy: tensor<1x4x4x4xf32>, %w: tensor<1x4x4x4xi8>) {
  // expected-error @below {{expects a gradient of type 'tensor<1x4x5x5xf32>', but got 'tensor<1x4x4x4xf32>'}}
  %dx = nn.max_pool_backward %dy, %w kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1]
    : (tensor<1x4x4x4xf32>, tensor<1x4x4x4xi8>) -> tensor<1x4x10x10xf32>
  return
}

// -----

func.func @average_pool_c1_rank(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects images of rank 4, but got 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.average_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] : tensor<4x8xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @average_pool_c2_negative_pad(%x: tensor<1x4x8x8xf32>) {
  // expected-error @below {{expects 4 pads of at least 0, but got [0, 0, 0, -1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.average_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, -1]
    : tensor<1x4x8x8xf32> -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @average_pool_c3_window_larger_than_image(%x: tensor<1x4x8x8xf32>) {
  // expected-error @below {{expects a window of at most the padded image's size 8, but got 9 along width}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.average_pool %x kernel = [2, 9] strides = [2, 2] pads = [0, 0, 0, 0]
    : tensor<1x4x8x8xf32> -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @average_pool_c4_window_of_padding(%x: tensor<1x4x8x8xf32>) {
  // expected-error @below {{expects an element that is not padding in every window}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.average_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 2]
    : tensor<1x4x8x8xf32> -> tensor<1x4x4x5xf32>
  return
}

// -----

func.func @average_pool_backward_c1_gradient_type(%dy: tensor<1x4x4x4xf32>) {
  // expected-error @below {{expects a gradient of type 'tensor<1x4x5x5xf32>', but got 'tensor<1x4x4x4xf32>'}}
  %0 = nn.average_pool_backward %dy kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0]
    : tensor<1x4x4x4xf32> -> tensor<1x4x10x10xf32>
  return
}
