// ZeRO-1 with an optimizer that takes matrices as a whole: these are a bucket of their
// own, in which each lies in the part of one replica; then the same programs, broken.

// DEFINE: %{muon} = sed -e 's/#pipe.program</&replicas = 2, zero = 1, /; s/<sgd momentum = 0.9>/<muon>/; s/@wte role = parameter/& outputs = rows/'
// DEFINE: %{step} = pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights
// DEFINE: %{unrolled} = not pipewright-opt %t.wrong --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s
// RUN: %{muon} %inputs/pipe/tied.mlir | %{step} | sed 's/  */ /g' > %t
// RUN: FileCheck %s < %t
// CHECK: %[[R0:.*]] = pipe.collective reduce_scatter bucket 0 in @s0(%{{.*}}) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
// CHECK-NEXT: %[[R1:.*]] = pipe.collective reduce_scatter bucket 1 in @s0(%[[R0]]) over replicas : (!pipe.gradient<@s0, split>) -> !pipe.gradient<@s0, split>
// The other stage has the matrix alone.
// CHECK-NEXT: %[[R2:.*]] = pipe.collective reduce_scatter in @s1
// CHECK-NEXT: %[[T0:.*]] = pipe.collective all_reduce of @wte in @s0(%[[R1]]) over [0, 1]
// CHECK-NEXT: pipe.collective all_reduce of @wte in @s1(%[[R2]]) over [0, 1]
// CHECK-NEXT: %[[U0:.*]] = pipe.task update @s0(%[[T0]])
// CHECK-NEXT: %[[W0:.*]] = pipe.collective all_gather bucket 0 in @s0(%[[U0]]) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>
// CHECK-NEXT: pipe.collective all_gather bucket 1 in @s0(%[[W0]]) over replicas : (!pipe.updated<@s0>) -> !pipe.updated<@s0>

// RUN: pipewright-opt %t --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule > %t.ranks
// RUN: pipewright-opt %t.ranks --pipewright-allocated=assign-streams > %t.allocated
// RUN: FileCheck %s --check-prefix=BYTES < %t.allocated
// BYTES: pipe.place @wte in @s0 weight <arena 0 at 256 bytes 128>
// BYTES: pipe.place @bias in @s0 weight <arena 0 at 0 bytes 16>
// BYTES: pipe.optimizer @s0 kernels [@kernels::@muon_32] shards 2 buckets [256, 256] weights <arena 0 at 0 bytes 512>
// BYTES-SAME: states [#pipe.buffer<arena 0 at [[A:[0-9]+]] bytes 256>, #pipe.buffer<arena 0 at [[B:[0-9]+]] bytes 128>]
// BYTES-SAME: elementwise 256 workspace

// A bucket is never summed, or put together; two in the wrong order.
// RUN: sed -e 's/%[a-z0-9_]* = pipe.collective reduce_scatter bucket 0/%all = pipe.collective reduce_scatter bucket 0/; /reduce_scatter bucket 1/d; s/of @wte in @s0([^)]*)/of @wte in @s0(%all)/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=LACKS
// LACKS: error: 'pipe.task' op expects gradients that are summed over all 2 replicas
// RUN: sed -e '/all_gather bucket 1 in @s0/d' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=NEVER
// NEVER: error: 'pipe.task' op expects its weights to be put together once, but they are 0 times
// RUN: sed -e 's/reduce_scatter bucket 1 in @s0/reduce_scatter bucket 2 in @s0/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=LACKS
// RUN: sed -e 's/all_gather bucket 0 in @s0/all_gather in @s0/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=NEVER

// In the arena: as many buckets as the program has, and a matrix in one part.
// DEFINE: %{allocated} = not pipewright-opt %t.wrong --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s
// RUN: sed -e 's/ buckets \[256, 256\]//' %t.allocated | sed -e '/pipe.optimizer @s0/s/elementwise 256/elementwise 0/; s/ kernels \[[^]]*\]//' > %t.wrong
// RUN: %{allocated} --check-prefix=COUNT
// COUNT: error: 'pipe.optimizer' op expects 2 buckets, but has 1
// RUN: sed -e '/pipe.place @wte in @s0/s/at 256 bytes/at 320 bytes/' %t.allocated > %t.wrong
// RUN: %{allocated} --check-prefix=PART
// PART: error: 'pipe.place' op ends behind the part of the replica that updates it

