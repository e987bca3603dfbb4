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
