// RUN: pipewright-opt %s --pipe-differentiate --cse --pipe-split-backward --pipe-verify-staged --pipewright-unrolled --pipewright-scheduled="policy=zb-h1 ranks=3" --pipewright-allocated | FileCheck %s

// A stage that nothing is trained in has no backward, whole or split, and runs
// forwards only; the next one has an input gradient that nobody takes.

// CHECK-LABEL: pipe.rank 0 train
// CHECK-NOT: gradient
// CHECK: pipe.task forward @s0 micro_batch 3
// CHECK-NOT: gradient
// CHECK-LABEL: pipe.rank 1 train
// CHECK: pipe.task input_gradient @s1 micro_batch 0()
// CHECK: pipe.task weight_gradient @s1 micro_batch 0
// CHECK: pipe.task update @s1
// CHECK-LABEL: pipe.rank 2 train
// CHECK: pipe.task input_gradient @s2 micro_batch 0()
// CHECK: pipe.task weight_gradient @s2 micro_batch 0() buffers [] : () -> ()
// CHECK-NOT: pipe.task update
module attributes {pipe.program = #pipe.program<micro_batches = 4, optimizer = <sgd>>} {
nn.weight @a role = constant : tensor<8x8xf32>
nn.weight @w role = parameter : tensor<8x8xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @a : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    pipe.return %0 : tensor<4x8xf32>
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%h: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %0 = nn.matmul %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    pipe.return %0 : tensor<4x8xf32>
  }
}
pipe.stage @s2 {
  pipe.forward sources [#pipe.output<@s1, 0>] {
  ^bb0(%h: tensor<4x8xf32>):
    %0 = nn.reduce_mean %h axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
}
}
