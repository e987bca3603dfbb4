// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=uniform" | FileCheck %s --check-prefix=UNIFORM
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=parameters" | FileCheck %s --check-prefix=PARAMETERS
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=flops" | FileCheck %s --check-prefix=FLOPS

// The first three layers share one small weight, the last has a large one.
nn.weight @small role = parameter : tensor<8x8xf32>
nn.weight @large role = parameter : tensor<8x64xf32>

// Two layers each.
// UNIFORM-LABEL: pipe.forward
// UNIFORM-COUNT-2: nn.matmul
// UNIFORM: pipe.return

// The large weight has a stage of its own.
// PARAMETERS-LABEL: pipe.forward
// PARAMETERS-COUNT-3: nn.matmul
// PARAMETERS: pipe.return

// As in operations: it is 8 times as much work as any other layer.
// FLOPS-LABEL: pipe.forward
// FLOPS-COUNT-3: nn.matmul
// FLOPS: pipe.return
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %small = nn.parameter @small : tensor<8x8xf32>
  %large = nn.parameter @large : tensor<8x64xf32>
  %0 = nn.matmul %x, %small : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.matmul %0, %small : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = nn.matmul %1, %small : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %4 = nn.matmul %2, %large : (tensor<4x8xf32>, tensor<8x64xf32>) -> tensor<4x64xf32>
  %5 = nn.reduce_mean %4 axes = [0, 1] : tensor<4x64xf32> -> tensor<f32>
  return %5 : tensor<f32>
}
