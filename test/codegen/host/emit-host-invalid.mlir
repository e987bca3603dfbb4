// RUN: pipewright-opt %s --print-host --split-input-file --verify-diagnostics

// expected-error@+1 {{has no pipe.stage; expects a module after pipe-plan-memory}}
module {
}

// -----

module {
  // expected-error@+1 {{has no rank; expects a module after pipe-schedule}}
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      pipe.report "loss" %x : tensor<4xf32>
      pipe.return
    }
  }
}

// -----

// expected-error@+1 {{has no pipe.arena; expects a module after pipe-plan-memory}}
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      pipe.report "loss" %x : tensor<f32>
      pipe.return
    }
  }
}

// -----

module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<f32>):
      // expected-error@+1 {{is neither a library call nor in a kernel; expects a module after nn-form-kernels}}
      %0 = nn.exp %x : tensor<f32>
      pipe.report "loss" %0 : tensor<f32>
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
  }
}

// -----

module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      // expected-error@+1 {{expects a planned buffer for result 0}}
      %0 = nn.dropout %x rate = 1.000000e-01 id = 0 : tensor<4xf32>
      pipe.return %0 : tensor<4xf32>
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
  }
}

// -----

module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      // expected-error@+1 {{expects the loss to be one f32, but got 'tensor<4xf32>'}}
      pipe.report "loss" %x : tensor<4xf32>
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
  }
}

// -----

module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">, #pipe.input<"b">] {
    ^bb0(%x: tensor<4x4xf32>, %b: tensor<4xf32>):
      // expected-error@+1 {{has no place in a CPU's program; expects the nn ops that it stands for}}
      %0 = call.matmul_epilogue %x, %x bias %b epilogue = bias : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
  }
}

// -----

module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<2x4x3x2x8xbf16>):
      // expected-error@+1 {{has no place in a CPU's program; expects the nn ops that it stands for}}
      %o, %stats = call.packed_attention %x scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x3x2x8xbf16>) -> (tensor<2x4x2x8xbf16>, tensor<2x2x4x2xf32>)
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
  }
}

// -----

module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"q">] {
    ^bb0(%q: tensor<2x4x2x8xbf16>):
      // expected-error@+1 {{'call.attention' op has no place in a CPU's program; expects the nn ops that it stands for}}
      %o, %stats = call.attention %q, %q, %q scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>) -> (tensor<2x4x2x8xbf16>, tensor<2x2x4x2xf32>)
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 64 {
  }
  pipe.rank 0 train {
  }
}
