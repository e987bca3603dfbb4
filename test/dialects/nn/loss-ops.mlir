// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Losses are printed as they are parsed, in both forms.

// The loss keeps two numbers per row for its gradient.
// CHECK-LABEL: func @softmax_cross_entropy
func.func @softmax_cross_entropy(%x: tensor<16x32xf32>, %labels: tensor<16xi64>, %dloss: tensor<f32>) {
  // CHECK: nn.softmax_cross_entropy %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} ignore_index = -100 : (tensor<16x32xf32>, tensor<16xi64>) -> (tensor<f32>, tensor<16xf32>, tensor<16xf32>)
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %labels ignore_index = -100
      : (tensor<16x32xf32>, tensor<16xi64>) -> (tensor<f32>, tensor<16xf32>, tensor<16xf32>)
  // CHECK: nn.softmax_cross_entropy_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} ignore_index = -100 : (tensor<f32>, tensor<16x32xf32>, tensor<16xi64>, tensor<16xf32>, tensor<16xf32>) -> tensor<16x32xf32>
  %dx = nn.softmax_cross_entropy_backward %dloss, %x, %labels, %largest, %sum ignore_index = -100
      : (tensor<f32>, tensor<16x32xf32>, tensor<16xi64>, tensor<16xf32>, tensor<16xf32>) -> tensor<16x32xf32>
  return
}

// What the sums are divided by may be given.
// CHECK-LABEL: func @divisor
func.func @divisor(%x: tensor<16x32xf32>, %labels: tensor<16xi64>, %dloss: tensor<f32>, %count: tensor<f32>) {
  // CHECK: nn.softmax_cross_entropy %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} divisor %{{[a-z0-9_]+}} ignore_index = -100 classes = 30 : (tensor<16x32xf32>, tensor<16xi64>, tensor<f32>) -> (tensor<f32>, tensor<16xf32>, tensor<16xf32>)
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %labels divisor %count ignore_index = -100 classes = 30
      : (tensor<16x32xf32>, tensor<16xi64>, tensor<f32>) -> (tensor<f32>, tensor<16xf32>, tensor<16xf32>)
  // CHECK: nn.softmax_cross_entropy_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} divisor %{{[a-z0-9_]+}} ignore_index = -100 classes = 30 : (tensor<f32>, tensor<16x32xf32>, tensor<16xi64>, tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> tensor<16x32xf32>
  %dx = nn.softmax_cross_entropy_backward %dloss, %x, %labels, %largest, %sum divisor %count ignore_index = -100 classes = 30
      : (tensor<f32>, tensor<16x32xf32>, tensor<16xi64>, tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> tensor<16x32xf32>
  return
}
