// RUN: pipewright-opt %s --pipe-plan-memory --pipe-verify-allocated --split-input-file | FileCheck %s
// RUN: pipewright-opt %s --pipe-plan-memory --pipe-plan-memory --pipe-verify-allocated --split-input-file | FileCheck %s

// Values that leave a body do so once; otherwise they are copied at the end.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  // CHECK-LABEL: pipe.stage @s0
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4x8xf32>):
      // A temporary, reused as soon as it is dead.
      // CHECK: nn.relu %{{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at [[T0:[0-9]+]] bytes 128>]}
      %a = nn.relu %x : tensor<4x8xf32>
      // CHECK: nn.exp %{{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at [[T1:[0-9]+]] bytes 128>]}
      %b = nn.exp %a : tensor<4x8xf32>
      // CHECK: nn.neg %{{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at [[T0]] bytes 128>]}
      %c = nn.neg %b : tensor<4x8xf32>
      // A returned value is written where the task's result is; a view of it
      // lies there too.
      // CHECK: %[[Y:.*]] = nn.abs %{{.*}} {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 128>]}
      %y = nn.abs %c : tensor<4x8xf32>
      // CHECK: %[[V:.*]] = nn.reshape %[[Y]] {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 128>]}
      %v = nn.reshape %y : tensor<4x8xf32> -> tensor<32xf32>
      // CHECK: nn.reshape %{{.*}} {pipe.buffers = [#pipe.buffer<input 0 at 0 bytes 128>]}
      %w = nn.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
      // Returned twice, an argument returned, and returned and stashed.
      // CHECK: pipe.copy %[[V]] {pipe.buffers = [#pipe.buffer<output 1 at 0 bytes 128>]}
      // CHECK: pipe.copy %{{.*}} {pipe.buffers = [#pipe.buffer<output 2 at 0 bytes 128>]}
      // CHECK: pipe.copy %[[Y]] {pipe.buffers = [#pipe.buffer<stash 0 at 0 bytes 128>]}
      // CHECK-NEXT: pipe.return
      pipe.return %v, %v, %w : tensor<32xf32>, tensor<32xf32>, tensor<32xf32> stash %y : tensor<4x8xf32>
    }
  }
  // CHECK-LABEL: pipe.rank 0 train
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
    %y:3, %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4x8xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, !pipe.stash<@s0>)
  }
}

// -----

// Owned parameters are one flat range in weights, gradients and each state;
// what is not trained is beside them.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <adamw>>} {
  nn.weight @a role = parameter : tensor<20xf32>
  nn.weight @frozen role = constant : tensor<4xf32>
  nn.weight @b role = parameter : tensor<4xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      %a = nn.parameter @a : tensor<20xf32>
      %b = nn.parameter @b : tensor<4xf32>
      %frozen = nn.parameter @frozen : tensor<4xf32>
      %x = nn.mul %b, %frozen : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return stash %x, %a : tensor<4xf32>, tensor<20xf32>
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    // CHECK: pipe.backward
    // CHECK: nn.neg %{{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at 1088 bytes 16>]}
    ^bb0(%x: tensor<4xf32>, %a: tensor<20xf32>):
      %g = nn.neg %x : tensor<4xf32>
      nn.accumulate_gradient @b, %g : tensor<4xf32>
      nn.accumulate_gradient @a, %a : tensor<20xf32>
      pipe.return
    }
  }
  // CHECK: pipe.arena rank 0 bytes 1104
  // CHECK-NEXT: pipe.place @a in @s0 weight <arena 0 at 0 bytes 80> gradient <arena 0 at 256 bytes 80> owner
  // CHECK-NEXT: pipe.place @frozen in @s0 weight <arena 0 at 192 bytes 16> owner
  // CHECK-NEXT: pipe.place @b in @s0 weight <arena 0 at 128 bytes 16> gradient <arena 0 at 384 bytes 16> owner
  // CHECK-NEXT: pipe.optimizer @s0 weights <arena 0 at 0 bytes 192> gradients <arena 0 at 256 bytes 192> states [#pipe.buffer<arena 0 at 448 bytes 192>, #pipe.buffer<arena 0 at 640 bytes 192>] hyper <arena 0 at 832 bytes 16>
  // CHECK-NEXT: pipe.region "weights" <arena 0 at 0 bytes 208>
  // CHECK-NEXT: pipe.region "gradients" <arena 0 at 256 bytes 192>
  // CHECK-NEXT: pipe.region "optimizer state" <arena 0 at 448 bytes 384>
  // CHECK-NEXT: pipe.region "hyper-parameters" <arena 0 at 832 bytes 16>
  // CHECK-NEXT: pipe.region "activations" <arena 0 at 896 bytes 144>
  // CHECK-NEXT: pipe.region "workspace"
  // CHECK-LABEL: pipe.rank 0 train
  pipe.rank 0 train {
    // CHECK: pipe.task forward @s0 micro_batch 0() buffers [#pipe.buffer<arena 0 at 896 bytes 144>]
    %st = pipe.task forward @s0 micro_batch 0 () : () -> !pipe.stash<@s0>
    %g = pipe.task backward @s0 micro_batch 0 (%st) : (!pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// A state that is not read any more when the task writes it needs no copy.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  nn.weight @count role = state : tensor<1xf32>
  // CHECK-LABEL: pipe.stage @s0
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    // CHECK: %[[READ:.*]] = nn.parameter @count
    // CHECK-NOT: pipe.copy
    // CHECK: %[[SUM:.*]] = nn.add %{{.*}}, %[[READ]]
    // CHECK: nn.assign_state @count, %[[SUM]]
    ^bb0(%x: tensor<1xf32>):
      %old = nn.parameter @count : tensor<1xf32>
      %new = nn.add %x, %old : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      nn.assign_state @count, %new : tensor<1xf32>
      pipe.report "loss" %new : tensor<1xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<1xf32>
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<1xf32>) -> ()
  }
}

