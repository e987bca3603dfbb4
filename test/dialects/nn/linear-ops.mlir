// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Matrix products and convolutions are printed as they are parsed, in both forms.

// Plain, with one shared right operand, and batched on both sides.
// CHECK-LABEL: func @matmul
func.func @matmul(%a: tensor<4x128x64xf32>, %w: tensor<32x64xf32>, %b: tensor<4x64x16xf32>, %m: tensor<64x8xf32>, %n: tensor<64x2xf32>) {
  // CHECK: nn.matmul %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} transpose_b : (tensor<4x128x64xf32>, tensor<32x64xf32>) -> tensor<4x128x32xf32>
  %0 = nn.matmul %a, %w transpose_b
      : (tensor<4x128x64xf32>, tensor<32x64xf32>) -> tensor<4x128x32xf32>
  // CHECK: nn.matmul %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x128x64xf32>, tensor<4x64x16xf32>) -> tensor<4x128x16xf32>
  %1 = nn.matmul %a, %b
      : (tensor<4x128x64xf32>, tensor<4x64x16xf32>) -> tensor<4x128x16xf32>
  // CHECK: nn.matmul %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} transpose_a : (tensor<64x8xf32>, tensor<64x2xf32>) -> tensor<8x2xf32>
  %2 = nn.matmul %m, %n transpose_a
      : (tensor<64x8xf32>, tensor<64x2xf32>) -> tensor<8x2xf32>
  // CHECK: nn.matmul %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} transpose_a transpose_b : (tensor<4x64x16xf32>, tensor<4x128x64xf32>) -> tensor<4x16x128xf32>
  %3 = nn.matmul %b, %a transpose_a transpose_b
      : (tensor<4x64x16xf32>, tensor<4x128x64xf32>) -> tensor<4x16x128xf32>
  return
}

// With and without bias, grouped and dilated.
// CHECK-LABEL: func @conv
func.func @conv(%x: tensor<8x4x32x32xf32>, %w: tensor<64x4x3x3xf32>, %g: tensor<8x1x3x3xf32>, %bias: tensor<64xf32>) {
  // CHECK: nn.conv %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} bias %{{[a-z0-9_]+}} strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<8x4x32x32xf32>, tensor<64x4x3x3xf32>, tensor<64xf32>) -> tensor<8x64x32x32xf32>
  %0 = nn.conv %x, %w bias %bias strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      : (tensor<8x4x32x32xf32>, tensor<64x4x3x3xf32>, tensor<64xf32>) -> tensor<8x64x32x32xf32>
  // CHECK: nn.conv %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} strides = [2, 2] pads = [0, 0, 1, 1] dilations = [2, 2] groups = 4 : (tensor<8x4x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<8x8x15x15xf32>
  %1 = nn.conv %x, %g strides = [2, 2] pads = [0, 0, 1, 1] dilations = [2, 2] groups = 4
      : (tensor<8x4x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<8x8x15x15xf32>
  return
}

// Gradients with respect to images and filters.
// CHECK-LABEL: func @conv_backward
func.func @conv_backward(%dy: tensor<8x64x32x32xf32>, %x: tensor<8x4x32x32xf32>, %w: tensor<64x4x3x3xf32>) {
  // CHECK: nn.conv_backward_data %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<8x64x32x32xf32>, tensor<64x4x3x3xf32>) -> tensor<8x4x32x32xf32>
  %0 = nn.conv_backward_data %dy, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      : (tensor<8x64x32x32xf32>, tensor<64x4x3x3xf32>) -> tensor<8x4x32x32xf32>
  // CHECK: nn.conv_backward_weight %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1 : (tensor<8x64x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<64x4x3x3xf32>
  %1 = nn.conv_backward_weight %dy, %x strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      : (tensor<8x64x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<64x4x3x3xf32>
  return
}
