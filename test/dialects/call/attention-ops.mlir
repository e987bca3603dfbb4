// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Attention by strides is printed as it is parsed, in both forms.

// Operands have rows first; stats has heads first.
// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<2x16x4x8xf32>, %stats: tensor<2x4x16x2xf32>) {
  // CHECK: call.attention %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} scale = 3.535530e-01 causal dropout_rate = 0.000000e+00 dropout_id = 0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  %o, %l = call.attention %q, %q, %q scale = 3.535530e-01 causal dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  // CHECK: call.attention_backward {{.*}} scale = 3.535530e-01 dropout_rate = 0.000000e+00 dropout_id = 0 : (tensor<2x16x4x8xf32>,
  %d:3 = call.attention_backward %o, %q, %q, %q, %o, %stats scale = 3.535530e-01 dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// q, k and v in one tensor, and their gradients in one.
// CHECK-LABEL: func @packed_attention
func.func @packed_attention(%qkv: tensor<2x16x3x4x8xbf16>, %mask: tensor<2x1x1x16xf32>) {
  // CHECK: %[[O:.*]], %[[STATS:.*]] = call.packed_attention %{{[a-z0-9_]+}} mask %{{[a-z0-9_]+}} scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7 : (tensor<2x16x3x4x8xbf16>, tensor<2x1x1x16xf32>) -> (tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>)
  %o, %stats = call.packed_attention %qkv mask %mask scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7
      : (tensor<2x16x3x4x8xbf16>, tensor<2x1x1x16xf32>) -> (tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>)
  // CHECK: call.packed_attention_backward %[[O]], %{{[a-z0-9_]+}}, %[[O]], %[[STATS]] mask %{{[a-z0-9_]+}} scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7 : (tensor<2x16x4x8xbf16>, tensor<2x16x3x4x8xbf16>, tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>, tensor<2x1x1x16xf32>) -> tensor<2x16x3x4x8xbf16>
  %d = call.packed_attention_backward %o, %qkv, %o, %stats mask %mask scale = 3.535530e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7
      : (tensor<2x16x4x8xbf16>, tensor<2x16x3x4x8xbf16>, tensor<2x16x4x8xbf16>, tensor<2x4x16x2xf32>, tensor<2x1x1x16xf32>) -> tensor<2x16x3x4x8xbf16>
  return
}

// Bounded scores and a mask with a gradient, which is one result more.
// CHECK-LABEL: func @softcap_and_mask_gradient
func.func @softcap_and_mask_gradient(%qkv: tensor<2x16x3x4x8xf32>, %mask: tensor<4x16x16xf32>) {
  // CHECK: call.packed_attention {{.*}} mask %{{[a-z0-9_]+}} mask_gradient scale = 5.000000e-01 softcap = 3.000000e+00 dropout_rate
  %o, %stats = call.packed_attention %qkv mask %mask mask_gradient scale = 0.5 softcap = 3.0 dropout_rate = 0.0 dropout_id = 0
      : (tensor<2x16x3x4x8xf32>, tensor<4x16x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
  // CHECK: call.packed_attention_backward {{.*}} mask_gradient scale = 5.000000e-01 softcap = 3.000000e+00 {{.*}} -> (tensor<2x16x3x4x8xf32>, tensor<4x16x16xf32>)
  %d:2 = call.packed_attention_backward %o, %qkv, %o, %stats mask %mask mask_gradient scale = 0.5 softcap = 3.0 dropout_rate = 0.0 dropout_id = 0
      : (tensor<2x16x4x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>, tensor<4x16x16xf32>) -> (tensor<2x16x3x4x8xf32>, tensor<4x16x16xf32>)
  return
}
