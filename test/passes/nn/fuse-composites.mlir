// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites --nn-fuse-composites | FileCheck %s

//===----------------------------------------------------------------------===//
// GELU
//===----------------------------------------------------------------------===//

// PyTorch: x * 0.5 * (1 + erf(x / sqrt 2)), the half last.
// CHECK-LABEL: func.func @gelu_erf
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @gelu_erf(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %root = nn.constant dense<1.41421354> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.div %x, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = nn.erf %0 : tensor<4x8xf32>
  %2 = nn.add %1, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = nn.mul %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = nn.mul %3, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  // CHECK-NEXT: nn.gelu %[[X]] approximate = none
  // CHECK-NEXT: return
  return %4 : tensor<4x8xf32>
}

// -----

// The other order: (0.5 * x) * (1 + erf(x * sqrt(1/2))).
// CHECK-LABEL: func.func @gelu_erf_half_first
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @gelu_erf_half_first(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %root = nn.constant dense<0.707106769> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.mul %root, %x : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = nn.erf %0 : tensor<4x8xf32>
  %2 = nn.add %one, %1 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.mul %half, %x : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = nn.mul %2, %3 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: nn.gelu %[[X]] approximate = none
  return %4 : tensor<4x8xf32>
}

// -----

// x * (0.5 * gate), with a division by 2 for the half.
// CHECK-LABEL: func.func @gelu_erf_half_with_gate
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @gelu_erf_half_with_gate(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %root = nn.constant dense<1.41421354> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.div %x, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = nn.erf %0 : tensor<4x8xf32>
  %2 = nn.add %1, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = nn.div %2, %two : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %4 = nn.mul %3, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: nn.gelu %[[X]] approximate = none
  return %4 : tensor<4x8xf32>
}

// -----

// GPT-2: 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))).
// CHECK-LABEL: func.func @gelu_tanh
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @gelu_tanh(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %three = nn.constant dense<3.0> : tensor<f32>
  %cubic = nn.constant dense<0.044715> : tensor<f32>
  %root = nn.constant dense<0.797884583> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = nn.pow %x, %three : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = nn.mul %1, %cubic : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = nn.add %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = nn.mul %3, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %5 = nn.tanh %4 : tensor<4x8xf32>
  %6 = nn.add %5, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %7 = nn.mul %0, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: nn.gelu %[[X]] approximate = tanh
  // CHECK-NEXT: return
  return %7 : tensor<4x8xf32>
}

// -----

// The same with x drawn out: sqrt(2/pi) * x * (1 + 0.044715 * x * x).
// CHECK-LABEL: func.func @gelu_tanh_factored
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @gelu_tanh_factored(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %cubic = nn.constant dense<0.044715> : tensor<f32>
  %root = nn.constant dense<0.797884583> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %cubic : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = nn.add %one, %1 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.mul %x, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %4 = nn.mul %3, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = nn.tanh %4 : tensor<4x8xf32>
  %6 = nn.add %5, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %7 = nn.mul %6, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %8 = nn.mul %x, %7 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: nn.gelu %[[X]] approximate = tanh
  return %8 : tensor<4x8xf32>
}

// -----

// Without the half it is not GELU.
// CHECK-LABEL: func.func @twice_gelu
func.func @twice_gelu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %root = nn.constant dense<1.41421354> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %0 = nn.div %x, %root : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  // CHECK: nn.erf
  %1 = nn.erf %0 : tensor<4x8xf32>
  %2 = nn.add %1, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = nn.mul %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NOT: nn.gelu
  return %3 : tensor<4x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Layer normalization
//===----------------------------------------------------------------------===//

