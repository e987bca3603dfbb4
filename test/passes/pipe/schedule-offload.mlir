// Stashes that live in the host's memory for a while. Then the same program, broken.

// DEFINE: %{stash} = sed -e '0,/pipe.return %y : tensor<2x4xf32>/s//& stash %y : tensor<2x4xf32>/' -e '0,/%x: tensor<2x4xf32>, %dy/s//%x: tensor<2x4xf32>, %kept: tensor<2x4xf32>, %dy/' -e 's/micro_batches = 4/micro_batches = 8/' %inputs/pipe/chain.mlir
// DEFINE: %{schedule} = pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4 offload=auto" --pipe-synchronize-weights --pipe-verify-unrolled
// RUN: %{stash} | %{schedule} > %t
// RUN: FileCheck %s < %t

// CHECK: pipe.task forward @s0 micro_batch 1
// CHECK: %[[KEPT:kept_s0_1]] = pipe.move(%stash_s0_1) in @s0 micro_batch 1 : !pipe.stash<@s0> -> tensor<32xi8>
// CHECK: pipe.task forward @s0 micro_batch 2
// CHECK: pipe.wait_move %[[KEPT]] in @s0 : tensor<32xi8>
// CHECK: %[[BACK:back_s0_1]] = pipe.move(%[[KEPT]]) in @s0 micro_batch 1 : tensor<32xi8> -> !pipe.stash<@s0>
// CHECK: pipe.task backward @s0 micro_batch 1({{.*}}, %[[BACK]], {{.*}})

// Scheduled again it is the same; without, all stay.
// RUN: pipewright-opt %t --pipe-schedule="policy=1f1b ranks=4 offload=auto" | diff %t -
// RUN: pipewright-opt %t --pipe-schedule="policy=1f1b ranks=4" | FileCheck %s --check-prefix=STAY
// STAY-NOT: pipe.move
// RUN: not pipewright-opt %t --pipe-schedule="policy=1f1b ranks=4 offload=half" 2>&1 | FileCheck %s --check-prefix=SHARE
// SHARE: error: offload expects none, auto, or a share of the stashes from 1% to 100%, but got 'half'

// DEFINE: %{ranks} = pipewright-opt --pipe-insert-transfers --pipe-verify-schedule
// RUN: %{ranks} %t > %t.ranks
// RUN: FileCheck %s --check-prefix=RANKS < %t.ranks
// RANKS-LABEL: pipe.rank 0 train
// RANKS: pipe.task forward @s0 micro_batch 1
// RANKS: %[[KEPT:kept_s0_1]] = pipe.move(%stash_s0_1) in @s0 micro_batch 1
// RANKS: pipe.wait_move %[[KEPT]] in @s0
// RANKS: %[[BACK:back_s0_1]] = pipe.move(%[[KEPT]]) in @s0 micro_batch 1
// RANKS: pipe.wait_move %[[BACK]] in @s0 : !pipe.stash<@s0>
// RANKS: pipe.task backward @s0 micro_batch 1({{.*}}, %[[BACK]], {{.*}})

// The host's memory is planned like the arena, and events order copies and tasks.
// RUN: pipewright-opt %t.ranks --pipewright-allocated=assign-streams > %t.planned
// RUN: FileCheck %s --check-prefix=PLAN < %t.planned
// PLAN: pipe.arena rank 0 bytes {{[0-9]+}} host {{[0-9]+}}
// PLAN-LABEL: pipe.rank 0 train
// PLAN: pipe.task forward @s0 micro_batch 1
// PLAN-NEXT: pipe.record_event [[DONE:[0-9]+]] on compute
// PLAN: pipe.wait_event [[DONE]] on to_host
// PLAN-NEXT: pipe.move(%stash_s0_1) in @s0 micro_batch 1 buffers [#pipe.buffer<host 0 at {{[0-9]+}} bytes 32>] event
// PLAN: pipe.wait_event {{[0-9]+}} on from_host
// PLAN: pipe.move(%kept_s0_1) in @s0 micro_batch 1 buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 32>] event
// PLAN: pipe.wait_move %back_s0_1 in @s0
// PLAN: pipe.task backward @s0 micro_batch 1
// RUN: pipewright-opt %t.planned --pipe-verify-allocated --pipe-verify-streams -o /dev/null

// A backward that does not wait for its stash; a wait that is missing.
// RUN: sed '/pipe.wait_move %back_s0_1 /d' %t.ranks | not pipewright-opt --pipe-verify-schedule 2>&1 | FileCheck %s --check-prefix=LOST
// LOST: error: rank 0 never waits for its copy of stash of stage '@s0', micro-batch 1 from the host
// RUN: sed '/pipe.wait_move %kept_s0_1 /d' %t.ranks | not pipewright-opt --pipe-verify-schedule 2>&1 | FileCheck %s --check-prefix=GONE
// GONE: error: rank 0 never waits for its copy of stash of stage '@s0', micro-batch 1 to the host
// RUN: sed '/pipe.wait_move %back_s0_1 /{h;d}; /task *backward @s0 micro_batch 1(/{G}' %t.ranks | not pipewright-opt --pipe-verify-schedule 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'pipe.task' op uses a stash before the program has waited for its copy

// Two stashes in the same place of the host's memory.
// RUN: sed -E 's/#pipe.buffer<host 0 at [0-9]+ bytes/#pipe.buffer<host 0 at 0 bytes/' %t.planned | not pipewright-opt --pipe-verify-allocated 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: {{.*}}#pipe.buffer<host 0 at 0 bytes 32>
// Behind the end of it.
// RUN: sed -E 's/(pipe.arena rank 0 bytes [0-9]+ host) [0-9]+/\1 16/' %t.planned | not pipewright-opt --pipe-verify-allocated 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: error: 'pipe.move' op expects a buffer within 16 bytes of the host, but got #pipe.buffer<host 0
// A copy that does not wait for its forward, and a backward that does not for its copy.
// RUN: sed '/pipe.wait_event .* on to_host/d' %t.planned | not pipewright-opt --pipe-verify-streams 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: data race on rank 0: copy to the host of stash of stage '@s0', micro-batch 1 on stream 'to_host' reads bytes
// RUN: sed '/pipe.wait_event .* on from_host/d' %t.planned | not pipewright-opt --pipe-verify-streams 2>&1 | FileCheck %s --check-prefix=FETCH
// FETCH: error: data race on rank 0: copy from the host of stash of stage '@s0', micro-batch {{[0-9]}} on stream 'from_host'

// Stages that stash nothing.
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4 offload=auto" 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: warning: the schedule moves stashes of stages that keep none: with less recomputation they may
// NOTHING-NOT: pipe.move
