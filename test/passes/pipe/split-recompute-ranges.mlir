// RUN: pipewright-opt %s --pipe-differentiate --nn-form-kernels --pipe-rematerialize=mode=full --pipe-split-recompute --pipe-split-backward --pipewright-unrolled --pipewright-scheduled="policy=zb-h1 ranks=3" --pipewright-allocated | FileCheck %s

// What is recomputed is kept in two ranges, as a stash is.
// CHECK-LABEL: pipe.stage @s1 on rank 1 splits_stash {
// CHECK:       pipe.recompute
// CHECK:       nn.matmul {{.*}} {pipe.buffers = [#pipe.buffer<stash 2 at 0 bytes 4096>]}
// CHECK:       nn.launch @kernels::@gelu{{.*}} {pipe.buffers = [#pipe.buffer<stash 4 at 0 bytes 4096>]}
// CHECK-LABEL: pipe.rank 1 train
// CHECK:       %[[R:.*]], %[[W:.*]] = pipe.task recompute @s1 micro_batch 0({{.*}}) {{.*}} -> (!pipe.handover<@s1, from recompute>, !pipe.handover<@s1, from recompute, to weight_gradient>)
// CHECK:       %{{.*}}, %[[H:.*]] = pipe.task input_gradient @s1 micro_batch 0(%{{[^,]*}}, %[[R]])
// CHECK:       pipe.task weight_gradient @s1 micro_batch 0(%{{[^,]*}}, %{{[^,]*}}, %[[W]], %[[H]])
module attributes {pipe.program = #pipe.program<micro_batches = 4, optimizer = <sgd>>} {
  nn.weight @w0 role = parameter : tensor<8x8xf32>
  nn.weight @w1 role = parameter : tensor<8x256xf32>
  nn.weight @w2 role = parameter : tensor<256x8xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4x8xf32>):
      %w = nn.parameter @w0 : tensor<8x8xf32>
      %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      pipe.return %y : tensor<4x8xf32>
    }
  }
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4x8xf32>):
      %w1 = nn.parameter @w1 : tensor<8x256xf32>
      %w2 = nn.parameter @w2 : tensor<256x8xf32>
      %h = nn.matmul %x, %w1 : (tensor<4x8xf32>, tensor<8x256xf32>) -> tensor<4x256xf32>
      %g = nn.gelu %h approximate = none : tensor<4x256xf32>
      %y = nn.matmul %g, %w2 : (tensor<4x256xf32>, tensor<256x8xf32>) -> tensor<4x8xf32>
      pipe.return %y : tensor<4x8xf32>
    }
  }
  pipe.stage @s2 {
    pipe.forward sources [#pipe.output<@s1, 0>] {
    ^bb0(%y: tensor<4x8xf32>):
      %loss = nn.reduce_mean %y axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
      pipe.report "loss" %loss : tensor<f32>
      pipe.return
    }
  }
}
