// RUN: pipewright-opt %s --pipe-assign-streams --split-input-file --verify-diagnostics

// A task reads what is received before the program has waited for it.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %t = nn.exp %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      %y = nn.neg %t {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %y : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    // expected-note @below {{posted here}}
    %r = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] event 0 : <tensor<16xf32>>
    // expected-error @below {{'pipe.input' op shares bytes with a transfer that the program has not waited for}}
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %z = pipe.wait_receive %r from 2 : tensor<16xf32>
  }
}

// -----

// Nobody waits for a send whose bytes are written over.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %t = nn.exp %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      %y = nn.neg %t {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %y : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-note @below {{posted here}}
    %s = pipe.post_send %x to 1 : tensor<16xf32>
    // expected-error @below {{'pipe.task' op shares bytes with a transfer that the program has not waited for}}
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// Without buffers nobody knows what is shared.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %t = nn.exp %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      %y = nn.neg %t {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %y : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    // expected-error @below {{'pipe.input' op expects 1 buffers; run pipe-plan-memory}}
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<16xf32>
  }
}

// -----

// The same in the body of a task.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      // expected-error @below {{'nn.exp' op has no 'pipe.buffers'; run pipe-plan-memory}}
      %t = nn.exp %x : tensor<16xf32>
      %y = nn.neg %t {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %y : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A body that writes a result that its task does not have in memory.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %t = nn.exp %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      %y = nn.neg %t {pipe.buffers = [#pipe.buffer<output 1 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %y : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-error @below {{'pipe.task' op has no bytes for what its body uses; run pipe-plan-memory}}
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// expected-error @below {{'pipe.rank' op has no pipe.arena; run pipe-plan-memory}}
pipe.rank 0 train {
}

// -----

// A view has no bytes of its own; who reads it does.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %v = nn.reshape %x : tensor<16xf32> -> tensor<4x4xf32>
      // expected-error @below {{'nn.exp' op reads a value without 'pipe.buffers'; run pipe-plan-memory}}
      %y = nn.exp %v {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<4x4xf32>
      pipe.return %y : tensor<4x4xf32>
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<4x4xf32>
  }
}
