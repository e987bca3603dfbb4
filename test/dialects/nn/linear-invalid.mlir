// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of matrix products and convolutions, one violation each.

func.func @matmul_c1_vector(%a: tensor<8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @below {{expects operands of rank 2 or more, but got 'tensor<8xf32>' and 'tensor<8x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @matmul_c2_batches_differ(%a: tensor<2x3x8xf32>, %b: tensor<1x8x4xf32>) {
  // expected-error @below {{expects the right operand to have rank 2 or the batch dimensions of the left}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<2x3x8xf32>, tensor<1x8x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @matmul_c3_contracted_dimensions_differ(%a: tensor<3x8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @below {{expects equal contracted dimensions, but got 8 in 'tensor<3x8xf32>' and 4 in 'tensor<8x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.matmul %a, %b transpose_b : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @conv_c1_image_rank(%x: tensor<3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expects images and filters of rank 4, but got 'tensor<3x8x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
    : (tensor<3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<4x6x6xf32>
  return
}

// -----

func.func @conv_c1_bias_size(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{expects a bias of 4 elements, but got 'tensor<3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w bias %b strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c2_stride_of_zero(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expects 2 strides of at least 1, but got [0, 1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w strides = [0, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c2_pads_missing(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expects 4 pads of at least 0, but got [1, 1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w strides = [1, 1] pads = [1, 1] dilations = [1, 1] groups = 1
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c3_groups_do_not_divide(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expects groups that divide 3 input and 4 output channels, but got 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 2
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c4_filter_channels(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) {
  // expected-error @below {{expects filters with 2 input channels, but got 'tensor<4x4x3x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 2
    : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @conv_c5_filter_larger_than_image(%x: tensor<1x3x8x4xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expects a window of at most the padded image's size 4, but got 5 along width}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 2] groups = 1
    : (tensor<1x3x8x4xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x1xf32>
  return
}

// -----

func.func @conv_backward_data_c1_gradient_type(%dy: tensor<1x4x6x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expects a gradient of type 'tensor<1x4x7x7xf32>', but got 'tensor<1x4x6x6xf32>'}}
  %0 = nn.conv_backward_data %dy, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
    : (tensor<1x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<1x3x9x9xf32>
  return
}

// -----

func.func @conv_backward_weight_c1_gradient_type(%dy: tensor<1x4x6x6xf32>, %x: tensor<1x3x8x8xf32>) {
  // expected-error @below {{expects a gradient of type 'tensor<1x5x6x6xf32>', but got 'tensor<1x4x6x6xf32>'}}
  %0 = nn.conv_backward_weight %dy, %x strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
    : (tensor<1x4x6x6xf32>, tensor<1x3x8x8xf32>) -> tensor<5x3x3x3xf32>
  return
}

// -----

func.func @matmul_c4_element_types(%a: tensor<4x8xbf16>, %b: tensor<8x2xf32>) {
  // expected-error @below {{expects operands of one element type, but got 'tensor<4x8xbf16>' and 'tensor<8x2xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<4x8xbf16>, tensor<8x2xf32>) -> tensor<4x2xbf16>
  return
}

// -----

func.func @conv_c6_element_types(%x: tensor<1x3x8x8xbf16>, %w: tensor<4x3x3x3xbf16>, %b: tensor<4xf32>) {
  // expected-error @below {{expects operands of one element type, but got 'tensor<1x3x8x8xbf16>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.conv %x, %w bias %b strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
    : (tensor<1x3x8x8xbf16>, tensor<4x3x3x3xbf16>, tensor<4xf32>) -> tensor<1x4x6x6xbf16>
  return
}

// -----

func.func @conv_backward_data_c2_element_types(%dy: tensor<1x4x6x6xbf16>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{expects operands of one element type, but got 'tensor<1x4x6x6xbf16>' and 'tensor<4x3x3x3xf32>'}}
  %0 = nn.conv_backward_data %dy, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
    : (tensor<1x4x6x6xbf16>, tensor<4x3x3x3xf32>) -> tensor<1x3x8x8xbf16>
  return
}
