// RUN: pipewright-opt %s --pipe-verify-streams --split-input-file --verify-diagnostics

// What is received is computed with, sent on, and written over: each behind an
// event. The second receive needs no wait for the task, because the send, which
// it waits for, has waited for the task.
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
    %r = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] event 0 : <tensor<16xf32>>
    %x = pipe.wait_receive %r from 2 : tensor<16xf32>
    pipe.wait_event 0 on compute
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
    pipe.record_event 1 on compute
    pipe.wait_event 1 on send to 1
    %s = pipe.post_send %y0 to 1 event 2 : tensor<16xf32>
    pipe.wait_send %s to 1 : <tensor<16xf32>>
    pipe.wait_event 2 on receive from 2
    %q = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 0 bytes 128>] event 3 : <tensor<32xf32>>
    %z = pipe.wait_receive %q from 2 : tensor<32xf32>
  }
}

// -----

// A task that does not wait for what it reads.
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
    // expected-note @below {{the other one is here}}
    %r = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] event 0 : <tensor<16xf32>>
    %x = pipe.wait_receive %r from 2 : tensor<16xf32>
    // expected-error @below {{data race on rank 0: task F0.0 on stream 'compute' reads bytes 0 to 63 of the arena, which receive from rank 2 (event 0) on stream 'receive from 2' writes, and no event orders them}}
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A send that does not wait for what it sends.
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
    // expected-note @below {{the other one is here}}
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{data race on rank 0: send to rank 1 (event 0) on stream 'send to 1' reads bytes 64 to 127 of the arena, which task F0.0 on stream 'compute' writes, and no event orders them}}
    %s = pipe.post_send %y0 to 1 event 0 : tensor<16xf32>
    pipe.wait_send %s to 1 : <tensor<16xf32>>
  }
}

// -----

// The plan waits for a send before its bytes are written over, but no stream
// does.
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
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
    pipe.record_event 0 on compute
    pipe.wait_event 0 on send to 1
    // expected-note @below {{the other one is here}}
    %s = pipe.post_send %y0 to 1 event 1 : tensor<16xf32>
    pipe.wait_send %s to 1 : <tensor<16xf32>>
    // expected-error @below {{task F0.1 on stream 'compute' writes bytes 64 to 127 of the arena, which send to rank 1 (event 1) on stream 'send to 1' reads}}
    %y1 = pipe.task forward @s0 micro_batch 1 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// What is received lies where a task has its workspace.
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
    // expected-note @below {{the other one is here}}
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{receive from rank 2 (event 0) on stream 'receive from 2' writes bytes 160 to 191 of the arena, which task F0.0 on stream 'compute' writes}}
    %r = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 160 bytes 64>] event 0 : <tensor<16xf32>>
    %z = pipe.wait_receive %r from 2 : tensor<16xf32>
  }
}

// -----

// A receive over bytes that another link still sends from.
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
    pipe.record_event 0 on compute
    pipe.wait_event 0 on send to 1
    // expected-note @below {{the other one is here}}
    %s = pipe.post_send %x to 1 event 1 : tensor<16xf32>
    pipe.wait_send %s to 1 : <tensor<16xf32>>
    pipe.wait_event 0 on receive from 2
    // expected-error @below {{receive from rank 2 (event 2) on stream 'receive from 2' writes bytes 0 to 63 of the arena, which send to rank 1 (event 1) on stream 'send to 1' reads}}
    %r = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] event 2 : <tensor<16xf32>>
    %z = pipe.wait_receive %r from 2 : tensor<16xf32>
  }
}

// -----

// An event that is recorded before the op that it should follow says nothing
// of it.
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
    pipe.record_event 0 on compute
    // expected-note @below {{the other one is here}}
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
    pipe.wait_event 0 on send to 1
    // expected-error @below {{data race on rank 0: send to rank 1}}
    %s = pipe.post_send %y0 to 1 event 1 : tensor<16xf32>
    pipe.wait_send %s to 1 : <tensor<16xf32>>
  }
}

// -----

