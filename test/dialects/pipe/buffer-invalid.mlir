// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// arena (C1): every buffer ends within the arena.
pipe.arena rank 0 bytes 64 {
  // expected-error @below {{has a buffer outside the arena of 64 bytes}}
  pipe.region "activations" <arena 0 at 32 bytes 64>
}

// -----

// arena (C1): tasks do not stand here.
pipe.arena rank 0 bytes 64 {
  // expected-error @below {{is not allowed in an arena}}
  builtin.module {
  }
}

// -----

// There are five (dialects/pipe/StashNumbers.h).
// expected-error @below {{expects an index from 0 to 4 in space 'stash', but got 5}}
module attributes {pipe.buffers = [#pipe.buffer<stash 5 at 0 bytes 64>]} {
}

// -----

// Only operands, results and stashes are numbered.
pipe.arena rank 0 bytes 64 {
  // expected-error @below {{expects index 0 in space 'arena', but got 1}}
  pipe.region "activations" <arena 1 at 0 bytes 64>
}

// -----

// expected-error @below {{expects index 0 in space 'weights', but got 1}}
module attributes {pipe.buffers = [#pipe.buffer<weights 1 at 0 bytes 64>]} {
}

// -----

pipe.arena rank 0 bytes 64 {
  // expected-error @below {{expects index, offset and bytes that are not negative, but got 0, -8 and 64}}
  pipe.region "activations" <arena 0 at -8 bytes 64>
}

// -----

pipe.arena rank 0 bytes 64 {
  // expected-error @below {{expects a range that ends below 2^62, but got 32 bytes at 9223372036854775807}}
  pipe.region "activations" <arena 0 at 9223372036854775807 bytes 32>
}

// -----

// place (C1): a rounded copy has half of the bytes.
pipe.arena rank 0 bytes 256 {
  // expected-error @below {{expects a rounded copy of half of #pipe.buffer<arena 0 at 0 bytes 64>, but got #pipe.buffer<arena 0 at 64 bytes 64>}}
  pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> rounded <arena 0 at 64 bytes 64>
}

// -----

// place (C2): sums are aside of a gradient that no optimizer works on.
pipe.arena rank 0 bytes 256 {
  // expected-error @below {{expects sums of a gradient aside that is not updated, but got #pipe.buffer<arena 0 at 128 bytes 64>}}
  pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner aside <arena 0 at 128 bytes 64>
}

// -----

// place (C2): a whole number of them, each of which begins at a multiple of 64.
pipe.arena rank 0 bytes 256 {
  // expected-error @below {{expects sums of a gradient aside that is not updated, but got #pipe.buffer<arena 0 at 128 bytes 80>}}
  pipe.place @w in @s0 weight <arena 0 at 0 bytes 40> gradient <arena 0 at 64 bytes 40> aside <arena 0 at 128 bytes 80>
}

// -----

// place (C3): something goes before what finishes.
pipe.arena rank 0 bytes 256 {
  // expected-error @below {{expects a kernel before that which finishes}}
  pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> finish @kernels::@k owner
}

// -----

// optimizer (C8): products need room.
pipe.arena rank 0 bytes 512 {
  // expected-error @below {{expects elementwise bytes with a workspace, and fewer than 64}}
  pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [] hyper <arena 0 at 256 bytes 16> elementwise 0
}

// -----

// optimizer (C8): matrices lie in the range.
pipe.arena rank 0 bytes 512 {
  // expected-error @below {{expects elementwise bytes with a workspace, and fewer than 64}}
  pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> states [] hyper <arena 0 at 256 bytes 16> elementwise 64 workspace <arena 0 at 320 bytes 64>
}

// -----

// optimizer (C9): buckets are all of the weights.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.arena rank 0 bytes 4096 {
    // expected-error @below {{expects buckets of 512 bytes together}}
    pipe.optimizer @s0 shards 2 buckets [256, 512] weights <arena 0 at 0 bytes 512> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16>
  }
}

// -----

