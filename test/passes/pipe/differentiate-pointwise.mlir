// RUN: pipewright-opt %s --split-input-file --pipe-differentiate=repeat=pointwise --pipe-verify-staged | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate="repeat=pointwise keep-gelu" | FileCheck %s --check-prefix=KEPT
// RUN: not pipewright-opt %s --split-input-file --pipe-differentiate=repeat=all 2>&1 | FileCheck %s --check-prefix=INVALID
// INVALID: error: pipe-differentiate: expects repeat to be one of cheap, pointwise, but got 'all'

// What is made of kept values by element ops is computed again in front of the
// product whose weight's gradient reads it. What a row or a product gives is
// kept; of a product's activation that alone.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @up role = parameter : tensor<8x8xf32>
nn.weight @down role = parameter : tensor<8x8xf32>
// CHECK:         %[[TANH:.*]] = nn.tanh
// CHECK:         %[[MEAN:.*]] = nn.reduce_mean
// CHECK:         pipe.return stash %[[TANH]], %[[MEAN]] : tensor<4x8xf32>, tensor<4x1xf32>{{$}}
// CHECK:       pipe.backward
// CHECK-NEXT:  ^bb0(%in0: tensor<4x8xf32>, %[[T:[^:]*]]: tensor<4x8xf32>, %[[M:[^:]*]]: tensor<4x1xf32>)
// CHECK:         %[[SCALED:.*]] = nn.mul %[[T]], %[[M]]
// CHECK:         nn.matmul %[[SCALED]], %{{.*}} transpose_a
pipe.stage @mlp {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %up = nn.parameter @up : tensor<8x8xf32>
    %0 = nn.matmul %x, %up : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.tanh %0 : tensor<4x8xf32>
    %2 = nn.reduce_mean %1 axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
    %3 = nn.mul %1, %2 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %down = nn.parameter @down : tensor<8x8xf32>
    %4 = nn.matmul %3, %down : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %5 = nn.reduce_mean %4 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %5 : tensor<f32>
    pipe.return
  }
}
}

// -----

// GELU by tanh may be what a library computes with the product before it.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @up role = parameter : tensor<8x8xf32>
nn.weight @down role = parameter : tensor<8x8xf32>
nn.weight @bias role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @gelu {
// CHECK:         %[[SUM:.*]] = nn.add
// CHECK:         pipe.return stash %[[SUM]] :
// CHECK:         %[[GELU:.*]] = nn.gelu %stash0
// CHECK:         nn.matmul %[[GELU]], %{{.*}} transpose_a
// KEPT-LABEL:  pipe.stage @gelu {
// KEPT:          %[[SUM:.*]] = nn.add
// KEPT:          %[[GELU:.*]] = nn.gelu %[[SUM]]
// KEPT:          pipe.return stash %[[SUM]], %[[GELU]] :
// KEPT:          pipe.backward
// KEPT-NOT:      nn.gelu %
pipe.stage @gelu {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %up = nn.parameter @up : tensor<8x8xf32>
    %0 = nn.matmul %x, %up : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %bias = nn.parameter @bias : tensor<8xf32>
    %1 = nn.add %0, %bias : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %2 = nn.gelu %1 approximate = tanh : tensor<4x8xf32>
    %down = nn.parameter @down : tensor<8x8xf32>
    %3 = nn.matmul %2, %down : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %4 = nn.reduce_mean %3 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %4 : tensor<f32>
    pipe.return
  }
}
}
