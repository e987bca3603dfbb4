// RUN: pipewright-opt %s | FileCheck %s
// RUN: pipewright-opt %s | pipewright-opt | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// A stash that lives on the host for a while, in a step and in a program.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32> stash %x : tensor<4xf32>
  }
}
// CHECK-LABEL: pipe.step train
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  %h, %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> (tensor<4xf32>, !pipe.stash<@s0>)
  // CHECK: %[[KEPT:kept_s0_0]] = pipe.move(%{{.*}}) in @s0 micro_batch 0 : !pipe.stash<@s0> -> tensor<16xi8>
  %kept = pipe.move (%st) in @s0 micro_batch 0 : !pipe.stash<@s0> -> tensor<16xi8>
  // CHECK: pipe.wait_move %[[KEPT]] in @s0 : tensor<16xi8>
  pipe.wait_move %kept in @s0 : tensor<16xi8>
  // CHECK: %back_s0_0 = pipe.move(%[[KEPT]]) in @s0 micro_batch 0 : tensor<16xi8> -> !pipe.stash<@s0>
  %back = pipe.move (%kept) in @s0 micro_batch 0 : tensor<16xi8> -> !pipe.stash<@s0>
}
// CHECK-LABEL: pipe.arena rank 0 bytes 128 host 64
pipe.arena rank 0 bytes 128 host 64 {
}
// CHECK-LABEL: pipe.rank 0 train
pipe.rank 0 train {
  %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 16>] : tensor<4xf32>
  %h, %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> (tensor<4xf32>, !pipe.stash<@s0>)
  // CHECK: pipe.wait_event 3 on to_host
  pipe.wait_event 3 on to_host
  // CHECK: %[[KEPT:kept_s0_0]] = pipe.move(%{{.*}}) in @s0 micro_batch 0 buffers [#pipe.buffer<host 0 at 0 bytes 16>] event 4 :
  %kept = pipe.move (%st) in @s0 micro_batch 0 buffers [#pipe.buffer<host 0 at 0 bytes 16>] event 4 : !pipe.stash<@s0> -> tensor<16xi8>
  // CHECK: pipe.record_event 5 on from_host
  pipe.record_event 5 on from_host
}
