// RUN: pipewright-opt %s --pipe-verify-unrolled --split-input-file --verify-diagnostics

// Tasks that overlap the next one of their rank.

// Two pairs side by side: each rank has its own next task.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return %x : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) overlaps_next : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> tensor<4xf32>
    pipe.task forward @s1 micro_batch 0 (%h0) overlaps_next : (tensor<4xf32>) -> ()
    pipe.task forward @s1 micro_batch 1 (%h1) : (tensor<4xf32>) -> ()
  }
}

// -----

// A pair of which one needs the other.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return %x : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 0 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{overlaps a task that needs its results}}
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) overlaps_next : (tensor<4xf32>) -> tensor<4xf32>
    // expected-note @below {{the next task is here}}
    pipe.task forward @s1 micro_batch 1 (%h1) : (tensor<4xf32>) -> ()
    pipe.task forward @s1 micro_batch 0 (%h0) : (tensor<4xf32>) -> ()
  }
}

// -----

// Three tasks are no pair.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return %x : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 0 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    // expected-error @below {{overlaps a task that overlaps another one, but expects pairs}}
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) overlaps_next : (tensor<4xf32>) -> tensor<4xf32>
    // expected-note @below {{the next task is here}}
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) overlaps_next : (tensor<4xf32>) -> tensor<4xf32>
    pipe.task forward @s1 micro_batch 0 (%h0) : (tensor<4xf32>) -> ()
    pipe.task forward @s1 micro_batch 1 (%h1) : (tensor<4xf32>) -> ()
  }
}

// -----

// The last task of a rank has no next one, whatever other ranks do.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return %x : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{overlaps the next task of its rank, but there is none that it could overlap}}
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) overlaps_next : (tensor<4xf32>) -> tensor<4xf32>
    pipe.task forward @s1 micro_batch 0 (%h0) : (tensor<4xf32>) -> ()
    pipe.task forward @s1 micro_batch 1 (%h1) : (tensor<4xf32>) -> ()
  }
}
