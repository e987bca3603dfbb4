// What sums over ranks and replicas must be: each gradient in it once, from every
// member, whole before it is used. Each program below has one mistake, in the step
// and therefore in the programs of its ranks: both levels refuse it.

// DEFINE: %{step} = sed 's/#pipe.program</&replicas = 3, /' %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights
// DEFINE: %{unrolled} = not pipewright-opt %t.wrong --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s
// DEFINE: %{ranks} = not pipewright-opt %t.wrong --pipe-insert-transfers --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s
// RUN: %{step} | sed 's/  */ /g' > %t
// RUN: pipewright-opt %t --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule -o /dev/null
// RUN: FileCheck %s < %t
// CHECK: %gradients_s0 = pipe.collective all_reduce in @s0(%gradients_s0_1) over replicas
// CHECK: %gradients_s1 = pipe.collective all_reduce in @s1(%gradients_s1_1) over replicas
// CHECK: %gradients_s0_2 = pipe.collective all_reduce of @wte in @s0(%gradients_s0) over [0, 1]
// CHECK: %gradients_s1_3 = pipe.collective all_reduce of @wte in @s1(%gradients_s1) over [0, 1]
// CHECK: pipe.task update @s0(%gradients_s0_2)
// CHECK: pipe.task update @s1(%gradients_s1_3)

// Replicas add the same twice.
// RUN: sed -e '/update @s0/{s/%gradients_s0_2/%double/;h;s/.*/ %double = pipe.collective all_reduce in @s0(%gradients_s0_2) over replicas : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>/;G}' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=TWICE && %{ranks} --check-prefix=TWICE
// TWICE: error: 'pipe.collective' op expects a value that is partial over replicas, but got '!pipe.gradient<@s0>'

// Ranks that share a weight add the same twice.
// RUN: sed -e '/over \[0, 1\]/{p;s/^ %\(gradients_s[01]_[23]\) = \(.*\)(%gradients_s[01])/ %again_\1 = \2(%\1)/}; /update/s/(%gradients_s/(%again_gradients_s/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=AGAIN && %{ranks} --check-prefix=AGAIN
// AGAIN: error: 'pipe.task' op is of the gradient of '@wte' in stage '@s0', micro-batch 0, 2 times

// Replicas may add what ranks have added: all of these do, or none.
// DEFINE: %{member} =
// DEFINE: %{ranks-first} = sed -e 's/all_reduce of @wte in @s\(%{member}\)\(.*\) over \[0, 1\] : (!pipe.gradient<@s.>)/LATER in @s\1\2 over replicas : (!pipe.gradient<@s\1, partial>)/; s/all_reduce in @s\(%{member}\)\(.*\) over replicas : \(.*\) -> .*/all_reduce of @wte in @s\1\2 over [0, 1] : \3 -> !pipe.gradient<@s\1, partial>/; s/LATER/all_reduce/' %t
// REDEFINE: %{member} = [01]
// RUN: %{ranks-first} | pipewright-opt --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule -o /dev/null
// REDEFINE: %{member} = 0
// RUN: %{ranks-first} > %t.wrong
// RUN: %{unrolled} --check-prefix=MIXED && %{ranks} --check-prefix=MIXED
// MIXED: error: 'pipe.collective' op gives '!pipe.gradient<@s{{[01].*}}' to a sum with '!pipe.gradient<@s{{[01].*}}': all members' gradients are those of a replica, or of all

// Replicas have not added.
// RUN: sed -e 's/update @s0(%gradients_s0_2) : (!pipe.gradient<@s0>)/update @s0(%gradients_s0_1) : (!pipe.gradient<@s0, partial>)/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=WHOLE && %{ranks} --check-prefix=WHOLE
// WHOLE: error: 'pipe.task' op expects gradients that are summed over all 3 replicas

// A part is used as the whole: the types say so.
// RUN: sed -e 's/all_reduce in @s0/reduce_scatter in @s0/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=PART && %{ranks} --check-prefix=PART
// PART: error: 'pipe.collective' op expects to return '!pipe.gradient<@s0, split>', but returns '!pipe.gradient<@s0>'
// RUN: sed -e '/reduce in @s0/{s/all_reduce/reduce_scatter/;s/<@s0>$/<@s0, split>/}' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=TYPE && %{ranks} --check-prefix=TYPE
// TYPE: error: use of value '%gradients_s0' expects different type than prior uses: '!pipe.gradient<@s0>' vs '!pipe.gradient<@s0, split>'
// RUN: sed -e '/reduce in @s0/{s/all_reduce/reduce_scatter/;s/<@s0>$/<@s0, split>/}; /update @s0\|of @wte in @s0/s/<@s0>/<@s0, split>/g' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=UPDATED && %{ranks} --check-prefix=UPDATED
// UPDATED: error: 'pipe.task' op expects to make all weights: 'zero' is 0