// optimizer (C10): replicas update a part of each bucket.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.arena rank 0 bytes 4096 {
    // expected-error @below {{expects 2 kernels, but got 1}}
    pipe.optimizer @s0 kernels [@kernels::@sgd_32] shards 2 buckets [256, 256] weights <arena 0 at 0 bytes 512> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16>
  }
}

// -----

// optimizer (C10): one that updates all does so at once.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.arena rank 0 bytes 4096 {
    // expected-error @below {{expects 1 kernels, but got 2}}
    pipe.optimizer @s0 kernels [@kernels::@sgd_64, @kernels::@sgd_64] buckets [256, 256] weights <arena 0 at 0 bytes 512> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16>
  }
}

// -----

// optimizer (C11): other ranges are as large as what tasks read.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 3>} {
  pipe.arena rank 0 bytes 8192 {
    // expected-error @below {{expects other ranges of the size of #pipe.buffer<arena 0 at 0 bytes 512>, but got #pipe.buffer<arena 0 at 2048 bytes 256>}}
    pipe.optimizer @s0 shards 2 weights <arena 0 at 0 bytes 512> home <arena 0 at 1536 bytes 256> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16> other_ranges [#pipe.buffer<arena 0 at 2048 bytes 256>]
  }
}

// -----

// optimizer (C11): weights that are always there have no other ranges.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.arena rank 0 bytes 8192 {
    // expected-error @below {{expects no other ranges but of weights that have a home, and no old versions}}
    pipe.optimizer @s0 shards 2 weights <arena 0 at 0 bytes 512> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16> other_ranges [#pipe.buffer<arena 0 at 2048 bytes 512>]
  }
}

// -----

// optimizer (C12): weights of one replica are whole.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.arena rank 0 bytes 8192 {
    // expected-error @below {{expects no split weights but of shards that are nowhere else}}
    pipe.optimizer @s0 split weights <arena 0 at 0 bytes 512> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16>
  }
}

// -----

// optimizer (C8): matrices are buckets of their own.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.arena rank 0 bytes 4096 {
    // expected-error @below {{expects matrices from the beginning of a bucket on, but got 128 elementwise bytes}}
    pipe.optimizer @s0 shards 2 buckets [256, 256] weights <arena 0 at 0 bytes 512> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16> elementwise 128 workspace <arena 0 at 1088 bytes 64>
  }
}

// -----

// optimizer (C4): each bucket has as many parts as there are replicas.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.arena rank 0 bytes 4096 {
    // expected-error @below {{expects a range of shards of a multiple of 128 bytes, but got #pipe.buffer<arena 0 at 0 bytes 128>}}
    pipe.optimizer @s0 shards 2 buckets [128, 384] weights <arena 0 at 0 bytes 512> gradients <arena 0 at 512 bytes 512> states [] hyper <arena 0 at 1024 bytes 16>
  }
}

// -----

// optimizer (C7): a whole number of sums.
pipe.arena rank 0 bytes 512 {
  // expected-error @below {{expects a whole number of #pipe.buffer<arena 0 at 64 bytes 64> aside, but got #pipe.buffer<arena 0 at 128 bytes 96>}}
  pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64> aside <arena 0 at 128 bytes 96> states [] hyper <arena 0 at 256 bytes 16>
}

// -----

// optimizer (C1): rounded copies have half of the bytes.
pipe.arena rank 0 bytes 256 {
  // expected-error @below {{expects rounded copies of half of #pipe.buffer<arena 0 at 0 bytes 64>, but got #pipe.buffer<arena 0 at 192 bytes 16>}}
  pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64>
      states [] hyper <arena 0 at 128 bytes 16> rounded <arena 0 at 192 bytes 16>
}

// -----