// The plan, which cannot deadlock, waits for the receive later than the stream.
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
    %r = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 192 bytes 64>] event 0 : <tensor<16xf32>>
    // expected-error @below {{'pipe.wait_event' op waits for the receive from rank 2 (event 0) earlier than the plan, which was proved free of deadlock}}
    pipe.wait_event 0 on compute
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
    %z = pipe.wait_receive %r from 2 : tensor<16xf32>
  }
}

// -----

// An event may be waited for only behind the op that records it.
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
    // expected-error @below {{'pipe.wait_event' op waits for event 0, which nothing before it records}}
    pipe.wait_event 0 on compute
    pipe.record_event 0 on compute
  }
}

// -----

// Each event is recorded once.
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
    // expected-note @below {{recorded here}}
    pipe.record_event 0 on compute
    // expected-error @below {{'pipe.record_event' op records event 0 a second time}}
    pipe.record_event 0 on compute
  }
}

// -----

// The runtime has as many events as the largest number says.
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
    pipe.record_event 0 on compute
    // expected-error @below {{'pipe.record_event' op records event 2, but no op records event 1: events are numbered from 0}}
    pipe.record_event 2 on compute
  }
}

// -----

// A stream that the rank does not have.
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
    // expected-error @below {{'pipe.record_event' op names stream 'send to 1', but rank 0 has no transfer there}}
    pipe.record_event 0 on send to 1
  }
}

// -----

// The runtime records an event for every transfer.
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
    pipe.record_event 0 on compute
    pipe.wait_event 0 on send to 1
    // expected-error @below {{'pipe.post_send' op has no event; run pipe-assign-streams}}
    %s = pipe.post_send %x to 1 : tensor<16xf32>
    pipe.wait_send %s to 1 : <tensor<16xf32>>
  }
}

// -----

// Bytes are needed to find races.
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
    // expected-error @below {{'pipe.input' op has no buffers; run pipe-plan-memory}}
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<16xf32>
  }
}

// -----

// What a task of the other program did is over: the host waits for all streams
// at the end of each.
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
    %y0 = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
  pipe.rank 0 evaluate {
    %r = pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at 64 bytes 64>] event 0 : <tensor<16xf32>>
    %z = pipe.wait_receive %r from 2 : tensor<16xf32>
  }
}

// -----

// The gradient of a tied weight is cleared while it is being sent.
module {
  nn.weight @w role = parameter : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<16xf32>):
      nn.accumulate_gradient @w, %x : tensor<16xf32>
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 256 {
    pipe.place @w in @s0 weight <arena 0 at 128 bytes 64> gradient <arena 0 at 192 bytes 64>
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %g = pipe.task backward @s0 micro_batch 0 (%x) buffers [] : (tensor<16xf32>) -> !pipe.gradient<@s0>
    %d = pipe.gradient_of @w in @s0 (%g) buffers [#pipe.buffer<arena 0 at 192 bytes 64>] : (!pipe.gradient<@s0>) -> tensor<16xf32>
    pipe.record_event 0 on compute
    pipe.wait_event 0 on send to 1
    // expected-note @below {{the other one is here}}
    %s = pipe.post_send %d to 1 event 1 : tensor<16xf32>
    pipe.wait_send %s to 1 : <tensor<16xf32>>
    %r = pipe.post_receive from 1 buffers [#pipe.buffer<arena 0 at 64 bytes 64>] event 2 : <tensor<16xf32>>
    %v = pipe.wait_receive %r from 1 : tensor<16xf32>
    pipe.wait_event 2 on compute
    // expected-error @below {{copy of weight '@w' in stage '@s0' on stream 'compute' writes bytes 192 to 255 of the arena, which send to rank 1 (event 1) on stream 'send to 1' reads}}
    pipe.set_weight @w in @s0 (%v, %g) : tensor<16xf32>, !pipe.gradient<@s0>
  }
}

// -----

// expected-error @below {{'pipe.rank' op has no pipe.arena; run pipe-plan-memory}}
pipe.rank 0 train {
}