// PyTorch below opset 17.
// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf32>, %[[S:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
func.func @layer_norm(%x: tensor<2x4x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %epsilon = nn.constant dense<1.0e-5> : tensor<f32>
  %0 = nn.reduce_mean %x axes = [2] keep_dims : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %1 = nn.sub %x, %0 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %2 = nn.mul %1, %1 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %3 = nn.reduce_mean %2 axes = [2] keep_dims : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %4 = nn.add %3, %epsilon : (tensor<2x4x1xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %5 = nn.sqrt %4 : tensor<2x4x1xf32>
  %6 = nn.div %1, %5 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %7 = nn.mul %6, %s : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %8 = nn.add %7, %b : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  // CHECK-NEXT: nn.layer_norm %[[X]], %[[S]], %[[B]] epsilon = 9.99999974E-6
  // CHECK-NEXT: return
  return %8 : tensor<2x4x8xf32>
}

// -----

// A reciprocal, swapped operands, and a scale that has leading ones.
// CHECK-LABEL: func.func @layer_norm_rsqrt
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<1x8xf32>, %[[B:.*]]: tensor<8xf32>
func.func @layer_norm_rsqrt(%x: tensor<4x8xf32>, %s: tensor<1x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %epsilon = nn.constant dense<1.0e-5> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.reduce_mean %x axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  %1 = nn.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = nn.pow %1, %two : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = nn.reduce_mean %2 axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  %4 = nn.add %epsilon, %3 : (tensor<f32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = nn.rsqrt %4 : tensor<4x1xf32>
  %6 = nn.mul %5, %1 : (tensor<4x1xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = nn.mul %s, %6 : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %8 = nn.add %b, %7 : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[V:.*]] = nn.reshape %[[S]]
  // CHECK: nn.layer_norm %[[X]], %[[V]], %[[B]]
  return %8 : tensor<4x8xf32>
}

// -----

// Groups of channels as rows, scaled and shifted behind.
// CHECK-LABEL: func.func @group_norm
// CHECK-SAME: %[[X:.*]]: tensor<2x4x3x5xf32>, %[[S:.*]]: tensor<4x1x1xf32>, %[[B:.*]]: tensor<1x4x1x1xf32>
func.func @group_norm(%x: tensor<2x4x3x5xf32>, %s: tensor<4x1x1xf32>, %b: tensor<1x4x1x1xf32>) -> tensor<2x4x3x5xf32> {
  %one = nn.constant dense<1.0> : tensor<30xf32>
  %zero = nn.constant dense<0.0> : tensor<30xf32>
  %0 = nn.reshape %x : tensor<2x4x3x5xf32> -> tensor<2x2x30xf32>
  %1, %m, %r = nn.layer_norm %0, %one, %zero epsilon = 0.5 : (tensor<2x2x30xf32>, tensor<30xf32>, tensor<30xf32>) -> (tensor<2x2x30xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  %2 = nn.reshape %1 : tensor<2x2x30xf32> -> tensor<2x4x3x5xf32>
  %3 = nn.mul %s, %2 : (tensor<4x1x1xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %4 = nn.add %b, %3 : (tensor<1x4x1x1xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  // CHECK-DAG: %[[SCALE:.*]] = nn.reshape %[[S]] : tensor<4x1x1xf32> -> tensor<4xf32>
  // CHECK-DAG: %[[BIAS:.*]] = nn.reshape %[[B]] : tensor<1x4x1x1xf32> -> tensor<4xf32>
  // CHECK: %[[Y:.*]], %{{.*}}, %{{.*}} = nn.group_norm %[[X]], %[[SCALE]], %[[BIAS]] groups = 2 epsilon = 5.000000e-01
  // CHECK-NEXT: return %[[Y]]
  return %4 : tensor<2x4x3x5xf32>
}

// -----

// Where the normalized image is read as well, a scale is not one for each
// channel, or rows are no groups of channels, it stays as it is.
// CHECK-LABEL: func.func @no_group_norm
// CHECK-NOT: nn.group_norm
func.func @no_group_norm(%x: tensor<2x4x6xf32>, %s: tensor<4x1xf32>, %t: tensor<2x4x1xf32>, %u: tensor<6xf32>) -> (tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) {
  %one = nn.constant dense<1.0> : tensor<12xf32>
  %zero = nn.constant dense<0.0> : tensor<12xf32>
  %two = nn.constant dense<1.0> : tensor<2xf32>
  %nil = nn.constant dense<0.0> : tensor<2xf32>
  %0 = nn.reshape %x : tensor<2x4x6xf32> -> tensor<2x2x12xf32>
  %1, %m, %r = nn.layer_norm %0, %one, %zero epsilon = 0.5 : (tensor<2x2x12xf32>, tensor<12xf32>, tensor<12xf32>) -> (tensor<2x2x12xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  %2 = nn.reshape %1 : tensor<2x2x12xf32> -> tensor<2x4x6xf32>
  %3 = nn.mul %2, %s : (tensor<2x4x6xf32>, tensor<4x1xf32>) -> tensor<2x4x6xf32>
  %4 = nn.add %3, %s : (tensor<2x4x6xf32>, tensor<4x1xf32>) -> tensor<2x4x6xf32>
  %5, %m1, %r1 = nn.layer_norm %0, %one, %zero epsilon = 0.25 : (tensor<2x2x12xf32>, tensor<12xf32>, tensor<12xf32>) -> (tensor<2x2x12xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  %6 = nn.reshape %5 : tensor<2x2x12xf32> -> tensor<2x4x6xf32>
  %7 = nn.mul %6, %t : (tensor<2x4x6xf32>, tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %8 = nn.add %7, %u : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
  %9 = nn.reshape %x : tensor<2x4x6xf32> -> tensor<24x2xf32>
  %10, %m2, %r2 = nn.layer_norm %9, %two, %nil epsilon = 0.5 : (tensor<24x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<24x2xf32>, tensor<24xf32>, tensor<24xf32>)
  %11 = nn.reshape %10 : tensor<24x2xf32> -> tensor<2x4x6xf32>
  %12 = nn.mul %11, %s : (tensor<2x4x6xf32>, tensor<4x1xf32>) -> tensor<2x4x6xf32>
  %13 = nn.add %12, %s : (tensor<2x4x6xf32>, tensor<4x1xf32>) -> tensor<2x4x6xf32>
  return %2, %4, %8, %13 : tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>
}

// -----

// Over two dimensions it is another normalization.
// CHECK-LABEL: func.func @norm_over_two_dims
func.func @norm_over_two_dims(%x: tensor<2x4x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %epsilon = nn.constant dense<1.0e-5> : tensor<f32>
  %0 = nn.reduce_mean %x axes = [1, 2] keep_dims : tensor<2x4x8xf32> -> tensor<2x1x1xf32>
  %1 = nn.sub %x, %0 : (tensor<2x4x8xf32>, tensor<2x1x1xf32>) -> tensor<2x4x8xf32>
  %2 = nn.mul %1, %1 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %3 = nn.reduce_mean %2 axes = [1, 2] keep_dims : tensor<2x4x8xf32> -> tensor<2x1x1xf32>
  %4 = nn.add %3, %epsilon : (tensor<2x1x1xf32>, tensor<f32>) -> tensor<2x1x1xf32>
  %5 = nn.sqrt %4 : tensor<2x1x1xf32>
  // CHECK: nn.div
  %6 = nn.div %1, %5 : (tensor<2x4x8xf32>, tensor<2x1x1xf32>) -> tensor<2x4x8xf32>
  %7 = nn.mul %6, %s : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %8 = nn.add %7, %b : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  // CHECK-NOT: nn.layer_norm
  return %8 : tensor<2x4x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.reduce_max %x axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  %1 = nn.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = nn.exp %1 : tensor<4x8xf32>
  %3 = nn.reduce_sum %2 axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  %4 = nn.div %2, %3 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: nn.softmax %[[X]]
  // CHECK-NEXT: return
  return %4 : tensor<4x8xf32>
}

// -----

// Both spellings of the logarithm.
// CHECK-LABEL: func.func @log_softmax
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @log_softmax(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = nn.softmax %x : tensor<4x8xf32>
  %1 = nn.log %0 : tensor<4x8xf32>
  %2 = nn.reduce_max %x axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  %3 = nn.sub %x, %2 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = nn.exp %3 : tensor<4x8xf32>
  %5 = nn.reduce_sum %4 axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  %6 = nn.log %5 : tensor<4x1xf32>
  %7 = nn.sub %3, %6 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: %[[A:.*]] = nn.log_softmax %[[X]]
  // CHECK-NEXT: %[[B:.*]] = nn.log_softmax %[[X]]
  // CHECK-NEXT: return %[[A]], %[[B]]
  return %1, %7 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A sum over the columns normalizes columns, which nn.softmax does not.
// CHECK-LABEL: func.func @softmax_of_columns
func.func @softmax_of_columns(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.exp %x : tensor<4x8xf32>
  %1 = nn.reduce_sum %0 axes = [0] keep_dims : tensor<4x8xf32> -> tensor<1x8xf32>
  // CHECK: nn.div
  // CHECK-NOT: nn.softmax
  %2 = nn.div %0, %1 : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// Zeros for rows that see nothing, in either order; other zeros are not these.
// CHECK-LABEL: func.func @safe_softmax
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>
func.func @safe_softmax(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.softmax %x : tensor<4x8xf32>
  %1 = nn.compare %0, %0 predicate = ne : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %2 = nn.where %1, %zero, %0 : (tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.logical_not %1 : tensor<4x8xi1>
  %4 = nn.where %3, %0, %zero : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %5 = nn.compare %y, %y predicate = ne : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %6 = nn.where %5, %zero, %0 : (tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-DAG: %[[A:.*]] = nn.softmax %[[X]] safe
  // CHECK-DAG: %[[B:.*]] = nn.softmax %[[X]] safe
  // CHECK-DAG: %[[P:.*]] = nn.softmax %[[X]] :
  // CHECK: %[[C:.*]] = nn.where %{{.*}}, %{{.*}}, %[[P]]
  // CHECK: return %{{.*}}, %{{.*}}, %[[C]]
  return %2, %4, %6 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// 1 - erf(x) near 1 has no digits left.
// CHECK-LABEL: func.func @erfc
// CHECK-NEXT: nn.erfc %{{.*}} : tensor<4x8xf32>
func.func @erfc(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = nn.constant dense<1.0> : tensor<f32>
  %0 = nn.erf %x : tensor<4x8xf32>
  %1 = nn.sub %one, %0 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
