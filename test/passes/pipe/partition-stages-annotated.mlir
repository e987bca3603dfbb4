// Stages that nodes have; ops of no node go where what they read is.

// RUN: pipewright-opt %s --pipe-partition-stages="stages=3 balance=annotated:three" --pipe-verify-staged | FileCheck %s
// RUN: pipewright-opt %s --pipe-partition-stages="stages=2 balance=annotated:four" | FileCheck %s --check-prefix=MERGED
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=3 balance=annotated" 2>&1 | FileCheck %s --check-prefix=WHICH
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=3 balance=annotated:five" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=2 balance=annotated:three" 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=3 balance=annotated:back" 2>&1 | FileCheck %s --check-prefix=BACK
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=3 balance=annotated:gap" 2>&1 | FileCheck %s --check-prefix=GAP
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=3 balance=annotated:few" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=3 balance=annotated:same" 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=1 balance=annotated:empty" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not pipewright-opt %s --pipe-partition-stages="stages=1 balance=annotated:wrong" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not pipewright-opt %s --nn-verify-imported 2>&1 | FileCheck %s --check-prefix=VERIFY

// WHICH: expects one configuration of devices, but the model has 'back', 'empty', 'few', {{.*}}: name one with --balance annotated:NAME
// UNKNOWN: there is no configuration 'five', only 'back',
// UNEVEN: configuration 'three' has 3 stages, which are not shared evenly by 2 (3 ranks with 0 each): use ranks x loops that divide 3
// BACK: configuration 'back' has 'b' in stage 0, which reads 'a' of stage 2: what a node reads must be of its own stage or of one before
// GAP: configuration 'gap' has no node in stage 1 that training needs
// FEW: configuration 'few' is for 2 devices, but there are 3 ranks
// SAME: configuration 'same' has nodes in different stages that are all called 'b': give them names of their own
// EMPTY: configuration 'empty' gives no node a stage
// WRONG: expects the configuration 'wrong' to have stages from 0 to 65535 as 64-bit integers
// VERIFY: expects the configuration 'wrong' to have stages from 0 to 65535 as 64-bit integers

// A side input goes to the stage that reads it, and the attribute has been used.
// CHECK-NOT: nn.configurations
// CHECK-LABEL: pipe.stage @s0
// CHECK: pipe.forward
// CHECK: nn.matmul
// CHECK-NOT: nn.tanh
// CHECK: pipe.return
// CHECK-LABEL: pipe.stage @s1
// CHECK: pipe.forward
// CHECK: nn.relu
// CHECK: nn.matmul
// CHECK: pipe.return
// CHECK-LABEL: pipe.stage @s2
// CHECK: pipe.forward
// CHECK: nn.tanh
// CHECK: nn.mul
// CHECK: nn.reduce_mean
// CHECK: pipe.return

// Two of four stages are one.
// MERGED-LABEL: pipe.stage @s0
// MERGED: pipe.forward
// MERGED-COUNT-2: nn.matmul
// MERGED: pipe.return
// MERGED-LABEL: pipe.stage @s1
// MERGED: pipe.forward
// MERGED: nn.mul
// MERGED: pipe.return
module attributes {pipe.program = #pipe.program<ranks = 3>, nn.configurations = {
    three = {devices = 3 : i64, stages = {a = 0 : i64, b = 1 : i64, d = 2 : i64}},
    four = {devices = 0 : i64, stages = {a = 0 : i64, b = 1 : i64, d = 2 : i64, e = 3 : i64}},
    back = {devices = 0 : i64, stages = {a = 2 : i64, b = 0 : i64, d = 2 : i64}},
    gap = {devices = 0 : i64, stages = {a = 0 : i64, b = 0 : i64, d = 2 : i64}},
    few = {devices = 2 : i64, stages = {a = 0 : i64, b = 1 : i64, d = 2 : i64}},
    same = {devices = 0 : i64, stages = {a = 0 : i64, b = -1 : i64, d = 2 : i64}},
    empty = {devices = 0 : i64, stages = {}},
    wrong = {devices = 0 : i64, stages = {a = 65536 : i64}}}} {
  nn.weight @w role = parameter : tensor<8x8xf32>
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %y: tensor<4x8xf32> {nn.name = "y"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w = nn.parameter @w : tensor<8x8xf32>
    %side = nn.tanh %y : tensor<4x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("a")
    %1 = nn.relu %0 : tensor<4x8xf32> loc("b")
    %2 = nn.matmul %1, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = nn.mul %2, %side : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> loc("d")
    %4 = nn.reduce_mean %3 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32> loc("e")
    return %4 : tensor<f32>
  }
}
