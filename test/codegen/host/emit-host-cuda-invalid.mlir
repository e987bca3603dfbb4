// A program for GPUs needs events, one for CPUs has no use for them.

// RUN: pipewright-opt %s --print-host=target=cuda --split-input-file --verify-diagnostics
// RUN: not pipewright-opt %s --print-host=target=cpu --split-input-file 2>&1 | FileCheck %s

module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
    // expected-error@+1 {{has no event; expects a module after pipe-assign-streams}}
    %p = pipe.post_receive from 1 buffers [#pipe.buffer<arena 0 at 0 bytes 16>] : !pipe.pending<tensor<4xf32>>
  }
}

// -----

// CHECK: error: 'pipe.post_receive' op has an event, which a CPU knows nothing of; expects a module before pipe-assign-streams
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
    %p = pipe.post_receive from 1 buffers [#pipe.buffer<arena 0 at 0 bytes 16>] event 0 : !pipe.pending<tensor<4xf32>>
  }
}

// -----

// CHECK: error: 'pipe.wait_event' op has no place in a CPU's program; expects a module before pipe-assign-streams
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
    pipe.wait_event 0 on compute
  }
}
