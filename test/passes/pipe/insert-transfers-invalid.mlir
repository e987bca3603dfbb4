// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" | sed 's/add_gradient @wte in @s0/add_gradient @wte in @wte/' | not pipewright-opt --pipe-insert-transfers -o /dev/null 2>&1 | FileCheck %s

// CHECK: error: 'pipe.add_gradient' op names 'wte', which is no stage of the module
