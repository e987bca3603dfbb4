// RUN: pipewright-opt %s --pipe-verify-unrolled --split-input-file --verify-diagnostics

// A step that is right.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      nn.accumulate_gradient @w, %y : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %st0) : (tensor<4xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1, %st1, %g0) : (tensor<4xf32>, !pipe.stash<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g1) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// A task that reads what belongs to another micro-batch.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return %y : tensor<4xf32>
    }
  }
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %h0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> tensor<4xf32>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %h1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{'pipe.task' op expects output 0 of stage '@s0', micro-batch 0 as operand 0, but got output 0 of stage '@s0', micro-batch 1}}
    pipe.task forward @s1 micro_batch 0 (%h1) : (tensor<4xf32>) -> ()
    // expected-error @below {{'pipe.task' op expects output 0 of stage '@s0', micro-batch 1 as operand 0, but got output 0 of stage '@s0', micro-batch 0}}
    pipe.task forward @s1 micro_batch 1 (%h0) : (tensor<4xf32>) -> ()
  }
}

// -----

// A task that is missing.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
    // expected-error @below {{'pipe.step' op has no task 'forward' of stage '@s0', micro-batch 1}}
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
  }
}

// -----

// A micro-batch beyond the last.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %y = nn.relu %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    // expected-error @below {{'pipe.task' op is for micro-batch 1, but the step has 1}}
    pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> ()
  }
}

// -----

// Gradients are summed in ascending order.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      nn.accumulate_gradient @w, %y : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1, %st1) : (tensor<4xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
    // expected-error @below {{'pipe.task' op is the first of its stage, and expects no gradients}}
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %st0, %g1) : (tensor<4xf32>, !pipe.stash<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// A backward task that forgets the gradients before it.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      nn.accumulate_gradient @w, %y : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %st0) : (tensor<4xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.stash<@s0>
    // expected-error @below {{'pipe.task' op expects the gradients summed up to micro-batch 0}}
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1, %st1) : (tensor<4xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g1) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// An update that does not wait for all gradients.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      nn.accumulate_gradient @w, %y : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %st0) : (tensor<4xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1, %st1, %g0) : (tensor<4xf32>, !pipe.stash<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    // expected-error @below {{'pipe.task' op lacks the gradient of '@w' in stage '@s0', micro-batch 1}}
    %u = pipe.task update @s0 (%g0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// An update that is missing.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      nn.accumulate_gradient @w, %y : tensor<4xf32>
      pipe.return
    }
  }
    // expected-error @below {{'pipe.step' op has no task 'update' of stage '@s0'}}
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %st0) : (tensor<4xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
  }
}

// -----

// A stash of another micro-batch.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return stash %y : tensor<4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      nn.accumulate_gradient @w, %y : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.stash<@s0>
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.stash<@s0>
    // expected-error @below {{'pipe.task' op expects stash of stage '@s0', micro-batch 0 as operand 1, but got stash of stage '@s0', micro-batch 1}}
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %st1) : (tensor<4xf32>, !pipe.stash<@s0>) -> !pipe.gradient<@s0>
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1, %st1, %g0) : (tensor<4xf32>, !pipe.stash<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g1) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// A backward may be there in halves; the second belongs to the sum.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return stash %x : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> ()
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.gradient<@s0>
    %ho1 = pipe.task input_gradient @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.handover<@s0>
    %g1 = pipe.task weight_gradient @s0 micro_batch 1 (%ho1, %g0) : (!pipe.handover<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g1) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// Half a backward.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return stash %x : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{has no task 'weight_gradient' of stage '@s0', micro-batch 0}}
  // expected-error @below {{has no task 'update' of stage '@s0'}}
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %ho = pipe.task input_gradient @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.handover<@s0>
  }
}

// -----

// A backward that is done twice, as a whole and in halves.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return stash %x : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
  }
  // expected-error @below {{has a needless task 'backward' of stage '@s0', micro-batch 0}}
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.gradient<@s0>
    %ho = pipe.task input_gradient @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.handover<@s0>
    %g1 = pipe.task weight_gradient @s0 micro_batch 0 (%ho, %g0) : (!pipe.handover<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g1) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// A handover of another micro-batch.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return stash %x : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> ()
    %ho0 = pipe.task input_gradient @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.handover<@s0>
    %ho1 = pipe.task input_gradient @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.handover<@s0>
    // expected-error @below {{expects handover of stage '@s0', micro-batch 0 as operand 0, but got handover of stage '@s0', micro-batch 1}}
    %g0 = pipe.task weight_gradient @s0 micro_batch 0 (%ho1) : (!pipe.handover<@s0>) -> !pipe.gradient<@s0>
    %g1 = pipe.task weight_gradient @s0 micro_batch 1 (%ho1, %g0) : (!pipe.handover<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g1) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// Gradients that are summed in another order than that of the micro-batches.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return stash %x : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> ()
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.gradient<@s0>
    // expected-error @below {{is the first of its stage, and expects no gradients}}
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %g1) : (tensor<4xf32>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// The same, and the module says so.
module attributes {pipe.program = #pipe.program<micro_batches = 2, sums_in_schedule_order = true>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return stash %x : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> ()
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.gradient<@s0>
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %g1) : (tensor<4xf32>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// Even then none may be forgotten.
module attributes {pipe.program = #pipe.program<micro_batches = 2, sums_in_schedule_order = true>} {
  nn.weight @w role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %w = nn.parameter @w : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
    pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4xf32>):
      pipe.return stash %x : tensor<4xf32>
    }
    pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
    ^bb0(%x: tensor<4xf32>):
      nn.accumulate_gradient @w, %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.step train {
    %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> ()
    %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> ()
    %g1 = pipe.task backward @s0 micro_batch 1 (%x1) : (tensor<4xf32>) -> !pipe.gradient<@s0>
    // expected-error @below {{expects the gradients summed up to micro-batch 1}}
    %g0 = pipe.task backward @s0 micro_batch 0 (%x0) : (tensor<4xf32>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%g0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}
