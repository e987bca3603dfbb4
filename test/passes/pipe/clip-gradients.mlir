// Each rank takes part once in the norm of all gradients, behind all sums and
// before its first update: with a tied weight, replicas, and two stages on each
// rank.

// DEFINE: %{clip} = sed -e 's/#pipe.program</&clip_norm = 1.0 : f64, /'
// DEFINE: %{step} = pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights
// DEFINE: %{unrolled} = not pipewright-opt %t.wrong --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s
// DEFINE: %{ranks} = not pipewright-opt %t.wrong --pipe-insert-transfers --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s
// RUN: %{clip} -e 's/#pipe.program</&replicas = 3, /' %inputs/pipe/tied.mlir | %{step} | sed 's/  */ /g' > %t
// RUN: FileCheck %s < %t
// RUN: pipewright-opt %t --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule | FileCheck %s --check-prefix=RANKS
// RUN: pipewright-opt %t --pipe-insert-transfers --pipewright-allocated=assign-streams -o /dev/null
// CHECK: %gradients_s0_2 = pipe.collective all_reduce of @wte in @s0(%gradients_s0) over [0, 1]
// CHECK: %gradients_s1_3 = pipe.collective all_reduce of @wte in @s1(%gradients_s1) over [0, 1]
// CHECK: %clipped_s0 = pipe.clip_gradients in @s0(%gradients_s0_2) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
// CHECK: %clipped_s1 = pipe.clip_gradients in @s1(%gradients_s1_3) over [0, 1] : (!pipe.gradient<@s1>) -> !pipe.gradient<@s1>
// CHECK: pipe.task update @s0(%clipped_s0)
// CHECK: pipe.task update @s1(%clipped_s1)
// RANKS: pipe.rank 0 train
// RANKS: pipe.collective all_reduce{{ *}}in @s0{{.*}} over replicas
// RANKS: pipe.collective all_reduce{{ *}}of @wte in @s0{{.*}} over [0, 1]
// RANKS: pipe.wait_collective
// RANKS-NEXT: pipe.clip_gradients in @s0
// RANKS-NEXT: pipe.task {{ *}}update @s0
// RANKS: pipe.rank 1 train
// RANKS: pipe.clip_gradients in @s1

// Two stages of a rank clip as one.
// RUN: %{clip} %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=interleaved ranks=2" --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=TWO
// TWO: pipe.rank 0 train
// TWO: pipe.clip_gradients in @s0(%{{.*}}, %{{.*}}) over [0, 1] : (!pipe.gradient<@s0>, !pipe.gradient<@s2>) -> (!pipe.gradient<@s0>, !pipe.gradient<@s2>)
// TWO: pipe.rank 1 train
// TWO: pipe.clip_gradients in @s1(%{{.*}}, %{{.*}}) over [0, 1]

// A rank that only holds a weight of another's takes part before it waits for the
// new value, which the norm is needed for.
// RUN: %{clip} %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights=tied=owner --pipe-insert-transfers --pipe-verify-schedule > %t.owner
// RUN: FileCheck %s --check-prefix=HOLDER < %t.owner
// HOLDER: pipe.rank 1 train
// HOLDER: pipe.clip_gradients in @s1() over [0, 1] : () -> ()
// HOLDER: pipe.wait_receive
// HOLDER-NEXT: pipe.set_weight @wte in @s1
// RUN: awk '/clip_gradients in @s1/ { held = $0; next } { print } /set_weight/ { print held }' %t.owner | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=CIRCLE
// CIRCLE: error: deadlock without buffering: rank 0 waits {{.*}} for its all-reduce of squares of gradients over ranks 0 and 1, in which rank 1 takes part later; rank 1 waits {{.*}} for its receive from rank 0 of new value of weight 'wte', whose send rank 0 posts later

// A rank does not come.
// RUN: sed -e '/clip_gradients in @s1/d; s/%clipped_s1/%gradients_s1_3/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=ALONE && %{ranks} --check-prefix=ALONE
// ALONE: error: 'pipe.task' op expects clipped gradients
// ALONE: error: 'pipe.{{step|rank}}' op clips the gradients of 1 of 2 ranks

