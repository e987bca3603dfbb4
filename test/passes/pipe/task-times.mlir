// Measured times have the last word where orders are planned. By operation
// counts all tasks of this chain are alike; with weight gradients that take
// no time, an input gradient is worth more than the last forward.
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-split-backward --pipe-unroll-microbatches --pipe-schedule="policy=zb-auto ranks=4" --pipe-print-timetable -o /dev/null 2>&1 | FileCheck %s --check-prefix=PREDICTED
// RUN: sed 's/#pipe.program</&task_times = [array<f64: 1.0, -1.0, 1.0, 0.2, -1.0, 0.1>, array<f64: 1.0, -1.0, 1.0, 0.2, -1.0, 0.1>, array<f64: 1.0, -1.0, 1.0, 0.2, -1.0, 0.1>, array<f64: 1.0, 1.2, 1.0, 0.2, -1.0, 0.1>], /' %inputs/pipe/chain.mlir > %t.mlir
// RUN: pipewright-opt %t.mlir --pipe-split-backward --pipe-unroll-microbatches --pipe-schedule="policy=zb-auto ranks=4" --pipe-print-timetable -o /dev/null 2>&1 | FileCheck %s --check-prefix=MEASURED
// PREDICTED: rank 2 |{{ +}}F0 F1 F2 F3 I0 W0
// MEASURED: rank 2 |{{ +}}F0 F1 F2 I0 F3 I1 W0

// Times of another cut are refused.
// RUN: sed 's/#pipe.program</&task_times = [array<f64: 1.0, 2.0, -1.0, -1.0, -1.0, 0.1>], /' %inputs/pipe/chain.mlir > %t.other.mlir
// RUN: not pipewright-opt %t.other.mlir --pipe-unroll-microbatches 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: has measured times of 1 stages in 'task_times', but 4 stages
