// RUN: pipewright-opt %s --nn-bubble-up-slices --split-input-file | FileCheck %s

// Gates are slices of a sum of what all steps have in common and of a step's
// own: neither sum is computed as a whole.
// CHECK-LABEL: func @gates
// CHECK-NOT: tensor<4x6xf32>, tensor<6xf32>
// CHECK: %[[X:.*]] = nn.slice %arg0 starts = [2, 0] sizes = [2, 3] steps = [1, 1] : tensor<4x6xf32> -> tensor<2x3xf32>
// CHECK: %[[B:.*]] = nn.slice %arg1 starts = [0] sizes = [3] steps = [1] : tensor<6xf32> -> tensor<3xf32>
// CHECK: %[[XB:.*]] = nn.add %[[X]], %[[B]] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK: %[[H:.*]] = nn.slice %arg2 starts = [0, 0] sizes = [2, 3]
// CHECK: %[[I:.*]] = nn.add %[[XB]], %[[H]] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK: nn.slice %arg0 starts = [2, 3] sizes = [2, 3] steps = [1, 1] : tensor<4x6xf32> -> tensor<2x3xf32>
// CHECK: nn.slice %arg1 starts = [3] sizes = [3] steps = [1] : tensor<6xf32> -> tensor<3xf32>
// CHECK: nn.sigmoid %[[I]]
// CHECK-NOT: tensor<4x6xf32>, tensor<6xf32>
// CHECK: return
func.func @gates(%x: tensor<4x6xf32>, %b: tensor<6xf32>, %h: tensor<2x6xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = nn.add %x, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %1 = nn.reshape %0 : tensor<4x6xf32> -> tensor<2x2x6xf32>
  %2 = nn.slice %1 starts = [1, 0, 0] sizes = [1, 2, 6] steps = [1, 1, 1] : tensor<2x2x6xf32> -> tensor<1x2x6xf32>
  %3 = nn.reshape %2 : tensor<1x2x6xf32> -> tensor<2x6xf32>
  %4 = nn.add %3, %h : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %5 = nn.slice %4 starts = [0, 0] sizes = [2, 3] steps = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  %6 = nn.slice %4 starts = [0, 3] sizes = [2, 3] steps = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  %7 = nn.sigmoid %5 : tensor<2x3xf32>
  %8 = nn.tanh %6 : tensor<2x3xf32>
  %9 = nn.mul %7, %8 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // All of the sum is used, in slices of slices.
  %10 = nn.slice %1 starts = [0, 0, 0] sizes = [1, 2, 6] steps = [1, 1, 1] : tensor<2x2x6xf32> -> tensor<1x2x6xf32>
  %11 = nn.reshape %10 : tensor<1x2x6xf32> -> tensor<2x6xf32>
  %12 = nn.add %11, %h : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %13 = nn.slice %12 starts = [0, 0] sizes = [2, 3] steps = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  %14 = nn.slice %12 starts = [0, 3] sizes = [2, 3] steps = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  return %9, %13, %14 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Steps, also backwards, and operands that broadcast along a dimension that is
// sliced; a part of the result is enough.
// CHECK-LABEL: func @steps
// CHECK: %[[A:.*]] = nn.slice %arg0 starts = [7, 0] sizes = [2, 4] steps = [-4, 1] : tensor<8x4xf32> -> tensor<2x4xf32>
// CHECK: %[[B:.*]] = nn.slice %arg1 starts = [7, 0] sizes = [2, 1] steps = [-4, 1] : tensor<8x1xf32> -> tensor<2x1xf32>
// CHECK: nn.where %arg2, %[[A]], %[[B]] : (tensor<i1>, tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
func.func @steps(%a: tensor<8x4xf32>, %b: tensor<8x1xf32>, %c: tensor<i1>) -> tensor<2x4xf32> {
  %0 = nn.slice %a starts = [7, 0] sizes = [4, 4] steps = [-2, 1] : tensor<8x4xf32> -> tensor<4x4xf32>
  %1 = nn.slice %b starts = [7, 0] sizes = [4, 1] steps = [-2, 1] : tensor<8x1xf32> -> tensor<4x1xf32>
  %2 = nn.where %c, %0, %1 : (tensor<i1>, tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %3 = nn.slice %2 starts = [0, 0] sizes = [2, 4] steps = [2, 1] : tensor<4x4xf32> -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// -----

// Dimensions of 1 come and go; a box of several dimensions is a run of one.
// CHECK-LABEL: func @reshapes
// CHECK: %[[X:.*]] = nn.slice %arg0 starts = [14, 0] sizes = [2, 5] steps = [1, 1] : tensor<24x5xf32> -> tensor<2x5xf32>
// CHECK: %[[N:.*]] = nn.neg %[[X]] : tensor<2x5xf32>
// CHECK: nn.reshape %[[N]] : tensor<2x5xf32> -> tensor<1x1x2x1x5xf32>
func.func @reshapes(%x: tensor<24x5xf32>) -> tensor<1x1x2x1x5xf32> {
  %0 = nn.neg %x : tensor<24x5xf32>
  %1 = nn.reshape %0 : tensor<24x5xf32> -> tensor<2x3x4x1x5xf32>
  %2 = nn.slice %1 starts = [1, 0, 2, 0, 0] sizes = [1, 1, 2, 1, 5] steps = [1, 1, 1, 1, 1] : tensor<2x3x4x1x5xf32> -> tensor<1x1x2x1x5xf32>
  return %2 : tensor<1x1x2x1x5xf32>
}

// -----

// What is no box of the operand, what is used as a whole, too, or in slices
// that overlap, and what costs more than a slice of it, stays.
// CHECK-LABEL: func @left
// CHECK: nn.neg %arg0 : tensor<8x4xf32>
// CHECK: nn.add %arg0, %arg0 : {{.*}} -> tensor<8x4xf32>
// CHECK: nn.mul %arg0, %arg0 : {{.*}} -> tensor<8x4xf32>
// CHECK: nn.gelu %arg0 approximate = none : tensor<8x4xf32>
func.func @left(%x: tensor<8x4xf32>) -> (tensor<2x8xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<2x4xf32>) {
  %0 = nn.neg %x : tensor<8x4xf32>
  %1 = nn.reshape %0 : tensor<8x4xf32> -> tensor<4x8xf32>
  %2 = nn.slice %1 starts = [0, 0] sizes = [2, 8] steps = [2, 1] : tensor<4x8xf32> -> tensor<2x8xf32>
  %3 = nn.add %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = nn.slice %3 starts = [0, 0] sizes = [2, 4] steps = [1, 1] : tensor<8x4xf32> -> tensor<2x4xf32>
  %5 = nn.mul %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = nn.slice %5 starts = [0, 0] sizes = [6, 4] steps = [1, 1] : tensor<8x4xf32> -> tensor<6x4xf32>
  %7 = nn.slice %5 starts = [2, 0] sizes = [6, 4] steps = [1, 1] : tensor<8x4xf32> -> tensor<6x4xf32>
  %8 = nn.gelu %x approximate = none : tensor<8x4xf32>
  %9 = nn.slice %8 starts = [0, 0] sizes = [2, 4] steps = [1, 1] : tensor<8x4xf32> -> tensor<2x4xf32>
  return %2, %4, %3, %6, %7, %9 : tensor<2x8xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<2x4xf32>
}

// -----

// An operand that is used twice, as it is or through a reshape, and views that
// nobody uses.
// CHECK-LABEL: func @twice
// CHECK-NEXT: %[[S:.*]] = nn.slice %arg0 starts = [2] sizes = [2] steps = [1] : tensor<8xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[T:.*]] = nn.slice %arg0 starts = [2] sizes = [2] steps = [1] : tensor<8xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[P:.*]] = nn.mul %[[S]], %[[T]] : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NOT: tensor<4xf32>
// CHECK: return
func.func @twice(%x: tensor<8xf32>) -> (tensor<2xf32>, tensor<1x2xf32>) {
  %0 = nn.slice %x starts = [2] sizes = [4] steps = [1] : tensor<8xf32> -> tensor<4xf32>
  %1 = nn.mul %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.slice %1 starts = [0] sizes = [2] steps = [1] : tensor<4xf32> -> tensor<2xf32>
  %3 = nn.reshape %1 : tensor<4xf32> -> tensor<2x2xf32>
  %4 = nn.slice %x starts = [4] sizes = [4] steps = [1] : tensor<8xf32> -> tensor<4xf32>
  %5 = nn.reshape %4 : tensor<4xf32> -> tensor<1x4xf32>
  %6 = nn.sub %5, %4 : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  %7 = nn.slice %6 starts = [0, 0] sizes = [1, 2] steps = [1, 1] : tensor<1x4xf32> -> tensor<1x2xf32>
  %8 = nn.slice %6 starts = [0, 0] sizes = [1, 4] steps = [1, 1] : tensor<1x4xf32> -> tensor<1x4xf32>
  return %2, %7 : tensor<2xf32>, tensor<1x2xf32>
}
