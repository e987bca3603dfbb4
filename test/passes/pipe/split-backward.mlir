// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --cse --nn-form-kernels --pipe-split-backward --pipe-verify-staged | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --cse --nn-form-kernels --pipe-split-backward --pipe-split-backward | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --cse --nn-form-kernels --pipe-rematerialize --pipe-split-backward --pipe-verify-staged | FileCheck %s --check-prefix=REMAT

// Products with an activation wait for the second half, which reads activation
// and gradient itself where it can, or gets the gradient handed over. The tied
// weight @w is read by one half and summed by the other. A stage whose inputs
// need no gradient does all in its second half, one without weights all in its
// first.
// CHECK-LABEL: pipe.stage @first
// CHECK:       pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
// CHECK-NEXT:    pipe.return
// CHECK:       pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [0] {
// CHECK-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %[[D:[^:]*]]: tensor<4x8xf32>):
// CHECK-NEXT:    %[[DW:.*]] = nn.matmul %[[X]], %[[D]] transpose_a
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DW]]

// What both halves read of a stash of one value is one range.
// CHECK-LABEL: pipe.stage @middle {
// CHECK:       pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [0] {
// CHECK:         nn.accumulate_gradient @w
// CHECK:         nn.accumulate_gradient @v
// CHECK:       pipe.input_gradient inputs [] outputs [] stash [0] gradients_of [0] input_gradients [0] {
// CHECK-NEXT:  ^bb0(%[[T:[^:]*]]: tensor<4x8xf32>, %[[DY:[^:]*]]: tensor<4x8xf32>):
// CHECK-NEXT:    %[[W:.*]] = nn.parameter @w
// CHECK-NEXT:    %[[DT:.*]] = nn.matmul %[[DY]], %[[W]] transpose_b
// CHECK-NEXT:    %[[DH:.*]] = nn.launch @kernels::@{{.*}}(%[[T]], %[[DT]])
// CHECK-NEXT:    %[[V:.*]] = nn.parameter @v
// CHECK-NEXT:    %[[DX:.*]] = nn.matmul %[[DH]], %[[V]] transpose_b
// CHECK-NEXT:    pipe.return %[[DX]] : tensor<4x8xf32> stash %[[DH]] : tensor<4x8xf32>
// CHECK:       pipe.weight_gradient inputs [0] outputs [] stash [0] gradients_of [0] {
// CHECK-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %[[T:[^:]*]]: tensor<4x8xf32>, %[[DY:[^:]*]]: tensor<4x8xf32>, %[[DH:[^:]*]]: tensor<4x8xf32>):
// CHECK-NEXT:    %[[DW:.*]] = nn.matmul %[[T]], %[[DY]] transpose_a
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DW]]
// CHECK-NEXT:    %[[DV:.*]] = nn.matmul %[[X]], %[[DH]] transpose_a
// CHECK-NEXT:    nn.accumulate_gradient @v, %[[DV]]
// CHECK-NEXT:    pipe.return

// CHECK-LABEL: pipe.stage @last
// CHECK:       pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [0] {
// CHECK:         pipe.return %{{.*}} : tensor<4x8xf32>{{$}}
// CHECK:       pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
// CHECK-NEXT:    pipe.return

