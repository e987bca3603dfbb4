// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// move (C1): a stash becomes bytes, or bytes a stash.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<16xi8>):
    pipe.return
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<16xi8>
  // expected-error @below {{expects to make bytes of a stash of stage '@s0', or a stash of bytes, but makes 'tensor<16xi8>' of 'tensor<16xi8>'}}
  %kept = pipe.move (%x) in @s0 micro_batch 0 : tensor<16xi8> -> tensor<16xi8>
}

// -----

// move (C1): of its own stage.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> !pipe.stash<@s0>
  // expected-error @below {{expects to make bytes of a stash of stage '@s1', or a stash of bytes, but makes 'tensor<16xi8>' of '!pipe.stash<@s0>'}}
  %kept = pipe.move (%st) in @s1 micro_batch 0 : !pipe.stash<@s0> -> tensor<16xi8>
}

// -----

// move (C2): what comes back has been brought to the host.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<16xi8>):
    pipe.return
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<16xi8>
  // expected-error @below {{expects bytes that a 'pipe.move' in stage '@s0' of micro-batch 0 has brought to the host}}
  %back = pipe.move (%x) in @s0 micro_batch 0 : tensor<16xi8> -> !pipe.stash<@s0>
}

// -----

// move (C2): of its own micro-batch.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> !pipe.stash<@s0>
  %kept = pipe.move (%st) in @s0 micro_batch 0 : !pipe.stash<@s0> -> tensor<16xi8>
  // expected-error @below {{expects bytes that a 'pipe.move' in stage '@s0' of micro-batch 1 has brought to the host}}
  %back = pipe.move (%kept) in @s0 micro_batch 1 : tensor<16xi8> -> !pipe.stash<@s0>
}

// -----

// wait_move (C1): it waits for a copy.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> !pipe.stash<@s0>
  // expected-error @below {{expects what a 'pipe.move' in stage '@s0' makes}}
  pipe.wait_move %st in @s0 : !pipe.stash<@s0>
}
