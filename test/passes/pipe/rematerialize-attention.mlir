// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=selective --pipe-verify-staged | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-rematerialize=mode=selective --pipe-rematerialize=mode=selective | FileCheck %s

// The op that is attention is done again, with the same random numbers, and neither its output nor
// its statistics are kept; the products before and behind it are not done again.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
nn.weight @o role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @whole {
// CHECK:         %[[Q:.*]] = nn.matmul %x
// CHECK:         pipe.return stash %[[Q]], %{{[^,]*}} : tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>{{$}}
// CHECK:       pipe.backward
// CHECK-NEXT:  ^bb0(%{{[^:]*}}: tensor<2x1x4x8xf32>, %[[Q:[^:]*]]: tensor<2x1x4x8xf32>
// CHECK-NOT:     nn.matmul %in0, %w
// CHECK:         %[[O:.*]], %[[S:.*]] = nn.attention %[[Q]], %[[Q]], %[[Q]] {{.*}} dropout_rate = 1.000000e-01 dropout_id = 3
// CHECK:         nn.attention_backward %{{.*}}, %[[Q]], %[[Q]], %[[Q]], %[[O]], %[[S]]
pipe.stage @whole {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<2x1x4x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %o = nn.parameter @o : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<2x1x4x8xf32>, tensor<8x8xf32>) -> tensor<2x1x4x8xf32>
    %1, %stats = nn.attention %0, %0, %0 scale = 0.35 causal dropout_rate = 0.1 dropout_id = 3 : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4x2xf32>)
    %2 = nn.matmul %1, %o : (tensor<2x1x4x8xf32>, tensor<8x8xf32>) -> tensor<2x1x4x8xf32>
    %3 = nn.tanh %2 : tensor<2x1x4x8xf32>
    %4 = nn.reduce_mean %3 axes = [0, 1, 2, 3] : tensor<2x1x4x8xf32> -> tensor<f32>
    pipe.report "loss" %4 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Scores, what is made of them, and attention's output, from q and v, which are kept; no constant
// is.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
nn.weight @v role = parameter : tensor<8x8xf32>
nn.weight @o role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @parts {
// CHECK:         %[[Q:.*]] = nn.matmul %x
// CHECK:         %[[V:.*]] = nn.matmul %x
// CHECK:         %[[END:.*]] = nn.tanh
// CHECK:         pipe.return stash %[[Q]], %[[V]], %[[END]] : tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>{{$}}
// CHECK:       pipe.backward
// CHECK-NEXT:  ^bb0(%{{[^:]*}}: tensor<2x4x8xf32>, %[[Q:[^:]*]]: tensor<2x4x8xf32>, %[[V:[^:]*]]: tensor<2x4x8xf32>,
// CHECK:         nn.matmul %[[Q]], %[[Q]] transpose_b
// CHECK-NEXT:    nn.mul
// CHECK-NEXT:    nn.softmax
// CHECK-NEXT:    %[[P:.*]] = nn.dropout {{.*}} id = 7
// CHECK-NEXT:    nn.matmul %[[P]], %[[V]]
// CHECK:         nn.softmax_backward
pipe.stage @parts {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<2x4x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %v = nn.parameter @v : tensor<8x8xf32>
    %o = nn.parameter @o : tensor<8x8xf32>
    %scale = nn.constant dense<0.35> : tensor<f32>
    %0 = nn.matmul %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %1 = nn.matmul %x, %v : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %2 = nn.matmul %0, %0 transpose_b : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x4xf32>
    %3 = nn.mul %2, %scale : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4x4xf32>
    %4 = nn.softmax %3 : tensor<2x4x4xf32>
    %5 = nn.dropout %4 rate = 1.0e-01 id = 7 : tensor<2x4x4xf32>
    %6 = nn.matmul %5, %1 : (tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %7 = nn.matmul %6, %o : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %8 = nn.tanh %7 : tensor<2x4x8xf32>
    %9 = nn.reduce_mean %8 axes = [0, 1, 2] : tensor<2x4x8xf32> -> tensor<f32>
    pipe.report "loss" %9 : tensor<f32>
    pipe.return
  }
}
}