// REMAT-LABEL: pipe.stage @first
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
nn.weight @v role = parameter : tensor<8x8xf32>
pipe.stage @first {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    pipe.return %0 : tensor<4x8xf32>
  }
}
pipe.stage @middle {
  pipe.forward sources [#pipe.output<@first, 0>] {
  ^bb0(%h: tensor<4x8xf32>):
    %v = nn.parameter @v : tensor<8x8xf32>
    %w = nn.parameter @w : tensor<8x8xf32>
    %0 = nn.matmul %h, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.tanh %0 : tensor<4x8xf32>
    %2 = nn.matmul %1, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    pipe.return %2 : tensor<4x8xf32>
  }
}
pipe.stage @last {
  pipe.forward sources [#pipe.output<@middle, 0>] {
  ^bb0(%h: tensor<4x8xf32>):
    %0 = nn.reduce_mean %h axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Of a kernel with several results that serve both sides, those of the second
// half are handed over; a view is not, but what it views.
// CHECK-LABEL: pipe.stage @second splits_stash
// CHECK:       pipe.input_gradient inputs [0] outputs [] stash [1, 2, 3, 4, 5] gradients_of [] input_gradients [0] {
// CHECK:         %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = nn.attention_backward
// CHECK-NEXT:    %[[SUM:.*]] = nn.launch @kernels::@{{.*}}(%[[DQ]], %[[DK]], %[[DV]])
// CHECK:         %[[NORM:.*]]:3 = nn.launch @kernels::@layer_norm_backward
// CHECK-NEXT:    pipe.return %[[NORM]]#0 : tensor<16x8xf32> stash %[[SUM]], %[[NORM]]#1, %[[NORM]]#2 : tensor<1x1x16x8xf32>, tensor<8xf32>, tensor<8xf32>
// CHECK:       pipe.weight_gradient inputs [] outputs [] stash [0] gradients_of [] {
// CHECK-NEXT:  ^bb0(%[[N:[^:]*]]: tensor<16x8xf32>, %[[SUM:[^:]*]]: tensor<1x1x16x8xf32>, %[[DSCALE:[^:]*]]: tensor<8xf32>, %[[DBIAS:[^:]*]]: tensor<8xf32>):
// CHECK-NEXT:    %[[D:.*]] = nn.reshape %[[SUM]]
// CHECK-NEXT:    %[[DQ:.*]] = nn.matmul %[[N]], %[[D]] transpose_a
// CHECK-NEXT:    nn.accumulate_gradient @q, %[[DQ]]
// CHECK-NEXT:    nn.accumulate_gradient @scale, %[[DSCALE]]
// CHECK-NEXT:    nn.accumulate_gradient @bias, %[[DBIAS]]

// REMAT-LABEL: pipe.stage @second
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
nn.weight @a role = parameter : tensor<8x8xf32>
nn.weight @scale role = parameter : tensor<8xf32>
nn.weight @bias role = parameter : tensor<8xf32>
nn.weight @q role = parameter : tensor<8x8xf32>
pipe.stage @first {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<16x8xf32>):
    %a = nn.parameter @a : tensor<8x8xf32>
    %0 = nn.matmul %x, %a : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    pipe.return %0 : tensor<16x8xf32>
  }
}
pipe.stage @second {
  pipe.forward sources [#pipe.output<@first, 0>] {
  ^bb0(%h: tensor<16x8xf32>):
    %scale = nn.parameter @scale : tensor<8xf32>
    %bias = nn.parameter @bias : tensor<8xf32>
    %q = nn.parameter @q : tensor<8x8xf32>
    %n, %mean, %rstd = nn.layer_norm %h, %scale, %bias epsilon = 1.0e-05
      : (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>)
    %0 = nn.matmul %n, %q : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %1 = nn.reshape %0 : tensor<16x8xf32> -> tensor<1x1x16x8xf32>
    %o, %stats = nn.attention %1, %1, %1 scale = 0.35 causal dropout_rate = 0.0 dropout_id = 0
      : (tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>) -> (tensor<1x1x16x8xf32>, tensor<1x1x16x2xf32>)
    %2 = nn.reduce_mean %o axes = [0, 1, 2, 3] : tensor<1x1x16x8xf32> -> tensor<f32>
    pipe.report "loss" %2 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Recomputed values that both halves need are handed over, too: nothing is
// recomputed twice.
// CHECK-LABEL: pipe.stage @second
// CHECK:       pipe.weight_gradient inputs [] outputs [] stash [0] gradients_of [] {

// REMAT-LABEL: pipe.stage @second
// REMAT:       pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [0] {
// REMAT-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<1x4x6x6xf32>):
// REMAT:         %[[R:.*]] = nn.launch @kernels::@relu_{{[^(]*}}(%[[X]])
// REMAT:         nn.conv %[[R]]
// REMAT:         %[[D:.*]] = nn.launch @kernels::@div_mul_sub
// REMAT:         nn.conv_backward_data %[[D]]
// REMAT:         pipe.return %{{.*}} : tensor<1x4x6x6xf32> stash %[[R]], %[[D]] :
// REMAT:       pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
// REMAT-NEXT:  ^bb0(%[[R:[^:]*]]: tensor<1x4x6x6xf32>, %[[D:[^:]*]]: tensor<1x4x6x6xf32>):
// REMAT-NEXT:    %[[DB:.*]] = nn.conv_backward_weight %[[D]], %[[R]]
// REMAT-NEXT:    nn.accumulate_gradient @b, %[[DB]]
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
nn.weight @a role = parameter : tensor<4x2x3x3xf32>
nn.weight @b role = parameter : tensor<4x4x3x3xf32>
pipe.stage @first {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<1x2x6x6xf32>):
    %a = nn.parameter @a : tensor<4x2x3x3xf32>
    %0 = nn.conv %x, %a strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      : (tensor<1x2x6x6xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
    pipe.return %0 : tensor<1x4x6x6xf32>
  }
}
pipe.stage @second {
  pipe.forward sources [#pipe.output<@first, 0>] {
  ^bb0(%h: tensor<1x4x6x6xf32>):
    %b = nn.parameter @b : tensor<4x4x3x3xf32>
    %r = nn.relu %h : tensor<1x4x6x6xf32>
    %0 = nn.conv %r, %b strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
    %1 = nn.tanh %0 : tensor<1x4x6x6xf32>
    %2 = nn.reduce_mean %1 axes = [0, 1, 2, 3] : tensor<1x4x6x6xf32> -> tensor<f32>
    pipe.report "loss" %2 : tensor<f32>
    pipe.return
  }
}
}