// A gradient comes behind the sum, or is not in it.
// RUN: sed -e '/backward @s0 micro_batch 1/{s/%gradients_s0_0)/%early)/;h;s/@s0, partial>) ->/@s0>) ->/;h;s/.*/ %early = pipe.collective all_reduce in @s0(%gradients_s0_0) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>/;G}' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=ADDED && %{ranks} --check-prefix=ADDED
// ADDED: error: 'pipe.task' op expects operands {{.*}}, '!pipe.gradient<@s0, partial>', but got {{.*}}, '!pipe.gradient<@s0>'
// RUN: sed -e '/backward @s0 micro_batch 1/{s/%gradients_s0_0)/%early)/;h;s/.*/ %early = pipe.collective all_reduce of @wte in @s0(%gradients_s0_0) over [0, 1] : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, partial>/;G}' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=EARLY && %{ranks} --check-prefix=EARLY
// EARLY: error: 'pipe.task' op expects the gradients summed up to micro-batch 0
// RUN: sed -e 's/all_reduce in @s0(%gradients_s0_1)/all_reduce in @s0(%gradients_s0_0)/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=LAST && %{ranks} --check-prefix=LAST
// LAST: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s0', micro-batch 1

// One member is missing, or all are.
// RUN: sed -e '/of @wte in @s0/d; s/update @s0(%gradients_s0_2)/update @s0(%gradients_s0)/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=MEMBER && %{ranks} --check-prefix=MEMBER
// MEMBER: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s{{[01]}}', micro-batch 0
// RUN: sed -e '/of @wte in @s/d; s/update @s\([01]\)(%gradients_s[01]_[23])/update @s\1(%gradients_s\1)/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=NOBODY && %{ranks} --check-prefix=NOBODY
// RUN: sed -e 's/of @wte in @s/of @bias in @s/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=NOBODY && %{ranks} --check-prefix=NOBODY
// NOBODY: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s1', micro-batch 0

// Ranks get a part of the sum each, or one of them all of it.
// RUN: sed -e 's/all_reduce of @wte in @s/reduce_scatter of @wte in @s/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=NOBODY && %{ranks} --check-prefix=NOBODY
// RUN: sed -e '/all_reduce of @wte in @s/{s/all_reduce/reduce/;s/over \[0, 1\]/over [0, 1] root 0/}' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=ROOT && %{ranks} --check-prefix=ROOT
// ROOT-NOT: in stage '@s1'
// ROOT: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s0', micro-batch 0

// The same ranks in another order would add in another order; other ranks have
// nothing to add.
// RUN: sed -e '/of @wte in @s0/s/over \[0, 1\]/over [1, 0]/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=ORDER && %{ranks} --check-prefix=ORDER
// ORDER: error: 'pipe.collective' op sums gradients of '@wte' over ranks [1, 0], but its holders are on [0, 1]
// RUN: sed -e '/of @wte in @s0/s/over \[0, 1\]/over [0, 2]/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=OTHER && %{ranks} --check-prefix=OTHER
// OTHER: error: 'pipe.collective' op sums gradients of '@wte' over ranks [0, 2], but its holders are on [0, 1]

// Rank 1 waits before its last backward for what rank 0 takes part in behind its own, which
// needs that backward's gradient.
// RUN: sed -e '/of @wte in @s1/d; s/update @s1(%gradients_s1_3)/update @s1(%gradients_s1)/; /backward @s1 micro_batch 1/{s/%gradients_s1_0)/%early)/;h;s/.*/ %early = pipe.collective all_reduce of @wte in @s1(%gradients_s1_0) over [0, 1] : (!pipe.gradient<@s1, partial>) -> !pipe.gradient<@s1, partial>/;G}' %t > %t.wrong
// RUN: not pipewright-opt %t.wrong --pipe-insert-transfers -o /dev/null 2>&1 | FileCheck %s --check-prefix=CIRCLE
// CIRCLE: error: deadlock: rank 0 waits at B0.1 for the gradient of stage 1, micro-batch 1, which rank 1 computes after B1.1, which waits for the all-reduce of gradients of 'wte', which rank 0 begins after B0.1

// Sums at the owner of a weight.
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights=tied=owner | sed 's/  */ /g' > %t.owner
// RUN: FileCheck %s --check-prefix=OWNER < %t.owner
// OWNER: %d_wte_s1 = pipe.gradient_of @wte in @s1(%gradients_s1_1)
// OWNER: %gradients_s0 = pipe.add_gradient @wte in @s0(%gradients_s0_1, %d_wte_s1)
// RUN: sed -e 's/gradient_of @wte in @s1(%gradients_s1_1)/gradient_of @wte in @s1(%gradients_s1_0)/' %t.owner > %t.wrong
// RUN: %{unrolled} --check-prefix=SHORT && %{ranks} --check-prefix=SHORT
// SHORT: error: 'pipe.task' op lacks the gradient of '@wte' in stage '@s1', micro-batch 1
// RUN: sed -e '/add_gradient @wte/{p;s/%gradients_s0 =/%more =/;s/(%gradients_s0_1,/(%gradients_s0,/}; s/update @s0(%gradients_s0)/update @s0(%more)/' %t.owner > %t.wrong
// RUN: %{unrolled} --check-prefix=MORE && %{ranks} --check-prefix=MORE
// MORE: error: 'pipe.task' op is of the gradient of '@wte' in stage '@s1', micro-batch 0, 2 times

