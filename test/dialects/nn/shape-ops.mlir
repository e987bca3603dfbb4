// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Ops that move elements are printed as they are parsed, in both forms.

// A view: also to and from scalars.
// CHECK-LABEL: func @reshape
func.func @reshape(%x: tensor<4x8x16xf32>, %s: tensor<1x1xf32>) {
  // CHECK: nn.reshape %{{[a-z0-9_]+}} : tensor<4x8x16xf32> -> tensor<32x16xf32>
  %0 = nn.reshape %x : tensor<4x8x16xf32> -> tensor<32x16xf32>
  // CHECK: nn.reshape %{{[a-z0-9_]+}} : tensor<1x1xf32> -> tensor<f32>
  %1 = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
  return
}

// Heads before rows.
// CHECK-LABEL: func @transpose
func.func @transpose(%x: tensor<2x128x4x64xf32>) {
  // CHECK: nn.transpose %{{[a-z0-9_]+}} permutation = [0, 2, 1, 3] : tensor<2x128x4x64xf32> -> tensor<2x4x128x64xf32>
  %0 = nn.transpose %x permutation = [0, 2, 1, 3]
      : tensor<2x128x4x64xf32> -> tensor<2x4x128x64xf32>
  return
}

// A box, and a column walked backwards.
// CHECK-LABEL: func @slice
func.func @slice(%x: tensor<4x192xf32>) {
  // CHECK: nn.slice %{{[a-z0-9_]+}} starts = [0, 64] sizes = [4, 64] steps = [1, 1] : tensor<4x192xf32> -> tensor<4x64xf32>
  %0 = nn.slice %x starts = [0, 64] sizes = [4, 64] steps = [1, 1]
      : tensor<4x192xf32> -> tensor<4x64xf32>
  // CHECK: nn.slice %{{[a-z0-9_]+}} starts = [3, 0] sizes = [4, 96] steps = [-1, 2] : tensor<4x192xf32> -> tensor<4x96xf32>
  %1 = nn.slice %x starts = [3, 0] sizes = [4, 96] steps = [-1, 2]
      : tensor<4x192xf32> -> tensor<4x96xf32>
  return
}

// Zeros on either side.
// CHECK-LABEL: func @pad
func.func @pad(%x: tensor<4x8xf32>) {
  // CHECK: nn.pad %{{[a-z0-9_]+}} low = [0, 1] high = [0, 2] : tensor<4x8xf32> -> tensor<4x11xf32>
  %0 = nn.pad %x low = [0, 1] high = [0, 2]
      : tensor<4x8xf32> -> tensor<4x11xf32>
  return
}

// Operands differ along the axis.
// CHECK-LABEL: func @concat
func.func @concat(%a: tensor<4x8xf32>, %b: tensor<4x2xf32>) {
  // CHECK: nn.concat %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} axis = 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  %0 = nn.concat %a, %b axis = 1
      : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  return
}

// New dimensions come first.
// CHECK-LABEL: func @broadcast_to
func.func @broadcast_to(%x: tensor<8x1xf32>) {
  // CHECK: nn.broadcast_to %{{[a-z0-9_]+}} : tensor<8x1xf32> -> tensor<4x8x16xf32>
  %0 = nn.broadcast_to %x : tensor<8x1xf32> -> tensor<4x8x16xf32>
  return
}

// A gather and the scatter that is its gradient.
// CHECK-LABEL: func @embedding
func.func @embedding(%t: tensor<512x64xf32>, %i: tensor<4x128xi64>, %dy: tensor<4x128x64xf32>) {
  // CHECK: nn.embedding %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<512x64xf32>, tensor<4x128xi64>) -> tensor<4x128x64xf32>
  %0 = nn.embedding %t, %i
      : (tensor<512x64xf32>, tensor<4x128xi64>) -> tensor<4x128x64xf32>
  // CHECK: nn.embedding_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x128x64xf32>, tensor<4x128xi64>) -> tensor<512x64xf32>
  %1 = nn.embedding_backward %dy, %i
      : (tensor<4x128x64xf32>, tensor<4x128xi64>) -> tensor<512x64xf32>
  return
}
