// RUN: pipewright-opt %s --pipe-plan-memory --pipe-verify-allocated --split-input-file | FileCheck %s
// RUN: sed '/all_gather rounded/s/ rounded//' %s | not pipewright-opt --pipe-plan-memory --pipe-verify-allocated --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: 'pipe.collective' op is of weights that have no place: bf16 copies alone are read of stage '@s0'

// What a stage reads as bf16 has a rounded copy: the stage's flat range at half
// the size, then the copies that no optimizer writes.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  nn.weight @a role = parameter : tensor<20xf32>
  nn.weight @b role = parameter : tensor<4xf32>
  nn.weight @loose role = parameter : tensor<8xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      %a = nn.parameter @a : tensor<20xbf16>
      %b = nn.parameter @b : tensor<4xbf16>
      %loose = nn.parameter @loose : tensor<8xbf16>
      // CHECK: nn.parameter @a {pipe.buffers = [#pipe.buffer<arena 0 at [[A:[0-9]+]] bytes 40>]} : tensor<20xbf16>
      // CHECK: nn.parameter @b {pipe.buffers = [#pipe.buffer<arena 0 at [[B:[0-9]+]] bytes 8>]} : tensor<4xbf16>
      // CHECK: nn.parameter @loose {pipe.buffers = [#pipe.buffer<arena 0 at [[LOOSE:[0-9]+]] bytes 16>]} : tensor<8xbf16>
      %x = nn.neg %b : tensor<4xbf16>
      %y = nn.neg %loose : tensor<8xbf16>
      %z = nn.neg %a : tensor<20xbf16>
      pipe.return stash %x, %y, %z : tensor<4xbf16>, tensor<8xbf16>, tensor<20xbf16>
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xbf16>, %y: tensor<8xbf16>, %z: tensor<20xbf16>):
      %g = nn.cast %x : tensor<4xbf16> -> tensor<4xf32>
      %h = nn.cast %z : tensor<20xbf16> -> tensor<20xf32>
      nn.accumulate_gradient @b, %g : tensor<4xf32>
      nn.accumulate_gradient @a, %h : tensor<20xf32>
      pipe.return
    }
  }
  // CHECK: pipe.arena rank 0
  // CHECK-NEXT: pipe.place @a in @s0 weight <arena 0 at 0 bytes 80> gradient {{.*}} rounded <arena 0 at [[A]] bytes 40> owner
  // CHECK-NEXT: pipe.place @b in @s0 weight <arena 0 at 128 bytes 16> gradient {{.*}} rounded <arena 0 at [[B]] bytes 8> owner
  // CHECK-NEXT: pipe.place @loose in @s0 weight <arena 0 at 192 bytes 32> rounded <arena 0 at [[LOOSE]] bytes 16> owner
  // CHECK-NEXT: pipe.optimizer @s0 weights <arena 0 at 0 bytes 192> {{.*}} rounded <arena 0 at [[A]] bytes 96>
  // CHECK-NEXT: pipe.region "weights" <arena 0 at 0 bytes 224>
  // CHECK-NEXT: pipe.region "bf16 weights" <arena 0 at [[A]] bytes 144>
  // CHECK-NEXT: pipe.region "gradients"
  pipe.rank 0 train {
    %st = pipe.task forward @s0 micro_batch 0 () : () -> !pipe.stash<@s0>
    %g = pipe.task backward @s0 micro_batch 0 (%st) : (!pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// Old versions are of the copies, and tasks are told where the newest copies
// are; evaluation reads those.
module attributes {pipe.program = #pipe.program<micro_batches = 2, updates = 2, optimizer = <sgd>>} {
  nn.weight @w role = parameter : tensor<16xf32>
  // CHECK: pipe.stage @s0
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      // CHECK: nn.parameter @w {pipe.buffers = [#pipe.buffer<weights 0 at 0 bytes 32>]} : tensor<16xbf16>
      %w = nn.parameter @w : tensor<16xbf16>
      %x = nn.neg %w : tensor<16xbf16>
      pipe.return stash %x : tensor<16xbf16>
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<16xbf16>):
      %g = nn.cast %x : tensor<16xbf16> -> tensor<16xf32>
      nn.accumulate_gradient @w, %g : tensor<16xf32>
      pipe.return
    }
  }
  // CHECK: pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <{{.*}}> rounded <[[NEWEST:arena 0 at 64 bytes 32]]> owner
  // CHECK-NEXT: pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> {{.*}} rounded <[[NEWEST]]> versions [#pipe.buffer<[[OLD:arena 0 at [0-9]+ bytes 32]]>]
  // CHECK: pipe.task forward @s0 micro_batch 0 version 0{{.*}} weights <[[NEWEST]]>
  // CHECK: pipe.task forward @s0 micro_batch 1 version 0{{.*}} weights <[[NEWEST]]>
  // CHECK: pipe.task update @s0 number 0{{.*}} weights <[[OLD]]>
  // CHECK: pipe.task backward @s0 micro_batch 1 version 0{{.*}} weights <[[OLD]]>
  pipe.rank 0 train {
    %s0 = pipe.task forward @s0 micro_batch 0 version 0 () : () -> !pipe.stash<@s0>
    %s1 = pipe.task forward @s0 micro_batch 1 version 0 () : () -> !pipe.stash<@s0>
    %g0 = pipe.task backward @s0 micro_batch 0 version 0 (%s0) : (!pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %u0 = pipe.task update @s0 number 0 (%g0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
    %g1 = pipe.task backward @s0 micro_batch 1 version 0 (%s1, %u0) : (!pipe.stash<@s0>, !pipe.updated<@s0>) -> !pipe.gradient<@s0>
    %u1 = pipe.task update @s0 number 1 (%g1) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// Of weights whose copies alone are read, a replica that updates a part keeps that
// part: where all of them would be only says how they lie.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1, micro_batches = 1, optimizer = <sgd>>} {
  nn.weight @a role = parameter : tensor<200xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      %a = nn.parameter @a : tensor<200xbf16>
      %x = nn.neg %a : tensor<200xbf16>
      pipe.return stash %x : tensor<200xbf16>
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<200xbf16>):
      %g = nn.cast %x : tensor<200xbf16> -> tensor<200xf32>
      nn.accumulate_gradient @a, %g : tensor<200xf32>
      pipe.return
    }
  }
  // CHECK: pipe.arena rank 0
  // CHECK-NEXT: pipe.place @a in @s0 weight <arena 0 at 0 bytes 800> {{.*}} rounded <[[COPY:arena 0 at 512]] bytes 400> owner
  // CHECK-NEXT: pipe.optimizer @s0 shards 2 weights <arena 0 at 0 bytes 1024> home <arena 0 at 0 bytes 512> {{.*}} rounded <[[COPY]] bytes 512>
  // CHECK-NEXT: pipe.region "weights" <arena 0 at 0 bytes 512>
  // CHECK-NEXT: pipe.region "bf16 weights" <[[COPY]] bytes 512>
  pipe.rank 0 train {
    %st = pipe.task forward @s0 micro_batch 0 () : () -> !pipe.stash<@s0>
    %g = pipe.task backward @s0 micro_batch 0 (%st) : (!pipe.stash<@s0>) -> !pipe.gradient<@s0, partial>
    %r = pipe.collective reduce_scatter in @s0 (%g) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
    pipe.wait_collective %r : !pipe.gradient<@s0, split>
    %u = pipe.task update @s0 (%r) : (!pipe.gradient<@s0, split>) -> !pipe.updated<@s0, split>
    %w = pipe.collective all_gather rounded in @s0 (%u) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>
    pipe.wait_collective %w : !pipe.updated<@s0>
  }
}
