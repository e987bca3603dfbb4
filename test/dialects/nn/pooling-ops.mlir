// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Pooling is printed as it is parsed, in both forms.

// Overlapping windows with padding: ResNet's stem.
// CHECK-LABEL: func @max_pool
func.func @max_pool(%x: tensor<2x4x33x33xf32>, %dy: tensor<2x4x17x17xf32>, %w: tensor<2x4x17x17xi8>) {
  // CHECK: nn.max_pool %{{[a-z0-9_]+}} kernel = [3, 3] strides = [2, 2] pads = [1, 1, 1, 1] dilations = [1, 1] : tensor<2x4x33x33xf32> -> (tensor<2x4x17x17xf32>, tensor<2x4x17x17xi8>)
  %y, %window = nn.max_pool %x kernel = [3, 3] strides = [2, 2] pads = [1, 1, 1, 1] dilations = [1, 1]
      : tensor<2x4x33x33xf32> -> (tensor<2x4x17x17xf32>, tensor<2x4x17x17xi8>)
  // CHECK: nn.max_pool_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} kernel = [3, 3] strides = [2, 2] pads = [1, 1, 1, 1] dilations = [1, 1] : (tensor<2x4x17x17xf32>, tensor<2x4x17x17xi8>) -> tensor<2x4x33x33xf32>
  %dx = nn.max_pool_backward %dy, %w kernel = [3, 3] strides = [2, 2] pads = [1, 1, 1, 1] dilations = [1, 1]
      : (tensor<2x4x17x17xf32>, tensor<2x4x17x17xi8>) -> tensor<2x4x33x33xf32>
  return
}

// Padding counted and not counted.
// CHECK-LABEL: func @average_pool
func.func @average_pool(%x: tensor<2x4x8x8xf32>, %dy: tensor<2x4x4x4xf32>) {
  // CHECK: nn.average_pool %{{[a-z0-9_]+}} kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>
  %0 = nn.average_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad
      : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>
  // CHECK: nn.average_pool %{{[a-z0-9_]+}} kernel = [3, 3] strides = [2, 2] pads = [1, 1, 1, 1] : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>
  %1 = nn.average_pool %x kernel = [3, 3] strides = [2, 2] pads = [1, 1, 1, 1]
      : tensor<2x4x8x8xf32> -> tensor<2x4x4x4xf32>
  // CHECK: nn.average_pool_backward %{{[a-z0-9_]+}} kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad : tensor<2x4x4x4xf32> -> tensor<2x4x8x8xf32>
  %2 = nn.average_pool_backward %dy kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad
      : tensor<2x4x4x4xf32> -> tensor<2x4x8x8xf32>
  return
}
