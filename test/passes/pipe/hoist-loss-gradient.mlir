// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-hoist-loss-gradient --cse --pipe-verify-staged | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-hoist-loss-gradient --pipe-hoist-loss-gradient --cse | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-hoist-loss-gradient --cse --pipe-rematerialize | FileCheck %s --check-prefix=REMAT
// RUN: not pipewright-opt %s --split-input-file --pipe-differentiate --pipe-split-backward --pipe-hoist-loss-gradient 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-hoist-loss-gradient --cse --nn-form-kernels | FileCheck %s --check-prefix=KERNEL
// KERNEL: func.func private @softmax_cross_entropy_and_gradient_4x8(
// LATE: error: 'pipe.stage' op has a split backward already; run pipe-hoist-loss-gradient before pipe-split-backward

// Logits, row sums and labels are no longer handed over: only the gradient is.
// It begins with one over the number of micro-batches.
// CHECK-LABEL: pipe.forward
// CHECK:         %[[LOGITS:.*]] = nn.matmul
// CHECK:         %{{.*}}, %[[LARGEST:.*]], %[[SUM:.*]] = nn.softmax_cross_entropy %[[LOGITS]], %[[T:.*]] ignore_index = -100
// CHECK:         %[[C:.*]] = nn.constant dense<2.500000e-01>
// CHECK:         %[[D:.*]] = nn.softmax_cross_entropy_backward %[[C]], %[[LOGITS]], %[[T]], %[[LARGEST]], %[[SUM]]
// CHECK:         pipe.return stash %[[D]] : tensor<4x8xf32>{{$}}
// CHECK:       pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
// CHECK-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %[[S:[^:]*]]: tensor<4x8xf32>):
// CHECK-NEXT:    %[[DW:.*]] = nn.matmul %[[X]], %[[S]] transpose_a
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DW]]
// CHECK-NEXT:    pipe.return

// Recomputation repeats it with the rest of the forward.
// REMAT-LABEL: pipe.backward inputs [0, 1]
// REMAT:         nn.softmax_cross_entropy_backward
module attributes {pipe.program = #pipe.program<micro_batches = 4>} {
nn.weight @w role = parameter : tensor<8x8xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">, #pipe.input<"t">] {
  ^bb0(%x: tensor<4x8xf32>, %t: tensor<4xi64>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %0, %t ignore_index = -100
      : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    pipe.report "loss" %loss : tensor<f32>
    pipe.return
  }
}
}

// -----

// What the backward reads for other reasons stays stashed.
// CHECK-LABEL: pipe.forward
// CHECK:         nn.softmax_cross_entropy_backward
// CHECK:         pipe.return stash %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32>{{$}}
// CHECK:       pipe.backward
// CHECK-NOT:     nn.softmax_cross_entropy_backward
// CHECK:         pipe.return
module attributes {pipe.program = #pipe.program<micro_batches = 4>} {
nn.weight @w role = parameter : tensor<8x8xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">, #pipe.input<"t">] {
  ^bb0(%x: tensor<4x8xf32>, %t: tensor<4xi64>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.matmul %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %2 = nn.add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %2, %t ignore_index = -100
      : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    pipe.report "loss" %loss : tensor<f32>
    pipe.return
  }
}
}
