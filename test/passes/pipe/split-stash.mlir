// DEFINE: %{split} = --pipe-differentiate --nn-form-kernels --pipe-split-backward
// RUN: pipewright-opt %s %{split} --pipewright-unrolled --pipewright-scheduled="policy=zb-h1 ranks=2" --pipewright-allocated | FileCheck %s
// RUN: pipewright-opt %s %{split}=whole-stash --pipewright-unrolled --pipewright-scheduled="policy=zb-h1 ranks=2" --pipewright-allocated | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/micro_batches = 4/micro_batches = 8/; s/256/8/g' %s | not pipewright-opt %{split} --pipe-unroll-microbatches --pipe-schedule="policy=gpipe ranks=2 offload=auto" 2>&1 | FileCheck %s --check-prefix=MOVED

// The weight gradient of the second product reads what gelu made, the input
// gradient what gelu took: a range each, and the second one's memory is free
// when the first half has run.
// CHECK-LABEL: pipe.stage @s1 on rank 1 splits_stash {
// CHECK:       nn.matmul {{.*}} {pipe.buffers = [#pipe.buffer<stash 0 at 0 bytes 4096>]}
// CHECK:       nn.launch @kernels::@gelu{{.*}} {pipe.buffers = [#pipe.buffer<stash 3 at 0 bytes 4096>]}
// CHECK:       pipe.arena rank 1 bytes 58176 {
// CHECK-LABEL: pipe.rank 1 train
// CHECK:       %[[S:.*]], %[[W:.*]] = pipe.task forward @s1 micro_batch 0({{.*}}) buffers [#pipe.buffer<arena 0 at [[FREE:[0-9]+]] bytes 4096>, {{.*}}] : (tensor<4x8xf32>) -> (!pipe.stash<@s1>, !pipe.stash<@s1, to weight_gradient>)
// CHECK:       pipe.task input_gradient @s1 micro_batch 0(%[[S]])
// CHECK:       pipe.task forward @s1 micro_batch 1({{.*}}) buffers [{{.*}}, #pipe.buffer<arena 0 at [[FREE]] bytes 4096>]
// CHECK:       pipe.task weight_gradient @s1 micro_batch 0(%{{.*}}, %[[W]], %{{.*}})

// WHOLE-LABEL: pipe.stage @s1 on rank 1 {
// WHOLE:       pipe.arena rank 1 bytes 62400 {
// WHOLE:       pipe.task forward @s1 micro_batch 0{{.*}} -> !pipe.stash<@s1>

// MOVED: error: 'pipe.stage' op splits the stash, which the schedule moves: run pipe-split-backward with whole-stash
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
      %loss = nn.reduce_mean %y axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
      pipe.report "loss" %loss : tensor<f32>
      pipe.return
    }
  }
}
