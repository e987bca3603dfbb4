// A file stands wherever the name of a schedule can: here PyTorch's looped
// breadth-first, whose backwards run in descending order.

// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=%inputs/schedules/looped_bfs_p2_v2_m4.compute.csv ranks=2" --pipe-verify-unrolled | FileCheck %s
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=%inputs/schedules/gpipe_p2_v1_m4.compute.csv ranks=2" 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: schedule = "{{.*}}looped_bfs_p2_v2_m4.compute.csv"
// CHECK: pipe.stage @s2 on rank 0
// CHECK-LABEL: pipe.step train
// CHECK: backward @s3 micro_batch 3
// CHECK: backward @s3 micro_batch 2
// CHECK: backward @s3 micro_batch 1
// CHECK: backward @s3 micro_batch 0

// OTHER: error: {{.*}}gpipe_p2_v1_m4.compute.csv is a schedule of 2 ranks, 2 stages and 4 micro-batches, but got 2 ranks, 4 stages and 4 micro-batches; use --ranks 2 --loops 1 --micro-batches 4
