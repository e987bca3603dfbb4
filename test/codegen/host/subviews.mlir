// A subview is a part of the buffer that it sees: of an operand of the task, of
// a field of the stash, of a weight, of a temporary. A view of a subview is that
// part.

// RUN: pipewright-opt %s --print-host=model-name=tiny -o /dev/null | FileCheck %s

module attributes {pipe.program = #pipe.program<ranks = 1, micro_batches = 1, micro_batch_size = 2, optimizer = <sgd lr = 1.000000e-01>>} {
  nn.weight @w role = parameter : tensor<32xf32>

  module @kernels {
    func.func private @four(tensor<16xf32>, tensor<4x4xf32>, tensor<16xf32>) -> tensor<32xf32>
    func.func private @back(tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
    func.func private @sgd_32(tensor<32xf32>, tensor<32xf32>, tensor<4xf32>) -> tensor<32xf32>
  }

  pipe.stage @s0 on rank 0 {
    // CHECK-LABEL: void stage0_forward(
    // CHECK: const Buffer x_half = x.at(64, 64);
    // CHECK: const Buffer x_tail = x.at(64, 64);
    // CHECK: const Buffer w_half = {64, 64};
    // CHECK: const Buffer y = stash.at(0, 128);
    // CHECK: launch(rank, "four", four, x_half, x_tail, w_half, y);
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<32xf32>):
      %w = nn.parameter @w : tensor<32xf32>
      %wh = nn.subview %w at 16 {pipe.buffers = [#pipe.buffer<arena 0 at 64 bytes 64>]} : tensor<32xf32> -> tensor<16xf32> loc("w_half")
      %xh = nn.subview %x at 16 {pipe.buffers = [#pipe.buffer<input 0 at 64 bytes 64>]} : tensor<32xf32> -> tensor<16xf32> loc("x_half")
      %xr = nn.reshape %x {pipe.buffers = [#pipe.buffer<input 0 at 0 bytes 128>]} : tensor<32xf32> -> tensor<8x4xf32>
      %xs = nn.subview %xr at 16 {pipe.buffers = [#pipe.buffer<input 0 at 64 bytes 64>]} : tensor<8x4xf32> -> tensor<16xf32> loc("x_tail")
      %xv = nn.reshape %xs {pipe.buffers = [#pipe.buffer<input 0 at 64 bytes 64>]} : tensor<16xf32> -> tensor<4x4xf32>
      %y = nn.launch @kernels::@four (%xh, %xv, %wh) {pipe.buffers = [#pipe.buffer<stash 0 at 0 bytes 128>]}
        : (tensor<16xf32>, tensor<4x4xf32>, tensor<16xf32>) -> tensor<32xf32> loc("y")
      pipe.return stash %y : tensor<32xf32>
    }
    // CHECK-LABEL: void stage0_backward(
    // CHECK: const Buffer y_half = stash.at(64, 64);
    // CHECK: const Buffer t = {512, 128};
    // CHECK: launch(rank, "back", back, y_half, y_half, t);
    // CHECK: const Buffer t_half = {576, 64};
    // CHECK: launch(rank, "back", ::back, y_half, t_half, back);
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<32xf32>, %y: tensor<32xf32>):
      %v = nn.subview %y at 16 {pipe.buffers = [#pipe.buffer<stash 0 at 64 bytes 64>]} : tensor<32xf32> -> tensor<16xf32> loc("y_half")
      %t = nn.launch @kernels::@back (%v, %v) {pipe.buffers = [#pipe.buffer<arena 0 at 512 bytes 128>]}
        : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32> loc("t")
      %u = nn.subview %t at 16 {pipe.buffers = [#pipe.buffer<arena 0 at 576 bytes 64>]} : tensor<32xf32> -> tensor<16xf32> loc("t_half")
      %d = nn.launch @kernels::@back (%v, %u) {pipe.buffers = [#pipe.buffer<arena 0 at 640 bytes 128>]}
        : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      nn.accumulate_gradient @w, %d : tensor<32xf32>
      pipe.return
    }
  }

  pipe.arena rank 0 bytes 1024 {
    pipe.place @w in @s0 weight #pipe.buffer<arena 0 at 0 bytes 128> gradient #pipe.buffer<arena 0 at 128 bytes 128> owner
    pipe.optimizer @s0 kernels [@kernels::@sgd_32] weights #pipe.buffer<arena 0 at 0 bytes 128> gradients #pipe.buffer<arena 0 at 128 bytes 128> states [] hyper #pipe.buffer<arena 0 at 256 bytes 16>
    pipe.region "weights" #pipe.buffer<arena 0 at 0 bytes 128>
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 320 bytes 128>] : tensor<32xf32>
    %st = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 768 bytes 128>]
      : (tensor<32xf32>) -> !pipe.stash<@s0>
    %g = pipe.task backward @s0 micro_batch 0 (%x, %st)
      : (tensor<32xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}
