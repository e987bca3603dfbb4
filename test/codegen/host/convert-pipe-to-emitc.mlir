// RUN: pipewright-opt %s --convert-pipe-to-emitc=model-name=tiny --print-host -o /dev/null | FileCheck %s

// Two stages of one layer each on two ranks, one micro-batch.

module attributes {pipe.micro_batches = 1 : i64, pipe.micro_batch_size = 2 : i64,
                   pipe.ranks = 2 : i64,
                   pipe.optimizer = {name = "sgd", lr = 1.000000e-01 : f64}} {
  nn.weight @fc.weight role = parameter : tensor<8x4xf32>
  nn.weight @head.weight role = parameter : tensor<4x3xf32>

  module @kernels {
    func.func private @relu_8(tensor<2x4xf32>) -> tensor<2x4xf32>
    func.func private @loss_2x3(tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>)
    func.func private @loss_backward_2x3(tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x3xf32>
    func.func private @relu_backward_8(tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    func.func private @sgd_32(tensor<32xf32>, tensor<32xf32>, tensor<4xf32>) -> tensor<32xf32>
  }

  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"image">] {
    ^bb0(%x: tensor<2x8xf32>):
      %w = nn.parameter @fc.weight : tensor<8x4xf32>
      %y = nn.matmul %x, %w {pipe.buffers = [#pipe.buffer<stash 0 at 0 bytes 32>]}
        : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32> loc("/net/fc/MatMul_output_0")
      %h = nn.launch @kernels::@relu_8 (%y) {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 32>]}
        : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("/net/relu/Relu_output_0")
      pipe.return %h : tensor<2x4xf32> stash %y : tensor<2x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
    ^bb0(%x: tensor<2x8xf32>, %y: tensor<2x4xf32>, %dh: tensor<2x4xf32>):
      %dy = nn.launch @kernels::@relu_backward_8 (%dh, %y) {pipe.buffers = [#pipe.buffer<arena 0 at 640 bytes 32>]}
        : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/net/relu/Relu_output_0")
      %dw = nn.matmul %x, %dy transpose_a
        : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
      nn.accumulate_gradient @fc.weight, %dw : tensor<8x4xf32>
      pipe.return
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"targets">] {
    ^bb0(%h: tensor<2x4xf32>, %t: tensor<2xi64>):
      %w = nn.parameter @head.weight : tensor<4x3xf32>
      %y = nn.matmul %h, %w {pipe.buffers = [#pipe.buffer<stash 0 at 0 bytes 24>]}
        : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32> loc("/net/head/MatMul_output_0")
      %loss, %lse = nn.launch @kernels::@loss_2x3 (%y, %t)
        {pipe.buffers = [#pipe.buffer<arena 0 at 704 bytes 4>, #pipe.buffer<stash 0 at 64 bytes 8>]}
        : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>) loc("/loss")
      pipe.report "loss" %loss : tensor<f32>
      pipe.return stash %y, %lse : tensor<2x3xf32>, tensor<2xf32>
    }
    pipe.backward inputs [0, 1] outputs [] gradients_of [] input_gradients [0] {
    ^bb0(%h: tensor<2x4xf32>, %t: tensor<2xi64>, %y: tensor<2x3xf32>, %lse: tensor<2xf32>):
      %dy = nn.launch @kernels::@loss_backward_2x3 (%y, %t, %lse) {pipe.buffers = [#pipe.buffer<arena 0 at 768 bytes 24>]}
        : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x3xf32> loc("/loss")
      %w = nn.parameter @head.weight : tensor<4x3xf32>
      %dh = nn.matmul %dy, %w transpose_b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 32>]}
        : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32> loc("/net/head/MatMul_output_0")
      %dw = nn.matmul %h, %dy transpose_a
        : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      nn.accumulate_gradient @head.weight, %dw : tensor<4x3xf32>
      pipe.return %dh : tensor<2x4xf32>
    }
  }

  pipe.arena rank 0 bytes 1024 {
    pipe.place @fc.weight in @s0 weight #pipe.buffer<arena 0 at 0 bytes 128> gradient #pipe.buffer<arena 0 at 128 bytes 128> owner
    pipe.optimizer @s0 kernel @kernels::@sgd_32 weights #pipe.buffer<arena 0 at 0 bytes 128> gradients #pipe.buffer<arena 0 at 128 bytes 128> states [] hyper #pipe.buffer<arena 0 at 256 bytes 16>
    pipe.region "weights" #pipe.buffer<arena 0 at 0 bytes 128>
  }
  pipe.arena rank 1 bytes 1024 {
    pipe.place @head.weight in @s1 weight #pipe.buffer<arena 0 at 0 bytes 48> gradient #pipe.buffer<arena 0 at 128 bytes 48> owner
  }
  pipe.rank 0 train {
    %x = pipe.input "image" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 320 bytes 64>] : tensor<2x8xf32>
    %p = pipe.post_receive from 1 buffers [#pipe.buffer<arena 0 at 576 bytes 32>] : !pipe.pending<tensor<2x4xf32>>
    %h, %st = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 384 bytes 32>, #pipe.buffer<arena 0 at 448 bytes 32>]
      : (tensor<2x8xf32>) -> (tensor<2x4xf32>, !pipe.stash<@s0>)
    %q = pipe.post_send %h to 1 : tensor<2x4xf32>
    %dh = pipe.wait_receive %p from 1 : tensor<2x4xf32>
    pipe.wait_send %q to 1 : !pipe.pending<tensor<2x4xf32>>
    %g = pipe.task backward @s0 micro_batch 0 (%x, %st, %dh)
      : (tensor<2x8xf32>, !pipe.stash<@s0>, tensor<2x4xf32>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
  pipe.rank 1 train {
    %p = pipe.post_receive from 0 buffers [#pipe.buffer<arena 0 at 320 bytes 32>] : !pipe.pending<tensor<2x4xf32>>
    %t = pipe.input "targets" micro_batch 0 for @s1 buffers [#pipe.buffer<arena 0 at 384 bytes 16>] : tensor<2xi64>
    %h = pipe.wait_receive %p from 0 : tensor<2x4xf32>
    %st = pipe.task forward @s1 micro_batch 0 (%h, %t) buffers [#pipe.buffer<arena 0 at 448 bytes 72>]
      : (tensor<2x4xf32>, tensor<2xi64>) -> !pipe.stash<@s1>
    %dh, %g = pipe.task backward @s1 micro_batch 0 (%h, %t, %st) buffers [#pipe.buffer<arena 0 at 576 bytes 32>, #pipe.buffer<arena 0 at 0 bytes 0>]
      : (tensor<2x4xf32>, tensor<2xi64>, !pipe.stash<@s1>) -> (tensor<2x4xf32>, !pipe.gradient<@s1>)
    %q = pipe.post_send %dh to 0 : tensor<2x4xf32>
    pipe.wait_send %q to 0 : !pipe.pending<tensor<2x4xf32>>
  }
}
