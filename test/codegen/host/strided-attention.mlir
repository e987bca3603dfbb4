// Attention that reads by strides: the shape says how far rows are apart.

// RUN: pipewright-opt %s --print-host=target=cuda -o /dev/null \
// RUN:   | FileCheck %s -D\$CLASS=DeviceRank
// RUN: pipewright-opt %s --print-host=target=cpu -o /dev/null \
// RUN:   | FileCheck %s -D\$CLASS=Rank

// CHECK-LABEL: // ===== ranks.cpp
// CHECK:      void rank0_setUp([[$CLASS]] &rank) {
// CHECK-NEXT:   prepareAttention(rank, {.batch = 2, .heads = 4, .rows = 16, .depth = 8,
// CHECK-NEXT:       .scale = 0.25f, .causal = true, .inputStride = 96, .outputStride = 32});
// CHECK-NEXT:   prepareAttention(rank, {.batch = 2, .heads = 4, .rows = 16, .depth = 8,
// CHECK-NEXT:       .scale = 0.25f, .inputStride = 32, .outputStride = 32});
// CHECK-NEXT: }

// CHECK-LABEL: // ===== stages.cpp
module {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">, #pipe.input<"q">] {
    ^bb0(%x: tensor<2x16x3x4x8xf32>, %q: tensor<2x16x4x8xf32>):
      // CHECK:      packedAttention(rank, {.batch = 2, .heads = 4, .rows = 16, .depth = 8,
      // CHECK-NEXT:     .scale = 0.25f, .causal = true, .inputStride = 96, .outputStride = 32},
      // CHECK-NEXT:     microBatch, x, Buffer(), packed_attention, packed_attention_stats);
      %o, %stats = call.packed_attention %x scale = 2.500000e-01 causal dropout_rate = 0.0 dropout_id = 0
        {pipe.buffers = [#pipe.buffer<arena 0 at 0 bytes 4096>, #pipe.buffer<arena 0 at 4096 bytes 512>]}
        : (tensor<2x16x3x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
      // CHECK:      packedAttentionBackward(rank, {.batch = 2, .heads = 4, .rows = 16, .depth = 8,
      // CHECK-NEXT:     .scale = 0.25f, .causal = true, .inputStride = 96, .outputStride = 32},
      // CHECK-NEXT:     microBatch, packed_attention, x, packed_attention, packed_attention_stats,
      // CHECK-NEXT:     Buffer(), d_packed_attention_backward);
      %d = call.packed_attention_backward %o, %x, %o, %stats scale = 2.500000e-01 causal dropout_rate = 0.0 dropout_id = 0
        {pipe.buffers = [#pipe.buffer<arena 0 at 5120 bytes 12288>]}
        : (tensor<2x16x4x8xf32>, tensor<2x16x3x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>) -> tensor<2x16x3x4x8xf32>
      // CHECK:      attention(rank, {.batch = 2, .heads = 4, .rows = 16, .depth = 8,
      // CHECK-NEXT:     .scale = 0.25f, .inputStride = 32, .outputStride = 32}, microBatch, q, q,
      // CHECK-NEXT:     q, Buffer(), x_attention, x_attention_stats);
      %p, %stats1 = call.attention %q, %q, %q scale = 2.500000e-01 dropout_rate = 0.0 dropout_id = 0
        {pipe.buffers = [#pipe.buffer<arena 0 at 17408 bytes 4096>, #pipe.buffer<arena 0 at 21504 bytes 512>]}
        : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16x2xf32>)
      pipe.return
    }
  }
  pipe.arena rank 0 bytes 24576 {
  }
  pipe.rank 0 train {
  }
}