// It comes twice.
// RUN: sed -e '/clip_gradients in @s0/{p;s/%clipped_s0/%again/;s/%gradients_s0_2/%clipped_s0/}; s/update @s0(%clipped_s0)/update @s0(%again)/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=AGAIN && %{ranks} --check-prefix=AGAIN
// AGAIN: error: 'pipe.clip_gradients' op is the second one of its rank

// It adds for fewer than all.
// RUN: sed -e '/clip_gradients in @s/s/over \[0, 1\]/over [0]/; s/clip_gradients in @s1(\(.*\)over \[0\]/clip_gradients in @s1(\1over [1]/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=FEWER && %{ranks} --check-prefix=FEWER
// FEWER: error: 'pipe.clip_gradients' op is over ranks 0, but expects all 2 ranks, whose gradients the norm is of

// What replicas have not added yet is clipped.
// RUN: sed -e '/clip_gradients in @s0/{s/%gradients_s0_2/%gradients_s0_1/;s/<@s0>/<@s0, partial>/g}; /update @s0/s/(!pipe.gradient<@s0>)/(!pipe.gradient<@s0, partial>)/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=PARTIAL && %{ranks} --check-prefix=PARTIAL
// PARTIAL: error: 'pipe.clip_gradients' op expects whole gradients, but takes '!pipe.gradient<@s0, partial>'

// Ranks add what is clipped already.
// RUN: %{clip} %inputs/pipe/tied.mlir | %{step} | sed 's/  */ /g' > %t.one
// RUN: sed -e 's/in @s0(%gradients_s0_1) over/in @s0(%clipped_s0) over/; s/clip_gradients in @s0(%gradients_s0)/clip_gradients in @s0(%gradients_s0_1)/; s/update @s0(%clipped_s0)/update @s0(%gradients_s0)/' %t.one | awk '/all_reduce of @wte in @s0/ { held = $0; next } { print } /clip_gradients in @s0/ { print held }' > %t.wrong
// RUN: %{unrolled} --check-prefix=BEHIND && %{ranks} --check-prefix=BEHIND
// BEHIND-DAG: error: 'pipe.clip_gradients' op is not the last of what happens to '!pipe.gradient<@s0>' before its update
// BEHIND-DAG: error: 'pipe.task' op expects clipped gradients

// Nobody has asked for it.
// RUN: sed -e 's/, clip_norm = 1.000000e+00 : f64//' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=UNASKED && %{ranks} --check-prefix=UNASKED
// UNASKED: error: 'pipe.clip_gradients' op clips gradients, but the program has no 'clip_norm'

// A sum is under way.
// RUN: pipewright-opt %t --pipe-insert-transfers | sed 's/  */ /g' > %t.ranks
// RUN: awk '/wait_collective %gradients_s0_[0-9]+ / { held = $0; next } /rank 0 train/ { first = 1 } { print } /clip_gradients in @s0/ { print held }' %t.ranks > %t.wrong
// RUN: not pipewright-opt %t.wrong --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNDERWAY
// UNDERWAY: error: 'pipe.clip_gradients' op {{stands where a collective is under way, which would have to be over first|uses what a collective makes before the program has waited for it}}

// Several updates have no norm in common; a number that is none is refused.
// RUN: %{clip} -e 's/micro_batches = 4/micro_batches = 4, updates = 4/' %inputs/pipe/chain.mlir | not pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=pipedream ranks=4" 2>&1 | FileCheck %s --check-prefix=STALE
// STALE: error: --clip-norm expects a schedule with one update in a step, but this one has 4
// RUN: sed 's/#pipe.program</&clip_norm = 0.0 : f64, /' %inputs/pipe/tied.mlir | not pipewright-opt 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: expects 'clip_norm' to be an f64 above 0, but got 0.000000e+00 : f64
