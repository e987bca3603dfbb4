// RUN: pipewright-opt %s --pipe-mirror-stages --split-input-file --verify-diagnostics

// Each copy would see half of the batch, and their statistics would differ.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  // expected-error @below {{'nn.weight' op holds running statistics, which two copies of the model would each collect from half of the micro-batches; use a schedule with one copy of the model}}
  nn.weight @mean role = state : tensor<f32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      nn.assign_state @mean, %x : tensor<f32>
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
}

// -----

// expected-error @below {{expects an even number of micro-batches for two copies of the model, but got 3}}
module attributes {pipe.program = #pipe.program<micro_batches = 3>} {
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
}

// -----

// What is written out for one copy does not fit two.
// expected-error @below {{has its tasks written out already, so its stages cannot be copied}}
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
  pipe.step train {
  }
}

// -----

// The second copy stands behind the first, in the same order.
module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
  // expected-error @below {{'pipe.stage' op expects to mirror '@s0', but got @s1}}
  pipe.stage @s1 mirrors @s1 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
}

// -----

module attributes {pipe.program = #pipe.program<micro_batches = 2>} {
  // expected-error @below {{'pipe.stage' op expects the second copy of the model behind the first, but 1 of 3 stages mirror others}}
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      pipe.return %x : tensor<f32>
    }
  }
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<f32>):
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
  pipe.stage @s2 mirrors @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
}
