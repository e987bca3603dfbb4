// Sums of buckets begin inside the backward that makes their gradients whole; then the
// same programs, broken.

// The last weight of the model is the first one whose gradient is whole; something is
// left to do behind all of them.
// DEFINE: %{step} = pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=1" --pipe-synchronize-weights --pipe-insert-transfers
// RUN: %{step} %s --pipe-interleave-sums --pipe-verify-schedule | sed 's/  */ /g' > %t
// RUN: FileCheck %s < %t
// CHECK: %[[BEFORE:.*]] = pipe.task backward @s0 micro_batch 0(
// CHECK: %[[G:.*]] = pipe.task backward @s0 micro_batch 1 parts 3({{.*}}%[[BEFORE]])
// CHECK-NEXT: %[[S0:.*]] = pipe.collective all_reduce bucket 0 in @s0(%[[G]]) over replicas
// CHECK-NEXT: %[[R1:.*]] = pipe.resume in @s0(%[[S0]]) part 1 : <@s0>
// CHECK-NEXT: %[[S1:.*]] = pipe.collective all_reduce bucket 1 in @s0(%[[R1]]) over replicas
// CHECK-NEXT: %[[R2:.*]] = pipe.resume in @s0(%[[S1]]) part 2 : <@s0>
// CHECK-NEXT: pipe.wait_collective %[[S0]]
// CHECK-NEXT: pipe.wait_collective %[[S1]]
// CHECK-NEXT: pipe.task update @s0(%[[R2]])

// Idempotent; nothing to do without buckets, or with one.
// RUN: pipewright-opt %t --pipe-interleave-sums | sed 's/  */ /g' | diff %t -
// RUN: sed 's/bucket_size = [0-9]*, //' %s > %t.whole && %{step} %t.whole > %t.plain
// RUN: pipewright-opt %t.plain --pipe-interleave-sums | diff %t.plain -
// RUN: sed 's/bucket_size = [0-9]*/bucket_size = 1000/' %s > %t.whole && %{step} %t.whole --pipe-interleave-sums | FileCheck %s --check-prefix=ONE
// ONE-NOT: pipe.resume
// ONE: pipe.collective all_reduce in @s0
// ONE-NOT: pipe.resume

// Parts of a bucket with ZeRO; its weights lie in the order in which they are whole.
// RUN: sed 's/bucket_size/zero = 1, &/' %s > %t.zero && %{step} %t.zero --pipe-interleave-sums --pipe-verify-schedule | pipewright-opt --pipewright-allocated=assign-streams > %t.allocated
// RUN: FileCheck %s --check-prefix=ZERO < %t.allocated
// ZERO: pipe.place @w0 in @s0 weight <arena 0 at 320 bytes 16>
// ZERO: pipe.place @w1 in @s0 weight <arena 0 at 256 bytes 16>
// ZERO: pipe.place @w2 in @s0 weight <arena 0 at 0 bytes 64>
// ZERO: pipe.optimizer @s0 kernels [@kernels::@adamw_32, @kernels::@adamw_32] shards 2 buckets [256, 256]
// ZERO: pipe.task backward @s0 micro_batch 1 parts 3
// ZERO-NEXT: pipe.record_event [[E:[0-9]+]] on compute
// ZERO-NEXT: pipe.wait_event [[E]] on collective
// ZERO-NEXT: reduce_scatter bucket 0 in @s0
// ZERO-NEXT: pipe.resume in @s0
// ZERO-SAME: part 1 : <@s0, split>

// Behind a bucket that is not whole; cut elsewhere; without the last part; with
// something between.
// DEFINE: %{refused} = not pipewright-opt %t.wrong --pipe-verify-schedule -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/bucket 1 in/bucket 9 in/; s/bucket 0 in/bucket 1 in/; s/bucket 9 in/bucket 0 in/' %t > %t.wrong
// RUN: %{refused} --check-prefix=EARLY
// EARLY: error: 'pipe.collective' op expects a value that is whole over replicas, but got '!pipe.gradient<@s0, partial>'
// RUN: sed -E '/part 1 :/{s/\(%[a-z0-9_]*\)/(%gradients_s0_3)/;h;d}; /all_reduce bucket 1/{s/\(%[a-z0-9_]*\)/(%gradients_s0)/;G}; /part 2 :/s/\(%[a-z0-9_]*\)/(%gradients_s0_2)/' %t > %t.wrong
// RUN: %{refused} --check-prefix=ADDS
// ADDS: error: 'pipe.resume' op uses the state of stage '@s0' while a collective works on it
// RUN: sed 's/parts 3/parts 4/' %t > %t.wrong
// RUN: %{refused} --check-prefix=CUT
// CUT: error: 'pipe.task' op expects 3 parts, behind which buckets are whole, but has 4
// RUN: sed -E '/part 2 :/d; s/update @s0\(%[a-z0-9_]*\)/update @s0(%gradients_s0_3)/' %t > %t.wrong
// RUN: %{refused} --check-prefix=ENDS
// ENDS: error: 'pipe.task' op begins, but does not go on to the last of its 3 parts
// RUN: sed -E '/wait_collective %gradients_s0 :/d; /part 2 :/i pipe.wait_collective %gradients_s0 : !pipe.gradient<@s0>' %t > %t.wrong
// RUN: %{refused} --check-prefix=BETWEEN
// BETWEEN: error: 'pipe.resume' op expects only collectives between itself and the part before it

// Bytes that others get while it goes on, and events.
// RUN: sed -E '/reduce_scatter bucket 0/s/(buffers \[#pipe.buffer<arena 0 at )[0-9]+/\10/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: 'pipe.collective' op writes
// RUN: stash=$(grep -oE '%x_s0_1 = .*' %t.allocated | grep -oE 'arena 0 at [0-9]+') && sed -E "/reduce_scatter bucket 0/s/(buffers \[#pipe.buffer<)arena 0 at [0-9]+/\1$stash/" %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=READS
// READS: error: 'pipe.resume' op
// RUN: sed -E '/pipe.wait_event [0-9]+ on collective/d' %t.allocated | not pipewright-opt --pipe-verify-streams -o /dev/null 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: data race on rank 0: reduce_scatter of bucket 0 in stage '@s0'

module attributes {pipe.program = #pipe.program<replicas = 2, micro_batches = 2, bucket_size = 17, optimizer = <adamw>>} {
  nn.weight @w0 role = parameter : tensor<4xf32>
  nn.weight @w1 role = parameter : tensor<4xf32>
  nn.weight @w2 role = parameter : tensor<4x4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4x4xf32>):
      %w0 = nn.parameter @w0 : tensor<4xf32>
      %0 = nn.mul %x, %w0 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
      %w1 = nn.parameter @w1 : tensor<4xf32>
      %1 = nn.mul %0, %w1 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
      %w2 = nn.parameter @w2 : tensor<4x4xf32>
      %2 = nn.mul %1, %w2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      pipe.return stash %2 : tensor<4x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>):
      %2 = nn.mul %y, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.accumulate_gradient @w2, %2 : tensor<4x4xf32>
      %3 = nn.mul %2, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %4 = nn.reduce_sum %3 axes = [0] : tensor<4x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w1, %4 : tensor<4xf32>
      %5 = nn.mul %3, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %6 = nn.reduce_sum %5 axes = [0] : tensor<4x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w0, %6 : tensor<4xf32>
      %7 = nn.mul %5, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      pipe.return
    }
  }
}