// -----

// A state is read as it was when the task began, though the task writes it.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  nn.weight @count role = state : tensor<1xf32>
  // CHECK-LABEL: pipe.stage @s0
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    // CHECK: %[[READ:.*]] = nn.parameter @count
    // CHECK: %[[COPY:.*]] = pipe.copy %[[READ]]
    // CHECK: nn.assign_state
    // CHECK: nn.neg %[[COPY]]
    ^bb0(%x: tensor<1xf32>):
      %old = nn.parameter @count : tensor<1xf32>
      nn.assign_state @count, %x : tensor<1xf32>
      %y = nn.neg %old : tensor<1xf32>
      pipe.report "loss" %y : tensor<1xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<1xf32>
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<1xf32>) -> ()
  }
}

// -----

// What is received has its bytes from the post on; what is sent, until the
// wait. Only then are they reused.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %y = nn.neg %x : tensor<16xf32>
      pipe.return %y : tensor<16xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<16xf32>):
      %y = nn.neg %x : tensor<16xf32>
      pipe.return %y : tensor<16xf32>
    }
  }
  // CHECK-LABEL: pipe.stage @s2
  pipe.stage @s2 on rank 0 {
    pipe.forward sources [#pipe.output<@s1, 0>] {
    ^bb0(%x: tensor<16xf32>):
      pipe.report "loss" %x : tensor<16xf32>
      pipe.return
    }
  }
  // CHECK-LABEL: pipe.rank 0 train
  pipe.rank 0 train {
    // CHECK: pipe.input {{.*}} buffers [#pipe.buffer<arena 0 at [[X:[0-9]+]] bytes 64>]
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<16xf32>
    // CHECK: pipe.task forward @s0 {{.*}} buffers [#pipe.buffer<arena 0 at [[Y:[0-9]+]] bytes 64>]
    %y = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<16xf32>) -> tensor<16xf32>
    %p = pipe.post_send %y to 1 : tensor<16xf32>
    // CHECK: pipe.post_receive from 1 buffers [#pipe.buffer<arena 0 at [[X]] bytes 64>]
    %q = pipe.post_receive from 1 : <tensor<16xf32>>
    pipe.wait_send %p to 1 : <tensor<16xf32>>
    %z = pipe.wait_receive %q from 1 : tensor<16xf32>
    pipe.task forward @s2 micro_batch 0 (%z) : (tensor<16xf32>) -> ()
  }
  pipe.rank 1 train {
    %q = pipe.post_receive from 0 : <tensor<16xf32>>
    %x = pipe.wait_receive %q from 0 : tensor<16xf32>
    %y = pipe.task forward @s1 micro_batch 0 (%x) : (tensor<16xf32>) -> tensor<16xf32>
    %p = pipe.post_send %y to 0 : tensor<16xf32>
    pipe.wait_send %p to 0 : <tensor<16xf32>>
  }
}

// -----

