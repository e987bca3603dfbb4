// Modules stay whole, though two and two products would be shared more evenly.

// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=flops" | FileCheck %s --check-prefix=FLOPS
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=scopes" | FileCheck %s
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=4 balance=scopes" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: sed 's/ loc(.*//' %s | not pipewright-opt --pipe-partition-stages="stages=2 balance=scopes" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: pipe-partition-stages: balance scopes expects nodes with names of modules, but the model has none: use another --balance

// FLOPS-LABEL: pipe.forward
// FLOPS-COUNT-2: nn.matmul
// FLOPS: pipe.return

// What is of no module goes with what is before it. Names of either exporter.
// CHECK-LABEL: pipe.stage @s0
// CHECK: pipe.forward
// CHECK: nn.matmul
// CHECK-NEXT: nn.relu
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: pipe.return
// CHECK-LABEL: pipe.stage @s1
// CHECK: pipe.forward
// CHECK: nn.matmul
// CHECK-NEXT: nn.reduce_mean

// FEW: expects at most 3 stages, one for each module of the model that has a name, but got 4, or another --balance, which cuts modules, too
nn.weight @w role = parameter : tensor<8x8xf32>
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<8x8xf32>
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("node_0"("layers.0.up"))
  %1 = nn.relu %0 : tensor<4x8xf32> loc("node_relu")
  %2 = nn.matmul %1, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("/layers/layers.1/up/MatMul")
  %3 = nn.matmul %2, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("/layers/layers.1/down/MatMul")
  %4 = nn.matmul %3, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("node_1"("head"))
  %5 = nn.reduce_mean %4 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32> loc("loss")
  return %5 : tensor<f32>
}
