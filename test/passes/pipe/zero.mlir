// ZeRO-1: a replica gets its part of the sums, updates its part of the weights, and
// gathers those of the others. Then the same programs, broken.

// DEFINE: %{zero} = sed -e 's/#pipe.program</&replicas = 3, zero = 1, /'
// DEFINE: %{step} = pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights
// DEFINE: %{unrolled} = not pipewright-opt %t.wrong --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s
// DEFINE: %{ranks} = not pipewright-opt %t.wrong --pipe-insert-transfers --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s
// RUN: %{zero} %inputs/pipe/tied.mlir | %{step} | sed 's/  */ /g' > %t
// RUN: FileCheck %s < %t
// A weight of two ranks is alone in its bucket, so that both have the same parts of it.
// CHECK: %[[A0:.*]] = pipe.collective reduce_scatter bucket 0 in @s0(%{{.*}}) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
// CHECK-NEXT: %[[R0:.*]] = pipe.collective reduce_scatter bucket 1 in @s0(%[[A0]]) over replicas : (!pipe.gradient<@s0, split>) -> !pipe.gradient<@s0, split>
// They sum the part that their replica has.
// CHECK: %[[T0:.*]] = pipe.collective all_reduce of @wte in @s0(%[[R0]]) over [0, 1] : (!pipe.gradient<@s0, split>) -> !pipe.gradient<@s0, split>
// CHECK: %[[U0:.*]] = pipe.task update @s0(%[[T0]]) : (!pipe.gradient<@s0, split>) -> !pipe.updated<@s0, split>
// CHECK-NEXT: %[[G0:.*]] = pipe.collective all_gather bucket 0 in @s0(%[[U0]]) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>
// CHECK-NEXT: pipe.collective all_gather bucket 1 in @s0(%[[G0]]) over replicas : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
// CHECK-NEXT: %[[U1:.*]] = pipe.task update @s1
// CHECK-NEXT: pipe.collective all_gather in @s1(%[[U1]]) over replicas

// A range has three parts of 128 bytes or a multiple; a replica keeps states of one.
// RUN: pipewright-opt %t --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule > %t.ranks
// RUN: FileCheck %s --check-prefix=RANKS < %t.ranks
// RUN: pipewright-opt %t.ranks --pipewright-allocated=assign-streams > %t.allocated
// RUN: FileCheck %s --check-prefix=BYTES < %t.allocated
// RANKS-LABEL: pipe.rank 0 train
// RANKS: pipe.collective reduce_scatter bucket 1 in @s0
// RANKS: %[[R:.*]] = pipe.collective all_reduce of @wte in @s0
// RANKS: pipe.wait_collective %[[R]] : !pipe.gradient<@s0, split>
// RANKS-NEXT: %[[U:.*]] = pipe.task update @s0(%[[R]])
// RANKS-NEXT: %[[V:.*]] = pipe.collective all_gather bucket 0 in @s0(%[[U]])
// RANKS-NEXT: %[[W:.*]] = pipe.collective all_gather bucket 1 in @s0(%[[V]])
// RANKS: pipe.wait_collective %[[W]] : !pipe.updated<@s0>
// BYTES: pipe.optimizer @s0 kernels [@kernels::@sgd_32, @kernels::@sgd_32] shards 3 buckets [384, 384] weights <arena 0 at 0 bytes 768> gradients <arena 0 at 832 bytes 768> states [#pipe.buffer<arena 0 at 1600 bytes 256>]

// The owner of a tied weight hands on what replicas have gathered.
// RUN: %{zero} %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights=tied=owner --pipe-verify-unrolled | FileCheck %s --check-prefix=OWNER
// OWNER: %[[W:.*]] = pipe.collective all_gather in @s0
// OWNER: %[[V:.*]] = pipe.weight_of @wte in @s0(%[[W]]) : (!pipe.updated<@s0>)
// OWNER: pipe.set_weight @wte in @s1(%[[V]]

// Clipping takes all gradients, so each replica gets all sums.
// RUN: %{zero} -e 's/#pipe.program</&clip_norm = 1.0 : f64, /' %inputs/pipe/tied.mlir | %{step} --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule | FileCheck %s --check-prefix=CLIP
// CLIP: pipe.collective all_reduce bucket 1 in @s0({{.*}} over replicas
// CLIP: pipe.collective all_reduce of @wte in @s0({{.*}} over [0, 1]
// CLIP: %[[C:.*]] = pipe.clip_gradients in @s0
// CLIP: pipe.task update @s0(%[[C]]) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0, split>
// CLIP: pipe.collective all_gather bucket 0 in @s0

