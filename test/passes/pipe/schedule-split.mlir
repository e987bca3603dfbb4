// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-split-backward --pipe-unroll-microbatches --pipe-schedule="policy=zb-h1 ranks=2" --pipe-synchronize-weights=tied=owner --pipe-verify-unrolled | FileCheck %s --check-prefix=SPLIT
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-split-backward --pipe-unroll-microbatches --pipe-schedule="policy=zb-h1 ranks=2" --pipe-schedule --pipe-synchronize-weights=tied=owner --pipe-verify-unrolled | FileCheck %s --check-prefix=SPLIT
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-split-backward --pipewright-unrolled --pipewright-scheduled="policy=dualpipev ranks=2" --pipewright-allocated | FileCheck %s --check-prefix=MIXED
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-split-backward --pipewright-unrolled --pipewright-scheduled="policy=dualpipev ranks=2" | FileCheck %s --check-prefix=PAIRS
// Another schedule leaves no pairs behind.
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-split-backward --pipe-unroll-microbatches --pipe-schedule="policy=dualpipev ranks=2" --pipe-schedule="policy=zb-v ranks=2" | FileCheck %s --check-prefix=UNPAIRED
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipewright-unrolled --pipewright-scheduled="policy=gpipe:descending ranks=4" | FileCheck %s --check-prefix=DOWN
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=gpipe:descending ranks=4" --pipe-schedule="policy=gpipe" --pipe-verify-unrolled | FileCheck %s --check-prefix=UP
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=zb-h1 ranks=4" 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-split-backward --pipe-unroll-microbatches --pipe-schedule="policy=zb-h1 ranks=4" --pipe-schedule=policy=1f1b 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: not pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=forward-only ranks=4" 2>&1 | FileCheck %s --check-prefix=EVALUATES
// RUN: echo '{"version": 1, "ranks": 1, "stages": 2, "micro_batches": 2, "placement": [0, 0], "order": [["F0.0", "F1.0", "R1.0", "B1.0", "B0.0", "F0.1", "F1.1", "B1.1", "B0.1", "U0", "U1"]]}' > %t.json
// RUN: not pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=%t.json ranks=1" 2>&1 | FileCheck %s --check-prefix=RECOMPUTE

// Each half reads what it needs; the second gets the handover and the gradients
// summed so far. What tied weights read is the last sum.
// SPLIT-LABEL: pipe.step train
// SPLIT: %[[D:.*]], %[[HO:.*]] = pipe.task input_gradient @s1 micro_batch 0({{.*}}) : (tensor<2xi64>, !pipe.stash<@s1>) -> (tensor<2x4xf32>, !pipe.handover<@s1>)
// SPLIT: pipe.task weight_gradient @s0 micro_batch 0(%{{.*}}, %{{.*}}, %[[D]])
// SPLIT: pipe.task forward @s1 micro_batch 1
// SPLIT: pipe.task input_gradient @s1 micro_batch 1
// SPLIT: %[[G0:.*]] = pipe.task weight_gradient @s1 micro_batch 0(%{{.*}}, %[[HO]]) : (tensor<2x4xf32>, !pipe.handover<@s1>) -> !pipe.gradient<@s1>
// SPLIT: %[[G1:.*]] = pipe.task weight_gradient @s1 micro_batch 1({{.*}}, %[[G0]])
// SPLIT-NOT: backward @
// SPLIT: pipe.gradient_of @wte in @s1(%[[G1]])
// SPLIT: pipe.set_weight @wte in @s1(%{{.*}}, %[[G1]])

