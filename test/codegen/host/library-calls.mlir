// One call of the runtime for each library op, with its shape spelt out;
// convolutions and attention are prepared once per rank.

// RUN: pipewright-opt %s --print-host -o /dev/null \
// RUN:   | FileCheck %s

// CHECK-LABEL: // ===== ranks.cpp
// CHECK:      void rank0_setUp(Rank &rank) {
// CHECK-NEXT:   prepareConvolutionForward(rank, 0, {.n = 2, .c = 3, .h = 8, .w = 8, .o = 4,
// CHECK-NEXT:       .kh = 3, .kw = 3, .padTop = 1, .padLeft = 1, .padBottom = 1,
// CHECK-NEXT:       .padRight = 1, .keepPackedWeight = true}, true);
// CHECK-NEXT:   prepareConvolutionForward(rank, 1, {.n = 2, .c = 3, .h = 8, .w = 8, .o = 4,
// CHECK-NEXT:       .kh = 3, .kw = 3, .padTop = 1, .padLeft = 1, .padBottom = 1,
// CHECK-NEXT:       .padRight = 1, .keepPackedWeight = true}, false);
// CHECK-NEXT:   prepareAttention(rank, {.batch = 2, .heads = 2, .rows = 4, .depth = 8,
// CHECK-NEXT:       .scale = 0.25f, .causal = true, .dropoutRate = 0.1f, .dropoutId = 7});
// CHECK-NEXT: }

// CHECK-LABEL: // ===== stages.cpp
nn.weight @w role = parameter : tensor<4x3x3x3xf32>
nn.weight @b role = parameter : tensor<4xf32>
nn.weight @mean role = state : tensor<4xf32>
nn.weight @table role = constant : tensor<16x8xf32>

