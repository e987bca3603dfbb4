// Programs of two ranks with a collective. Then the same programs, broken.

// DEFINE: %{planned} = pipewright-opt %t --pipe-plan-memory --pipe-verify-allocated --pipe-assign-streams
// DEFINE: %{streams} = not pipewright-opt --pipe-verify-streams -o /dev/null 2>&1
// DEFINE: %{allocated} = not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s
// DEFINE: %{verify} = not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1

// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule > %t
// RUN: FileCheck %s < %t
// RUN: %{planned} --pipe-verify-streams | FileCheck %s --check-prefix=STREAMS
// RUN: %{planned} | pipewright-opt --pipe-assign-streams | FileCheck %s --check-prefix=STREAMS

// CHECK-LABEL: pipe.rank 0 train
// CHECK:      %[[R:.*]] = pipe.collective all_reduce of @wte in @s0(%{{.*}}) over [0, 1] :
// CHECK-NEXT: pipe.wait_collective %[[R]]
// CHECK-NEXT: pipe.task update @s0(%[[R]])
// CHECK-LABEL: pipe.rank 1 train
// CHECK:      %[[R:.*]] = pipe.collective all_reduce of @wte in @s1(%{{.*}}) over [0, 1] :
// CHECK-NEXT: pipe.wait_collective %[[R]]
// CHECK-NEXT: pipe.task update @s1(%[[R]])
// CHECK-NEXT: pipe.wait_send

// STREAMS-LABEL: pipe.rank 0 train
// STREAMS:      pipe.record_event {{[0-9]+}} on compute
// STREAMS:      pipe.wait_event {{[0-9]+}} on collective
// STREAMS:      pipe.collective all_reduce of @wte in @s0(%{{.*}}) over [0, 1] buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 64>] event [[OVER:[0-9]+]] :
// STREAMS-NEXT: pipe.wait_collective
// STREAMS-NEXT: pipe.wait_event [[OVER]] on compute
// STREAMS-NEXT: pipe.task update @s0

// (M1) The members do not do the same, in size or at all.
// RUN: sed 's/all_reduce of @wte in @s1/reduce_scatter of @wte in @s1/' %t | %{verify} | FileCheck %s --check-prefix=KIND
// RUN: sed 's/all_reduce of @wte in/all_reduce in/' %t | %{verify} | FileCheck %s --check-prefix=OTHER
// RUN: sed '/in @s1.*over/s/over .0, 1./over [1, 2]/' %t | %{verify} | FileCheck %s --check-prefix=GROUP
// KIND: error: collective 0 of ranks 0 and 1 is the all-reduce of gradients of weight 'wte' over ranks 0 and 1 on rank 0, but the reduce-scatter of gradients of weight 'wte' over ranks 0 and 1 on rank 1, and each waits for the other
// OTHER: error: collective 0 of ranks 0 and 1 is the all-reduce of gradients of stage '@s0' over ranks 0 and 1 on rank 0, but the all-reduce of gradients of stage '@s1' over ranks 0 and 1 on rank 1, and each waits for the other
// GROUP: error: 'pipe.collective' op sums gradients of '@wte' over ranks [1, 2], but its holders are on [0, 1]