// Nobody gathers, or somebody twice.
// RUN: sed -e '/all_gather in @s1/d' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=NEVER && %{ranks} --check-prefix=NEVER
// NEVER: error: 'pipe.task' op expects its weights to be put together once, but they are 0 times
// RUN: sed -e '/all_gather in @s1/{p;s/%updated_s1_[0-9]* =/%again =/}' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=AGAIN && %{ranks} --check-prefix=AGAIN
// AGAIN: error: 'pipe.task' op expects its weights to be put together once, but they are 2 times

// All weights are updated where states are of a part.
// RUN: sed -e '/reduce_scatter bucket . in @s0/{s/reduce_scatter/all_reduce/;s/, split>/>/g}; /update @s0\|of @wte in @s0/s/, split>/>/g; /all_gather bucket . in @s0/d' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=ALL && %{ranks} --check-prefix=ALL
// ALL: error: 'pipe.task' op expects to make a part of the weights: 'zero' is 1

// What the owner hands on is a part.
// RUN: %{zero} %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights=tied=owner | sed 's/  */ /g' > %t.owner
// RUN: sed -e '/weight_of @wte/{s/(%[a-z0-9_]*)/(%updated_s0)/;s/<@s0>/<@s0, split>/}' %t.owner > %t.wrong
// RUN: %{unrolled} --check-prefix=HANDED && %{ranks} --check-prefix=HANDED
// HANDED: error: 'pipe.weight_of' op expects a whole range, but takes '!pipe.updated<@s0, split>'

// Buffers that are not of a part.
// RUN: sed -e 's/ shards 3//; s/, @kernels::@sgd_32\]/]/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHARDS
// SHARDS: error: 'pipe.optimizer' op expects shards: 'zero' is 1
// RUN: sed -e '/pipe.optimizer @s0/s/\(states .*\) bytes 256>/\1 bytes 64>/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATES
// STATES: error: 'pipe.optimizer' op expects states of 256 bytes, but got #pipe.buffer<arena 0 at 1600 bytes 64>

// What has no meaning.
// RUN: sed 's/#pipe.program</&zero = 1, /' %inputs/pipe/tied.mlir | not pipewright-opt 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: expects 'zero' of 0 with one replica, but got 1
// RUN: sed 's/#pipe.program</&replicas = 1099511627776, zero = 1, /' %inputs/pipe/tied.mlir | not pipewright-opt 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: expects at most 65536 ranks of all replicas, but got 1099511627776 replicas of 1
// RUN: sed 's/#pipe.program</&replicas = 2, zero = 4, /' %inputs/pipe/tied.mlir | not pipewright-opt 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: expects 'zero' to be 0, 1, 2 or 3, but got 4
// RUN: %{zero} -e 's/micro_batches = 4/micro_batches = 4, updates = 4/' %inputs/pipe/chain.mlir | not pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=pipedream ranks=4" 2>&1 | FileCheck %s --check-prefix=STALE
// STALE: error: --zero 1 expects a schedule with one update in a step, but this one has 4

// Where tasks read bf16 copies alone, these are gathered alone.
// RUN: pipewright compile %models/byte-gpt.onnx --loss softmax-cross-entropy --precision bf16 --micro-batch-size 2 --micro-batches 2 --ranks 2 --data-parallel 2 --zero 1 --emit scheduled | sed 's/  */ /g' > %t.bf16
// RUN: FileCheck %s --check-prefix=BF16 < %t.bf16
// RUN: pipewright-opt %t.bf16 --pipe-verify-schedule -o /dev/null
// BF16-NOT: all_gather {{in|bucket}}
// BF16: %[[V:.*]] = pipe.collective all_gather rounded bucket 0 in @s0(%{{.*}}) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>
// BF16-NEXT: %[[W:.*]] = pipe.collective all_gather rounded bucket 1 in @s0(%[[V]]) over replicas : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
// BF16: pipe.wait_collective %[[W]]
// BF16-NOT: all_gather {{in|bucket}}
// RUN: sed -e 's/all_gather rounded bucket \(.\) in @s0/all_gather bucket \1 in @s0/' %t.bf16 | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=COPIES
// COPIES: error: 'pipe.task' op expects its weights, rounded to bf16, to be put together once, but they are 0 times
