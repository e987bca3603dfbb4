// RUN: pipewright-opt %s --split-input-file --nn-form-kernels | FileCheck %s

// Pointwise ops join what they follow; library calls stay; equal kernels are
// shared whatever their locations are.
// CHECK-LABEL: func.func @feed_forward
func.func @feed_forward(%x: tensor<4x8x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>)
    -> tensor<4x8x16xf32> {
  // CHECK: %[[A:.*]] = nn.matmul
  // CHECK: %[[G:.*]] = nn.launch @kernels::@bias_gelu_4x8x16(%[[A]], %{{.*}})
  // CHECK: %[[B:.*]] = nn.matmul %[[G]]
  // CHECK: nn.launch @kernels::@bias_gelu_4x8x16(%[[B]], %{{.*}})
  %0 = nn.matmul %x, %w : (tensor<4x8x16xf32>, tensor<16x16xf32>) -> tensor<4x8x16xf32>
  %1 = nn.add %0, %b : (tensor<4x8x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32>
  %2 = nn.gelu %1 approximate = none : tensor<4x8x16xf32>
  %3 = nn.matmul %2, %w : (tensor<4x8x16xf32>, tensor<16x16xf32>) -> tensor<4x8x16xf32>
  %4 = nn.add %3, %b : (tensor<4x8x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32>
  %5 = nn.gelu %4 approximate = none : tensor<4x8x16xf32>
  return %5 : tensor<4x8x16xf32>
}
// CHECK-LABEL: module @kernels
// CHECK: func.func private @bias_gelu_4x8x16(
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.gelu
// CHECK-NEXT: return
// CHECK-NOT: func.func

// -----

// A residual sum, its norm, and a result that is used outside.
// CHECK-LABEL: func.func @residual
func.func @residual(%x: tensor<8x16xf32>, %r: tensor<8x16xf32>, %s: tensor<16xf32>, %b: tensor<16xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK-NEXT: %[[L:.*]]:2 = nn.launch @kernels::@add_layer_norm_8x16
  // CHECK-NEXT: return %[[L]]#0, %[[L]]#1
  %0 = nn.add %x, %r : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %y, %mean, %rstd = nn.layer_norm %0, %s, %b epsilon = 1.0e-5
    : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0, %y : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// The add needs the matmul, which needs the gelu: no kernel can hold both.
// CHECK-LABEL: func.func @no_cycle
func.func @no_cycle(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: nn.launch @kernels::@gelu_8x8
  // CHECK: nn.matmul
  // CHECK: nn.launch @kernels::@add_8x8
  %0 = nn.gelu %x approximate = none : tensor<8x8xf32>
  %1 = nn.matmul %0, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.add %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// A loss and its gradient compute cheap logits where they read them, but not
// labels, which are checked in memory. What is costly is computed once, and
// so is what is needed elsewhere.
// CHECK-LABEL: func.func @logits
// CHECK: nn.launch @kernels::@slice_4
// CHECK: nn.launch @kernels::@bias_softmax_cross_entropy_and_gradient_2x2x8(%arg0, %arg1,
// CHECK: nn.launch @kernels::@tanh_bias_4x8(
// CHECK: nn.launch @kernels::@softmax_cross_entropy_4(
// CHECK: nn.launch @kernels::@sub_4x8(
// CHECK: nn.launch @kernels::@softmax_cross_entropy_4(
func.func @logits(%x: tensor<2x2x8xf32>, %b: tensor<8xf32>, %all: tensor<8xi64>, %dloss: tensor<f32>, %n: tensor<f32>)
    -> (tensor<f32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<2x2x8xf32>) {
  %labels = nn.slice %all starts = [4] sizes = [4] steps = [1] : tensor<8xi64> -> tensor<4xi64>
  %0 = nn.add %x, %b : (tensor<2x2x8xf32>, tensor<8xf32>) -> tensor<2x2x8xf32>
  %1 = nn.reshape %0 : tensor<2x2x8xf32> -> tensor<4x8xf32>
  %loss, %largest, %sum = nn.softmax_cross_entropy %1, %labels divisor %n ignore_index = -100
    : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  %d = nn.softmax_cross_entropy_backward %dloss, %1, %labels, %largest, %sum divisor %n ignore_index = -100
    : (tensor<f32>, tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = nn.reshape %x : tensor<2x2x8xf32> -> tensor<4x8xf32>
  %3 = nn.tanh %2 : tensor<4x8xf32>
  %4 = nn.add %3, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %loss2, %largest2, %sum2 = nn.softmax_cross_entropy %4, %labels divisor %n ignore_index = -100
    : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  %5 = nn.sub %2, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %loss3, %largest3, %sum3 = nn.softmax_cross_entropy %5, %labels divisor %n ignore_index = -100
    : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  %6 = nn.reshape %5 : tensor<4x8xf32> -> tensor<2x2x8xf32>
  return %loss, %d, %loss2, %loss3, %6 : tensor<f32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<2x2x8xf32>
}

// -----

// A column reduction shares the loop of what it reduces, but nothing in the
// kernel can use it.
// CHECK-LABEL: func.func @bias_gradient
func.func @bias_gradient(%dy: tensor<8x16xf32>, %x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>) {
  // CHECK: %[[K:.*]]:2 = nn.launch @kernels::@gelu_backward_reduce_sum_8x16
  // CHECK: nn.launch @kernels::@exp_16(%[[K]]#1)
  %0 = nn.gelu_backward %dy, %x approximate = none : tensor<8x16xf32>
  %1 = nn.reduce_sum %0 axes = [0] : tensor<8x16xf32> -> tensor<16xf32>
  %2 = nn.exp %1 : tensor<16xf32>
  return %0, %2 : tensor<8x16xf32>, tensor<16xf32>
}

// -----

// Reshapes between the ops of a kernel move into it; those at its border stay
// outside. Constants are made inside.
// CHECK-LABEL: func.func @reshapes
func.func @reshapes(%x: tensor<2x4x6xf32>, %b: tensor<6xf32>) -> tensor<4x12xf32> {
  // CHECK-NEXT: %[[V:.*]] = nn.reshape
  // CHECK-NEXT: %[[L:.*]] = nn.launch @kernels::@mul_bias_8x6(%[[V]], %{{.*}})
  // CHECK-NEXT: %[[W:.*]] = nn.reshape %[[L]]
  // CHECK-NEXT: return %[[W]]
  %two = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.reshape %x : tensor<2x4x6xf32> -> tensor<8x6xf32>
  %1 = nn.mul %0, %two : (tensor<8x6xf32>, tensor<f32>) -> tensor<8x6xf32>
  %2 = nn.reshape %1 : tensor<8x6xf32> -> tensor<2x4x6xf32>
  %3 = nn.add %2, %b : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
  %4 = nn.reshape %3 : tensor<2x4x6xf32> -> tensor<4x12xf32>
  return %4 : tensor<4x12xf32>
}
// CHECK: func.func private @mul_bias_8x6(
// CHECK-NEXT: nn.constant
// CHECK-NEXT: nn.mul
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: nn.add

// -----

// A constant that a library op reads is a kernel of its own.
// CHECK-LABEL: func.func @constant_operand
func.func @constant_operand(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: %[[C:.*]] = nn.launch @kernels::@constant_4x4()
  // CHECK: nn.matmul %{{.*}}, %[[C]]
  %c = nn.constant dense<0.5> : tensor<4x4xf32>
  %0 = nn.matmul %x, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// Kernels have no effects: running statistics are updated by ops.
nn.weight @m role = state : tensor<3xf32>
nn.weight @v role = state : tensor<3xf32>
// CHECK-LABEL: func.func @running
func.func @running(%x: tensor<2x3x4xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3x4xf32> {
  // CHECK: nn.parameter @m
  // CHECK: nn.launch @kernels::@batch_norm_relu_2x3x4({{.*}}) -> (tensor<3xf32>, tensor<3xf32>, tensor<2x3x4xf32>)
  // CHECK: nn.launch
  // CHECK: nn.assign_state @m, %{{.*}} decay = 0.899999976 :
  // CHECK: nn.assign_state @v, %{{.*}} decay = 0.899999976 :
  %y, %mean, %variance = nn.batch_norm %x, %s, %b epsilon = 1.0e-5 momentum = 0.9
      running_mean = @m running_variance = @v
    : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %r = nn.relu %y : tensor<2x3x4xf32>
  return %r : tensor<2x3x4xf32>
}

// -----

// A sample variance: (1 - 0.5) * 8 / 7 of the batch's.
nn.weight @m role = state : tensor<3xf32>
nn.weight @v role = state : tensor<3xf32>
// CHECK-LABEL: func.func @sample_variance
// CHECK-LABEL: module @kernels
// CHECK-DAG: nn.constant dense<5.000000e-01>
// CHECK-DAG: nn.constant dense<0.571428597>
func.func @sample_variance(%x: tensor<2x3x4xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %y, %mean, %variance = nn.batch_norm %x, %s, %b epsilon = 1.0e-5 momentum = 0.5
      running_mean = @m running_variance = @v sample_variance
    : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y : tensor<2x3x4xf32>
}

// -----

// Two kernels that each wait for the other are none: what the sum behind the
// product needs comes before it, though its kernel began earlier.
// CHECK-LABEL: func.func @no_circle
// CHECK:      %[[M:.*]] = nn.launch @kernels::@relu_8x8(%arg0)
// CHECK-NEXT: %[[P:.*]] = nn.matmul %[[M]], %arg2
// CHECK-NEXT: %[[H:.*]]:2 = nn.launch @kernels::@relu_add_8x8(%arg1, %[[P]], %[[M]])
// CHECK-NEXT: return %[[H]]#0, %[[H]]#1
func.func @no_circle(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %g = nn.relu %b : tensor<8x8xf32>
  %m = nn.relu %a : tensor<8x8xf32>
  %p = nn.matmul %m, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = nn.add %g, %p : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = nn.add %m, %g : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %h, %n : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A part of few is computed where it is joined; of many, all are copied.
// CHECK-LABEL: func.func @parts
// CHECK: nn.launch @kernels::@{{.*}}mul_concat_4x8(
// CHECK: nn.launch @kernels::@mul_2x8(
// CHECK: nn.launch @kernels::@concat_18x8(
func.func @parts(%x: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<18x8xf32>) {
  %0 = nn.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = nn.concat %0, %x axis = 0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %2 = nn.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = nn.concat %2, %x, %x, %x, %x, %x, %x, %x, %x axis = 0
    : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>,
       tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<18x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<18x8xf32>
}
