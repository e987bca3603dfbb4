// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=uniform" | FileCheck %s --check-prefix=UNIFORM
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=parameters" | FileCheck %s --check-prefix=PARAMETERS
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=flops" | FileCheck %s --check-prefix=FLOPS
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=manual:1,3" | FileCheck %s --check-prefix=MANUAL
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=type:^MatMul$" | FileCheck %s --check-prefix=UNIFORM
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 balance=type:conv" 2>&1 | FileCheck %s --check-prefix=NOTYPE
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 balance=manual:1,2" 2>&1 | FileCheck %s --check-prefix=LAYERS
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 balance=manual:1,2,1" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 balance=manual:1,none" 2>&1 | FileCheck %s --check-prefix=NUMBERS
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 balance=type:(" 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 balance=manual" 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// NOTYPE: error: pipe-partition-stages: expects a node for each of 2 stages that type:conv matches, but 0 do; the model's ops are matmul{{.*}}
// LAYERS: error: pipe-partition-stages: expects the layers of all stages to be the 4 of the model, but they are 3
// STAGES: error: pipe-partition-stages: expects the layers of 2 stages behind manual:, but got those of 3
// NUMBERS: error: pipe-partition-stages: expects balance to be numbers of layers with a comma between two behind manual:, but got '1,none'
// PATTERN: error: pipe-partition-stages: expects balance to be a regular expression behind type:, but got '(': parentheses not balanced
// ARGUMENT: error: pipe-partition-stages: expects balance to be uniform, parameters, flops, step[:FILE.json], scopes, memory, time:FILE.json, manual:N,N,..., type:REGEX, annotated[:NAME], deepspeed-uniform, deepspeed-parameters, torchgpipe-size or torchgpipe-time:FILE.json, but got 'manual'

// The first layer alone.
// MANUAL-LABEL: pipe.forward
// MANUAL: nn.matmul
// MANUAL-NOT: nn.matmul
// MANUAL: pipe.return

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
