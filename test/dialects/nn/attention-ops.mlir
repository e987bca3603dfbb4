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

// Two heads of q read each head of k and v.
// CHECK-LABEL: func @shared_keys
func.func @shared_keys(%q: tensor<2x4x16x8xf32>, %k: tensor<2x2x16x8xf32>) {
  // CHECK: %[[O:.*]], %[[STATS:.*]] = nn.attention {{.*}} : (tensor<2x4x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  %o, %stats = nn.attention %q, %k, %k scale = 3.535530e-01 dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<2x4x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  // CHECK: nn.attention_backward %[[O]], {{.*}}, %[[O]], %[[STATS]] {{.*}} -> (tensor<2x4x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>)
  %dq, %dk, %dv = nn.attention_backward %o, %q, %k, %k, %o, %stats scale = 3.535530e-01 dropout_rate = 0.000000e+00 dropout_id = 0
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>)
  return
}

// A mask of two samples, which six of q read in turn; its gradient is a mask.
// CHECK-LABEL: func @repeated_mask
func.func @repeated_mask(%q: tensor<6x4x16x8xf32>, %mask: tensor<2x1x16x16xf32>) {
  // CHECK: nn.attention {{.*}} : (tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<2x1x16x16xf32>) ->
  %o, %stats = nn.attention %q, %q, %q mask %mask mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
      : (tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<2x1x16x16xf32>) -> (tensor<6x4x16x8xf32>, tensor<6x4x16x2xf32>)
  // CHECK: nn.attention_backward {{.*}} -> (tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<2x1x16x16xf32>)
  %d:4 = nn.attention_backward %o, %q, %q, %q, %o, %stats mask %mask mask_gradient scale = 0.5 dropout_rate = 0.0 dropout_id = 0
      : (tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x2xf32>, tensor<2x1x16x16xf32>) -> (tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<6x4x16x8xf32>, tensor<2x1x16x16xf32>)
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

// Bounded scores and a mask with a gradient, which is one result more.
// CHECK-LABEL: func @softcap_and_mask_gradient
func.func @softcap_and_mask_gradient(%q: tensor<2x4x16x8xf32>, %mask: tensor<4x16x16xf32>) {
  // CHECK: %[[O:.*]], %[[STATS:.*]] = nn.attention {{.*}} mask %{{[a-z0-9_]+}} mask_gradient scale = 5.000000e-01 softcap = 3.000000e+00 causal dropout_rate
  %o, %stats = nn.attention %q, %q, %q mask %mask mask_gradient scale = 0.5 softcap = 3.0 causal dropout_rate = 0.0 dropout_id = 0
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<4x16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>)
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = nn.attention_backward {{.*}} mask_gradient scale = 5.000000e-01 softcap = 3.000000e+00 causal {{.*}} -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<4x16x16xf32>)
  %d:4 = nn.attention_backward %o, %q, %q, %q, %o, %stats mask %mask mask_gradient scale = 0.5 softcap = 3.0 causal dropout_rate = 0.0 dropout_id = 0
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x2xf32>, tensor<4x16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<4x16x16xf32>)
  return
}
