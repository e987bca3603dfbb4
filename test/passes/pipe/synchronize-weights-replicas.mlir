// Replicas sum what each update uses, behind what is summed within a replica.
// Then the same programs, broken.

// DEFINE: %{tied} = sed 's/#pipe.program</&replicas = 3, /' %inputs/pipe/tied.mlir
// DEFINE: %{scheduled} = pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2"
// DEFINE: %{verify} = not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1
// DEFINE: %{allocated} = not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1

// RUN: %{tied} | %{scheduled} --pipe-synchronize-weights --pipe-synchronize-weights --pipe-verify-unrolled | FileCheck %s
// RUN: %{tied} | %{scheduled} --pipe-synchronize-weights=tied=owner | FileCheck %s --check-prefix=OWNER
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-synchronize-weights | FileCheck %s --check-prefix=ONE

// CHECK:      pipe.step train
// CHECK:      %[[R0:.*]] = pipe.collective all_reduce in @s0(%{{.*}}) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
// CHECK-NEXT: %[[R1:.*]] = pipe.collective all_reduce in @s1(%{{.*}}) over replicas :
// CHECK-NEXT: %[[T0:.*]] = pipe.collective all_reduce of @wte in @s0(%[[R0]]) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
// CHECK-NEXT: %[[T1:.*]] = pipe.collective all_reduce of @wte in @s1(%[[R1]]) over [0, 1] :
// CHECK-NEXT: pipe.task update @s0(%[[T0]])
// CHECK-NEXT: pipe.task update @s1(%[[T1]])
// CHECK:      pipe.step evaluate
// CHECK-NOT:  pipe.collective

// Holders of a weight sum their part of what replicas have summed, where a replica has one.
// RUN: %{tied} | sed 's/replicas = 3/&, zero = 1/' | %{scheduled} --pipe-synchronize-weights --pipe-verify-unrolled | sed 's/  */ /g' > %t.zero
// RUN: FileCheck %s --check-prefix=ZERO < %t.zero
// ZERO: %[[A0:.*]] = pipe.collective reduce_scatter bucket 0 in @s0(%{{.*}}) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
// ZERO-NEXT: %[[R0:.*]] = pipe.collective reduce_scatter bucket 1 in @s0(%[[A0]]) over replicas :
// ZERO-NEXT: %[[R1:.*]] = pipe.collective reduce_scatter in @s1(%{{.*}}) over replicas :
// ZERO-NEXT: %[[T0:.*]] = pipe.collective all_reduce of @wte in @s0(%[[R0]]) over [0, 1] : (!pipe.gradient<@s0, split>) -> !pipe.gradient<@s0, split>
// ZERO-NEXT: %[[T1:.*]] = pipe.collective all_reduce of @wte in @s1(%[[R1]]) over [0, 1] :
// ZERO-NEXT: %[[U0:.*]] = pipe.task update @s0(%[[T0]]) : (!pipe.gradient<@s0, split>) -> !pipe.updated<@s0, split>
// ZERO-NEXT: pipe.collective all_gather bucket 0 in @s0(%[[U0]]) over replicas
// A third of the weight's bucket has 128 bytes, of which a rank adds 64.
// RUN: pipewright-opt %t.zero --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=THIRD
// THIRD: pipe.optimizer @s0 {{.*}} buckets [384, 384]
// THIRD: pipe.collective all_reduce of @wte in @s0({{.*}} buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 64>]
// RUN: sed -e 's/all_reduce of @wte in @s\([01]\)/all_reduce in @s\1/' %t.zero | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=APART
// RUN: sed -e 's/all_reduce of @wte in @s\([01]\)/all_reduce in @s\1/' %t.zero | not pipewright-opt --pipe-insert-transfers --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=APART
// APART: error: 'pipe.collective' op expects weights that are a bucket in each stage that holds them

