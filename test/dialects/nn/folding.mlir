// RUN: pipewright-opt %s --canonicalize --split-input-file | FileCheck %s

// Ops that do nothing vanish, and chains of views and permutations become one.

// CHECK-LABEL: func @nothing_to_do
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @nothing_to_do(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.reshape %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = nn.transpose %0 permutation = [0, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = nn.slice %1 starts = [0, 0] sizes = [4, 8] steps = [1, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = nn.pad %2 low = [0, 0] high = [0, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  %4 = nn.concat %3 axis = 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = nn.broadcast_to %4 : tensor<4x8xf32> -> tensor<4x8xf32>
  %6 = nn.cast %5 : tensor<4x8xf32> -> tensor<4x8xf32>
  %7 = nn.dropout %6 rate = 0.0 id = 0 : tensor<4x8xf32>
  %8 = nn.reduce_sum %7 axes = [] : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: return %[[X]]
  return %8 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func @reshapes
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @reshapes(%x: tensor<4x8xf32>) -> tensor<2x16xf32> {
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[X]] : tensor<4x8xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: return %[[Y]]
  %0 = nn.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %1 = nn.reshape %0 : tensor<32xf32> -> tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}

// -----

// There and back is nothing; two different ones are one.
// CHECK-LABEL: func @transposes
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = nn.transpose %[[X]] permutation = [2, 1, 0]
  // CHECK-NEXT: return %[[X]], %[[Y]]
  %0 = nn.transpose %x permutation = [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = nn.transpose %0 permutation = [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  %2 = nn.transpose %0 permutation = [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
  return %1, %2 : tensor<2x3x4xf32>, tensor<4x3x2xf32>
}

// -----

// A slice with steps of the same size is not the whole, and reverses.
// CHECK-LABEL: func @reverse
func.func @reverse(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: nn.slice
  %0 = nn.slice %x starts = [3] sizes = [4] steps = [-1] : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
