// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize --pipe-verify-staged | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=full --pipe-rematerialize=mode=full | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=none | FileCheck %s --check-prefix=NONE
// RUN: not pipewright-opt %s --split-input-file --pipe-rematerialize=mode=half 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not pipewright-opt %s --split-input-file --pipe-differentiate --pipe-split-backward --pipe-rematerialize 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'pipe.stage' op has a split backward already; run pipe-rematerialize before pipe-split-backward
// MODE: pipe-rematerialize: expects mode to be one of none, full, selective, keep:N, every:N, window:N, except-last, but got 'half'
// RUN: not pipewright-opt %s --split-input-file --pipe-rematerialize=mode=every:0 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: pipe-rematerialize: expects mode to be one of none, full, selective, keep:N, every:N, window:N, except-last, but got 'every:0'
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=every:1 --pipe-verify-staged | FileCheck %s --check-prefix=EACH
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=every:2 --pipe-verify-staged | FileCheck %s --check-prefix=TWO
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=every:4 --pipe-verify-staged | FileCheck %s --check-prefix=ALL

// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=keep:75 --pipe-verify-staged | FileCheck %s --check-prefix=SHARE
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=keep:100 --pipe-verify-staged | FileCheck %s --check-prefix=NONE
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=window:2 --pipe-rematerialize=mode=window:2 --pipe-verify-staged | FileCheck %s --check-prefix=WINDOW
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=except-last --pipe-verify-staged | FileCheck %s --check-prefix=LAST

// The whole forward is done again, effects left out: the running statistics
// advance once, and dropout draws the same numbers.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
nn.weight @scale role = parameter : tensor<8xf32>
nn.weight @bias role = parameter : tensor<8xf32>
nn.weight @mean role = state : tensor<8xf32>
nn.weight @variance role = state : tensor<8xf32>
// CHECK-LABEL: pipe.stage @s0 {
// CHECK:         nn.batch_norm {{.*}} running_mean = @mean
// CHECK:         pipe.return %{{[^,]*}} : tensor<4x8xf32>{{$}}
// CHECK:       pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
// CHECK-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %{{[^:]*}}: tensor<4x8xf32>):
// CHECK:         %[[H:.*]] = nn.matmul %[[X]]
// CHECK:         %[[Y:.*]], %[[M:.*]], %[[V:.*]] = nn.batch_norm %[[H]], %{{.*}}, %{{.*}} epsilon = 9.99999974E-6 momentum = {{[0-9.]*}} :
// CHECK:         %[[D:.*]] = nn.dropout %[[Y]] rate = 5.000000e-01 id = 3
// CHECK:         nn.tanh %[[D]]
// CHECK:         nn.dropout %{{.*}} rate = 5.000000e-01 id = 3
// CHECK:         nn.batch_norm_backward %{{.*}}, %[[H]], %{{.*}}, %[[M]], %[[V]]
// CHECK:         nn.accumulate_gradient @w
// CHECK-LABEL: pipe.stage @s1 {

// NONE-LABEL: pipe.stage @s0 {
// NONE:         pipe.return {{.*}} stash
// NONE:       pipe.backward inputs [0] outputs [0]
// NONE-NOT:     nn.batch_norm %
// NONE:         pipe.return

// Forward and backward stay, and what some micro-batches do not keep is made again, by the forward
// without its effects.
// WINDOW-LABEL: pipe.stage @s0 keeps <first 2> {
// WINDOW:       pipe.forward
// WINDOW:         nn.batch_norm {{.*}} running_mean = @mean
// WINDOW:         pipe.return %{{[^,]*}} : tensor<4x8xf32> stash %{{.*}} : [[STASH:.*]]{{$}}
// WINDOW:       pipe.recompute inputs [0] outputs [] stash [] {
// WINDOW-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>):
// WINDOW:         nn.matmul %[[X]]
// WINDOW:         nn.batch_norm %{{.*}} momentum = {{[0-9.]*}} :
// WINDOW:         pipe.return stash %{{.*}} : [[STASH]]{{$}}
// WINDOW:       pipe.backward inputs [0] outputs [0]
// WINDOW-NOT:     nn.batch_norm %
// WINDOW:         pipe.return
// A stage that keeps inputs alone has nothing to make again.
// WINDOW-LABEL: pipe.stage @s1 {
// WINDOW-LABEL: pipe.stage @last keeps <first 2> {
// LAST-LABEL:   pipe.stage @s0 keeps <last 1> {
// LAST:         pipe.recompute
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %scale = nn.parameter @scale : tensor<8xf32>
    %bias = nn.parameter @bias : tensor<8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %y, %mean, %variance = nn.batch_norm %0, %scale, %bias epsilon = 1.0e-5 momentum = 0.9
        running_mean = @mean running_variance = @variance
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    %1 = nn.dropout %y rate = 0.5 id = 3 : tensor<4x8xf32>
    %2 = nn.tanh %1 : tensor<4x8xf32>
    pipe.return %2 : tensor<4x8xf32>
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%h: tensor<4x8xf32>):
    %0 = nn.reduce_mean %h axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
}
}

