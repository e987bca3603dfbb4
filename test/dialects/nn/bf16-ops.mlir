// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s

// bf16 tensors, and what is f32 beside them: statistics, losses, masks,
// gradients of weights.
nn.weight @table role = parameter : tensor<16x8xf32>

// CHECK-LABEL: func @working_copy
func.func @working_copy(%tokens: tensor<4xi64>) -> (tensor<4x8xbf16>, tensor<16x8xf32>) {
  // CHECK: %[[TABLE:.*]] = nn.parameter @table : tensor<16x8xbf16>
  %table = nn.parameter @table : tensor<16x8xbf16>
  // CHECK: nn.embedding %[[TABLE]], %{{.*}} : (tensor<16x8xbf16>, tensor<4xi64>) -> tensor<4x8xbf16>
  %y = nn.embedding %table, %tokens : (tensor<16x8xbf16>, tensor<4xi64>) -> tensor<4x8xbf16>
  // CHECK: nn.embedding_backward %{{.*}} : (tensor<4x8xbf16>, tensor<4xi64>) -> tensor<16x8xf32>
  %d = nn.embedding_backward %y, %tokens : (tensor<4x8xbf16>, tensor<4xi64>) -> tensor<16x8xf32>
  return %y, %d : tensor<4x8xbf16>, tensor<16x8xf32>
}

// CHECK-LABEL: func @products
func.func @products(%a: tensor<4x8xbf16>, %b: tensor<4x6xbf16>, %i: tensor<2x3x8x8xbf16>, %k: tensor<4x3x3x3xbf16>) {
  // CHECK: nn.matmul %{{.*}} transpose_a : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %0 = nn.matmul %a, %b transpose_a : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  // CHECK: nn.matmul %{{.*}} transpose_a f32_result : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xf32>
  %1 = nn.matmul %a, %b transpose_a f32_result : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<8x6xf32>
  // CHECK: nn.conv {{.*}} -> tensor<2x4x6x6xbf16>
  %2 = nn.conv %i, %k strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1 : (tensor<2x3x8x8xbf16>, tensor<4x3x3x3xbf16>) -> tensor<2x4x6x6xbf16>
  // CHECK: nn.conv_backward_data {{.*}} -> tensor<2x3x8x8xbf16>
  %3 = nn.conv_backward_data %2, %k strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1 : (tensor<2x4x6x6xbf16>, tensor<4x3x3x3xbf16>) -> tensor<2x3x8x8xbf16>
  // CHECK: nn.conv_backward_weight {{.*}} -> tensor<4x3x3x3xf32>
  %4 = nn.conv_backward_weight %2, %i strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1 : (tensor<2x4x6x6xbf16>, tensor<2x3x8x8xbf16>) -> tensor<4x3x3x3xf32>
  return
}

// CHECK-LABEL: func @statistics
func.func @statistics(%x: tensor<4x8xbf16>, %scale: tensor<8xbf16>, %labels: tensor<4xi64>, %dloss: tensor<f32>) {
  // CHECK: nn.layer_norm {{.*}} -> (tensor<4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
  %y, %mean, %rstd = nn.layer_norm %x, %scale, %scale epsilon = 1.0e-5 : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.layer_norm_backward {{.*}} -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  %dx, %dscale, %dbias = nn.layer_norm_backward %y, %x, %scale, %mean, %rstd : (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: nn.batch_norm {{.*}} -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  %b:3 = nn.batch_norm %x, %scale, %scale epsilon = 1.0e-5 momentum = 0.9 : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: nn.batch_norm_backward {{.*}} -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  %c:3 = nn.batch_norm_backward %x, %x, %scale, %b#1, %b#2 epsilon = 1.0e-5 : (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: nn.softmax_cross_entropy {{.*}} -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  %loss, %largest, %sum = nn.softmax_cross_entropy %x, %labels ignore_index = -100 : (tensor<4x8xbf16>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.softmax_cross_entropy_backward {{.*}} -> tensor<4x8xbf16>
  %d = nn.softmax_cross_entropy_backward %dloss, %x, %labels, %largest, %sum ignore_index = -100 : (tensor<f32>, tensor<4x8xbf16>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xbf16>
  return
}

// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<1x2x4x8xbf16>, %mask: tensor<4x4xf32>) {
  // CHECK: nn.attention {{.*}} tensor<4x4xf32>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x2xf32>)
  %o, %stats = nn.attention %q, %q, %q mask %mask scale = 1.0 dropout_rate = 0.0 dropout_id = 0 : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<4x4xf32>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x2xf32>)
  // CHECK: nn.attention_backward {{.*}} -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>)
  %d:3 = nn.attention_backward %o, %q, %q, %q, %o, %stats mask %mask scale = 1.0 dropout_rate = 0.0 dropout_id = 0 : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x2xf32>, tensor<4x4xf32>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>)
  return
}

// CHECK-LABEL: func @elementwise
func.func @elementwise(%x: tensor<4xbf16>, %y: tensor<4xf32>, %mask: tensor<4xi1>) {
  // CHECK: nn.add %{{.*}} : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  %0 = nn.add %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: nn.cast %{{.*}} : tensor<4xbf16> -> tensor<4xf32>
  %1 = nn.cast %x : tensor<4xbf16> -> tensor<4xf32>
  // CHECK: nn.cast %{{.*}} : tensor<4xf32> -> tensor<4xbf16>
  %2 = nn.cast %y : tensor<4xf32> -> tensor<4xbf16>
  // CHECK: nn.constant dense<5.000000e-01> : tensor<bf16>
  %half = nn.constant dense<5.0e-1> : tensor<bf16>
  // CHECK: nn.compare %{{.*}} : (tensor<4xbf16>, tensor<bf16>) -> tensor<4xi1>
  %3 = nn.compare %x, %half predicate = lt : (tensor<4xbf16>, tensor<bf16>) -> tensor<4xi1>
  return
}
