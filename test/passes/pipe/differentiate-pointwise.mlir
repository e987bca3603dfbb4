// RUN: pipewright-opt %s --pipe-differentiate=repeat=pointwise --pipe-verify-staged | FileCheck %s
// RUN: not pipewright-opt %s --pipe-differentiate=repeat=all 2>&1 | FileCheck %s --check-prefix=INVALID
// INVALID: error: pipe-differentiate: expects repeat to be 'cheap' or 'pointwise', but got 'all'

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