// A product that goes nowhere but into a gradient is added there in place, seen
// through views.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  nn.weight @w role = parameter : tensor<64xf32>
  // CHECK-LABEL: pipe.stage @s0
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4x8xf32>):
      pipe.return
    }
    // CHECK: pipe.backward
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4x8xf32>):
      // CHECK: nn.matmul {{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at 256 bytes 256>]}
      %g = nn.matmul %x, %x transpose_a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      // CHECK: nn.reshape {{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at 256 bytes 256>]}
      %v = nn.reshape %g : tensor<8x8xf32> -> tensor<64xf32>
      nn.accumulate_gradient @w, %v : tensor<64xf32>
      pipe.return
    }
  }
  // CHECK: pipe.place @w in @s0 weight <arena 0 at 0 bytes 256> gradient <arena 0 at 256 bytes 256> owner
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4x8xf32>) -> ()
    %g = pipe.task backward @s0 micro_batch 0 (%x) : (tensor<4x8xf32>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// A handover lives from one half to the other; what is both returned and handed
// over is copied. The whole backward, which nobody runs, gets no buffers.
module attributes {pipe.program = #pipe.program<micro_batches = 2, optimizer = <sgd>>} {
  // CHECK-LABEL: pipe.stage @s0
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4x8xf32>):
      pipe.return
    }
    // CHECK: pipe.backward
    // CHECK-NOT: pipe.buffers
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [0] {
    ^bb0(%x: tensor<4x8xf32>):
      %y = nn.relu %x : tensor<4x8xf32>
      pipe.return %y : tensor<4x8xf32>
    }
    // CHECK: pipe.input_gradient
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [0] {
    ^bb0(%x: tensor<4x8xf32>):
      // CHECK: %[[Y:.*]] = nn.relu %{{.*}} {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 128>]}
      %y = nn.relu %x : tensor<4x8xf32>
      // CHECK-NEXT: pipe.copy %[[Y]] {pipe.buffers = [#pipe.buffer<stash 1 at 0 bytes 128>]}
      pipe.return %y : tensor<4x8xf32> stash %y : tensor<4x8xf32>
    }
    // CHECK: pipe.weight_gradient
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%y: tensor<4x8xf32>):
      // CHECK: nn.reshape %{{.*}} {pipe.buffers = [#pipe.buffer<stash 1 at 0 bytes 128>]}
      %v = nn.reshape %y : tensor<4x8xf32> -> tensor<32xf32>
      pipe.return
    }
  }
  // CHECK-LABEL: pipe.rank 0 train
  pipe.rank 0 train {
    // CHECK: pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at [[X:[0-9]+]] bytes 128>]
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
    // CHECK: input_gradient @s0 micro_batch 0{{.*}} buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 128>, #pipe.buffer<arena 0 at [[H:[0-9]+]] bytes 128>]
    %d0, %ho0 = pipe.task input_gradient @s0 micro_batch 0 (%x0) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.handover<@s0>)
    // The input is dead, the handover is not.
    // CHECK-NOT: arena 0 at [[H]] bytes
    // CHECK: input_gradient @s0 micro_batch 1
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4x8xf32>
    %d1, %ho1 = pipe.task input_gradient @s0 micro_batch 1 (%x1) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.handover<@s0>)
    // CHECK: weight_gradient @s0 micro_batch 0
    pipe.task weight_gradient @s0 micro_batch 0 (%ho0) : (!pipe.handover<@s0>) -> ()
    pipe.task weight_gradient @s0 micro_batch 1 (%ho1) : (!pipe.handover<@s0>) -> ()
  }
}

// -----

// Subviews lie in their operands, which live as long; a part that leaves the
// body is copied.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  // CHECK-LABEL: pipe.stage @s0
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4x16xf32>):
      // CHECK: nn.subview %{{.*}} at 16 {pipe.buffers = [#pipe.buffer<input 0 at 64 bytes 128>]}
      %i = nn.subview %x at 16 : tensor<4x16xf32> -> tensor<2x16xf32>
      // CHECK: nn.relu %{{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at [[#A:]] bytes 256>]}
      %a = nn.relu %x : tensor<4x16xf32>
      // CHECK: nn.subview %{{.*}} at 0 {pipe.buffers = [#pipe.buffer<arena 0 at [[#A]] bytes 128>]}
      %p = nn.subview %a at 0 : tensor<4x16xf32> -> tensor<2x16xf32>
      // CHECK: nn.reshape %{{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at [[#A]] bytes 128>]}
      %r = nn.reshape %p : tensor<2x16xf32> -> tensor<32xf32>
      // CHECK: nn.subview %{{.*}} at 16 {pipe.buffers = [#pipe.buffer<arena 0 at [[#A+64]] bytes 64>]}
      %q = nn.subview %r at 16 : tensor<32xf32> -> tensor<16xf32>
      // Not where %a was: %q is still read.
      // CHECK-NOT: nn.neg %{{.*}} {pipe.buffers = [#pipe.buffer<arena 0 at [[#A]] bytes 128>]}
      // CHECK: nn.neg
      %b = nn.neg %i : tensor<2x16xf32>
      %c = nn.add %b, %q : (tensor<2x16xf32>, tensor<16xf32>) -> tensor<2x16xf32>
      // CHECK: %[[Y:.*]] = nn.abs %{{.*}} {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 128>]}
      %y = nn.abs %c : tensor<2x16xf32>
      // CHECK: %[[S:.*]] = nn.subview %[[Y]] at 16 {pipe.buffers = [#pipe.buffer<output 0 at 64 bytes 64>]}
      %s = nn.subview %y at 16 : tensor<2x16xf32> -> tensor<16xf32>
      // CHECK: pipe.copy %[[S]] {pipe.buffers = [#pipe.buffer<output 1 at 0 bytes 64>]}
      // CHECK-NEXT: pipe.return
      pipe.return %y, %s : tensor<2x16xf32>, tensor<16xf32>
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4x16xf32>
    %y:2 = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4x16xf32>) -> (tensor<2x16xf32>, tensor<16xf32>)
  }
}