// Over replicas, what a stage lends to the owner is summed on its own, once, as the owner's
// gradient is.
// RUN: sed 's/#pipe.program</&replicas = 3, /' %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights=tied=owner | sed 's/  */ /g' > %t.lent
// RUN: pipewright-opt %t.lent --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule -o /dev/null
// RUN: FileCheck %s --check-prefix=LENT < %t.lent
// LENT: %gradients_s0 = pipe.collective all_reduce in @s0(%gradients_s0_1) over replicas
// LENT: %gradients_s1 = pipe.collective all_reduce of @wte in @s1(%gradients_s1_1) over replicas : (!pipe.gradient<@s1, partial>) -> !pipe.gradient<@s1, partial>
// LENT: %d_wte_s1 = pipe.gradient_of @wte in @s1(%gradients_s1)
// LENT: %gradients_s0_2 = pipe.add_gradient @wte in @s0(%gradients_s0, %d_wte_s1)
// RUN: sed -e '/of @wte in @s1.*over replicas/d; s/%gradients_s1\([),]\)/%gradients_s1_1\1/' %t.lent > %t.wrong
// RUN: %{unrolled} --check-prefix=OFONE && %{ranks} --check-prefix=OFONE
// OFONE: error: 'pipe.add_gradient' op adds to the gradient of all replicas what one of them has
// RUN: sed -e '/of @wte in @s1.*over replicas/{p;s/%gradients_s1 =/%again =/;s/%gradients_s1_1/%gradients_s1/}; s/gradient_of @wte in @s1(%gradients_s1)/gradient_of @wte in @s1(%again)/' %t.lent > %t.wrong
// RUN: %{unrolled} --check-prefix=OFTWO && %{ranks} --check-prefix=OFTWO
// OFTWO: error: 'pipe.gradient_of' op is of a gradient that is summed over all replicas 2 times
// RUN: sed -e '/all_reduce in @s0/{h;d}; /add_gradient @wte/{s/%gradients_s0,/%gradients_s0_1,/;s/<@s0>/<@s0, partial>/;p;x;s/%gradients_s0_1/%gradients_s0_2/}; s/update @s0(%gradients_s0_2)/update @s0(%gradients_s0)/' %t.lent > %t.wrong
// RUN: %{unrolled} --check-prefix=OFALL && %{ranks} --check-prefix=OFALL
// OFALL: error: 'pipe.add_gradient' op adds to the gradient of one replica what all replicas have summed
// RUN: sed -e '/all_reduce in @s0/{h;s/.*/ %own = pipe.collective all_reduce of @wte in @s0(%gradients_s0_1) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, partial>/;p;x;s/(%gradients_s0_1)/(%own)/}' %t.lent > %t.wrong
// RUN: %{unrolled} --check-prefix=OWN && %{ranks} --check-prefix=OWN
// OWN: error: 'pipe.collective' op is of a weight that its stage updates, which replicas sum with all others of the stage
// RUN: sed -e 's/gradient_of @wte in @s1(%gradients_s1)/gradient_of @bias in @s1(%gradients_s1)/; s/-> tensor<8x4xf32>/-> tensor<8x4xf32>/' %t.lent > %t.wrong
// RUN: %{unrolled} --check-prefix=NEEDLESS && %{ranks} --check-prefix=NEEDLESS
// NEEDLESS: error: 'pipe.collective' op is over replicas, but no update is of what it makes

// With several updates in a step, each is of its own micro-batches.
// RUN: sed 's/micro_batches = 4/micro_batches = 4, updates = 4/' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=pipedream ranks=4" | sed 's/  */ /g' > %t.stale
// RUN: pipewright-opt %t.stale --pipe-verify-schedule -o /dev/null
// RUN: sed -e '/update @s0 number 1/s/(%[a-z0-9_]*)/(%gradients_s0_0)/' %t.stale | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=STALE
// STALE: error: 'pipe.task' op lacks the gradient of '@{{.*}}' in stage '@s0', micro-batch 1

// Rank 0 adds to what both sum what rank 1 has of that sum.
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights --pipe-insert-transfers | sed 's/  */ /g' > %t.both
// RUN: sed -e '/wait_collective %gradients_s1 /s/$/\n%own = pipe.gradient_of @wte in @s1 (%gradients_s1) : (!pipe.gradient<@s1>) -> tensor<8x4xf32>\n%back = pipe.post_send %own to 0 : tensor<8x4xf32>\npipe.wait_send %back to 0 : <tensor<8x4xf32>>/' -e '/collective all_reduce of @wte in @s0/{s/(%gradients_s0_1)/(%more)/;h;s/.*/%back = pipe.post_receive from 1 : <tensor<8x4xf32>>\n%got = pipe.wait_receive %back from 1 : tensor<8x4xf32>\n%more = pipe.add_gradient @wte in @s0 (%gradients_s0_1, %got) : <@s0>, tensor<8x4xf32>/;G}' %t.both | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=ITSELF
// ITSELF: error: 'pipe.collective' op adds what it makes itself
