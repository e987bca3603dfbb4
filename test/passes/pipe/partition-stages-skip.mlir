// RUN: pipewright-opt %s --pipe-partition-stages="stages=3 balance=uniform" --pipe-verify-staged | FileCheck %s

// What two later stages use is returned once for each of them; the stage
// between does not pass it on.
nn.weight @w role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @s0 {
// CHECK: pipe.return %[[A:.*]], %[[A]] : tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-LABEL: pipe.stage @s1 {
// CHECK: pipe.forward sources [#pipe.output<@s0, 0>] {
// CHECK-LABEL: pipe.stage @s2 {
// CHECK: pipe.forward sources [#pipe.output<@s1, 0>, #pipe.output<@s0, 1>] {
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<8x8xf32>
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.matmul %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = nn.matmul %1, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = nn.add %2, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = nn.reduce_mean %3 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %4 : tensor<f32>
}
