// Kernels that serve outputs alone are launched where somebody wants outputs;
// those that the loss needs, too, always are, and so are library calls.

// RUN: pipewright-opt %s --pipe-partition-stages=stages=1 --pipe-differentiate --nn-form-kernels \
// RUN:   --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=1" --pipewright-allocated --print-host -o /dev/null | FileCheck %s

// CHECK-LABEL: void stage0_forward(
// CHECK-NOT:     wantsOutputs
// CHECK-LABEL: void stage0_evaluate(
// CHECK:         {{^}}  launch(rank, "tanh_4x8"
// CHECK:         matmul(
// CHECK:         {{^}}  launch(rank, "softmax_cross_entropy_4"
// CHECK:         const Buffer softmax_4x16 = {
// CHECK-NEXT:    if (rank.wantsOutputs(microBatch)) {
// CHECK-NEXT:      launch(rank, "softmax_4x16", ::softmax_4x16, x_matmul, softmax_4x16);
// CHECK-NEXT:    }
// CHECK-NEXT:    rank.reportLoss(microBatch,
// CHECK-NEXT:    rank.storeOutput(0, microBatch, softmax_4x16);
// CHECK-NEXT:    rank.storeOutput(1, microBatch, tanh_4x8);
module attributes {pipe.program = #pipe.program<micro_batches = 1, micro_batch_size = 4, optimizer = <sgd lr = 0.1>>} {
  nn.weight @table role = parameter : tensor<16x8xf32>
  func.func @model(%tokens: tensor<4xi64> {nn.name = "tokens"}, %labels: tensor<4xi64> {nn.name = "labels"}) -> (tensor<f32> {nn.name = "loss"}, tensor<4x16xf32> {nn.name = "probabilities"}, tensor<4x8xf32> {nn.name = "hidden"}) {
    %table = nn.parameter @table : tensor<16x8xf32>
    %0 = nn.embedding %table, %tokens : (tensor<16x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
    %1 = nn.tanh %0 : tensor<4x8xf32>
    %2 = nn.matmul %1, %table transpose_b : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %2, %labels ignore_index = -100 : (tensor<4x16xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %probabilities = nn.softmax %2 : tensor<4x16xf32>
    return %loss, %probabilities, %1 : tensor<f32>, tensor<4x16xf32>, tensor<4x8xf32>
  }
}
