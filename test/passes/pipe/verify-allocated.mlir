// RUN: pipewright-opt %s --pipe-verify-allocated --split-input-file --verify-diagnostics

// A plan that is right: the first temporary is dead when its bytes are used again.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %a = nn.relu %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      %b = nn.neg %a {pipe.buffers = [#pipe.buffer<arena 0 at 192 bytes 64>]} : tensor<16xf32>
      %d = nn.exp %b {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      %c = nn.abs %d {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// Two temporaries in the same bytes.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %a = nn.relu %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      // expected-note @below {{by this op}}
      %b = nn.neg %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      // expected-error @below {{'nn.add' op reads #pipe.buffer<arena 0 at 128 bytes 64> after other data was written there}}
      %s = nn.add %a, %b {pipe.buffers = [#pipe.buffer<arena 0 at 192 bytes 64>]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      %c = nn.abs %s {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// An op that writes what it reads.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %a = nn.relu %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      // expected-error @below {{'nn.neg' op writes #pipe.buffer<arena 0 at 160 bytes 64>, which overlaps #pipe.buffer<arena 0 at 128 bytes 64> that it reads}}
      %b = nn.neg %a {pipe.buffers = [#pipe.buffer<arena 0 at 160 bytes 64>]} : tensor<16xf32>
      %c = nn.abs %b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// An op without buffers.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      // expected-error @below {{'nn.abs' op expects 'pipe.buffers' with one buffer per result}}
      %c = nn.abs %x : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A buffer of the wrong size.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      // expected-error @below {{'nn.abs' op expects a buffer of 64 bytes, but got #pipe.buffer<output 0 at 0 bytes 32>}}
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 32>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A buffer beyond the arena.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      // expected-error @below {{'nn.abs' op has #pipe.buffer<arena 0 at 300 bytes 64>, which ends beyond the arena of 320 bytes}}
      %b = nn.abs %x {pipe.buffers = [#pipe.buffer<arena 0 at 300 bytes 64>]} : tensor<16xf32>
      %c = nn.abs %b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A result that is not where the task has it.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      // expected-error @below {{'pipe.return' op expects result 0 in #pipe.buffer<output 0 at 0 bytes 64>, but it is in #pipe.buffer<arena 0 at 128 bytes 64>}}
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A stash value that is not in the stash.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<stash 0 at 64 bytes 64>]} : tensor<16xf32>
      // expected-error @below {{'pipe.return' op expects stash value 0 in #pipe.buffer<stash 0 at 0 bytes 64>, but it is in #pipe.buffer<stash 0 at 64 bytes 64>}}
      pipe.return stash %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> !pipe.stash<@s0>
  }
}

// -----

// An op that writes an operand of its task.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      // expected-error @below {{'nn.abs' op writes #pipe.buffer<input 0 at 0 bytes 64>, an operand of its task}}
      %b = nn.abs %x {pipe.buffers = [#pipe.buffer<input 0 at 0 bytes 64>]} : tensor<16xf32>
      %c = nn.abs %b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A view that is somewhere else.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      // expected-error @below {{'nn.reshape' op expects the buffer of what it views, #pipe.buffer<output 0 at 0 bytes 64>, but got #pipe.buffer<arena 0 at 128 bytes 64>}}
      %v = nn.reshape %c {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32> -> tensor<4x4xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// An operand that has been written over.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-note @below {{by this op}}
    %z = pipe.input "z" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 32 bytes 64>] : tensor<16xf32>
    // expected-error @below {{'pipe.task' op reads #pipe.buffer<arena 0 at 0 bytes 64> after other data was written there}}
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 128 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A task whose result lies in its operand.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-error @below {{'pipe.task' op writes #pipe.buffer<arena 0 at 32 bytes 64>, which overlaps #pipe.buffer<arena 0 at 0 bytes 64> that it reads}}
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 32 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A body that writes over the operand of its task.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %b = nn.abs %x {pipe.buffers = [#pipe.buffer<arena 0 at 0 bytes 64>]} : tensor<16xf32>
      %c = nn.abs %b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-error @below {{'pipe.task' op has a body that writes #pipe.buffer<arena 0 at 0 bytes 64>, which overlaps #pipe.buffer<arena 0 at 0 bytes 64> of the task}}
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A body that writes a weight.
module {
  nn.weight @w role = constant : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      // expected-error @below {{'nn.abs' op writes #pipe.buffer<arena 0 at 256 bytes 64>, which overlaps the fixed part}}
      %b = nn.abs %x {pipe.buffers = [#pipe.buffer<arena 0 at 256 bytes 64>]} : tensor<16xf32>
      %c = nn.abs %b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
    // expected-note @below {{here: #pipe.buffer<arena 0 at 256 bytes 64>}}
    pipe.place @w in @s0 weight <arena 0 at 256 bytes 64> owner
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A task without buffers.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-error @below {{'pipe.task' op has no buffers; run pipe-plan-memory}}
    %y = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A task with a buffer too few.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-error @below {{'pipe.task' op expects 1 buffers, but got 0}}
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A task that writes what is still being sent.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-note @below {{posted here}}
    %p = pipe.post_send %x to 1 : tensor<16xf32>
    // expected-error @below {{'pipe.input' op writes #pipe.buffer<arena 0 at 0 bytes 64> while a transfer reads #pipe.buffer<arena 0 at 0 bytes 64>}}
    %z = pipe.input "z" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    pipe.wait_send %p to 1 : <tensor<16xf32>>
  }
}

// -----

// A task that reads what is still being received.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    // expected-note @below {{posted here}}
    %p = pipe.post_receive from 1 buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : <tensor<16xf32>>
    // expected-error @below {{'pipe.task' op uses #pipe.buffer<arena 0 at 64 bytes 64> while a transfer writes #pipe.buffer<arena 0 at 64 bytes 64>}}
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
    %z = pipe.wait_receive %p from 1 : tensor<16xf32>
  }
}

// -----

// A rank without an arena.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
  // expected-error @below {{'pipe.rank' op has no pipe.arena}}
  pipe.rank 1 train {
  }
}

// -----

// A handover that is written over before it is read. The whole backward, which
// nobody runs, needs no buffers.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x {pipe.buffers = [#pipe.buffer<stash 1 at 0 bytes 16>]} : tensor<4xf32>
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%y: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 16>] : tensor<4xf32>
    %ho = pipe.task input_gradient @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 16>] : (tensor<4xf32>) -> !pipe.handover<@s0>
    // expected-note @below {{by this op}}
    %next = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 64 bytes 16>] : tensor<4xf32>
    // expected-error @below {{reads #pipe.buffer<arena 0 at 64 bytes 16> after other data was written there}}
    pipe.task weight_gradient @s0 micro_batch 0 (%ho) buffers [] : (!pipe.handover<@s0>) -> ()
  }
}

// -----

// A value of a handover that is not in it.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 16>]} : tensor<4xf32>
      // expected-error @below {{expects stash value 0 in #pipe.buffer<stash 1 at 0 bytes 16>, but it is in #pipe.buffer<arena 0 at 128 bytes 16>}}
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%y: tensor<4xf32>):
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 256 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 16>] : tensor<4xf32>
    %ho = pipe.task input_gradient @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 16>] : (tensor<4xf32>) -> !pipe.handover<@s0>
  }
}