// optimizer (C2): old versions are of what tasks read.
pipe.arena rank 0 bytes 512 {
  // expected-error @below {{expects versions of the size of #pipe.buffer<arena 0 at 192 bytes 32>, but got #pipe.buffer<arena 0 at 256 bytes 64>}}
  pipe.optimizer @s0 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64>
      states [] hyper <arena 0 at 128 bytes 16> rounded <arena 0 at 192 bytes 32>
      versions [#pipe.buffer<arena 0 at 256 bytes 64>]
}

// -----

// optimizer (C3): each replica has a part.
module attributes {pipe.program = #pipe.program<replicas = 3, zero = 1>} {
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects a shard for each of 3 replicas, but has 2}}
    pipe.optimizer @s0 shards 2 weights #pipe.buffer<arena 0 at 0 bytes 256> gradients #pipe.buffer<arena 0 at 256 bytes 256> states [] hyper #pipe.buffer<arena 0 at 512 bytes 16>
  }
}

// -----

// optimizer (C4): parts begin where bf16 copies of them can.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects a range of shards of a multiple of 128 bytes, but got #pipe.buffer<arena 0 at 0 bytes 128>}}
    pipe.optimizer @s0 shards 2 weights #pipe.buffer<arena 0 at 0 bytes 128> gradients #pipe.buffer<arena 0 at 256 bytes 128> states [] hyper #pipe.buffer<arena 0 at 512 bytes 16>
  }
}

// -----

// optimizer (C5): a replica keeps sums of its own part.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 2>} {
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects no kept gradients but those of a shard of 128 bytes, and got #pipe.buffer<arena 0 at 512 bytes 256>}}
    pipe.optimizer @s0 shards 2 weights #pipe.buffer<arena 0 at 0 bytes 256> gradients #pipe.buffer<arena 0 at 256 bytes 256> kept #pipe.buffer<arena 0 at 512 bytes 256> states [] hyper #pipe.buffer<arena 0 at 768 bytes 16>
  }
}

// -----

// optimizer (C5): one that is alone keeps nothing.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects no kept gradients but those of a shard of 256 bytes, and got #pipe.buffer<arena 0 at 512 bytes 256>}}
    pipe.optimizer @s0 weights #pipe.buffer<arena 0 at 0 bytes 256> gradients #pipe.buffer<arena 0 at 256 bytes 256> kept #pipe.buffer<arena 0 at 512 bytes 256> states [] hyper #pipe.buffer<arena 0 at 768 bytes 16>
  }
}

// -----

// optimizer (C5): so does one of weights.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 3>} {
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects no home of weights but that of a shard of 128 bytes, and got #pipe.buffer<arena 0 at 512 bytes 256>}}
    pipe.optimizer @s0 shards 2 weights #pipe.buffer<arena 0 at 0 bytes 256> home #pipe.buffer<arena 0 at 512 bytes 256> gradients #pipe.buffer<arena 0 at 256 bytes 256> states [] hyper #pipe.buffer<arena 0 at 768 bytes 16>
  }
}

// -----

// optimizer (C6): there is a home of rounded weights where there are such.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 3>} {
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects no home of rounded weights but where there are such, and weights have one}}
    pipe.optimizer @s0 shards 2 weights #pipe.buffer<arena 0 at 0 bytes 256> home #pipe.buffer<arena 0 at 512 bytes 128> gradients #pipe.buffer<arena 0 at 256 bytes 256> states [] hyper #pipe.buffer<arena 0 at 768 bytes 16> rounded_home #pipe.buffer<arena 0 at 640 bytes 64>
  }
}

// -----

// optimizer (C6): it has half the size.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 3>} {
  pipe.arena rank 0 bytes 1024 {
    // expected-error @below {{expects a home of rounded weights of half of #pipe.buffer<arena 0 at 512 bytes 128>, but got #pipe.buffer<arena 0 at 896 bytes 128>}}
    pipe.optimizer @s0 shards 2 weights #pipe.buffer<arena 0 at 0 bytes 256> home #pipe.buffer<arena 0 at 512 bytes 128> gradients #pipe.buffer<arena 0 at 256 bytes 256> states [] hyper #pipe.buffer<arena 0 at 768 bytes 16> rounded #pipe.buffer<arena 0 at 640 bytes 128> rounded_home #pipe.buffer<arena 0 at 896 bytes 128>
  }
}
