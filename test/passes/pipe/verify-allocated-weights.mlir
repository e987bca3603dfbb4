// RUN: pipewright-opt %s --pipe-verify-allocated --split-input-file --verify-diagnostics

// Where weights lie, and what belongs to them.

// A weight that is read elsewhere.
module {
  nn.weight @w role = constant : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      // expected-error @below {{'nn.parameter' op expects the weight's place, but got #pipe.buffer<arena 0 at 128 bytes 64>}}
      %b = nn.parameter @w {pipe.buffers = [#pipe.buffer<arena 0 at 128 bytes 64>]} : tensor<16xf32>
      %c = nn.abs %b {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
    pipe.place @w in @s0 weight <arena 0 at 256 bytes 64> owner
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// An input that is loaded over a weight.
module {
  nn.weight @w role = constant : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
    // expected-note @below {{here: #pipe.buffer<arena 0 at 256 bytes 64>}}
    pipe.place @w in @s0 weight <arena 0 at 256 bytes 64> owner
  }
  pipe.rank 0 train {
    // expected-error @below {{'pipe.input' op writes #pipe.buffer<arena 0 at 224 bytes 64>, which overlaps the fixed part}}
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 224 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// Two weights in the same bytes.
module {
  nn.weight @w role = constant : tensor<16xf32>
  nn.weight @v role = constant : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 320 {
    // expected-note @below {{here}}
    pipe.place @w in @s0 weight <arena 0 at 256 bytes 64> owner
    // expected-error @below {{'pipe.place' op has #pipe.buffer<arena 0 at 256 bytes 64>, which overlaps #pipe.buffer<arena 0 at 256 bytes 64>}}
    pipe.place @v in @s0 weight <arena 0 at 256 bytes 64> owner
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A gradient that is not where the optimizer takes it for.
module {
  nn.weight @w role = constant : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{'pipe.place' op lies at 0 of its stage's weights and at 64 of its gradients, which the optimizer takes for one}}
    pipe.place @w in @s0 weight <arena 0 at 256 bytes 64> gradient <arena 0 at 448 bytes 64> owner
    pipe.optimizer @s0 weights <arena 0 at 256 bytes 128> gradients <arena 0 at 384 bytes 128> states [] hyper <arena 0 at 512 bytes 16>
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A state that only what is no matrix has is as large as that.
module attributes {pipe.program = #pipe.program<optimizer = <muon>>} {
  nn.weight @w role = parameter outputs = rows : tensor<4x4xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 2048 {
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner
    // expected-error @below {{'pipe.optimizer' op expects states of 0 bytes, but got #pipe.buffer<arena 0 at 192 bytes 64>}}
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [#pipe.buffer<arena 0 at 128 bytes 64>, #pipe.buffer<arena 0 at 192 bytes 64>] hyper <arena 0 at 256 bytes 16> elementwise 0 workspace <arena 0 at 320 bytes 512>
  }
}

// -----

// A matrix among what is updated element by element.
module attributes {pipe.program = #pipe.program<optimizer = <muon>>} {
  nn.weight @w role = parameter outputs = rows : tensor<4x4xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 2048 {
    // expected-error @below {{'pipe.place' op is a matrix, but lies in front of those that the optimizer takes as a whole}}
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [#pipe.buffer<arena 0 at 128 bytes 64>, #pipe.buffer<arena 0 at 192 bytes 64>] hyper <arena 0 at 256 bytes 16>
  }
}

// -----

// A vector among matrices.
module attributes {pipe.program = #pipe.program<optimizer = <muon>>} {
  nn.weight @w role = parameter : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 2048 {
    // expected-error @below {{'pipe.place' op is no matrix, but lies among those that the optimizer takes as a whole}}
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [#pipe.buffer<arena 0 at 128 bytes 64>, #pipe.buffer<arena 0 at 192 bytes 0>] hyper <arena 0 at 256 bytes 16> elementwise 0 workspace <arena 0 at 320 bytes 512>
  }
}

// -----

// Products that have no room.
module attributes {pipe.program = #pipe.program<optimizer = <muon>>} {
  nn.weight @w role = parameter outputs = rows : tensor<4x4xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 2048 {
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner
    // expected-error @below {{'pipe.optimizer' op expects a workspace of 256 bytes for '@w', but got #pipe.buffer<arena 0 at 320 bytes 192>}}
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [#pipe.buffer<arena 0 at 128 bytes 64>, #pipe.buffer<arena 0 at 192 bytes 0>] hyper <arena 0 at 256 bytes 16> elementwise 0 workspace <arena 0 at 320 bytes 192>
  }
}

// -----

// A workspace that lies where something else does.
module attributes {pipe.program = #pipe.program<optimizer = <muon>>} {
  nn.weight @w role = parameter outputs = rows : tensor<4x4xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 2048 {
    // expected-note @below {{here}}
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner
    // expected-error @below {{'pipe.optimizer' op has #pipe.buffer<arena 0 at 64 bytes 512>, which overlaps #pipe.buffer<arena 0 at 64 bytes 64>}}
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [#pipe.buffer<arena 0 at 640 bytes 64>, #pipe.buffer<arena 0 at 704 bytes 0>] hyper <arena 0 at 768 bytes 16> elementwise 0 workspace <arena 0 at 64 bytes 512>
  }
}

// -----

// An optimizer state of another size.
module {
  nn.weight @w role = constant : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<16xf32>):
      %c = nn.abs %x {pipe.buffers = [#pipe.buffer<output 0 at 0 bytes 64>]} : tensor<16xf32>
      pipe.return %c : tensor<16xf32>
    }
  }
  pipe.arena rank 0 bytes 1024 {
    pipe.place @w in @s0 weight <arena 0 at 256 bytes 64> gradient <arena 0 at 384 bytes 64> owner
    // expected-error @below {{'pipe.optimizer' op expects states of 64 bytes, but got #pipe.buffer<arena 0 at 640 bytes 32>}}
    pipe.optimizer @s0 weights <arena 0 at 256 bytes 64> gradients <arena 0 at 384 bytes 64> states [#pipe.buffer<arena 0 at 640 bytes 32>] hyper <arena 0 at 512 bytes 16>
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 buffers [#pipe.buffer<arena 0 at 0 bytes 64>] : tensor<16xf32>
    %y = pipe.task forward @s0 micro_batch 0 (%x) buffers [#pipe.buffer<arena 0 at 64 bytes 64>] : (tensor<16xf32>) -> tensor<16xf32>
  }
}

// -----

// A bf16 copy that the optimizer writes elsewhere.
module {
  nn.weight @w role = parameter : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{has a rounded copy at #pipe.buffer<arena 0 at 288 bytes 32>, which the optimizer writes at 256}}
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 128 bytes 64> rounded <arena 0 at 288 bytes 32> owner
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 128> gradients <arena 0 at 128 bytes 128> states [] hyper <arena 0 at 512 bytes 16> rounded <arena 0 at 256 bytes 64>
  }
}

// -----

// A bf16 copy that nobody keeps up to date.
module {
  nn.weight @w role = parameter : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects a rounded copy exactly where its stage's optimizer writes them}}
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> rounded <arena 0 at 256 bytes 32> owner
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [] hyper <arena 0 at 512 bytes 16>
  }
}

// -----

// A body that reads the weight where its bf16 copy should be.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
  nn.weight @w role = parameter : tensor<16xf32>
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [] {
      // expected-error @below {{expects the weight's place, but got #pipe.buffer<arena 0 at 0 bytes 32>}}
      %w = nn.parameter @w {pipe.buffers = [#pipe.buffer<arena 0 at 0 bytes 32>]} : tensor<16xbf16>
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 1024 {
    pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> rounded <arena 0 at 256 bytes 32> owner
  }
  pipe.rank 0 train {
    pipe.task forward @s0 micro_batch 0 () : () -> ()
  }
}
