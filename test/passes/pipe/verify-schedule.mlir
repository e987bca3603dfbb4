// RUN: pipewright-opt %s --pipe-verify-schedule --split-input-file --verify-diagnostics

// A program that is right.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> tensor<4xf32>
    %p = pipe.post_send %h to 1 : tensor<4xf32>
    pipe.wait_send %p to 1 : <tensor<4xf32>>
  }
  pipe.rank 1 train {
    %p = pipe.post_receive from 0 : <tensor<4xf32>>
    %h = pipe.wait_receive %p from 0 : tensor<4xf32>
    pipe.task forward @s1 micro_batch 0 (%h) : (tensor<4xf32>) -> ()
  }
}

// -----

// A send that nobody receives.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{rank 0 sends output 0 of stage '@s0', micro-batch 0 to rank 1, which never receives it}}
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> tensor<4xf32>
    %p = pipe.post_send %h to 1 : tensor<4xf32>
    pipe.wait_send %p to 1 : <tensor<4xf32>>
  }
  pipe.rank 1 train {
    %x = pipe.input "x" micro_batch 0 for @s1 : tensor<4xf32>
    pipe.task forward @s1 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
  }
}

// -----

// The receiver takes the second micro-batch for the first.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{message 0 from rank 0 to rank 1 is sent as output 0 of stage '@s0', micro-batch 0, but received as output 0 of stage '@s0', micro-batch 1}}
  pipe.rank 0 train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> tensor<4xf32>
    %p0 = pipe.post_send %h0 to 1 : tensor<4xf32>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> tensor<4xf32>
    %p1 = pipe.post_send %h1 to 1 : tensor<4xf32>
    pipe.wait_send %p0 to 1 : <tensor<4xf32>>
    pipe.wait_send %p1 to 1 : <tensor<4xf32>>
  }
  pipe.rank 1 train {
    %p1 = pipe.post_receive from 0 : <tensor<4xf32>>
    %p0 = pipe.post_receive from 0 : <tensor<4xf32>>
    %h1 = pipe.wait_receive %p1 from 0 : tensor<4xf32>
    %h0 = pipe.wait_receive %p0 from 0 : tensor<4xf32>
    pipe.task forward @s1 micro_batch 0 (%h0) : (tensor<4xf32>) -> ()
    pipe.task forward @s1 micro_batch 1 (%h1) : (tensor<4xf32>) -> ()
  }
}

// -----

// Each rank waits for what the other has not sent yet.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s2 on rank 0 {
    pipe.forward sources [#pipe.output<@s1, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{deadlock without buffering: rank 0 waits after F0.0 for its receive from rank 1 of output 0 of stage '@s1', micro-batch 0, whose send rank 1 posts later; rank 1 waits at its start for its receive from rank 0 of output 0 of stage '@s0', micro-batch 0, whose send rank 0 posts later}}
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> tensor<4xf32>
    %q = pipe.post_receive from 1 : <tensor<4xf32>>
    %y = pipe.wait_receive %q from 1 : tensor<4xf32>
    %p = pipe.post_send %h to 1 : tensor<4xf32>
    pipe.wait_send %p to 1 : <tensor<4xf32>>
    pipe.task forward @s2 micro_batch 0 (%y) : (tensor<4xf32>) -> ()
  }
  pipe.rank 1 train {
    %p = pipe.post_receive from 0 : <tensor<4xf32>>
    %h = pipe.wait_receive %p from 0 : tensor<4xf32>
    %y = pipe.task forward @s1 micro_batch 0 (%h) : (tensor<4xf32>) -> tensor<4xf32>
    %q = pipe.post_send %y to 0 : tensor<4xf32>
    pipe.wait_send %q to 0 : <tensor<4xf32>>
  }
}

// -----

