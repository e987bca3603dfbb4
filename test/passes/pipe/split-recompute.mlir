// What a backward computes before it reads a gradient becomes a body, and a task, of its own: what
// the rest reads of it is handed over; views and weights stand on both sides.

// RUN: pipewright-opt %s --pipe-split-recompute --pipe-split-recompute --pipe-verify-staged > %t
// RUN: FileCheck %s < %t
// RUN: pipewright-opt %t --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=2" | FileCheck %s --check-prefix=TASKS
// RUN: pipewright-opt %t --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=2" --pipewright-allocated -o /dev/null
// RUN: pipewright-opt %s --pipe-split-recompute --pipe-split-backward --pipewright-unrolled --pipewright-scheduled="policy=zb-h1 ranks=2" | FileCheck %s --check-prefix=HALVES
// RUN: not pipewright-opt %s --pipe-split-backward --pipe-split-recompute -o /dev/null 2>&1 | FileCheck %s --check-prefix=LATE

// CHECK-LABEL: pipe.stage @s0
// CHECK:      pipe.recompute inputs [0] outputs [] stash [] {
// CHECK-NEXT: ^bb0(%in0: tensor<2x4xf32>):
// CHECK-NEXT:   %[[W:.*]] = nn.parameter @w0
// CHECK-NEXT:   %[[H:.*]] = nn.mul %in0, %[[W]]
// CHECK-NEXT:   %[[R:.*]] = nn.relu %[[H]]
// CHECK-NEXT:   pipe.return stash %[[H]], %[[R]] : tensor<2x4xf32>, tensor<2x4xf32>
// CHECK:      pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
// CHECK-NEXT: ^bb0(%in0: tensor<2x4xf32>, %d_out0: tensor<2x4xf32>, %recomputed0: tensor<2x4xf32>, %recomputed1: tensor<2x4xf32>):
// CHECK-NEXT:   nn.mul %d_out0, %recomputed1
// CHECK-NOT:    nn.relu
// A backward that begins with a gradient, and one that reads none.
// CHECK-LABEL: pipe.stage @s1
// CHECK-NOT:  pipe.recompute
// CHECK:      pipe.backward

// TASKS-LABEL: pipe.rank 0 train
// TASKS:      %[[R0:.*]] = pipe.task recompute @s0 micro_batch 0(%{{.*}}) : (tensor<2x4xf32>) -> !pipe.handover<@s0, from recompute>
// TASKS-NEXT: pipe.post_receive from 1
// TASKS:      pipe.wait_receive
// TASKS-NEXT: pipe.task backward @s0 micro_batch 0(%{{.*}}, %{{.*}}, %[[R0]]) : (tensor<2x4xf32>, tensor<2x4xf32>, !pipe.handover<@s0, from recompute>)

// Each half takes what it reads of it; the first one here reads nothing, as its stage returns no
// gradient.
// HALVES-LABEL: pipe.stage @s0
// HALVES: pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
// HALVES: pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [0] recomputed [0, 1] {
// HALVES-LABEL: pipe.rank 0 train
// HALVES: %[[R0:.*]] = pipe.task recompute @s0 micro_batch 0
// HALVES: pipe.task input_gradient @s0 micro_batch 0() : () -> ()
// HALVES: pipe.task weight_gradient @s0 micro_batch 0({{.*}}%[[R0]]{{[,)]}}

// What is added to a gradient stays, and all behind it.
// RUN: sed '/^ *%dh = nn.mul %dy, %y/i %%early = nn.reduce_sum %%y axes = [0] : tensor<2x4xf32> -> tensor<4xf32>\nnn.accumulate_gradient @w0, %%early : tensor<4xf32>' %s | pipewright-opt --pipe-split-recompute | FileCheck %s --check-prefix=ADDS
// ADDS: pipe.recompute
// ADDS: nn.reduce_sum
// ADDS: pipe.return stash
// ADDS: pipe.backward
// ADDS: nn.accumulate_gradient @w0, %recomputed

// Only what ops that stay read is handed over, also through views; a second run finds nothing more.
// RUN: sed '/^ *%dh = nn.mul %dy, %y/i %%flat = nn.reshape %%y : tensor<2x4xf32> -> tensor<8xf32>\n%%more = nn.relu %%flat : tensor<8xf32>\n%%z = nn.reshape %%more : tensor<8xf32> -> tensor<2x4xf32>' %s | sed 's/%dh = nn.mul %dy, %y/%dh = nn.mul %dy, %z/' | pipewright-opt --pipe-split-recompute --pipe-split-backward --pipe-split-recompute --pipe-verify-staged | FileCheck %s --check-prefix=VIEWS
// VIEWS: pipe.return stash %{{[0-9a-z]+}}, %{{[0-9a-z]+}} : tensor<2x4xf32>, tensor<8xf32>
// VIEWS: pipe.backward

// LATE: error: 'pipe.stage' op has its backward in two halves already; run pipe-split-recompute before pipe-split-backward

module attributes {pipe.program = #pipe.program<micro_batches = 2, optimizer = <adamw>>} {
  nn.weight @w0 role = parameter : tensor<4xf32>
  nn.weight @w1 role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w0 : tensor<4xf32>
      %h = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %y = nn.relu %h : tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
    ^bb0(%x: tensor<2x4xf32>, %dy: tensor<2x4xf32>):
      %w = nn.parameter @w0 : tensor<4xf32>
      %h = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %y = nn.relu %h : tensor<2x4xf32>
      %dh = nn.mul %dy, %y : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %dhh = nn.mul %dh, %h : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %dxw = nn.mul %dhh, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %dw = nn.reduce_sum %dxw axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w0, %dw : tensor<4xf32>
      pipe.return
    }
  }
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w1 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %loss = nn.reduce_sum %y axes = [0, 1] : tensor<2x4xf32> -> tensor<f32>
      pipe.report "loss" %loss : tensor<f32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [0] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w1 : tensor<4xf32>
      %one = nn.constant dense<1.0> : tensor<2x4xf32>
      %dx = nn.mul %one, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %dw = nn.reduce_sum %x axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w1, %dw : tensor<4xf32>
      pipe.return %dx : tensor<2x4xf32>
    }
  }
}
