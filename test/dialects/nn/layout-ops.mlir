// RUN: pipewright-opt %s | pipewright-opt | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Images with the channels last.

// CHECK: nn.weight @w role = parameter channels_last : tensor<8x3x2x4xf32>
nn.weight @w role = parameter channels_last : tensor<8x3x2x4xf32>

// CHECK-LABEL: func @conv
func.func @conv(%x: tensor<2x9x7x4xf32>, %g: tensor<8x3x2x2xf32>, %b: tensor<8xf32>) {
  // CHECK: %[[W:.*]] = nn.parameter @w : tensor<8x3x2x4xf32>
  %w = nn.parameter @w : tensor<8x3x2x4xf32>
  // CHECK: %[[Y:.*]] = nn.conv %{{.*}}, %[[W]] bias %{{.*}} strides = [2, 1] pads = [1, 0, 1, 0] dilations = [1, 1] groups = 1 channels_last : (tensor<2x9x7x4xf32>, tensor<8x3x2x4xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %y = nn.conv %x, %w bias %b strides = [2, 1] pads = [1, 0, 1, 0] dilations = [1, 1] groups = 1 channels_last
    : (tensor<2x9x7x4xf32>, tensor<8x3x2x4xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  // CHECK: nn.conv {{.*}} groups = 2 channels_last : (tensor<2x9x7x4xf32>, tensor<8x3x2x2xf32>) -> tensor<2x5x6x8xf32>
  %z = nn.conv %x, %g strides = [2, 1] pads = [1, 0, 1, 0] dilations = [1, 1] groups = 2 channels_last
    : (tensor<2x9x7x4xf32>, tensor<8x3x2x2xf32>) -> tensor<2x5x6x8xf32>
  // CHECK: nn.conv_backward_data %[[Y]], {{.*}} groups = 2 channels_last : (tensor<2x5x6x8xf32>, tensor<8x3x2x2xf32>) -> tensor<2x9x7x4xf32>
  %dx = nn.conv_backward_data %y, %g strides = [2, 1] pads = [1, 0, 1, 0] dilations = [1, 1] groups = 2 channels_last
    : (tensor<2x5x6x8xf32>, tensor<8x3x2x2xf32>) -> tensor<2x9x7x4xf32>
  // CHECK: nn.conv_backward_weight %[[Y]], {{.*}} groups = 1 channels_last : (tensor<2x5x6x8xf32>, tensor<2x9x7x4xf32>) -> tensor<8x3x2x4xf32>
  %dw = nn.conv_backward_weight %y, %x strides = [2, 1] pads = [1, 0, 1, 0] dilations = [1, 1] groups = 1 channels_last
    : (tensor<2x5x6x8xf32>, tensor<2x9x7x4xf32>) -> tensor<8x3x2x4xf32>
  return
}

// CHECK-LABEL: func @pool
func.func @pool(%x: tensor<2x8x6x4xf32>) {
  // CHECK: nn.max_pool {{.*}} dilations = [1, 1] channels_last : tensor<2x8x6x4xf32> -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xi8>)
  %y, %window = nn.max_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1] channels_last
    : tensor<2x8x6x4xf32> -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xi8>)
  // CHECK: nn.max_pool_backward {{.*}} channels_last : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xi8>) -> tensor<2x8x6x4xf32>
  %dx = nn.max_pool_backward %y, %window kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1] channels_last
    : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xi8>) -> tensor<2x8x6x4xf32>
  // CHECK: nn.average_pool {{.*}} pads = [0, 0, 0, 0] channels_last : tensor<2x8x6x4xf32> -> tensor<2x4x3x4xf32>
  %a = nn.average_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] channels_last
    : tensor<2x8x6x4xf32> -> tensor<2x4x3x4xf32>
  // CHECK: nn.average_pool_backward {{.*}} count_include_pad channels_last : tensor<2x4x3x4xf32> -> tensor<2x8x6x4xf32>
  %da = nn.average_pool_backward %a kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad channels_last
    : tensor<2x4x3x4xf32> -> tensor<2x8x6x4xf32>
  return
}

// CHECK-LABEL: func @batch_norm
func.func @batch_norm(%x: tensor<2x8x6x4xf32>, %s: tensor<4xf32>) {
  // CHECK: nn.batch_norm {{.*}} momentum = 5.000000e-01 channels_last : (tensor<2x8x6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x8x6x4xf32>, tensor<4xf32>, tensor<4xf32>)
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 0.5 momentum = 0.5 channels_last
    : (tensor<2x8x6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x8x6x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.batch_norm_backward {{.*}} epsilon = 5.000000e-01 channels_last :
  %d:3 = nn.batch_norm_backward %y, %x, %s, %m, %v epsilon = 0.5 channels_last
    : (tensor<2x8x6x4xf32>, tensor<2x8x6x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x8x6x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