// Only buffering could save this: both ranks wait for their sends first.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s2 on rank 0 {
    pipe.forward sources [#pipe.output<@s1, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{deadlock without buffering: rank 0 waits after F0.1 for its send to rank 1 of output 0 of stage '@s0', micro-batch 1, whose receive rank 1 posts later; rank 1 waits after F1.0 for its send to rank 0 of output 0 of stage '@s1', micro-batch 0, whose receive rank 0 posts later}}
  pipe.rank 0 train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> tensor<4xf32>
    %p0 = pipe.post_send %h0 to 1 : tensor<4xf32>
    pipe.wait_send %p0 to 1 : <tensor<4xf32>>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> tensor<4xf32>
    %p1 = pipe.post_send %h1 to 1 : tensor<4xf32>
    pipe.wait_send %p1 to 1 : <tensor<4xf32>>
    %q0 = pipe.post_receive from 1 : <tensor<4xf32>>
    %y0 = pipe.wait_receive %q0 from 1 : tensor<4xf32>
    pipe.task forward @s2 micro_batch 0 (%y0) : (tensor<4xf32>) -> ()
    %q1 = pipe.post_receive from 1 : <tensor<4xf32>>
    %y1 = pipe.wait_receive %q1 from 1 : tensor<4xf32>
    pipe.task forward @s2 micro_batch 1 (%y1) : (tensor<4xf32>) -> ()
  }
  pipe.rank 1 train {
    %p0 = pipe.post_receive from 0 : <tensor<4xf32>>
    %h0 = pipe.wait_receive %p0 from 0 : tensor<4xf32>
    %y0 = pipe.task forward @s1 micro_batch 0 (%h0) : (tensor<4xf32>) -> tensor<4xf32>
    %q0 = pipe.post_send %y0 to 0 : tensor<4xf32>
    pipe.wait_send %q0 to 0 : <tensor<4xf32>>
    %p1 = pipe.post_receive from 0 : <tensor<4xf32>>
    %h1 = pipe.wait_receive %p1 from 0 : tensor<4xf32>
    %y1 = pipe.task forward @s1 micro_batch 1 (%h1) : (tensor<4xf32>) -> tensor<4xf32>
    %q1 = pipe.post_send %y1 to 0 : tensor<4xf32>
    pipe.wait_send %q1 to 0 : <tensor<4xf32>>
  }
}

// -----

// A task that no rank runs.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{'pipe.rank' op has no task 'forward' of stage '@s0', micro-batch 1}}
  // expected-error @below {{'pipe.rank' op has no task 'forward' of stage '@s1', micro-batch 1}}
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> tensor<4xf32>
    %p = pipe.post_send %h to 1 : tensor<4xf32>
    pipe.wait_send %p to 1 : <tensor<4xf32>>
  }
  pipe.rank 1 train {
    %p = pipe.post_receive from 0 : <tensor<4xf32>>
    %h = pipe.wait_receive %p from 0 : tensor<4xf32>
    pipe.task forward @s1 micro_batch 0 (%h) : (tensor<4xf32>) -> ()
  }
}

// -----

// A task on the wrong rank.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
  }
  pipe.rank 1 train {
    // expected-error @below {{'pipe.input' op stands on rank 1, but stage '@s0' is on rank 0}}
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    // expected-error @below {{'pipe.task' op stands on rank 1, but stage '@s0' is on rank 0}}
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
  }
}

// -----

// A task that runs twice.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    // expected-note @below {{first run here}}
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
    // expected-error @below {{'pipe.task' op runs a task for the second time}}
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
  }
}

// -----

// A value that is received for two purposes.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> tensor<4xf32>
    %p0 = pipe.post_send %h0 to 1 : tensor<4xf32>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> tensor<4xf32>
    %p1 = pipe.post_send %h1 to 1 : tensor<4xf32>
    pipe.wait_send %p0 to 1 : <tensor<4xf32>>
    pipe.wait_send %p1 to 1 : <tensor<4xf32>>
  }
  pipe.rank 1 train {
    %p0 = pipe.post_receive from 0 : <tensor<4xf32>>
    %h0 = pipe.wait_receive %p0 from 0 : tensor<4xf32>
    // expected-error @below {{'pipe.task' op takes a received value for output 0 of stage '@s0', micro-batch 0, but another op takes it for output 0 of stage '@s0', micro-batch 1}}
    pipe.task forward @s1 micro_batch 0 (%h0) : (tensor<4xf32>) -> ()
    pipe.task forward @s1 micro_batch 1 (%h0) : (tensor<4xf32>) -> ()
  }
}

// -----

// A task that reads the input of another micro-batch.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "y" micro_batch 0 for @s0 : tensor<4xf32>
    // expected-error @below {{'pipe.task' op expects input 'x' for stage '@s0', micro-batch 0 as operand 0, but got input 'y' for stage '@s0', micro-batch 0}}
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
  }
}

// -----

// Ranks are counted from 0, without gaps.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 on rank 1 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{'pipe.rank' op expects to be rank 0: one program for every rank, in order}}
  pipe.rank 1 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
  }
}

// -----

// A stage without a rank.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  // expected-error @below {{'pipe.stage' op expects a rank; run pipe-schedule first}}
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
  }
}