// -----

// A subview lies in its operand, which may be read as a whole, too.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<32xf32>):
      %v = nn.subview %x at 16 {pipe.buffers = [#pipe.buffer<input 0 at 64 bytes 64>]} : tensor<32xf32> -> tensor<16xf32>
      %a = nn.relu %v {pipe.buffers = [#pipe.buffer<arena 0 at 192 bytes 64>]} : tensor<16xf32>
      %b = nn.neg %x {pipe.buffers = [#pipe.buffer<arena 0 at 256 bytes 128>]} : tensor<32xf32>
      %w = nn.subview %b at 0 {pipe.buffers = [#pipe.buffer<arena 0 at 256 bytes 64>]} : tensor<32xf32> -> tensor<16xf32>
      %c = nn.add %a, %w {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 384 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 128>] : tensor<32xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 128 bytes 64>] : (tensor<32xf32>) -> tensor<16xf32>
  }
}

// -----

// A subview elsewhere.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<32xf32>):
      // expected-error @below {{'nn.subview' op expects the buffer of what it views, #pipe.buffer<input 0 at 64 bytes 64>, but got #pipe.buffer<input 0 at 0 bytes 64>}}
      %v = nn.subview %x at 16 {pipe.buffers = [#pipe.buffer<input 0 at 0 bytes 64>]} : tensor<32xf32> -> tensor<16xf32>
      %a = nn.relu %v {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %a : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 192 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 128>] : tensor<32xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 128 bytes 64>] : (tensor<32xf32>) -> tensor<16xf32>
  }
}

// -----

// Other data is written over the part that a subview sees.
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<32xf32>):
      %a = nn.neg %x {pipe.buffers = [#pipe.buffer<arena 0 at 192 bytes 128>]} : tensor<32xf32>
      %u = nn.subview %a at 0 {pipe.buffers = [#pipe.buffer<arena 0 at 192 bytes 64>]} : tensor<32xf32> -> tensor<16xf32>
      %v = nn.subview %a at 16 {pipe.buffers = [#pipe.buffer<arena 0 at 256 bytes 64>]} : tensor<32xf32> -> tensor<16xf32>
      // expected-note @below {{by this op}}
      %b = nn.relu %u {pipe.buffers = [#pipe.buffer<arena 0 at 256 bytes 64>]} : tensor<16xf32>
      // expected-error @below {{'nn.add' op reads #pipe.buffer<arena 0 at 256 bytes 64> after other data was written there}}
      %c = nn.add %v, %b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 128>] : tensor<32xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 128 bytes 64>] : (tensor<32xf32>) -> tensor<16xf32>
  }
}
