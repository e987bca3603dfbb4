// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Losses are printed as they are parsed, in both forms.

// The loss keeps one number per row for its gradient.
// CHECK-LABEL: func @softmax_cross_entropy
func.func @softmax_cross_entropy(%x: tensor<16x32xf32>, %labels: tensor<16xi64>, %dloss: tensor<f32>) {
  // CHECK: nn.softmax_cross_entropy %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} ignore_index = -100 : (tensor<16x32xf32>, tensor<16xi64>) -> (tensor<f32>, tensor<16xf32>)
  %loss, %lse = nn.softmax_cross_entropy %x, %labels ignore_index = -100
      : (tensor<16x32xf32>, tensor<16xi64>) -> (tensor<f32>, tensor<16xf32>)
  // CHECK: nn.softmax_cross_entropy_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} ignore_index = -100 : (tensor<f32>, tensor<16x32xf32>, tensor<16xi64>, tensor<16xf32>) -> tensor<16x32xf32>
  %dx = nn.softmax_cross_entropy_backward %dloss, %x, %labels, %lse ignore_index = -100
      : (tensor<f32>, tensor<16x32xf32>, tensor<16xi64>, tensor<16xf32>) -> tensor<16x32xf32>
  return
}
