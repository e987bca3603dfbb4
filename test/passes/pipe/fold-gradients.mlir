// Gradients of groups of micro-batches are added as a binary tree; then the same programs, broken.

// DEFINE: %{chain} = sed -e 's/micro_batches = 4/micro_batches = 8/' %inputs/pipe/chain.mlir
// DEFINE: %{folded} = --pipe-synchronize-weights --pipe-insert-transfers --pipe-fold-gradients=groups=4 --pipe-verify-schedule
// RUN: %{chain} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" %{folded} | sed 's/  */ /g' > %t
// RUN: sed -n '/pipe.rank 3 train/,/^ }/p' %t | grep -oE 'pipe.task (backward|update) @s3( micro_batch [0-9])?|%folded_s3[_0-9]* = .*|%.* = pipe.task backward @s3 micro_batch 2.*' | FileCheck %s
// CHECK: backward @s3 micro_batch 1
// CHECK-NEXT: %[[ZERO:folded_s3[_0-9]*]] = pipe.fold_gradients in @s3(%{{.*}}) group 0 of 4 : <@s3>
// CHECK-NEXT: pipe.task backward @s3 micro_batch 2({{.*}}%[[ZERO]])
// CHECK: backward @s3 micro_batch 3
// CHECK-NEXT: pipe.fold_gradients in @s3(%{{.*}}) group 1 of 4
// CHECK: backward @s3 micro_batch 5
// CHECK-NEXT: pipe.fold_gradients in @s3(%{{.*}}) group 2 of 4
// CHECK: backward @s3 micro_batch 7
// CHECK-NEXT: pipe.fold_gradients in @s3(%{{.*}}) group 3 of 4
// CHECK-NEXT: update @s3

// Idempotent; as many groups as replicas, and none, change nothing.
// RUN: pipewright-opt %t --pipe-fold-gradients=groups=4 | sed 's/  */ /g' | diff %t -
// RUN: %{chain} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" --pipe-synchronize-weights --pipe-insert-transfers > %t.plain
// RUN: pipewright-opt %t.plain --pipe-fold-gradients | diff %t.plain -
// RUN: pipewright-opt %t.plain --pipe-fold-gradients=groups=1 | diff %t.plain -

// Two sums may be aside.
// RUN: pipewright-opt %t --pipewright-allocated=assign-streams | sed 's/  */ /g' > %t.allocated
// RUN: FileCheck %s --check-prefix=ROOM < %t.allocated
// ROOM: pipe.optimizer @s0 {{.*}} gradients <arena 0 at 64 bytes 64> aside <arena 0 at 128 bytes 128>

// Each group in its turn, none too early, and all of them.
// RUN: sed 's/group 1 of 4/group 2 of 4/' %t | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=TURN
// TURN: error: 'pipe.fold_gradients' op is of group 2 of 4, where its stage has added gradients of 4 micro-batches in 1 groups of 2
// RUN: sed 's/of 4 :/of 8 :/' %t | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'pipe.fold_gradients' op is of group 0 of 8, where its stage has added gradients of 2 micro-batches in 0 groups of 1
// RUN: pipewright-opt %t.plain --pipe-fold-gradients=groups=2 | sed -E 's/  */ /g' > %t.two
// RUN: last=$(grep -oE '%folded_s3[_0-9]* = .* group 1 of 2' %t.two | sed 's/ =.*//') && before=$(grep 'group 1 of 2' %t.two | grep -oE 'in @s3\(%[a-z0-9_]+' | sed 's/.*(//') && sed -E "/$last = /d; s/update @s3\($last\)/update @s3($before)/" %t.two | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=LACKS
// LACKS: error: 'pipe.task' op expects all 2 groups of gradients, but only 1 are added

// What is aside has room.
// RUN: sed -E 's/(pipe.optimizer @s0 .*) aside <[^>]*>/\1/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROOMLESS
// ROOMLESS: error: 'pipe.fold_gradients' op needs {{[0-9]+}} bytes aside of {{.*}}; run pipe-plan-memory
// RUN: sed -E 's/(pipe.optimizer @s0 .* aside <arena 0 at [0-9]+ bytes )[0-9]+>/\160>/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: 'pipe.optimizer' op expects a whole number of {{.*}} aside, but got {{.*}} bytes 60

// RUN: not pipewright-opt %t.plain --pipe-fold-gradients=groups=3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: error: --sum-groups 3 (pipe-fold-gradients) expects a power of two that divides all 8 micro-batches of a step
// RUN: %{chain} | sed 's/#pipe.program</&replicas = 4, /' | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" --pipe-synchronize-weights --pipe-insert-transfers > %t.replicas
// RUN: pipewright-opt %t.replicas --pipe-fold-gradients=groups=8 --pipe-verify-schedule | FileCheck %s --check-prefix=PARTIAL
// PARTIAL: %[[LAST:.*]] = pipe.fold_gradients in @s0(%{{.*}}) group 1 of 2 : <@s0, partial>
// PARTIAL-NEXT: %{{.*}} = pipe.collective all_reduce in @s0(%[[LAST]]) over replicas
// What replicas sum waits for the last group.
// RUN: pipewright-opt %t.replicas --pipe-fold-gradients=groups=8 --pipewright-allocated=assign-streams > %t.streams
// RUN: sed -E '/pipe.wait_event [0-9]+ on collective/d' %t.streams | not pipewright-opt --pipe-verify-streams -o /dev/null 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: data race on rank {{[0-9]}}: all_reduce in stage '@s{{[0-9]}}' (event {{[0-9]+}}) on stream 'collective' writes bytes {{.*}} group 1 of gradients of stage '@s{{[0-9]}}'
// RUN: not pipewright-opt %t.replicas --pipe-fold-gradients=groups=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPLICAS
// REPLICAS: error: --sum-groups 2 (pipe-fold-gradients) expects a whole number of groups for each of 4 replicas
// RUN: sed -e 's/#pipe.program</&replicas = 4, zero = 2, /' %inputs/pipe/chain.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=interleaved ranks=1" --pipe-synchronize-weights --pipe-share-gradients=ranges=1 --pipe-insert-transfers > %t.turns
// RUN: not pipewright-opt %t.turns --pipe-fold-gradients=groups=8 -o /dev/null 2>&1 | FileCheck %s --check-prefix=TURNS
// TURNS: error: 'pipe.task' op has its gradients summed over replicas before the last of them is there (--zero 2 or 3), which --sum-groups (pipe-fold-gradients) cannot add as a tree
// RUN: sed 's/#pipe.program</&sums_in_schedule_order = true, /' %t.plain | not pipewright-opt --pipe-fold-gradients=groups=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: --sum-groups 2 (pipe-fold-gradients) expects gradients that are added in the order of micro-batches, but the schedule has an order of its own
