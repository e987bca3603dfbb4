// RUN: pipewright-opt %s --pipe-unroll-microbatches --split-input-file --verify-diagnostics

// Without stages there is nothing to unroll.
// expected-error @below {{expects at least one pipe.stage}}
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
}

// -----

// M must be known.
// expected-error @below {{expects 'pipe.program' to have 'micro_batches'}}
module {
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %y = nn.relu %x : tensor<4xf32>
    pipe.return
  }
}
}

// -----

// A source that names a later stage.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
pipe.stage @s0 {
  // expected-error @below {{'pipe.forward' op expects source 0 to be a result of an earlier stage, but got @s1}}
  pipe.forward sources [#pipe.output<@s1, 0>] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}
}

// -----

// A source that names a result that is not there.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %y = nn.relu %x : tensor<4xf32>
    pipe.return
  }
}
pipe.stage @s1 {
  // expected-error @below {{'pipe.forward' op names result 0 of stage @s0, which has 0}}
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}
}

// -----

// A result with two consumers.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
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
pipe.stage @s2 {
  // expected-error @below {{'pipe.forward' op is another consumer of result 0 of stage @s0; a result has exactly one}}
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}
}

// -----

// A gradient that no stage computes.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32>
  }
  // expected-error @below {{'pipe.backward' op needs the gradient of result 0, which no stage computes}}
  pipe.backward inputs [] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%dy: tensor<4xf32>):
    pipe.return
  }
}
}

// -----

// A weight that is trained in one stage and used as it is in another.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
// expected-error @below {{'nn.weight' op is trained in some of the stages that use it and not in others, which is not supported}}
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
pipe.stage @s1 {
  pipe.forward sources [] {
    %w = nn.parameter @w : tensor<4xf32>
    pipe.return stash %w : tensor<4xf32>
  }
}
}