// Ranges of other sizes are told, whatever they are.
// RUN: sed -e 's/pipe.arena rank 0 bytes [0-9]*/pipe.arena rank 0 bytes 8192/; /pipe.optimizer @s0/s/gradients <arena 0 at \([0-9]*\) bytes 512>/gradients <arena 0 at \1 bytes 4096>/' %t.allocated > %t.wrong
// RUN: %{allocated} --check-prefix=LARGE
// LARGE: error: 'pipe.optimizer' op expects gradients of 512 bytes, but got
// RUN: sed -e '/pipe.optimizer @s0/s/gradients <arena 0 at \([0-9]*\) bytes 512>/gradients <arena 0 at \1 bytes 0>/' %t.allocated > %t.wrong
// RUN: %{allocated} --check-prefix=LARGE

// A bucket is of replicas.
// RUN: sed -e 's/all_reduce of @wte in @s0/all_reduce of @wte bucket 0 in @s0/' %t > %t.wrong
// RUN: %{unrolled} --check-prefix=RANKS
// RANKS: error: 'pipe.collective' op expects a bucket or one weight, but is of both

// Two copies of the model sum their parts bucket by bucket, behind replicas, in one order on both
// ranks. Then the same programs, broken.
// RUN: pipewright compile %models/mlp.train.onnx --loss softmax-cross-entropy --optimizer sgd --ranks 2 --schedule chimera --micro-batches 2 --data-parallel 3 --zero 1 --bucket-size 1KiB --target cuda --balance flops --emit scheduled | sed 's/  */ /g' > %t.copies
// RUN: FileCheck %s --check-prefix=COPIES < %t.copies
// COPIES-LABEL: pipe.rank 1 train
// COPIES: %[[R:.*]] = pipe.collective reduce_scatter bucket 2 in @s1(
// COPIES: %[[A:.*]] = pipe.collective all_reduce bucket 0 in @s1(%[[R]]) over [0, 1] : (!pipe.gradient<@s1, split>) -> !pipe.gradient<@s1, split>
// COPIES-NEXT: pipe.wait_collective
// COPIES-NEXT: %[[B:.*]] = pipe.collective all_reduce bucket 1 in @s1(%[[A]]) over [0, 1]
// COPIES-NEXT: pipe.wait_collective %[[R]]
// COPIES-NEXT: %[[C:.*]] = pipe.collective all_reduce bucket 2 in @s1(%[[B]]) over [0, 1]
// COPIES: pipe.task update @s1(%[[C]])
// RUN: sed -e 's/all_reduce bucket 0 in @s1/all_reduce bucket X in @s1/; s/all_reduce bucket 1 in @s1/all_reduce bucket 0 in @s1/; s/bucket X/bucket 1/' %t.copies | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=SWAPPED
// SWAPPED: error: 'pipe.task' op is of the gradient of '@{{.*}}' in stage '@s{{.*}}', micro-batch {{.}}, 2 times
// RUN: awk '/all_reduce bucket 0 in @s1/ {match($0, /[(]%%[a-z0-9_]*[)]/); taken = substr($0, RSTART, RLENGTH)} /all_reduce bucket 1 in @s1/ {sub(/[(]%%[a-z0-9_]*[)]/, taken)} {print}' %t.copies | not pipewright-opt --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORKED
// FORKED: error: 'pipe.collective' op takes gradients that another collective has taken
// RUN: pipewright-opt %t.copies --pipewright-allocated=assign-streams > %t.placed
// RUN: sed -e '/place @net.4.weight in @s3/{s/at 805888/at 805632/;s/at 1678720/at 1678464/}; /place @net.4.bias in @s3/{s/at 805632/at 871168/;s/at 1678464/at 1744000/}' %t.placed | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIE
// LIE: error: 'pipe.collective' op takes what stages '@s1' and '@s3' update for the same, but their weights lie differently
