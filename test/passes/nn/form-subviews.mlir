// RUN: pipewright-opt %s --nn-form-subviews --split-input-file | FileCheck %s

// A run of rows, from a place where buffers may begin.
// CHECK-LABEL: func @runs
// CHECK: %[[A:.*]] = nn.subview %arg0 at 48 : tensor<4x3x16xf32> -> tensor<1x2x16xf32>
// CHECK: %[[B:.*]] = nn.subview %arg0 at 16 : tensor<4x3x16xf32> -> tensor<1x1x16xf32>
// CHECK: %[[C:.*]] = nn.subview %arg0 at 96 : tensor<4x3x16xf32> -> tensor<2x3x16xf32>
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @runs(%x: tensor<4x3x16xf32>) -> (tensor<1x2x16xf32>, tensor<1x1x16xf32>, tensor<2x3x16xf32>) {
  %0 = nn.slice %x starts = [1, 0, 0] sizes = [1, 2, 16] steps = [1, 1, 1] : tensor<4x3x16xf32> -> tensor<1x2x16xf32>
  %1 = nn.slice %x starts = [0, 1, 0] sizes = [1, 1, 16] steps = [-1, 2, 1] : tensor<4x3x16xf32> -> tensor<1x1x16xf32>
  %2 = nn.slice %x starts = [2, 0, 0] sizes = [2, 3, 16] steps = [1, 1, 1] : tensor<4x3x16xf32> -> tensor<2x3x16xf32>
  return %0, %1, %2 : tensor<1x2x16xf32>, tensor<1x1x16xf32>, tensor<2x3x16xf32>
}

// -----

// Rows are found before columns are taken of them; equal rows are seen once.
// CHECK-LABEL: func @columns
// CHECK: %[[R:.*]] = nn.subview %arg0 at 64 : tensor<4x2x16xf32> -> tensor<1x2x16xf32>
// CHECK: nn.slice %[[R]] starts = [0, 0, 0] sizes = [1, 2, 8] steps = [1, 1, 1]
// CHECK-NOT: nn.subview
// CHECK: nn.slice %[[R]] starts = [0, 0, 15] sizes = [1, 2, 4] steps = [1, 1, -1]
// CHECK: %[[S:.*]] = nn.subview %arg0 at 64 : tensor<4x2x16xf32> -> tensor<2x2x16xf32>
// CHECK: nn.slice %[[S]] starts = [0, 0, 0] sizes = [2, 1, 16] steps = [1, 1, 1]
func.func @columns(%x: tensor<4x2x16xf32>) -> (tensor<1x2x8xf32>, tensor<1x2x4xf32>, tensor<2x1x16xf32>) {
  %0 = nn.slice %x starts = [2, 0, 0] sizes = [1, 2, 8] steps = [1, 1, 1] : tensor<4x2x16xf32> -> tensor<1x2x8xf32>
  %1 = nn.slice %x starts = [2, 0, 15] sizes = [1, 2, 4] steps = [1, 1, -1] : tensor<4x2x16xf32> -> tensor<1x2x4xf32>
  %2 = nn.slice %x starts = [2, 0, 0] sizes = [2, 1, 16] steps = [1, 1, 1] : tensor<4x2x16xf32> -> tensor<2x1x16xf32>
  return %0, %1, %2 : tensor<1x2x8xf32>, tensor<1x2x4xf32>, tensor<2x1x16xf32>
}

// -----

// Rows with steps, columns of all rows, and rows that begin where no buffer
// does.
// CHECK-LABEL: func @others
// CHECK-NOT: nn.subview
// CHECK-COUNT-3: nn.slice
func.func @others(%x: tensor<4x2x16xf32>, %y: tensor<8x8xf32>) -> (tensor<4x2x8xf32>, tensor<2x2x16xf32>, tensor<1x8xf32>) {
  %0 = nn.slice %x starts = [0, 0, 0] sizes = [4, 2, 8] steps = [1, 1, 1] : tensor<4x2x16xf32> -> tensor<4x2x8xf32>
  %1 = nn.slice %x starts = [0, 0, 0] sizes = [2, 2, 16] steps = [2, 1, 1] : tensor<4x2x16xf32> -> tensor<2x2x16xf32>
  %2 = nn.slice %y starts = [1, 0] sizes = [1, 8] steps = [1, 1] : tensor<8x8xf32> -> tensor<1x8xf32>
  return %0, %1, %2 : tensor<4x2x8xf32>, tensor<2x2x16xf32>, tensor<1x8xf32>
}

// -----

// The kernel of a cheap op that nothing else uses takes in the slice; what is
// stored anyway does not. Constants are made in every kernel.
// CHECK-LABEL: func @computed
// CHECK: nn.slice
// CHECK: nn.subview
// CHECK: nn.subview
// CHECK: nn.slice
func.func @computed(%x: tensor<4x16xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<4x16xf32>, tensor<1x16xf32>) {
  %0 = nn.neg %x : tensor<4x16xf32>
  %1 = nn.slice %0 starts = [1, 0] sizes = [1, 16] steps = [1, 1] : tensor<4x16xf32> -> tensor<1x16xf32>
  %2 = nn.tanh %x : tensor<4x16xf32>
  %3 = nn.slice %2 starts = [1, 0] sizes = [1, 16] steps = [1, 1] : tensor<4x16xf32> -> tensor<1x16xf32>
  %4 = nn.add %x, %x : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %5 = nn.slice %4 starts = [1, 0] sizes = [1, 16] steps = [1, 1] : tensor<4x16xf32> -> tensor<1x16xf32>
  %6 = nn.constant dense<1.0> : tensor<4x16xf32>
  %7 = nn.slice %6 starts = [1, 0] sizes = [1, 16] steps = [1, 1] : tensor<4x16xf32> -> tensor<1x16xf32>
  return %1, %3, %5, %4, %7 : tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<4x16xf32>, tensor<1x16xf32>
}
