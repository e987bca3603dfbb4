// RUN: not pipewright-opt %s --pipe-partition-stages=balance=luck 2>&1 | FileCheck %s --check-prefix=BALANCE
// BALANCE: pipe-partition-stages: expects balance to be uniform, parameters, flops, step[:FILE.json], scopes, memory, time:FILE.json, manual:N,N,..., type:REGEX, annotated[:NAME], deepspeed-uniform, deepspeed-parameters, torchgpipe-size or torchgpipe-time:FILE.json, but got 'luck'

// RUN: not pipewright-opt %s --pipe-partition-stages=stages=0 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: pipe-partition-stages: expects at least 1 stage, but got 0

// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 memory-limit=1,2,3" 2>&1 | FileCheck %s --check-prefix=LIMITS
// LIMITS: pipe-partition-stages: expects memory-limit of 2 stages, but got 3
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 rank-of-stage=0,1,1" 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: pipe-partition-stages: expects rank-of-stage of 2 stages, but got 3
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 memory-limit=0" 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: pipe-partition-stages: expects memory-limit to be at least 1 byte, but got 0
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 rank-of-stage=0,2" 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: pipe-partition-stages: expects rank-of-stage to be from 0 to 1, but got 2

nn.weight @w role = parameter : tensor<8x8xf32>
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<8x8xf32>
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.reduce_mean %0 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
