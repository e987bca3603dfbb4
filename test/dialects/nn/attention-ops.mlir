// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Attention is printed as it is parsed, in both forms.

// Causal without mask, and masked with dropout.
// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<2x4x16x8xf32>, %mask: tensor<2x1x1x16xf32>) {
  // CHECK: nn.attention %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} scale = 3.535530e-01 causal dropout_rate = 0.000000e+00 dropout_id = 0 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  %o, %stats = nn.attention %q, %q, %q scale = 3.535530e-01 causal dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  // CHECK: nn.attention %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} mask %{{[a-z0-9_]+}} scale = 3.535530e-01 dropout_rate = 1.000000e-01 dropout_id = 7 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x1x1x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  %p, %stats1 = nn.attention %q, %q, %q mask %mask scale = 3.535530e-01 dropout_rate = 1.000000e-01 dropout_id = 7
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x1x1x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  return
}

// The gradient has the same attributes.
// CHECK-LABEL: func @attention_backward
func.func @attention_backward(%g: tensor<2x4x16x8xf32>, %stats: tensor<2x4x16x2xf32>, %mask: tensor<16x16xf32>) {
  // CHECK: nn.attention_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} mask %{{[a-z0-9_]+}} scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>, tensor<16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  %dq, %dk, %dv = nn.attention_backward %g, %g, %g, %g, %g, %stats mask %mask scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>, tensor<16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// Operands with rows first; stats stays as it is.
// CHECK-LABEL: func @rows_first
func.func @rows_first(%q: tensor<2x16x4x8xf32>, %stats: tensor<2x4x16x2xf32>) {
  // CHECK: nn.attention %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} scale = 3.535530e-01 causal rows_first dropout_rate = 0.000000e+00 dropout_id = 0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  %o, %l = nn.attention %q, %q, %q scale = 3.535530e-01 causal rows_first dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  // CHECK: nn.attention_backward {{.*}} scale = 3.535530e-01 rows_first dropout_rate
  %d:3 = nn.attention_backward %o, %q, %q, %q, %o, %stats scale = 3.535530e-01 rows_first dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// q, k and v in one tensor, and their gradients in one.
// CHECK-LABEL: func @packed_attention
func.func @packed_attention(%qkv: tensor<2x16x3x4x8xbf16>, %mask: tensor<2x1x1x16xf32>) {
  // CHECK: %[[O:.*]], %[[STATS:.*]] = nn.packed_attention %{{[a-z0-9_]+}} mask %{{[a-z0-9_]+}} scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7 : (tensor<2x16x3x4x8xbf16>, tensor<2x1x1x16xf32>) -> (tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>)
  %o, %stats = nn.packed_attention %qkv mask %mask scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7
      : (tensor<2x16x3x4x8xbf16>, tensor<2x1x1x16xf32>) -> (tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>)
  // CHECK: nn.packed_attention_backward %[[O]], %{{[a-z0-9_]+}}, %[[O]], %[[STATS]] mask %{{[a-z0-9_]+}} scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7 : (tensor<2x16x4x8xbf16>, tensor<2x16x3x4x8xbf16>, tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>, tensor<2x1x1x16xf32>) -> tensor<2x16x3x4x8xbf16>
  %d = nn.packed_attention_backward %o, %qkv, %o, %stats mask %mask scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7
      : (tensor<2x16x4x8xbf16>, tensor<2x16x3x4x8xbf16>, tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>, tensor<2x1x1x16xf32>) -> tensor<2x16x3x4x8xbf16>
  return
}
