// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Reductions are printed as they are parsed, in both forms.

// One form for all three.
// CHECK-LABEL: func @reductions
func.func @reductions(%x: tensor<4x8xf32>) {
  // CHECK: nn.reduce_sum %{{[a-z0-9_]+}} axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %sum = nn.reduce_sum %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  // CHECK: nn.reduce_mean %{{[a-z0-9_]+}} axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %mean = nn.reduce_mean %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  // CHECK: nn.reduce_max %{{[a-z0-9_]+}} axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %max = nn.reduce_max %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// Reduced dimensions stay as 1.
// CHECK-LABEL: func @keep_dims
func.func @keep_dims(%x: tensor<4x8x2xf32>) {
  // CHECK: nn.reduce_sum %{{[a-z0-9_]+}} axes = [0, 2] keep_dims : tensor<4x8x2xf32> -> tensor<1x8x1xf32>
  %0 = nn.reduce_sum %x axes = [0, 2] keep_dims
      : tensor<4x8x2xf32> -> tensor<1x8x1xf32>
  return
}

// A scalar is left.
// CHECK-LABEL: func @all_axes
func.func @all_axes(%x: tensor<4x8xf32>) {
  // CHECK: nn.reduce_mean %{{[a-z0-9_]+}} axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %0 = nn.reduce_mean %x axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return
}