// -----

// What the backward does not need is not done again.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @last {
// CHECK:       pipe.backward inputs [0] outputs []
// CHECK:         nn.exp
// CHECK-NOT:     nn.reduce_mean
// CHECK:         nn.accumulate_gradient
pipe.stage @last {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<8xf32>):
    %w = nn.parameter @w : tensor<8xf32>
    %0 = nn.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = nn.exp %0 : tensor<8xf32>
    %2 = nn.reduce_mean %1 axes = [0] : tensor<8xf32> -> tensor<f32>
    pipe.report "loss" %2 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Layers are products where no module has a number. What a layer gives to the next one is
// kept; the rest of it is computed again where it is read first: the last layer first.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @a role = parameter : tensor<8x8xf32>
nn.weight @b role = parameter : tensor<8x8xf32>
nn.weight @c role = parameter : tensor<8x8xf32>
// EACH-LABEL: pipe.stage @three {
// EACH:         %[[A:.*]] = nn.matmul %{{.*}}
// EACH:         %[[TA:.*]] = nn.exp %[[A]]
// EACH:         %[[B:.*]] = nn.matmul %[[TA]]
// EACH:         %[[TB:.*]] = nn.exp %[[B]]
// EACH:         pipe.return stash %[[TA]], %[[TB]] : tensor<4x8xf32>, tensor<4x8xf32>
// EACH:       pipe.backward inputs [0] outputs []
// EACH-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %[[GA:[^:]*]]: tensor<4x8xf32>, %[[GB:[^:]*]]: tensor<4x8xf32>)
// EACH:         nn.matmul %[[GB]]
// EACH:         nn.accumulate_gradient @c
// EACH-NOT:     nn.exp
// EACH:         nn.accumulate_gradient @b
// EACH-NOT:     nn.exp
// EACH:         nn.accumulate_gradient @a
// Of two layers the first has one of its own again.
// TWO-LABEL:  pipe.stage @three {
// TWO:          pipe.return stash %{{[^,]*}} : tensor<4x8xf32>
// TWO:        ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %{{[^:]*}}: tensor<4x8xf32>)
// TWO:          nn.accumulate_gradient @c
// TWO:          %[[A:.*]] = nn.matmul %[[X]], %
// TWO:          %[[TA:.*]] = nn.exp %[[A]]
// TWO:          nn.accumulate_gradient @b
// TWO:          nn.accumulate_gradient @a
// ALL-LABEL:  pipe.stage @three {
// ALL:          pipe.return{{$}}
// One of the stash's three values has room, beside one that is computed again: the first and the
// last are, each from what is kept before it, where it is read first.
// SHARE-LABEL: pipe.stage @three {
// SHARE:         %[[TB:.*]] = nn.exp
// SHARE:         nn.exp
// SHARE:         pipe.return stash %{{[^,]*}} : tensor<4x8xf32>
// SHARE:       pipe.backward inputs [0] outputs []
// SHARE-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %[[GB:[^:]*]]: tensor<4x8xf32>)
// SHARE:         nn.matmul %[[GB]]
// SHARE-NEXT:    nn.exp
// SHARE:         nn.accumulate_gradient @c
// SHARE:         %[[A:.*]] = nn.matmul %[[X]], %
// SHARE-NEXT:    %[[TA:.*]] = nn.exp %[[A]]
// SHARE:         nn.matmul %[[TA]]
// SHARE:         nn.accumulate_gradient @b
pipe.stage @three {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %a = nn.parameter @a : tensor<8x8xf32>
    %b = nn.parameter @b : tensor<8x8xf32>
    %c = nn.parameter @c : tensor<8x8xf32>
    %0 = nn.matmul %x, %a : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.exp %0 : tensor<4x8xf32>
    %2 = nn.matmul %1, %b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = nn.exp %2 : tensor<4x8xf32>
    %4 = nn.matmul %3, %c : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %5 = nn.exp %4 : tensor<4x8xf32>
    %6 = nn.reduce_mean %5 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %6 : tensor<f32>
    pipe.return
  }
}
}
