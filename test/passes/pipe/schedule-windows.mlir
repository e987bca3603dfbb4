// --remat window:N: stages say how many micro-batches keep their stash; the schedule says of how
// many, and has the others make it again. Then the same program, broken.

// DEFINE: %{stash} = sed -e '0,/pipe.return %y : tensor<2x4xf32>/s//& stash %y : tensor<2x4xf32>/' -e '0,/%x: tensor<2x4xf32>, %dy/s//%x: tensor<2x4xf32>, %kept: tensor<2x4xf32>, %dy/' -e '0,/nn.mul %dy, %x/s//nn.mul %dy, %kept/' %inputs/pipe/chain.mlir
// DEFINE: %{window} = pipewright-opt --pipe-rematerialize=mode=window:2 --pipe-verify-staged --pipe-unroll-microbatches --pipe-verify-unrolled
// DEFINE: %{schedule} = pipewright-opt --pipe-schedule="policy=1f1b ranks=4" --pipe-synchronize-weights --pipe-verify-unrolled
// RUN: %{stash} | %{window} > %t.unrolled
// RUN: FileCheck %s --check-prefix=UNROLLED < %t.unrolled
// RUN: %{schedule} %t.unrolled > %t
// RUN: FileCheck %s < %t

// UNROLLED: pipe.stage @s0 keeps <first 2> {
// UNROLLED-NOT: pipe.task recompute

// CHECK: pipe.stage @s0 on rank 0 keeps <first 2 of 4> {
// CHECK: pipe.step train
// CHECK: %[[KEPT:stash_s0_0]] = pipe.task forward @s0 micro_batch 0
// CHECK-NOT: pipe.task recompute @s0 micro_batch {{[01]}}
// CHECK: pipe.task backward @s0 micro_batch 0(%{{.*}}, %[[KEPT]], %
// CHECK: %[[AGAIN:.*]] = pipe.task recompute @s0 micro_batch 2(%x_s0_2) : (tensor<2x4xf32>) -> !pipe.stash<@s0>
// CHECK: pipe.task backward @s0 micro_batch 2(%{{.*}}, %[[AGAIN]], %
// CHECK: pipe.task recompute @s0 micro_batch 3

// Scheduled again it is the same, and by another schedule as if it were the first; of the last one
// all others are made again.
// RUN: %{schedule} %t | diff %t -
// DEFINE: %{gpipe} = pipewright-opt --pipe-schedule="policy=gpipe ranks=4" --pipe-verify-unrolled
// RUN: %{gpipe} %t > %t.again && %{gpipe} %t.unrolled | diff %t.again -
// RUN: sed 's/keeps <first 2>/keeps <last 1>/' %t.unrolled | %{gpipe} | FileCheck %s --check-prefix=LAST
// LAST: pipe.stage @s0 on rank 0 keeps <last 1 of 4> {
// LAST: recompute @s0 micro_batch 0
// LAST: recompute @s0 micro_batch 1
// LAST: recompute @s0 micro_batch 2
// LAST-NOT: recompute @s0 micro_batch 3

// In halves both read what is made again; memory is planned, on streams as well.
// RUN: %{stash} | pipewright-opt --pipe-rematerialize=mode=window:1 --pipe-split-backward --pipewright-unrolled --pipewright-scheduled="policy=zb-h1 ranks=4" | FileCheck %s --check-prefix=HALVES
// HALVES-LABEL: pipe.rank 0 train
// HALVES: %[[AGAIN:.*]] = pipe.task recompute @s0 micro_batch 1
// HALVES: pipe.task weight_gradient @s0 micro_batch 1({{.*}}%[[AGAIN]], %
// RUN: pipewright-opt %t --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated="assign-streams=1" -o /dev/null

// RUN: not pipewright-opt %t.unrolled --pipe-schedule="policy=1f1b ranks=1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: cannot keep the stashes of 2 micro-batches at a time: no stage has more than 1 in flight under schedule '1f1b'; use --remat none, or window:N with a smaller N
// DEFINE: %{verify} = pipewright-opt --pipe-verify-unrolled -o /dev/null
// RUN: sed 's/first 2 of 4/first 1 of 4/' %t | not %{verify} 2>&1 | FileCheck %s --check-prefix=MISSES
// MISSES: error: 'pipe.step' op has no task 'recompute' of stage '@s0', micro-batch 1
// RUN: sed 's/first 2 of 4/first 3 of 4/' %t | not %{verify} 2>&1 | FileCheck %s --check-prefix=NEEDLESS
// NEEDLESS: error: 'pipe.step' op has a needless task 'recompute' of stage '@s0', micro-batch 2
// RUN: sed '/backward @s0 micro_batch 2/s/%%restored_s0_2/%%stash_s0_2/' %t | not %{verify} 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: 'pipe.task' op expects stash of stage '@s0', micro-batch 2 as its task 'recompute' makes it
