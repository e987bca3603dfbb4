// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// task (C1): a forward belongs to a micro-batch.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{expects a micro-batch on every kind but 'update'}}
  pipe.task forward @s0 () : () -> ()
}

// -----

// task (C2): the stage exists.
pipe.step train {
  // expected-error @below {{names 's9', which is no stage of the module}}
  pipe.task forward @s9 micro_batch 0 () : () -> ()
}

// -----

// task (C3): operands are the stage's arguments.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}
pipe.step train {
  // expected-error @below {{expects operands}}
  pipe.task forward @s0 micro_batch 0 () : () -> ()
}

// -----

// task (C3): results are the stage's results and its stash.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  // expected-error @below {{expects results}}
  pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> ()
}

// -----

// A backward task needs a backward body.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{needs a 'pipe.backward' in stage 's0'}}
  pipe.task backward @s0 micro_batch 0 () : () -> ()
}

// -----

// So do its halves.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  // expected-error @below {{needs a 'pipe.weight_gradient' in stage 's0'}}
  pipe.task weight_gradient @s0 micro_batch 0 () : () -> ()
}

// -----

// task (C3): the handover is an operand of the second half.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}
pipe.step train {
  // expected-error @below {{expects operands '!pipe.handover<@s0>', but got}}
  pipe.task weight_gradient @s0 micro_batch 0 () : () -> ()
}

// -----

// A task that recomputes needs a body that does.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{needs a 'pipe.recompute' in stage 's0'}}
  pipe.task recompute @s0 micro_batch 0 () : () -> ()
}

// -----

// An evaluation task needs an evaluation body.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step evaluate {
  // expected-error @below {{needs a 'pipe.evaluate' in stage 's0'}}
  pipe.task evaluate @s0 micro_batch 0 () : () -> ()
}

// -----

// input (C1)
pipe.step train {
  // expected-error @below {{attribute 'micro_batch' failed to satisfy constraint}}
  %x = pipe.input "x" micro_batch -1 for @s0 : tensor<4xf32>
}

// -----

// task (C4): micro-batches number the other tasks.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{expects a number only on kind 'update'}}
  pipe.task forward @s0 micro_batch 0 number 0 () : () -> ()
}

// -----

// task (C4): evaluation reads the newest weights.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step evaluate {
  // expected-error @below {{expects no version on kind 'evaluate'}}
  pipe.task evaluate @s0 micro_batch 0 version 0 () : () -> ()
}

// -----

// task (C4): there is one version before those of the step.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{expects a version of at least -1, but got -2}}
  pipe.task forward @s0 micro_batch 0 version -2 () : () -> ()
}

// -----

// task (C5): evaluation has no pairs.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.evaluate sources [] {
  }
}
pipe.step evaluate {
  // expected-error @below {{expects no 'overlaps_next' on kind 'evaluate'}}
  pipe.task evaluate @s0 micro_batch 0 () overlaps_next : () -> ()
}

// -----

// task (C6): a step says nothing of parts.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  // expected-error @below {{expects no parts but in a rank's program, of a task that makes gradients of weights}}
  %g = pipe.task backward @s0 micro_batch 0 parts 2 () : () -> !pipe.gradient<@s0>
}

// -----

// task (C6): forwards are never cut.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.rank 0 train {
  // expected-error @below {{expects no parts but in a rank's program, of a task that makes gradients of weights}}
  pipe.task forward @s0 micro_batch 0 parts 2 () : () -> ()
}

// -----

// resume (C1): it goes on with a task that has parts.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 0 train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects the gradients of the part before part 1 of a task that has so many}}
  %r = pipe.resume in @s0 (%g) part 1 : !pipe.gradient<@s0>
}

// -----

// resume (C1): with one part after the other.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 0 train {
  %g = pipe.task backward @s0 micro_batch 0 parts 3 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects the gradients of the part before part 2 of a task that has so many}}
  %r = pipe.resume in @s0 (%g) part 2 : !pipe.gradient<@s0>
}

// -----

// resume (C1): nothing but collectives comes between.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 0 train {
  %g = pipe.task backward @s0 micro_batch 0 parts 2 () : () -> !pipe.gradient<@s0>
  // expected-note @below {{but here is another op}}
  pipe.task forward @s0 micro_batch 1 () : () -> ()
  // expected-error @below {{expects only collectives between itself and the part before it}}
  %r = pipe.resume in @s0 (%g) part 1 : !pipe.gradient<@s0>
}

// -----

// resume (C1): a step has none.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects to stand in a rank's program}}
  %r = pipe.resume in @s0 (%g) part 1 : !pipe.gradient<@s0>
}

// -----

// resume (C2): gradients are of its stage.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 0 train {
  %g = pipe.task backward @s0 micro_batch 0 parts 2 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects gradients of its stage, but takes '!pipe.gradient<@s0>'}}
  %r = pipe.resume in @s1 (%g) part 1 : !pipe.gradient<@s0>
}

// -----

// step (C1): what is computed stands in bodies of stages.
pipe.step train {
  // expected-error @below {{has no place in a step or a rank's program}}
  %c = nn.constant dense<0.0> : tensor<4xf32>
}

// -----

// hold (C1): a stash is on the rank of its stage.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}
pipe.stage @s1 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> !pipe.stash<@s0>
  // expected-error @below {{expects to take or return bytes, and a stash only in its own stage, but makes 'tensor<16xi8>' of '!pipe.stash<@s0>' in stage '@s1'}}
  %kept = pipe.hold (%st) of @s0 micro_batch 0 in @s1 : !pipe.stash<@s0> -> tensor<16xi8>
}

// -----

// hold (C1): bytes stay as many.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
  %st = pipe.task forward @s0 micro_batch 0 (%x) : (tensor<4xf32>) -> !pipe.stash<@s0>
  %bytes = pipe.hold (%st) of @s0 micro_batch 0 in @s0 : !pipe.stash<@s0> -> tensor<16xi8>
  // expected-error @below {{expects to return 'tensor<16xi8>', but returns 'tensor<8xi8>'}}
  %kept = pipe.hold (%bytes) of @s0 micro_batch 0 in @s0 : tensor<16xi8> -> tensor<8xi8>
}

// -----

// hold (C2): whose stash it is.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<16xi8>):
    pipe.return
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<16xi8>
  // expected-error @below {{names 's7', which is no stage of the module}}
  %kept = pipe.hold (%x) of @s7 micro_batch 0 in @s0 : tensor<16xi8> -> tensor<16xi8>
}

// -----

// hold (C3): what was held there before.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<16xi8>):
    pipe.return
  }
}
pipe.step train {
  %x = pipe.input "x" micro_batch 0 for @s0 : tensor<16xi8>
  // expected-error @below {{expects 'behind' to be what a 'pipe.hold' in stage '@s0' holds as bytes}}
  %kept = pipe.hold (%x) of @s0 micro_batch 0 in @s0 behind (%x : tensor<16xi8>) : tensor<16xi8> -> tensor<16xi8>
}
