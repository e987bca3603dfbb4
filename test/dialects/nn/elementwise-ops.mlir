// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s
// RUN: pipewright-opt %s --emit-bytecode | pipewright-opt | FileCheck %s

// Pointwise ops are printed as they are parsed, in both forms.

// Every unary op has one type.
// CHECK-LABEL: func @unary
func.func @unary(%x: tensor<4x8xf32>) {
  // CHECK: nn.neg %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %neg = nn.neg %x : tensor<4x8xf32>
  // CHECK: nn.exp %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %exp = nn.exp %x : tensor<4x8xf32>
  // CHECK: nn.expm1 %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %expm1 = nn.expm1 %x : tensor<4x8xf32>
  // CHECK: nn.log %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %log = nn.log %x : tensor<4x8xf32>
  // CHECK: nn.log1p %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %log1p = nn.log1p %x : tensor<4x8xf32>
  // CHECK: nn.sqrt %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %sqrt = nn.sqrt %x : tensor<4x8xf32>
  // CHECK: nn.rsqrt %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %rsqrt = nn.rsqrt %x : tensor<4x8xf32>
  // CHECK: nn.reciprocal %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %reciprocal = nn.reciprocal %x : tensor<4x8xf32>
  // CHECK: nn.abs %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %abs = nn.abs %x : tensor<4x8xf32>
  // CHECK: nn.erf %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %erf = nn.erf %x : tensor<4x8xf32>
  // CHECK: nn.erfc %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %erfc = nn.erfc %x : tensor<4x8xf32>
  // CHECK: nn.fake_quantize %{{[a-z0-9_]+}} to f8E4M3FN saturate : tensor<4x8xf32>
  %rounded = nn.fake_quantize %x to f8E4M3FN saturate : tensor<4x8xf32>
  // CHECK: nn.fake_quantize %{{[a-z0-9_]+}} to f8E5M2FNUZ : tensor<4x8xf32>
  %widely = nn.fake_quantize %x to f8E5M2FNUZ : tensor<4x8xf32>
  // CHECK: nn.sin %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %sin = nn.sin %x : tensor<4x8xf32>
  // CHECK: nn.cos %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %cos = nn.cos %x : tensor<4x8xf32>
  // CHECK: nn.atan %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %atan = nn.atan %x : tensor<4x8xf32>
  // CHECK: nn.tanh %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %tanh = nn.tanh %x : tensor<4x8xf32>
  // CHECK: nn.sigmoid %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %sigmoid = nn.sigmoid %x : tensor<4x8xf32>
  // CHECK: nn.relu %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %relu = nn.relu %x : tensor<4x8xf32>
  // CHECK: nn.softplus %{{[a-z0-9_]+}} : tensor<4x8xf32>
  %softplus = nn.softplus %x : tensor<4x8xf32>
  return
}

// Shape arithmetic is in i64.
// CHECK-LABEL: func @integers
func.func @integers(%x: tensor<4xi64>) {
  // CHECK: nn.neg %{{[a-z0-9_]+}} : tensor<4xi64>
  %0 = nn.neg %x : tensor<4xi64>
  // CHECK: nn.abs %{{[a-z0-9_]+}} : tensor<4xi64>
  %1 = nn.abs %x : tensor<4xi64>
  // CHECK: nn.div %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %2 = nn.div %x, %x : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  return
}

// Both formulas of gelu, and of its gradient.
// CHECK-LABEL: func @gelu
func.func @gelu(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>) {
  // CHECK: nn.gelu %{{[a-z0-9_]+}} approximate = none : tensor<4x8xf32>
  %0 = nn.gelu %x approximate = none : tensor<4x8xf32>
  // CHECK: nn.gelu %{{[a-z0-9_]+}} approximate = tanh : tensor<4x8xf32>
  %1 = nn.gelu %x approximate = tanh : tensor<4x8xf32>
  // CHECK: nn.gelu_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} approximate = none : tensor<4x8xf32>
  %2 = nn.gelu_backward %dy, %x approximate = none : tensor<4x8xf32>
  // CHECK: nn.gelu_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} approximate = tanh : tensor<4x8xf32>
  %3 = nn.gelu_backward %dy, %x approximate = tanh : tensor<4x8xf32>
  return
}

// Element types change, shapes do not.
// CHECK-LABEL: func @cast
func.func @cast(%x: tensor<4x8xf32>) {
  // CHECK: nn.cast %{{[a-z0-9_]+}} : tensor<4x8xf32> -> tensor<4x8xi64>
  %0 = nn.cast %x : tensor<4x8xf32> -> tensor<4x8xi64>
  // CHECK: nn.cast %{{[a-z0-9_]+}} : tensor<4x8xf32> -> tensor<4x8xi1>
  %1 = nn.cast %x : tensor<4x8xf32> -> tensor<4x8xi1>
  return
}

// Operands broadcast: missing and unit dimensions stretch.
// CHECK-LABEL: func @binary
func.func @binary(%a: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<4x1xf32>, %s: tensor<f32>) {
  // CHECK: nn.add %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %add = nn.add %a, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: nn.sub %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %sub = nn.sub %a, %c : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  // CHECK: nn.mul %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %mul = nn.mul %a, %s : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  // CHECK: nn.div %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %div = nn.div %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: nn.pow %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %pow = nn.pow %a, %s : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  // CHECK: nn.maximum %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %maximum = nn.maximum %a, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: nn.minimum %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %minimum = nn.minimum %a, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: nn.mul %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %outer = nn.mul %c, %b : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// Truth values have ops of their own.
// CHECK-LABEL: func @logical
func.func @logical(%p: tensor<4x8xi1>, %q: tensor<8xi1>) {
  // CHECK: nn.logical_and %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  %0 = nn.logical_and %p, %q : (tensor<4x8xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  // CHECK: nn.logical_or %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x8xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  %1 = nn.logical_or %p, %q : (tensor<4x8xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  // CHECK: nn.logical_not %{{[a-z0-9_]+}} : tensor<4x8xi1>
  %2 = nn.logical_not %p : tensor<4x8xi1>
  return
}

// Every predicate.
// CHECK-LABEL: func @compare
func.func @compare(%a: tensor<4x8xf32>, %s: tensor<f32>) {
  // CHECK: nn.compare %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} predicate = eq : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  %eq = nn.compare %a, %s predicate = eq : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  // CHECK: nn.compare %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} predicate = ne : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  %ne = nn.compare %a, %s predicate = ne : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  // CHECK: nn.compare %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} predicate = lt : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  %lt = nn.compare %a, %s predicate = lt : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  // CHECK: nn.compare %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} predicate = le : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  %le = nn.compare %a, %s predicate = le : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  // CHECK: nn.compare %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} predicate = gt : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  %gt = nn.compare %a, %s predicate = gt : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  // CHECK: nn.compare %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} predicate = ge : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  %ge = nn.compare %a, %s predicate = ge : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
  return
}

// Condition and both values broadcast.
// CHECK-LABEL: func @where
func.func @where(%p: tensor<8x8xi1>, %a: tensor<4x8x8xf32>, %s: tensor<f32>) {
  // CHECK: nn.where %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<8x8xi1>, tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
  %0 = nn.where %p, %a, %s : (tensor<8x8xi1>, tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
  return
}
