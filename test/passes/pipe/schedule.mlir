// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" --pipe-verify-unrolled | FileCheck %s --check-prefix=ONE
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=2" --pipe-verify-unrolled | FileCheck %s --check-prefix=LOOPED
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule --pipe-verify-unrolled | FileCheck %s --check-prefix=SINGLE
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches | sed '/^  pipe.step *train/,/^  }/{H;d};/^}/{x;G}' | pipewright-opt --pipe-schedule="policy=1f1b ranks=4" | FileCheck %s --check-prefix=SWAPPED

// With as many ranks as stages, each stage has a rank, which is noted in the
// module too.
// ONE: module attributes
// ONE-SAME: ranks = 4
// ONE-SAME: schedule = "1f1b"
// ONE: pipe.stage @s0 on rank 0
// ONE: pipe.stage @s3 on rank 3

// The last stage alternates.
// ONE-LABEL: pipe.step train
// ONE: forward @s3 micro_batch 0
// ONE-NOT: forward @s3
// ONE: backward @s3 micro_batch 0
// ONE-NOT: backward @s3
// ONE: forward @s3 micro_batch 1

// Updates come last.
// ONE: backward @s0 micro_batch 3
// ONE-NEXT: pipe.task update @s0
// ONE-NEXT: pipe.task update @s1

// Stages go round.
// LOOPED: pipe.stage @s1 on rank 1
// LOOPED: pipe.stage @s2 on rank 0
// LOOPED-LABEL: pipe.step evaluate
// LOOPED: evaluate @s0 micro_batch 1
// LOOPED: evaluate @s2 micro_batch 0
// LOOPED: evaluate @s0 micro_batch 2

// One rank evaluates micro-batch by micro-batch, which keeps least.
// SINGLE: pipe.stage @s3 on rank 0
// SINGLE-LABEL: pipe.step evaluate
// SINGLE: evaluate @s3 micro_batch 0
// SINGLE: evaluate @s0 micro_batch 1

// Training has its order behind evaluation, too.
// SWAPPED: pipe.step evaluate
// SWAPPED-LABEL: pipe.step train
// SWAPPED: backward @s3 micro_batch 0
// SWAPPED: forward @s3 micro_batch 1
