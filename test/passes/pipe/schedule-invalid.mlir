// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule=policy=1f2b 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=3" 2>&1 | FileCheck %s --check-prefix=LOOPS
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule=ranks=4 --pipe-insert-transfers --pipe-schedule=ranks=4 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-insert-transfers 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-mirror-stages --pipe-unroll-microbatches --pipe-schedule=policy=gpipe 2>&1 | FileCheck %s --check-prefix=COPIES

// NAME: error: unknown schedule '1f2b'; did you mean
// STAGES: error: 1f1b needs exactly 1 stage per rank, but got 4 stages on 2 ranks
// LOOPS: error: breadth-first needs ranks x loops stages, but got 4 stages on 3 ranks
// TWICE: error: has transfers already, so its order is fixed
// RANK: error: 'pipe.stage' op expects a rank; run pipe-schedule first
// COPIES: error: schedule 'gpipe' has 1 copy of the model, but the module has 2; leave pipe-mirror-stages out
