// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Products with epilogues are printed as they are parsed, in both forms.

// A bias is read or its gradient written; a pre-activation is written or read.
// CHECK-LABEL: func @matmul_epilogue
func.func @matmul_epilogue(%x: tensor<4x128x64xbf16>, %w: tensor<32x64xbf16>, %b: tensor<32xbf16>, %dy: tensor<16x8xf32>, %v: tensor<16x24xf32>, %h: tensor<8x24xf32>) {
  // CHECK: call.matmul_epilogue %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} transpose_b bias %{{[a-z0-9_]+}} epilogue = bias : (tensor<4x128x64xbf16>, tensor<32x64xbf16>, tensor<32xbf16>) -> tensor<4x128x32xbf16>
  %0 = call.matmul_epilogue %x, %w transpose_b bias %b epilogue = bias
      : (tensor<4x128x64xbf16>, tensor<32x64xbf16>, tensor<32xbf16>) -> tensor<4x128x32xbf16>
  // CHECK: call.matmul_epilogue %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} transpose_b bias %{{[a-z0-9_]+}} epilogue = bias_gelu : (tensor<4x128x64xbf16>, tensor<32x64xbf16>, tensor<32xbf16>) -> (tensor<4x128x32xbf16>, tensor<4x128x32xbf16>)
  %1:2 = call.matmul_epilogue %x, %w transpose_b bias %b epilogue = bias_gelu
      : (tensor<4x128x64xbf16>, tensor<32x64xbf16>, tensor<32xbf16>) -> (tensor<4x128x32xbf16>, tensor<4x128x32xbf16>)
  // CHECK: call.matmul_epilogue %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} transpose_a pre_activation %{{[a-z0-9_]+}} epilogue = gelu_gradient : (tensor<16x8xf32>, tensor<16x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  %2 = call.matmul_epilogue %dy, %v transpose_a pre_activation %h epilogue = gelu_gradient
      : (tensor<16x8xf32>, tensor<16x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  // CHECK: call.matmul_epilogue %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} transpose_a pre_activation %{{[a-z0-9_]+}} epilogue = gelu_bias_gradient : (tensor<16x8xf32>, tensor<16x24xf32>, tensor<8x24xf32>) -> (tensor<8x24xf32>, tensor<24xf32>)
  %3:2 = call.matmul_epilogue %dy, %v transpose_a pre_activation %h epilogue = gelu_bias_gradient
      : (tensor<16x8xf32>, tensor<16x24xf32>, tensor<8x24xf32>) -> (tensor<8x24xf32>, tensor<24xf32>)
  return
}
