// RUN: pipewright-opt %s --pipe-plan-memory --split-input-file --verify-diagnostics

// The optimizer says how many states there are.
// expected-error @below {{expects 'pipe.program' to have an 'optimizer'}}
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
    }
  }
  pipe.rank 0 train {
    pipe.task forward @s0 micro_batch 0 () : () -> ()
  }
}

// -----

// expected-error @below {{expects the optimizer to be sgd, adam, adamw, rmsprop, lamb, lion or muon, but got 'adamax'}}
// expected-error @below {{failed to parse Pipe_ProgramAttr parameter 'optimizer'}}
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <adamax>>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
    }
  }
  pipe.rank 0 train {
    pipe.task forward @s0 micro_batch 0 () : () -> ()
  }
}

// -----

// expected-error @below {{expects a program for every rank; run pipe-insert-transfers}}
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
}

// -----

// A running statistic has one writer.
module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  // expected-error @below {{is a state that 2 stages use, but only one stage can write it}}
  nn.weight @count role = state : tensor<1xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      %a = nn.parameter @count : tensor<1xf32>
      pipe.return
    }
  }
  pipe.stage @s1 on rank 0 {
    pipe.forward sources [] {
      %a = nn.parameter @count : tensor<1xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
  }
}

// -----

module attributes {pipe.program = #pipe.program<micro_batches = 1, optimizer = <sgd>>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
    }
  }
  // expected-error @below {{is beyond the module's 1 ranks}}
  pipe.rank 1 train {
    pipe.task forward @s0 micro_batch 0 () : () -> ()
  }
}
