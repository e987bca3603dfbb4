// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Launches and subviews are printed as they are parsed, in both forms.

module @kernels {
  func.func @bias_relu(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
    %0 = nn.add %x, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = nn.relu %0 : tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
  func.func private @lowered(memref<4x8xf32>)
}

// CHECK-LABEL: func @launch
func.func @launch(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: nn.launch @kernels::@bias_relu(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %0 = nn.launch @kernels::@bias_relu(%x, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Once lowered to buffers, a kernel's type is no longer the launch's.
// CHECK-LABEL: func @launch_lowered
func.func @launch_lowered(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: nn.launch @kernels::@lowered
  %0 = nn.launch @kernels::@lowered(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func @subview
func.func @subview(%x: tensor<4x8x16xbf16>) -> tensor<2x16xbf16> {
  // CHECK: nn.subview %{{.*}} at 480 : tensor<4x8x16xbf16> -> tensor<2x16xbf16>
  %0 = nn.subview %x at 480 : tensor<4x8x16xbf16> -> tensor<2x16xbf16>
  return %0 : tensor<2x16xbf16>
}
