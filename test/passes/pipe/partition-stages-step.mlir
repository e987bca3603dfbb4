// With as many micro-batches as ranks, what is in front is nearly free: four layers of
// 1 and a last one of 2.5 are cut so that a step of 1F1B is the shortest, 9.2 in place
// of 10. Where ranks have several stages, the most expensive stage counts. Where the module
// says what ops take, that counts in place of their operations: here the first two layers and
// the mean are slow.

// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=flops" | FileCheck %s --check-prefix=EVEN
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=step" | FileCheck %s --check-prefix=STEP
// RUN: sed 's/ranks = 2/ranks = 1/' %s | pipewright-opt --pipe-partition-stages="stages=2 balance=step" | FileCheck %s --check-prefix=EVEN
// RUN: sed 's/micro_batches = 2/micro_batches = 64/' %s | pipewright-opt --pipe-partition-stages="stages=2 balance=step" | FileCheck %s --check-prefix=EVEN
// RUN: sed 's/ = 2>} {/ = 2>, pipe.op_seconds = array<f64: 0.0, 0.0, 9.0, 9.0, 1.0, 1.0, 1.0, 9.0, 0.0>} {/' %s | pipewright-opt --pipe-partition-stages="stages=2 balance=step" | FileCheck %s --check-prefix=TIMES
// RUN: sed 's/ = 2>} {/ = 2>, pipe.op_seconds = array<f64: 1.0, 2.0>} {/' %s | not pipewright-opt --pipe-partition-stages="stages=2 balance=step" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/ = 2>} {/ = 2>, pipe.op_seconds = array<f64: 1.0, 2.0>} {/' %s | pipewright-opt --pipe-partition-stages="stages=2 balance=flops" | FileCheck %s --check-prefix=EVEN

// TIMES-NOT: pipe.op_seconds
// TIMES-LABEL: pipe.stage @s0
// TIMES: nn.matmul
// TIMES-NEXT: nn.matmul
// TIMES-NEXT: pipe.return

// COUNT: error: pipe-partition-stages: expects 'pipe.op_seconds' to have one number for each of 9 ops, but got 2

// EVEN-LABEL: pipe.stage @s0
// EVEN: nn.matmul
// EVEN-NEXT: nn.matmul
// EVEN-NEXT: nn.matmul
// EVEN-NEXT: pipe.return

// STEP-LABEL: pipe.stage @s0
// STEP: nn.matmul
// STEP-NEXT: nn.matmul
// STEP-NEXT: nn.matmul
// STEP-NEXT: nn.matmul
// STEP-NEXT: pipe.return
module attributes {pipe.program = #pipe.program<ranks = 2, micro_batches = 2>} {
  nn.weight @layer role = parameter : tensor<8x8xf32>
  nn.weight @head role = parameter : tensor<8x20xf32>
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w = nn.parameter @layer : tensor<8x8xf32>
    %h = nn.parameter @head : tensor<8x20xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.matmul %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %2 = nn.matmul %1, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = nn.matmul %2, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %4 = nn.matmul %3, %h : (tensor<4x8xf32>, tensor<8x20xf32>) -> tensor<4x20xf32>
    %5 = nn.reduce_mean %4 axes = [0, 1] : tensor<4x20xf32> -> tensor<f32>
    return %5 : tensor<f32>
  }
}