// So do two copies of the model, bucket by bucket, where they come last; what others hold, too, is
// in a bucket of its own, with or without an owner.
// DEFINE: %{copies} = pipewright-opt --pipe-mirror-stages --pipe-unroll-microbatches --pipe-schedule="policy=chimera ranks=2" --pipe-synchronize-weights=copies-last
// RUN: %{tied} | sed 's/replicas = 3/&, zero = 1/' | %{copies} --pipe-verify-unrolled | sed 's/  */ /g' > %t.copies
// RUN: FileCheck %s --check-prefix=COPIES < %t.copies
// RUN: pipewright-opt %t.copies --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=ALLOCATED
// COPIES: %[[A0:.*]] = pipe.collective reduce_scatter bucket 0 in @s0(%{{.*}}) over replicas :
// COPIES-NEXT: %[[B0:.*]] = pipe.collective reduce_scatter bucket 1 in @s0(%[[A0]]) over replicas :
// COPIES-NEXT: %[[B2:.*]] = pipe.collective reduce_scatter in @s2(%{{.*}}) over replicas :
// COPIES: pipe.add_gradient @wte in @s0(%[[B0]],
// COPIES: %[[T0:.*]] = pipe.collective all_reduce bucket 0 in @s0(%{{.*}}) over [0, 1] : (!pipe.gradient<@s0, split>) -> !pipe.gradient<@s0, split>
// COPIES-NEXT: %[[T2:.*]] = pipe.collective all_reduce in @s2(%{{.*}}) over [0, 1] : (!pipe.gradient<@s2, split>) -> !pipe.gradient<@s2, split>
// COPIES-NEXT: pipe.task update @s0(%[[T0]])
// COPIES: pipe.task update @s2(%[[T2]])
// ALLOCATED: pipe.optimizer @s0 {{.*}} buckets [384, 384]
// ALLOCATED: pipe.collective all_reduce bucket 0 in @s0({{.*}} buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 64>]
// ALLOCATED: pipe.collective all_reduce in @s2({{.*}} buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 64>]
// RUN: for wrong in '1 ' ''; do \
// RUN:   sed -e "s/all_reduce bucket 0 in @s0/all_reduce ${wrong:+bucket $wrong}in @s0/" %t.copies > %t.wrong; \
// RUN:   not pipewright-opt %t.wrong --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=APART || exit 1; \
// RUN: done

// OWNER:      pipe.step train
// OWNER:      %[[R0:.*]] = pipe.collective all_reduce in @s0(%{{.*}}) over replicas :
// OWNER-NEXT: %[[R1:.*]] = pipe.collective all_reduce of @wte in @s1(%{{.*}}) over replicas :
// OWNER-NEXT: %[[OF1:.*]] = pipe.gradient_of @wte in @s1(%[[R1]])
// OWNER-NEXT: %[[SUM:.*]] = pipe.add_gradient @wte in @s0(%[[R0]], %[[OF1]])
// OWNER-NEXT: pipe.task update @s0(%[[SUM]])

// ONE-NOT: replicas

// A rank waits for one before it begins the next on the same bytes; the program
// is the same for all replicas, so it needs room for the longest part.
// RUN: %{tied} | %{scheduled} --pipe-synchronize-weights --pipe-insert-transfers --pipe-verify-schedule > %t
// RUN: FileCheck %s --check-prefix=RANKS < %t
// RUN: pipewright-opt %t --pipe-plan-memory --pipe-verify-allocated > %t.allocated
// RUN: FileCheck %s --check-prefix=BYTES < %t.allocated
// RANKS-LABEL: pipe.rank 1 train
// RANKS:      %[[R:.*]] = pipe.collective all_reduce in @s1(%{{.*}}) over replicas :
// RANKS:      pipe.wait_collective %[[R]]
// RANKS-NEXT: %[[T:.*]] = pipe.collective all_reduce of @wte in @s1(%[[R]])
// RANKS-NEXT: pipe.wait_collective %[[T]]
// RANKS-NEXT: pipe.task update @s1(%[[T]])
// RANKS-NEXT: pipe.wait_send
// BYTES: pipe.optimizer @s0 {{.*}} gradients <arena 0 at {{[0-9]+}} bytes 192>
// BYTES: pipe.collective all_reduce in @s0(%{{.*}}) over replicas buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 128>] :

// RUN: sed '/@s0.*over replicas/d; /wait_collective %gradients_s0 /d; s/of @wte in @s0(%gradients_s0)/of @wte in @s0(%gradients_s0_1)/; /%gradients_s0_3/s/gradient<@s0>/gradient<@s0, partial>/g' %t | %{verify} | FileCheck %s --check-prefix=OWN
// RUN: sed 's/all_reduce in @s0/all_reduce of @wte in @s0/' %t | %{verify} | FileCheck %s --check-prefix=PART
// RUN: sed '/pipe.wait_collective.*s1/d' %t | %{verify} | FileCheck %s --check-prefix=WAIT
// RUN: sed '/over replicas.*/s/bytes 128>/bytes 64>/' %t.allocated | %{allocated} | FileCheck %s --check-prefix=SIZE
// OWN: error: 'pipe.task' op expects gradients that are summed over all 3 replicas
// PART: error: 'pipe.collective' op expects to return '!pipe.gradient<@s0, partial>', but returns '!pipe.gradient<@s0>'
// WAIT: error: rank 1 never waits for the all-reduce of gradients of stage '@s1'
// SIZE: error: 'pipe.collective' op expects a buffer of 128 bytes, but got #pipe.buffer<arena 0 at {{[0-9]+}} bytes 64>

