// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: pipewright-opt %s --emit-bytecode | pipewright-opt | FileCheck %s

module attributes {pipe.program = #pipe.program<replicas = 2>} {
pipe.stage @s0 on rank 0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}

// Gradients are reduced to parts, the weights are put together again, one weight
// is handed out by its root, and its gradients are reduced to the root.

// CHECK-LABEL: pipe.rank 0 train
pipe.rank 0 train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  %g = pipe.task backward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> !pipe.gradient<@s0, partial>
  // CHECK: %[[R:.*]] = pipe.collective reduce_scatter in @s0(%{{.*}}) over [3, 0, 2] buffers [#pipe.buffer<arena 0 at 64 bytes 32>] event 4 : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, partial>
  // GENERIC: "pipe.collective"(%{{.*}}) <{buffers = [{{.*}}], event = 4 : i64, kind = #pipe<collective_kind reduce_scatter>, over = #pipe.group<[3, 0, 2]>, stage = @s0}>
  %r = pipe.collective reduce_scatter in @s0 (%g) over [3, 0, 2] buffers [#pipe.buffer<arena 0 at 64 bytes 32>] event 4 : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, partial>
  // CHECK: pipe.wait_collective %[[R]] : !pipe.gradient<@s0, partial>
  pipe.wait_collective %r : !pipe.gradient<@s0, partial>
  %u = pipe.task update @s0 (%r) : (!pipe.gradient<@s0, partial>) -> !pipe.updated<@s0>
  // CHECK: pipe.collective all_gather rounded in @s0(%{{.*}}) over [0, 2, 3] : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
  %a = pipe.collective all_gather rounded in @s0 (%u) over [0, 2, 3] : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
  pipe.wait_collective %a : !pipe.updated<@s0>
  // CHECK: pipe.collective broadcast of @w in @s0(%{{.*}}) over [0, 1] root 1 : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
  %b = pipe.collective broadcast of @w in @s0 (%u) over [0, 1] root 1 : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
  pipe.wait_collective %b : !pipe.updated<@s0>
  // CHECK: pipe.wait_event 4 on collective
  pipe.wait_event 4 on collective
  // CHECK: pipe.collective reduce of @w in @s0(%{{.*}}) over [0, 1] root 1 : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, partial>
  %s = pipe.collective reduce of @w in @s0 (%g) over [0, 1] root 1 : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, partial>
  pipe.wait_collective %s : !pipe.gradient<@s0, partial>
  // CHECK: pipe.collective all_reduce in @s0(%{{.*}}) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
  // GENERIC: "pipe.collective"(%{{.*}}) <{kind = #pipe<collective_kind all_reduce>, over = #pipe.group<replicas>, stage = @s0}>
  %d = pipe.collective all_reduce in @s0 (%g) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
  // CHECK: pipe.collective reduce_scatter in @s0(%{{.*}}) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
  %p = pipe.collective reduce_scatter in @s0 (%g) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
  pipe.wait_collective %p : !pipe.gradient<@s0, split>
  // CHECK: %loaded_s0 = pipe.load_weights in @s0 : <@s0, split>
  %l = pipe.load_weights in @s0 : !pipe.updated<@s0, split>
  // CHECK: pipe.load_weights in @s0 in_place : <@s0, split>
  %ip = pipe.load_weights in @s0 in_place : !pipe.updated<@s0, split>
  // CHECK: pipe.load_weights in @s0 range 1 weights <arena 0 at 0 bytes 64> : <@s0, split>
  %m = pipe.load_weights in @s0 range 1 weights <arena 0 at 0 bytes 64> : !pipe.updated<@s0, split>
  // CHECK: %kept_s0 = pipe.keep_gradients in @s0(%{{.*}}) : <@s0, split>
  %k = pipe.keep_gradients in @s0 (%p) : !pipe.gradient<@s0, split>
  // CHECK: %folded_s0 = pipe.fold_gradients in @s0(%{{.*}}) group 1 of 4 : <@s0, partial>
  %o = pipe.fold_gradients in @s0 (%g) group 1 of 4 : !pipe.gradient<@s0, partial>
  // CHECK: pipe.task update @s0(%{{.*}}) : (!pipe.gradient<@s0, split>) -> !pipe.updated<@s0, split>
  %v = pipe.task update @s0 (%p) : (!pipe.gradient<@s0, split>) -> !pipe.updated<@s0, split>
  // CHECK: %[[W:.*]] = pipe.collective all_gather in @s0(%{{.*}}) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>
  %w = pipe.collective all_gather in @s0 (%v) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>
  // CHECK: pipe.collective all_gather rounded in @s0(%[[W]]) over replicas : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
  %q = pipe.collective all_gather rounded in @s0 (%w) over replicas : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
  // CHECK: pipe.merge_statistics in @s0 over replicas
  pipe.merge_statistics in @s0 over replicas
  pipe.wait_collective %d : !pipe.gradient<@s0>
  // CHECK: %{{.*}} = pipe.clip_gradients in @s0(%{{.*}}) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
  %c = pipe.clip_gradients in @s0 (%d) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
  // A rank whose stages have no update takes part as well.
  // CHECK: pipe.clip_gradients in @s0() over [0, 1] : () -> ()
  pipe.clip_gradients in @s0 () over [0, 1] : () -> ()
}
}