pipe.stage @s0 on rank 0 {
  pipe.forward sources [#pipe.input<"x">, #pipe.input<"q">, #pipe.input<"ids">, #pipe.input<"a">] {
  ^bb0(%x: tensor<2x3x8x8xf32>, %q: tensor<2x2x4x8xf32>, %ids: tensor<5xi64>, %a: tensor<3x4x8xf32>):
    %w = nn.parameter @w : tensor<4x3x3x3xf32>
    %b = nn.parameter @b : tensor<4xf32>
    // CHECK:      convolutionForward(rank, 0, x, w, b, conv);
    %y = nn.conv %x, %w bias %b strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      {pipe.buffers = [#pipe.buffer<arena 0 at 1024 bytes 2048>]}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<2x4x8x8xf32>
    // The same filter without the bias is prepared in another way.
    // CHECK:      convolutionForward(rank, 1, x, w, Buffer(), conv_2);
    %y2 = nn.conv %x, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 1
      {pipe.buffers = [#pipe.buffer<arena 0 at 6144 bytes 2048>]}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
    // CHECK:      maxPool(rank, {.n = 2, .c = 4, .h = 8, .w = 8, .oh = 4, .ow = 4, .kh = 2,
    // CHECK-NEXT:     .kw = 2, .strideH = 2, .strideW = 2}, conv, max_pool, max_pool_window);
    %p, %window = nn.max_pool %y kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] dilations = [1, 1]
      {pipe.buffers = [#pipe.buffer<arena 0 at 3072 bytes 512>, #pipe.buffer<arena 0 at 3584 bytes 128>]}
      : tensor<2x4x8x8xf32> -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xi8>)
    // CHECK:      averagePool(rank, {.n = 2, .c = 4, .h = 4, .w = 4, .oh = 2, .ow = 2, .kh = 2,
    // CHECK-NEXT:     .kw = 2, .strideH = 2, .strideW = 2, .countIncludePad = true}, max_pool,
    // CHECK-NEXT:     average_pool);
    %v = nn.average_pool %p kernel = [2, 2] strides = [2, 2] pads = [0, 0, 0, 0] count_include_pad
      {pipe.buffers = [#pipe.buffer<arena 0 at 3712 bytes 128>]}
      : tensor<2x4x4x4xf32> -> tensor<2x4x2x2xf32>
    // CHECK:      attention(rank, {.batch = 2, .heads = 2, .rows = 4, .depth = 8,
    // CHECK-NEXT:     .scale = 0.25f, .causal = true, .dropoutRate = 0.1f, .dropoutId = 7},
    // CHECK-NEXT:     microBatch, q, q, q, Buffer(), x_attention, x_attention_stats);
    %o, %stats = nn.attention %q, %q, %q scale = 2.500000e-01 causal dropout_rate = 1.000000e-01 dropout_id = 7
      {pipe.buffers = [#pipe.buffer<arena 0 at 3840 bytes 512>, #pipe.buffer<arena 0 at 4352 bytes 64>]}
      : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4x2xf32>)
    // CHECK:      dropout(rank, {.elements = 128, .rate = 0.5f, .id = 2}, microBatch,
    // CHECK-NEXT:     x_attention, x_dropout);
    %d = nn.dropout %o rate = 5.000000e-01 id = 2 {pipe.buffers = [#pipe.buffer<arena 0 at 4416 bytes 512>]} : tensor<2x2x4x8xf32>
    // CHECK:      embedding(rank, {.rows = 16, .width = 8, .count = 5}, table, ids,
    // CHECK-NEXT:     x_embedding);
    %table = nn.parameter @table : tensor<16x8xf32>
    %e = nn.embedding %table, %ids {pipe.buffers = [#pipe.buffer<arena 0 at 4928 bytes 160>]}
      : (tensor<16x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
    // Rows of a batch are rows of one matrix, unless they are transposed.
    // CHECK:      matmul(rank, {.m = 12, .n = 16, .k = 8, .transposeB = true}, a, table,
    %m = nn.matmul %a, %table transpose_b {pipe.buffers = [#pipe.buffer<arena 0 at 5120 bytes 768>]}
      : (tensor<3x4x8xf32>, tensor<16x8xf32>) -> tensor<3x4x16xf32>
    // CHECK:      matmul(rank, {.batch = 3, .m = 8, .n = 8, .k = 4, .transposeA = true}, a, a,
    %n = nn.matmul %a, %a transpose_a {pipe.buffers = [#pipe.buffer<arena 0 at 5888 bytes 768>]}
      : (tensor<3x4x8xf32>, tensor<3x4x8xf32>) -> tensor<3x8x8xf32>
    // CHECK:      fill(rank, 0.25f, constant);
    %c = nn.constant {pipe.buffers = [#pipe.buffer<arena 0 at 6656 bytes 16>]} dense<2.500000e-01> : tensor<4xf32>
    // CHECK:      static const int64_t constant_values[] = {
    // CHECK-NEXT:     3, -1, 7};
    // CHECK-NEXT: setValues(rank, constant_values, constant_2);
    // CHECK:      embedding(rank, {.rows = 16, .width = 8, .count = 3}, table, constant_2,
    %i = nn.constant {pipe.buffers = [#pipe.buffer<arena 0 at 6720 bytes 24>]} dense<[3, -1, 7]> : tensor<3xi64>
    %f = nn.embedding %table, %i {pipe.buffers = [#pipe.buffer<arena 0 at 6784 bytes 96>]}
      : (tensor<16x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
    // CHECK:      copy(rank, constant, mean);
    nn.assign_state @mean, %c : tensor<4xf32>
    // CHECK:      rank.storeOutput(0, microBatch, average_pool);
    pipe.report "features" %v : tensor<2x4x2x2xf32>
    pipe.return
  }
}
pipe.arena rank 0 bytes 8192 {
  pipe.place @w in @s0 weight #pipe.buffer<arena 0 at 0 bytes 432> owner
  pipe.place @b in @s0 weight #pipe.buffer<arena 0 at 448 bytes 16> owner
  pipe.place @mean in @s0 weight #pipe.buffer<arena 0 at 464 bytes 16> owner
  pipe.place @table in @s0 weight #pipe.buffer<arena 0 at 480 bytes 512> owner
}
pipe.rank 0 train {
}