// Nothing that replicas would not do alike.
// RUN: sed 's/#pipe.program</&replicas = 0, /' %inputs/pipe/tied.mlir | not pipewright-opt -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// UPDATES: error: --data-parallel 3 with the running statistic 'mean' (batch normalization) expects a schedule with one update in a step, but this one has 2
// NONE: error: expects 'replicas' to be positive, but got 0

// Running statistics become one behind all else that replicas do. Then the same
// programs, broken.
// DEFINE: %{state} = sed 's/^  nn.weight @wte/  nn.weight @mean role = state : tensor<4xf32>\n&/; s/^      %y = nn.relu %h/      nn.assign_state @mean, %bias decay = 9.0e-01 : tensor<4xf32>\n&/'
// RUN: %{tied} | %{state} | %{scheduled} --pipe-synchronize-weights --pipe-verify-unrolled > %t.states
// RUN: FileCheck %s --check-prefix=STATES < %t.states
// RUN: pipewright-opt %t.states --pipe-insert-transfers --pipe-verify-schedule > %t.ranks
// RUN: FileCheck %s --check-prefix=MERGED < %t.ranks
// STATES:      pipe.collective all_reduce in @s1(%{{.*}}) over replicas :
// STATES-NOT:  pipe.merge_statistics
// STATES:      pipe.task update @s1
// STATES:      pipe.merge_statistics in @s0 over replicas
// STATES-NEXT: }
// MERGED-LABEL: pipe.rank 0 train
// MERGED:      pipe.task  backward @s0 micro_batch 1
// MERGED:      pipe.task update @s0
// MERGED-NEXT: pipe.merge_statistics in @s0 over replicas
// MERGED-NEXT: }
// MERGED-LABEL: pipe.rank 1 train
// MERGED-NOT:  pipe.merge_statistics

// Where gradients are clipped, the weights that replicas hand out come behind what
// clips them: the statistics wait for these, too.
// RUN: %{tied} | %{state} | sed 's/replicas = 3/&, zero = 1, clip_norm = 1.0 : f64/' | %{scheduled} --pipe-synchronize-weights --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule | FileCheck %s --check-prefix=CLIPPED
// CLIPPED-LABEL: pipe.rank 0 train
// CLIPPED:      pipe.task update @s0
// CLIPPED:      pipe.collective all_gather bucket 1 in @s0
// CLIPPED:      pipe.wait_collective
// CLIPPED-NEXT: pipe.wait_collective
// CLIPPED-NEXT: pipe.merge_statistics in @s0 over replicas
// CLIPPED-NEXT: }

// RUN: awk '/merge_statistics/ {next} /wait_collective/ && !n++ {print "    pipe.merge_statistics in @s0 over replicas"} {print}' %t.ranks | %{verify} | FileCheck %s --check-prefix=UNDERWAY
// UNDERWAY: error: 'pipe.merge_statistics' op stands where a collective is under way, which would have to be over first
// RUN: sed '/pipe.merge_statistics/d' %t.ranks | %{verify} | FileCheck %s --check-prefix=NEVER
// RUN: sed 's/.*pipe.merge_statistics.*/&\n&/' %t.ranks | %{verify} | FileCheck %s --check-prefix=TWICE
// RUN: sed '/pipe.merge_statistics/d; s/^\( *\)%.* = pipe.task *forward @s0 micro_batch 1/\1pipe.merge_statistics in @s0 over replicas\n&/' %t.ranks | %{verify} | FileCheck %s --check-prefix=EARLY
// RUN: sed 's/merge_statistics in @s0/merge_statistics in @s1/' %t.ranks | %{verify} | FileCheck %s --check-prefix=WITHOUT
// RUN: sed 's/replicas = 3, //' %t.states | not pipewright-opt -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: %{tied} | %{state} | sed 's/ decay = 9.0e-01//' | %{scheduled} > %t.unknown
// RUN: %{tied} | %{state} | %{scheduled} | sed 's/replicas = 3/&, updates = 2/' > %t.updates
// RUN: not pipewright-opt %t.updates --pipe-synchronize-weights -o /dev/null 2>&1 | FileCheck %s --check-prefix=UPDATES
// RUN: not pipewright-opt %t.unknown --pipe-synchronize-weights -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// NEVER: error: {{.*}}never makes one of the running statistics that 3 replicas have of stage '@s0'
// TWICE: error: 'pipe.merge_statistics' op is the second one of stage '@s0'
// EARLY: error: 'pipe.merge_statistics' op stands before a forward of its stage
// WITHOUT: error: 'pipe.merge_statistics' op
// ALONE: error: 'pipe.{{.*}} is over replicas, but the module has one alone
// UNKNOWN: error: writes the state 'mean', which does not say what of it remains (decay): 3 replicas cannot make one of theirs