// A stage may run whole backwards and halves in one step; its gradients go
// through both. Stages go there and back, so that the last rank has neighbours.
// MIXED: pipe.stage @s2 on rank 1
// MIXED: pipe.stage @s3 on rank 0
// MIXED-LABEL: pipe.rank 0 train
// MIXED: %[[G0:[a-z0-9_]+]] = pipe.task weight_gradient @s3 micro_batch 0
// MIXED: %{{.*}}, %[[G1:.*]] = pipe.task backward @s3 micro_batch 1({{.*}}, %[[G0]])
// MIXED: pipe.task backward @s3 micro_batch 2({{.*}}, %[[G1]])
// What a neighbour on the same rank made is read in place.
// MIXED-LABEL: pipe.rank 1 train
// MIXED: %[[H:.*]] = pipe.task forward @s1 micro_batch 0
// MIXED: pipe.task forward @s2 micro_batch 0(%[[H]])

// In evaluation a rank prefers its deepest stage, whatever lies between its
// stages.
// MIXED-LABEL: pipe.rank 0 evaluate
// MIXED: evaluate @s0 micro_batch 2
// MIXED: evaluate @s3 micro_batch 0
// MIXED: evaluate @s0 micro_batch 3
// MIXED-LABEL: pipe.rank 1 evaluate
// MIXED: evaluate @s1 micro_batch 0
// MIXED: evaluate @s2 micro_batch 0
// MIXED: evaluate @s1 micro_batch 1

// A policy that sums in its own order says so, and is believed.
// DOWN: module attributes {{.*}}sums_in_schedule_order = true
// DOWN-LABEL: pipe.rank 3 train
// DOWN: %{{.*}}, %[[G3:.*]] = pipe.task backward @s3 micro_batch 3(%{{[^,]*}}) :
// DOWN: %{{.*}}, %[[G2:.*]] = pipe.task backward @s3 micro_batch 2(%{{.*}}, %[[G3]])
// DOWN: %{{.*}}, %[[G1:.*]] = pipe.task backward @s3 micro_batch 1(%{{.*}}, %[[G2]])
// DOWN: %{{.*}}, %[[G0:.*]] = pipe.task backward @s3 micro_batch 0(%{{.*}}, %[[G1]])
// DOWN: pipe.task update @s3(%[[G0]])

// Another policy puts the chain right again.
// UP: module attributes
// UP-NOT: sums_in_schedule_order
// UP-LABEL: pipe.step train
// UP: %{{.*}}, %[[LAST:.*]] = pipe.task backward @s3 micro_batch 3({{.*}}, %{{.*}}) :
// UP: pipe.task update @s3(%[[LAST]])

// WHOLE: error: 'pipe.task' op is to be split, but stage '@s{{[0-3]}}' has no 'pipe.input_gradient'; run pipe-split-backward
// AGAIN: error: 'pipe.task' op was split by an earlier run of pipe-schedule, but the schedule now wants the whole backward; run it on the unrolled level
// RECOMPUTE: error: 'pipe.step' op has no task R1.0, which the schedule orders: nothing is recomputed there before its gradients come; run pipe-split-recompute (--early-recompute), and keep less (--remat)
// EVALUATES: error: schedule 'forward-only' only evaluates, but a program trains

// Pairs are marked at their first task: rank 0 runs F0.3&B3.1, F3.2&B0.0 and
// F3.3&B0.1, and nothing else together.
// PAIRS-LABEL: pipe.rank 0 train
// PAIRS-NOT: overlaps_next
// PAIRS: forward @s0 micro_batch 3{{.*}} overlaps_next
// PAIRS: pipe.task backward @s3 micro_batch 1
// PAIRS-NOT: overlaps_next
// PAIRS: forward @s3 micro_batch 2{{.*}} overlaps_next
// PAIRS: pipe.task backward @s0 micro_batch 0
// PAIRS-NOT: overlaps_next
// PAIRS: forward @s3 micro_batch 3{{.*}} overlaps_next
// PAIRS: pipe.task backward @s0 micro_batch 1
// PAIRS-NOT: overlaps_next
// PAIRS-LABEL: pipe.rank 1 train
// UNPAIRED-LABEL: pipe.step train
// UNPAIRED-NOT: overlaps_next
// UNPAIRED: pipe.task update @s3