// (M2) It is waited for, before what it makes is used, and events order it.
// RUN: sed '/wait_collective.*s0/d' %t | %{verify} | FileCheck %s --check-prefix=WAIT
// RUN: sed '/wait_collective.*s0/{h;d};/task *update @s0/G' %t | %{verify} | FileCheck %s --check-prefix=EARLY
// RUN: sed '/all_reduce of @wte in @s0/s/$/\n%more = pipe.collective all_reduce in @s0 (%gradients_s0_1) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>/' %t | %{verify} | FileCheck %s --check-prefix=FORKED
// RUN: sed '/all_reduce of @wte in @s0/s/$/\n%one = pipe.gradient_of @bias in @s0 (%gradients_s0_1) : (!pipe.gradient<@s0>) -> tensor<4xf32>\n%more = pipe.add_gradient @bias in @s0 (%gradients_s0_1, %one) : <@s0>, tensor<4xf32>/' %t | %{verify} | FileCheck %s --check-prefix=BUSY
// RUN: %{planned} | sed 's/\(over .0, 1. buffers .*\) event [0-9]*/\1/' | %{streams} | FileCheck %s --check-prefix=EVENT
// RUN: %{planned} | sed '/wait_event [0-9]* on collective/d' | %{streams} | FileCheck %s --check-prefix=RACE
// RUN: %{planned} | sed '/wait_collective/{h;d};/task *update/G' | %{streams} | FileCheck %s --check-prefix=UNWAITED
// WAIT: error: rank 0 never waits for the all-reduce of gradients of weight 'wte' over ranks 0 and 1
// EARLY: error: 'pipe.task' op uses what a collective makes before the program has waited for it
// FORKED: error: 'pipe.collective' op takes gradients that another collective has taken
// BUSY: error: 'pipe.add_gradient' op uses the state of stage '@s0' while a collective works on it
// EVENT: error: 'pipe.collective' op has no event; run pipe-assign-streams
// RACE: error: data race on rank 0: all_reduce of '@wte' in stage '@s0' (event {{[0-9]+}}) on stream 'collective' writes bytes {{.*}} of the arena, which task B0.1 on stream 'compute' writes, and no event orders them
// UNWAITED: error: 'pipe.wait_event' op waits for the all_reduce of '@wte' in stage '@s0' (event {{[0-9]+}}) earlier than the plan, which was proved free of deadlock

// (M3) Rank 1 takes part before it sends what rank 0 needs to come there.
// RUN: sed -e '/pipe.rank 1 *train/,/^  }/{/sending_2 = /{h;d};/wait_collective/G}' %t | %{verify} | FileCheck %s --check-prefix=CIRCLE
// CIRCLE: error: deadlock without buffering: rank 0 waits after B0.0 for its receive from rank 1 of gradient of output 0 of stage '@s0', micro-batch 1, whose send rank 1 posts later; rank 1 waits after B1.1 for its all-reduce of gradients of weight 'wte' over ranks 0 and 1, in which rank 0 takes part later

// What others send to be added has bytes of its own until the wait.
// RUN: pipewright-opt %t --pipe-plan-memory | sed '/all_reduce.*@s0/s/ buffers .#pipe.buffer<arena 0 at [0-9]* bytes/ buffers [#pipe.buffer<arena 0 at 0 bytes/' | %{allocated} --check-prefix=FIXED
// RUN: pipewright-opt %t --pipe-plan-memory | sed '/all_reduce.*@s0/s/ bytes 64>/ bytes 60>/' | %{allocated} --check-prefix=SIZE
// RUN: pipewright-opt %t --pipe-plan-memory | sed '/all_reduce.*@s0/s/ buffers .*>. :/ :/' | %{allocated} --check-prefix=NONE
// FIXED: error: 'pipe.collective' op writes #pipe.buffer<arena 0 at 0 bytes 64>
// SIZE: error: 'pipe.collective' op expects a buffer of 64 bytes, but got #pipe.buffer<arena 0 at {{[0-9]+}} bytes 60>
// NONE: error: 'pipe.collective' op has no buffers; run pipe-plan-memory

// A root that is not the first member has room for what the others send.
// RUN: sed 's/root 0/root 1/' %inputs/pipe/collectives.mlir | pipewright-opt --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=ROOT
// ROOT: pipe.collective reduce of @u in @s0{{.*}} root 1 {{.*}} bytes 0>]
// ROOT: pipe.collective reduce of @u in @s1{{.*}} root 1 {{.*}} bytes 8>]
// ROOT: pipe.collective reduce of @u in @s2{{.*}} root 1 {{.*}} bytes 0>]
