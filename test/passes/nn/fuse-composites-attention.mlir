// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites --nn-fuse-composites | FileCheck %s

// The scale is a factor of the scores, the mask is chosen, k comes transposed.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x16xf32>, %[[K:.*]]: tensor<2x8x4x16xf32>, %[[V:.*]]: tensor<2x4x8x16xf32>
func.func @causal(%q: tensor<2x4x8x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %scale = nn.constant dense<0.25> : tensor<f32>
  %low = nn.constant dense<0xFF800000> : tensor<f32>
  %mask = nn.causal_mask : tensor<1x1x8x8xi1>
  %kt = nn.transpose %k permutation = [0, 2, 3, 1] : tensor<2x8x4x16xf32> -> tensor<2x4x16x8xf32>
  %0 = nn.matmul %q, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = nn.mul %0, %scale : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %2 = nn.where %mask, %1, %low : (tensor<1x1x8x8xi1>, tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %3 = nn.softmax %2 : tensor<2x4x8x8xf32>
  %4 = nn.matmul %3, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  // CHECK-NEXT: %[[KT:.*]] = nn.transpose %[[K]] permutation = [0, 2, 1, 3]
  // CHECK-NEXT: nn.attention %[[Q]], %[[KT]], %[[V]] scale = 2.500000e-01 causal dropout_rate = 0.000000e+00
  // CHECK-NEXT: return
  return %4 : tensor<2x4x8x16xf32>
}

// -----

// The scores are divided, a mask made from an input is added, and weights are
// dropped.
// CHECK-LABEL: func.func @padding_mask_and_dropout
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x8x16xf32>, %[[K:[^:]*]]: {{.*}}, %[[V:[^:]*]]: {{.*}}, %[[M:[^:]*]]: tensor<2x1x1x8xf32>
func.func @padding_mask_and_dropout(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %m: tensor<2x1x1x8xf32>) -> tensor<2x4x8x16xf32> {
  %scale = nn.constant dense<4.0> : tensor<f32>
  %0 = nn.matmul %q, %k transpose_b : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %1 = nn.div %0, %scale : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %2 = nn.add %m, %1 : (tensor<2x1x1x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %3 = nn.softmax %2 : tensor<2x4x8x8xf32>
  %4 = nn.dropout %3 rate = 0.1 id = 5 : tensor<2x4x8x8xf32>
  %5 = nn.matmul %4, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  // CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] mask %[[M]] scale = 2.500000e-01 dropout_rate = 1.000000e-01 dropout_id = 5
  // CHECK-NEXT: return
  return %5 : tensor<2x4x8x16xf32>
}

// -----

// The new exporter scales q and k by the square root each, adds a causal mask.
// CHECK-LABEL: func.func @scaled_operands
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x2x8x4xf32>, %[[K:[^:]*]]: tensor<1x2x8x4xf32>, %[[V:[^:]*]]:
func.func @scaled_operands(%q: tensor<1x2x8x4xf32>, %k: tensor<1x2x8x4xf32>, %v: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %scale = nn.constant dense<0.5> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32>
  %causal = nn.causal_mask : tensor<8x8xi1>
  %mask = nn.where %causal, %zero, %low : (tensor<8x8xi1>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  %0 = nn.mul %q, %scale : (tensor<1x2x8x4xf32>, tensor<f32>) -> tensor<1x2x8x4xf32>
  %1 = nn.transpose %k permutation = [0, 1, 3, 2] : tensor<1x2x8x4xf32> -> tensor<1x2x4x8xf32>
  %2 = nn.mul %1, %scale : (tensor<1x2x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
  %3 = nn.matmul %0, %2 : (tensor<1x2x8x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x8x8xf32>
  %4 = nn.add %3, %mask : (tensor<1x2x8x8xf32>, tensor<8x8xf32>) -> tensor<1x2x8x8xf32>
  %5 = nn.softmax %4 : tensor<1x2x8x8xf32>
  %6 = nn.matmul %5, %v : (tensor<1x2x8x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  // CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] scale = 2.500000e-01 causal
  return %6 : tensor<1x2x8x4xf32>
}

// -----

// Causal and padding in one condition: the causal half becomes the flag, the
// other an additive mask.
// CHECK-LABEL: func.func @causal_and_padding
// CHECK-SAME: %[[P:[^:]*]]: tensor<1x1x1x8xi1>
func.func @causal_and_padding(%p: tensor<1x1x1x8xi1>, %q: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %low = nn.constant dense<-1.0e9> : tensor<f32>
  %causal = nn.causal_mask : tensor<1x1x8x8xi1>
  %both = nn.logical_and %causal, %p : (tensor<1x1x8x8xi1>, tensor<1x1x1x8xi1>) -> tensor<1x1x8x8xi1>
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.where %both, %0, %low : (tensor<1x1x8x8xi1>, tensor<1x2x8x8xf32>, tensor<f32>) -> tensor<1x2x8x8xf32>
  %2 = nn.softmax %1 : tensor<1x2x8x8xf32>
  %3 = nn.matmul %2, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  // CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00>
  // CHECK: %[[LOW:.*]] = nn.constant dense<-1.000000e+09>
  // CHECK: %[[M:.*]] = nn.where %[[P]], %[[ZERO]], %[[LOW]]
  // CHECK: nn.attention {{.*}} mask %[[M]] scale = 1.000000e+00 causal
  return %3 : tensor<1x2x8x4xf32>
}

// -----

// Heads folded into the batch: three dimensions get a fourth.
// CHECK-LABEL: func.func @three_dims
func.func @three_dims(%q: tensor<8x16x4xf32>) -> tensor<8x16x4xf32> {
  %0 = nn.matmul %q, %q transpose_b : (tensor<8x16x4xf32>, tensor<8x16x4xf32>) -> tensor<8x16x16xf32>
  %1 = nn.softmax %0 : tensor<8x16x16xf32>
  %2 = nn.matmul %1, %q : (tensor<8x16x16xf32>, tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  // CHECK: %[[O:.*]], %{{.*}} = nn.attention {{.*}} : (tensor<1x8x16x4xf32>
  // CHECK: nn.reshape %[[O]] : tensor<1x8x16x4xf32> -> tensor<8x16x4xf32>
  return %2 : tensor<8x16x4xf32>
}

// -----

// The weights are a result of the model: nothing is left out.
// CHECK-LABEL: func.func @weights_are_used
func.func @weights_are_used(%q: tensor<1x2x8x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x8x8xf32>) {
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
  // CHECK: nn.softmax
  %1 = nn.softmax %0 : tensor<1x2x8x8xf32>
  // CHECK-NOT: nn.attention
  %2 = nn.matmul %1, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %2, %1 : tensor<1x2x8x4xf32>, tensor<1x2x8x8xf32>
}

// -----

// A trained bias on the scores has a gradient, summed over samples.
nn.weight @bias role = parameter : tensor<1x2x8x8xf32>
// CHECK-LABEL: func.func @trained_bias
func.func @trained_bias(%q: tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32> {
  // CHECK-NEXT: %[[BIAS:.*]] = nn.parameter @bias
  // CHECK-NEXT: nn.attention {{.*}} mask %[[BIAS]] mask_gradient scale = 1.000000e+00 dropout_rate
  %bias = nn.parameter @bias : tensor<1x2x8x8xf32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x8xf32>
  %1 = nn.add %0, %bias : (tensor<3x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<3x2x8x8xf32>
  %2 = nn.softmax %1 : tensor<3x2x8x8xf32>
  %3 = nn.matmul %2, %q : (tensor<3x2x8x8xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  return %3 : tensor<3x2x8x4xf32>
}

// -----

// A trained bias of columns gets all rows.
nn.weight @bias role = parameter : tensor<2x1x8xf32>
// CHECK-LABEL: func.func @trained_bias_of_columns
func.func @trained_bias_of_columns(%q: tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32> {
  // CHECK: %[[ALL:.*]] = nn.broadcast_to %{{.*}} : tensor<2x1x8xf32> -> tensor<2x8x8xf32>
  // CHECK: nn.attention {{.*}} mask %[[ALL]] mask_gradient
  %bias = nn.parameter @bias : tensor<2x1x8xf32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x8xf32>
  %1 = nn.add %0, %bias : (tensor<3x2x8x8xf32>, tensor<2x1x8xf32>) -> tensor<3x2x8x8xf32>
  %2 = nn.softmax %1 : tensor<3x2x8x8xf32>
  %3 = nn.matmul %2, %q : (tensor<3x2x8x8xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  return %3 : tensor<3x2x8x4xf32>
}

// -----

// Windows that were shifted, as Swin has them: a trained bias for all, then a
// mask for each window of an image.
nn.weight @bias role = parameter : tensor<1x2x8x8xf32>
// CHECK-LABEL: func.func @windows
// CHECK-SAME: %[[Q:[^:]*]]: tensor<6x2x8x4xf32>, %[[M:[^:]*]]: tensor<1x3x1x8x8xf32>
func.func @windows(%q: tensor<6x2x8x4xf32>, %m: tensor<1x3x1x8x8xf32>) -> tensor<6x2x8x4xf32> {
  // CHECK-DAG: %[[BIAS:.*]] = nn.parameter @bias
  // CHECK-DAG: %[[WINDOWS:.*]] = nn.reshape %[[M]] : tensor<1x3x1x8x8xf32> -> tensor<3x1x8x8xf32>
  // CHECK: %[[SUM:.*]] = nn.add %[[WINDOWS]], %[[BIAS]] : (tensor<3x1x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<3x2x8x8xf32>
  // CHECK-NEXT: nn.attention %[[Q]], %[[Q]], %[[Q]] mask %[[SUM]] mask_gradient scale = 1.000000e+00 dropout_rate
  // CHECK-NEXT: return
  %bias = nn.parameter @bias : tensor<1x2x8x8xf32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<6x2x8x4xf32>, tensor<6x2x8x4xf32>) -> tensor<6x2x8x8xf32>
  %1 = nn.add %0, %bias : (tensor<6x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<6x2x8x8xf32>
  %2 = nn.reshape %1 : tensor<6x2x8x8xf32> -> tensor<2x3x2x8x8xf32>
  %3 = nn.add %2, %m : (tensor<2x3x2x8x8xf32>, tensor<1x3x1x8x8xf32>) -> tensor<2x3x2x8x8xf32>
  %4 = nn.reshape %3 : tensor<2x3x2x8x8xf32> -> tensor<6x2x8x8xf32>
  %5 = nn.softmax %4 : tensor<6x2x8x8xf32>
  %6 = nn.matmul %5, %q : (tensor<6x2x8x8xf32>, tensor<6x2x8x4xf32>) -> tensor<6x2x8x4xf32>
  return %6 : tensor<6x2x8x4xf32>
}

// -----

// A mask of each image is one that repeats in another order.
// CHECK-LABEL: func.func @mask_of_images
func.func @mask_of_images(%q: tensor<6x2x8x4xf32>, %m: tensor<2x1x1x8x8xf32>) -> tensor<6x2x8x4xf32> {
  // CHECK-NOT: nn.attention
  %0 = nn.matmul %q, %q transpose_b : (tensor<6x2x8x4xf32>, tensor<6x2x8x4xf32>) -> tensor<6x2x8x8xf32>
  %1 = nn.reshape %0 : tensor<6x2x8x8xf32> -> tensor<2x3x2x8x8xf32>
  %2 = nn.add %1, %m : (tensor<2x3x2x8x8xf32>, tensor<2x1x1x8x8xf32>) -> tensor<2x3x2x8x8xf32>
  %3 = nn.reshape %2 : tensor<2x3x2x8x8xf32> -> tensor<6x2x8x8xf32>
  // CHECK: nn.softmax
  %4 = nn.softmax %3 : tensor<6x2x8x8xf32>
  // CHECK-NOT: nn.attention
  %5 = nn.matmul %4, %q : (tensor<6x2x8x8xf32>, tensor<6x2x8x4xf32>) -> tensor<6x2x8x4xf32>
  return %5 : tensor<6x2x8x4xf32>
}

// -----

// A trained factor of each head, as Swin v2 has it, goes to q.
nn.weight @factor role = parameter : tensor<2x1x1xf32>
// CHECK-LABEL: func.func @factor_of_heads
// CHECK-SAME: %[[Q:[^:]*]]: tensor<3x2x8x4xf32>, %[[M:[^:]*]]: tensor<8x8xf32>
func.func @factor_of_heads(%q: tensor<3x2x8x4xf32>, %m: tensor<8x8xf32>) -> tensor<3x2x8x4xf32> {
  // CHECK: %[[F:.*]] = nn.parameter @factor
  // CHECK-NEXT: %[[R:.*]] = nn.mul %[[Q]], %[[F]] : (tensor<3x2x8x4xf32>, tensor<2x1x1xf32>) -> tensor<3x2x8x4xf32>
  // CHECK-NEXT: nn.attention %[[R]], %[[Q]], %[[Q]] mask %[[M]] scale = 1.000000e+00 dropout_rate
  %f = nn.parameter @factor : tensor<2x1x1xf32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x8xf32>
  %1 = nn.mul %0, %f : (tensor<3x2x8x8xf32>, tensor<2x1x1xf32>) -> tensor<3x2x8x8xf32>
  %2 = nn.add %1, %m : (tensor<3x2x8x8xf32>, tensor<8x8xf32>) -> tensor<3x2x8x8xf32>
  %3 = nn.softmax %2 : tensor<3x2x8x8xf32>
  %4 = nn.matmul %3, %q : (tensor<3x2x8x8xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  return %4 : tensor<3x2x8x4xf32>
}

// -----

// A mask under the factor is multiplied as well.
nn.weight @factor role = parameter : tensor<2x1x1xf32>
// CHECK-LABEL: func.func @factor_of_mask
func.func @factor_of_mask(%q: tensor<3x2x8x4xf32>, %m: tensor<8x8xf32>) -> tensor<3x2x8x4xf32> {
  // CHECK-NOT: nn.attention
  %f = nn.parameter @factor : tensor<2x1x1xf32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x8xf32>
  %1 = nn.add %0, %m : (tensor<3x2x8x8xf32>, tensor<8x8xf32>) -> tensor<3x2x8x8xf32>
  %2 = nn.mul %1, %f : (tensor<3x2x8x8xf32>, tensor<2x1x1xf32>) -> tensor<3x2x8x8xf32>
  // CHECK: nn.softmax
  %3 = nn.softmax %2 : tensor<3x2x8x8xf32>
  // CHECK-NOT: nn.attention
  %4 = nn.matmul %3, %q : (tensor<3x2x8x8xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  return %4 : tensor<3x2x8x4xf32>
}

// -----

// A mask that nothing trained goes into needs no gradient, whoever asked.
nn.weight @bias role = frozen : tensor<1x2x8x8xf32>
// CHECK-LABEL: func.func @frozen_bias
func.func @frozen_bias(%q: tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32> {
  // CHECK: nn.attention {{.*}} mask %{{.*}} scale = 1.000000e+00 dropout_rate
  %bias = nn.parameter @bias : tensor<1x2x8x8xf32>
  %o, %stats = nn.attention %q, %q, %q mask %bias mask_gradient scale = 1.0 dropout_rate = 0.0 dropout_id = 0 : (tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>, tensor<1x2x8x8xf32>) -> (tensor<3x2x8x4xf32>, tensor<3x2x8x2xf32>)
  return %o : tensor<3x2x8x4xf32>
}

// -----

// Scores bounded before the mask, as Gemma 2 has them: the scale is that of what
// the bound is of.
// CHECK-LABEL: func.func @softcap
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x2x8x4xf32>, %[[M:[^:]*]]: tensor<8x8xf32>
func.func @softcap(%q: tensor<1x2x8x4xf32>, %m: tensor<8x8xf32>) -> tensor<1x2x8x4xf32> {
  %scale = nn.constant dense<0.25> : tensor<f32>
  %cap = nn.constant dense<50.0> : tensor<f32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.mul %0, %scale : (tensor<1x2x8x8xf32>, tensor<f32>) -> tensor<1x2x8x8xf32>
  %2 = nn.div %1, %cap : (tensor<1x2x8x8xf32>, tensor<f32>) -> tensor<1x2x8x8xf32>
  %3 = nn.tanh %2 : tensor<1x2x8x8xf32>
  %4 = nn.mul %3, %cap : (tensor<1x2x8x8xf32>, tensor<f32>) -> tensor<1x2x8x8xf32>
  %5 = nn.add %4, %m : (tensor<1x2x8x8xf32>, tensor<8x8xf32>) -> tensor<1x2x8x8xf32>
  %6 = nn.softmax %5 : tensor<1x2x8x8xf32>
  %7 = nn.matmul %6, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  // CHECK-NEXT: nn.attention %[[Q]], %[[Q]], %[[Q]] mask %[[M]] scale = 2.500000e-01 softcap = 5.000000e+01 dropout_rate
  // CHECK-NEXT: return
  return %7 : tensor<1x2x8x4xf32>
}

// -----

// A mask under the bound is bounded as well.
// CHECK-LABEL: func.func @bounded_mask
func.func @bounded_mask(%q: tensor<1x2x8x4xf32>, %m: tensor<8x8xf32>) -> tensor<1x2x8x4xf32> {
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.add %0, %m : (tensor<1x2x8x8xf32>, tensor<8x8xf32>) -> tensor<1x2x8x8xf32>
  %2 = nn.tanh %1 : tensor<1x2x8x8xf32>
  // CHECK: nn.softmax
  %3 = nn.softmax %2 : tensor<1x2x8x8xf32>
  // CHECK-NOT: nn.attention
  %4 = nn.matmul %3, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %4 : tensor<1x2x8x4xf32>
}

// -----

// Cross attention: q has another length than k and v.
// CHECK-LABEL: func.func @cross_attention
func.func @cross_attention(%q: tensor<1x2x8x4xf32>, %k: tensor<1x2x6x4xf32>) -> tensor<1x2x8x4xf32> {
  %0 = nn.matmul %q, %k transpose_b : (tensor<1x2x8x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x8x6xf32>
  // CHECK: nn.softmax
  %1 = nn.softmax %0 : tensor<1x2x8x6xf32>
  // CHECK-NOT: nn.attention
  %2 = nn.matmul %1, %k : (tensor<1x2x8x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x8x4xf32>
  return %2 : tensor<1x2x8x4xf32>
}

// -----

// A scale outside of the mask would scale the mask as well.
// CHECK-LABEL: func.func @scaled_mask
func.func @scaled_mask(%q: tensor<1x2x8x4xf32>, %m: tensor<8x8xf32>) -> tensor<1x2x8x4xf32> {
  %scale = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.add %0, %m : (tensor<1x2x8x8xf32>, tensor<8x8xf32>) -> tensor<1x2x8x8xf32>
  %2 = nn.mul %1, %scale : (tensor<1x2x8x8xf32>, tensor<f32>) -> tensor<1x2x8x8xf32>
  // CHECK: nn.softmax
  %3 = nn.softmax %2 : tensor<1x2x8x8xf32>
  // CHECK-NOT: nn.attention
  %4 = nn.matmul %3, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %4 : tensor<1x2x8x4xf32>
}

// -----

// Rows without any key are made zeros, as attention makes them itself.
// CHECK-LABEL: func.func @safe
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x2x8x4xf32>, %[[M:[^:]*]]: tensor<8x8xf32>
func.func @safe(%q: tensor<1x2x8x4xf32>, %m: tensor<8x8xf32>) -> tensor<1x2x8x4xf32> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.add %0, %m : (tensor<1x2x8x8xf32>, tensor<8x8xf32>) -> tensor<1x2x8x8xf32>
  %2 = nn.softmax %1 : tensor<1x2x8x8xf32>
  %3 = nn.compare %2, %2 predicate = ne : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xi1>
  %4 = nn.where %3, %zero, %2 : (tensor<1x2x8x8xi1>, tensor<f32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %5 = nn.matmul %4, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  // CHECK-NEXT: nn.attention %[[Q]], %[[Q]], %[[Q]] mask %[[M]]
  // CHECK-NEXT: return
  return %5 : tensor<1x2x8x4xf32>
}