// -----

// A softmax of logits, which weights make, is no attention, and stays in the stash.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
nn.weight @o role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @gate {
// CHECK:         %[[P:.*]] = nn.softmax
// CHECK:         %[[END:.*]] = nn.tanh
// CHECK:         pipe.return stash %[[P]], %[[END]] :
// CHECK:       pipe.backward
// CHECK-NOT:     nn.softmax %
// CHECK:         nn.softmax_backward
pipe.stage @gate {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %o = nn.parameter @o : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.softmax %0 : tensor<4x8xf32>
    %2 = nn.matmul %1, %o : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = nn.tanh %2 : tensor<4x8xf32>
    %4 = nn.reduce_mean %3 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %4 : tensor<f32>
    pipe.return
  }
}
}

// -----

// However many ways lead from one op to another, each op is looked at once.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @o role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @ways {
// CHECK:       pipe.backward
pipe.stage @ways {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%c0: tensor<4x8xf32>):
    %o = nn.parameter @o : tensor<8x8xf32>
    %c1 = nn.add %c0, %c0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c2 = nn.add %c1, %c1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c3 = nn.add %c2, %c2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c4 = nn.add %c3, %c3 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c5 = nn.add %c4, %c4 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c6 = nn.add %c5, %c5 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c7 = nn.add %c6, %c6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c8 = nn.add %c7, %c7 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c9 = nn.add %c8, %c8 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c10 = nn.add %c9, %c9 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c11 = nn.add %c10, %c10 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c12 = nn.add %c11, %c11 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c13 = nn.add %c12, %c12 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c14 = nn.add %c13, %c13 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c15 = nn.add %c14, %c14 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c16 = nn.add %c15, %c15 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c17 = nn.add %c16, %c16 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c18 = nn.add %c17, %c17 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c19 = nn.add %c18, %c18 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c20 = nn.add %c19, %c19 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c21 = nn.add %c20, %c20 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c22 = nn.add %c21, %c21 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c23 = nn.add %c22, %c22 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c24 = nn.add %c23, %c23 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c25 = nn.add %c24, %c24 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c26 = nn.add %c25, %c25 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c27 = nn.add %c26, %c26 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c28 = nn.add %c27, %c27 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c29 = nn.add %c28, %c28 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c30 = nn.add %c29, %c29 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c31 = nn.add %c30, %c30 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c32 = nn.add %c31, %c31 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c33 = nn.add %c32, %c32 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c34 = nn.add %c33, %c33 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c35 = nn.add %c34, %c34 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c36 = nn.add %c35, %c35 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c37 = nn.add %c36, %c36 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c38 = nn.add %c37, %c37 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c39 = nn.add %c38, %c38 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c40 = nn.add %c39, %c39 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c41 = nn.add %c40, %c40 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c42 = nn.add %c41, %c41 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c43 = nn.add %c42, %c42 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c44 = nn.add %c43, %c43 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c45 = nn.add %c44, %c44 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c46 = nn.add %c45, %c45 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c47 = nn.add %c46, %c46 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c48 = nn.add %c47, %c47 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c49 = nn.add %c48, %c48 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c50 = nn.add %c49, %c49 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c51 = nn.add %c50, %c50 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c52 = nn.add %c51, %c51 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c53 = nn.add %c52, %c52 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c54 = nn.add %c53, %c53 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c55 = nn.add %c54, %c54 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c56 = nn.add %c55, %c55 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c57 = nn.add %c56, %c56 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c58 = nn.add %c57, %c57 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c59 = nn.add %c58, %c58 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c60 = nn.add %c59, %c59 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c61 = nn.add %c60, %c60 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c62 = nn.add %c61, %c61 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c63 = nn.add %c62, %c62 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %c64 = nn.add %c63, %c63 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = nn.softmax %c64 : tensor<4x8xf32>
    %2 = nn.matmul %1, %o : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = nn.tanh %2 : tensor<4x8xf32>
    %4 = nn.reduce_mean %3 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %4 : tensor<f32>
    pipe.return
  }
}
}
