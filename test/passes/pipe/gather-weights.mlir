// ZeRO-3: stages take turns in two ranges for their weights, which are loaded and
// gathered for the tasks that read them. Then the same programs, broken.

// DEFINE: %{zero} = sed -e 's/#pipe.program</&replicas = 8, zero = 3, /' %inputs/pipe/chain.mlir
// DEFINE: %{split} = --pipe-synchronize-weights --pipe-share-gradients --pipe-gather-weights
// DEFINE: %{allocate} = --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams
// DEFINE: %{names} = sed 's/  */ /g' | grep -oE 'pipe.step .*|pipe.task (forward|evaluate|backward|update) @s[0-9]( micro_batch [0-9])?|pipe.load_weights in @s[0-9]|all_gather in @s[0-9]'
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" %{split} --pipe-verify-unrolled > %t
// RUN: cat %t | %{names} | FileCheck %s

// A range is loaded when the last task is over that reads what was there before.
// CHECK: pipe.step train
// CHECK-NEXT: load_weights in @s0
// CHECK-NEXT: all_gather in @s0
// CHECK-NEXT: load_weights in @s1
// CHECK-NEXT: all_gather in @s1
// CHECK-NEXT: forward @s0 micro_batch 0
// CHECK: forward @s0 micro_batch 3
// CHECK-NEXT: load_weights in @s2
// CHECK-NEXT: all_gather in @s2
// CHECK-NEXT: forward @s1 micro_batch 0
// CHECK: forward @s1 micro_batch 3
// CHECK-NEXT: load_weights in @s3
// CHECK-NEXT: all_gather in @s3
// CHECK-NEXT: forward @s2 micro_batch 0
// Stages that are there are used again; the first one needs no weights to go back.
// CHECK-NOT: load_weights
// CHECK: backward @s3 micro_batch 3
// CHECK-NEXT: load_weights in @s1
// CHECK-NEXT: all_gather in @s1
// CHECK-NEXT: backward @s2 micro_batch 0
// CHECK-NOT: load_weights
// CHECK-NOT: all_gather
// CHECK: update @s1
// Evaluation gathers for each micro-batch.
// CHECK: pipe.step evaluate
// CHECK: load_weights in @s0
// CHECK: evaluate @s0 micro_batch 0
// CHECK: load_weights in @s0
// CHECK: load_weights in @s0
// CHECK: load_weights in @s0
// CHECK: evaluate @s3 micro_batch 3
// RUN: pipewright-opt %t --pipe-gather-weights | diff %t -

// RUN: pipewright-opt %t %{allocate} > %t.allocated
// RUN: FileCheck %s --check-prefix=BYTES < %t.allocated
// BYTES: pipe.optimizer @s0 {{.*}} weights [[ONE:<arena 0 at 0 bytes 1024>]] home <arena 0 at 2048 bytes 128>
// BYTES: pipe.optimizer @s1 {{.*}} weights [[OTHER:<arena 0 at 1024 bytes 1024>]] home <arena 0 at 2176 bytes 128>
// BYTES: pipe.optimizer @s2 {{.*}} weights [[ONE]] home
// BYTES: pipe.optimizer @s3 {{.*}} weights [[OTHER]] home
// A gather runs beside the tasks of the stage in the other range.
// BYTES: pipe.load_weights in @s2
// BYTES: %[[WEIGHTS:.*]] = pipe.collective all_gather in @s2
// BYTES: pipe.task forward @s1 micro_batch 3
// BYTES: pipe.wait_collective %[[WEIGHTS]] : !pipe.updated<@s2>
// BYTES-NEXT: pipe.wait_event
// BYTES-NEXT: pipe.task forward @s2 micro_batch 0

// With stages in turns, those that run beside each other have different ranges.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=interleaved ranks=1" %{split} --pipe-verify-unrolled %{allocate} > %t.turns
// RUN: sed -n '/pipe.rank 0 *train/,/evaluate/p' %t.turns | grep -c load_weights | FileCheck %s --check-prefix=TURNS
// TURNS: {{^}}14{{$}}

// The half of a backward that reads no weights takes none.
// RUN: %{zero} | pipewright-opt --pipe-split-backward --pipe-unroll-microbatches --pipe-schedule="policy=interleaved-zb ranks=1" %{split} --pipe-verify-unrolled > %t.halves
// RUN: grep -E 'pipe.task +(input|weight)_gradient @s2 micro_batch 1' %t.halves | FileCheck %s --check-prefix=HALVES
// HALVES: input_gradient {{.*}}%updated_s2
// HALVES: weight_gradient
// HALVES-NOT: %updated_s2

// One range for each stage but one, and a range for each: there is nothing to save.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-gather-weights=ranges=3 --pipe-verify-unrolled | sed '/pipe.step *evaluate/,$d' | grep -c load_weights | FileCheck %s --check-prefix=THREE
// THREE: {{^}}4{{$}}
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-gather-weights=ranges=4 --pipe-verify-unrolled | FileCheck %s --check-prefix=LATER
// Two replicas have half each: two ranges would save nothing, one does.
// RUN: sed -e 's/#pipe.program</&replicas = 2, zero = 3, /' %inputs/pipe/chain.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" %{split} --pipe-verify-unrolled | sed '/pipe.step *evaluate/,$d' | grep -c load_weights | FileCheck %s --check-prefix=HALF
// HALF: {{^}}6{{$}}
// So they are with ZeRO-1 and 2: weights are put together in place where the next step
// reads them, in one order; but those of the stage that begins it behind its update.
// RUN: %{zero} | sed 's/zero = 3/zero = 1/' | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" %{split} --pipe-verify-unrolled > %t.later
// RUN: FileCheck %s --check-prefix=LATER < %t.later
// LATER: pipe.step train
// LATER: pipe.load_weights in @s1 in_place
// LATER: pipe.load_weights in @s2 in_place
// LATER: pipe.load_weights in @s3 in_place
// LATER-NOT: load_weights
// LATER: %[[S3:.*]] = pipe.collective all_gather in @s3(
// LATER: pipe.task forward @s0 micro_batch 0(%{{[^,]*}}) :
// LATER: pipe.task forward @s3 micro_batch 0({{.*}}, %[[S3]])
// LATER: pipe.task update @s0
// LATER-NEXT: pipe.collective all_gather in @s0
// LATER-NOT: all_gather
// LATER: pipe.step evaluate
// LATER-COUNT-3: in_place
// LATER-NOT: all_gather in @s0
// RUN: pipewright-opt %t.later %{allocate} > %t.split
// RUN: FileCheck %s --check-prefix=SPLIT < %t.split
// SPLIT: pipe.optimizer @s0 {{.*}} shards 8 weights
// SPLIT: pipe.optimizer @s1 {{.*}} shards 8 split weights
// SPLIT: pipe.rank 0 train
// SPLIT: pipe.load_weights in @s1 in_place
// SPLIT: %[[ONE:.*]] = pipe.collective all_gather in @s1
// SPLIT: pipe.task forward @s0 micro_batch 3
// SPLIT: pipe.wait_collective %[[ONE]]
// SPLIT: pipe.task forward @s1 micro_batch 0
// RUN: sed 's/ in_place//' %t.later | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEVEL1
// LEVEL1: error: 'pipe.load_weights' op expects a stage whose weights replicas have parts of: 'zero' is 1
// RUN: sed 's/ split weights/ weights/' %t.split | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: error: 'pipe.load_weights' op has no home of the weights that it loads; run pipe-plan-memory
// RUN: sed 's/shards 8 weights/shards 8 split weights/' %t.split | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: error: 'pipe.task' op reads weights in {{.*}}, where others are than those that were put together for it
// RUN: sed '/wait_collective .*s1 *:.*updated<@s1>/d' %t.split | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=SOON
// SOON: error: 'pipe.task' op reads weights that are still being put together
// RUN: not pipewright-opt %t --pipe-gather-weights=ranges=0 -o /dev/null 2>&1 | FileCheck %s --check-prefix=RANGES
// RANGES: error: pipe-gather-weights expects ranges of at least 1, but got 0

// A tied weight that an owner hands on is whole; one that is all-reduced is not.
// RUN: sed -e 's/#pipe.program</&replicas = 8, zero = 3, /' %inputs/pipe/tied.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=1" --pipe-synchronize-weights --pipe-gather-weights=ranges=1 --pipe-verify-unrolled %{allocate} | not grep load_weights

// Each task that reads weights takes those that are put together for it.
// RUN: sed -E '0,/(forward @s2 micro_batch 0.*), %updated_s2\)(.*), !pipe.updated<@s2>\)/s//\1)\2)/' %t | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'pipe.task' op expects weights that are put together for it
// RUN: sed -E 's/zero = 3/zero = 2/' %t | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: 'pipe.load_weights' op expects a stage whose weights replicas have parts of: 'zero' is 2
// RUN: sed -E '0,/%loaded_s1_[0-9]+ = .*/{//d};0,/(all_gather in @s1\(%loaded_s1)_[0-9]+/s//\1/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=STALE
// STALE: error: 'pipe.task' op reads weights in {{.*}}, where others are than those that were put together for it

// A range is loaded when nothing is put together in it, and has a home.
// RUN: sed -E 's/(pipe.optimizer @s2 .*) home <arena 0 at [0-9]+ bytes 128>/\1/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=HOMELESS
// HOMELESS: error: 'pipe.place' op has {{.*}}, which overlaps
// RUN: sed 's/arena 0 at 1024 bytes/arena 0 at 0 bytes/g' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
// SAME: error: 'pipe.load_weights' op writes bytes that weights of stage '@s0' are put together in
// RUN: sed -E 's/home <arena 0 at 2048 bytes 128>/home <arena 0 at 2048 bytes 64>/' %t.allocated | not pipewright-opt -o /dev/null 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: 'pipe.optimizer' op expects no home of weights but that of a shard of 128 bytes, and got
// RUN: sed -E 's/(home <arena 0 at 2048 bytes 128>)( .* hyper <[^>]*>)/\1\2 rounded_home <arena 0 at 2048 bytes 64>/' %t.allocated | not pipewright-opt -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROUNDED
// ROUNDED: error: 'pipe.optimizer' op expects no home of rounded weights but where there are such, and weights have one

// The stream of tasks waits for the gather, and the gather for tasks that read what
// was there.
// RUN: sed -E '/pipe.wait_event [0-9]+ on compute/{N;/forward @s2 micro_batch 0/s/.*\n//}' %t.allocated | not pipewright-opt --pipe-verify-streams -o /dev/null 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: data race on rank 0: task F2.0 on stream 'compute' reads bytes
// RUN: sed -E '/pipe.wait_event [0-9]+ on collective/{N;/all_gather in @s2/s/.*\n//}' %t.allocated | not pipewright-opt --pipe-verify-streams -o /dev/null 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: data race on rank 0: all_gather in stage '@s2'

// A load is of a stage of its rank, and somebody puts it together.
// RUN: pipewright-opt %t --pipe-insert-transfers | sed -E 's/pipe.stage @s2 on rank 0/pipe.stage @s2 on rank 1/' | not pipewright-opt --pipe-plan-memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// ELSEWHERE: error: 'pipe.load_weights' op is of no stage of its rank that has weights to update
// RUN: sed -E '0,/%loaded_s2 = pipe.load_weights.*/s//&\n    %again = pipe.load_weights in @s2 : <@s2, split>/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: 'pipe.load_weights' op is never put together

// A task waits for what is put together for it.
// RUN: sed -E '/wait_collective %updated_s2 /d;0,/(.*forward @s2 micro_batch 0.*)/s//\1\n    pipe.wait_collective %updated_s2 : !pipe.updated<@s2>/' %t.allocated | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=HASTY
// HASTY: error: 'pipe.task' op reads weights that are still being put together

// With three ranges interleaved stages are loaded less often if each takes any of them:
// a load says which, and tasks where that is. What is there before is read no more.
// RUN: %{zero} | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=interleaved ranks=1" --pipe-synchronize-weights --pipe-share-gradients --pipe-gather-weights=ranges=3 --pipe-verify-unrolled > %t.any
// RUN: pipewright-opt %t.any %{allocate} > %t.moving
// RUN: sed -n '/pipe.rank 0 *train/,/pipe.rank 0 *evaluate/p' %t.moving | grep -c load_weights | FileCheck %s --check-prefix=ANY
// ANY: {{^}}8{{$}}
// RUN: FileCheck %s --check-prefix=MOVING < %t.moving
// MOVING: nn.parameter @w0 {pipe.buffers = [#pipe.buffer<weights 0 at 0 bytes 16>]}
// MOVING: pipe.optimizer @s0 {{.*}} weights [[A:<arena 0 at 0 bytes 1024>]] home {{.*}} other_ranges [#pipe.buffer[[B:<arena 0 at 1024 bytes 1024>]], #pipe.buffer[[C:<arena 0 at 2048 bytes 1024>]]]
// MOVING: pipe.rank 0 train
// MOVING: pipe.load_weights in @s0 range 0 weights [[A]]
// MOVING: pipe.load_weights in @s1 range 1 weights [[B]]
// MOVING: pipe.load_weights in @s2 range 2 weights [[C]]
// MOVING: pipe.task forward @s0 micro_batch 0({{.*}}) buffers {{.*}} weights [[A]]
// MOVING: pipe.task forward @s1 micro_batch 0({{.*}}) buffers {{.*}} weights [[B]]
// MOVING-NEXT: pipe.load_weights in @s3 range 1 weights [[B]]
// MOVING: pipe.task forward @s0 micro_batch 1({{.*}}) buffers {{.*}} weights [[A]]
// MOVING-NEXT: pipe.load_weights in @s1 range 0 weights [[A]]
// MOVING: pipe.task forward @s1 micro_batch 1({{.*}}) buffers {{.*}} weights [[A]]
// A backward that reads none is told of none.
// MOVING: pipe.task backward @s0 micro_batch 0({{.*}}) buffers [] :
// MOVING: pipe.rank 0 evaluate
// MOVING: pipe.task evaluate @s0 micro_batch 0({{.*}}) buffers {{.*}} weights [[A]]
// RUN: sed '0,/@s0 range 0/s//@s0/' %t.any | not pipewright-opt --pipe-insert-transfers --pipe-plan-memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=SOME
// SOME: error: 'pipe.load_weights' op expects a range where others of its rank have one, and only there
// RUN: sed -E '0,/(load_weights in @s0 range 0) weights <[^>]*>/s//\1/' %t.moving | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNSAID
// UNSAID: error: 'pipe.load_weights' op expects to say where it puts weights together exactly where its stage has other_ranges
// RUN: sed -E '0,/(load_weights in @s0 range 0 weights) <[^>]*>/s//\1 <arena 0 at 64 bytes 1024>/' %t.moving | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: 'pipe.load_weights' op puts together in #pipe.buffer<arena 0 at 64 bytes 1024> what tasks do not read there
// RUN: sed -E '0,/(forward @s1 micro_batch 1.* weights) <[^>]*>/s//\1 <arena 0 at 1024 bytes 1024>/' %t.moving | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=BEFORE
// BEFORE: error: 'pipe.task' op reads weights in #pipe.buffer<arena 0 at 1024 bytes 1024>, but those that it takes are put together in #pipe.buffer<arena 0 at 0 bytes 1024>
// RUN: sed -E '0,/(forward @s1 micro_batch 1.*) weights <[^>]*>/s//\1/' %t.moving | not pipewright-opt --pipe-verify-allocated -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNTOLD
// UNTOLD: error: 'pipe.task' op reads weights in #pipe.buffer<arena 0 at 1024 bytes 1024>, but those that it takes are put together in #pipe.buffer<arena 0 at 0 bytes 1024>
// RUN: sed -E '0,/%loaded_s2 = pipe.load_weights.*/s//&\n    %again = pipe.load_weights in @s2 range 0 : <@s2, split>/' %t.any | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=TOGETHER
// TOGETHER: error: 'pipe.load_weights' op is never put together
// RUN: pipewright-opt %t.any --pipe-insert-transfers | sed -E '0,/%loaded_s0 = pipe.load_weights.*/s//&\n    %r = pipe.collective all_gather rounded in @s0(%loaded_s0) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0>\n    pipe.wait_collective %r : !pipe.updated<@s0>/' | not pipewright-opt --pipe-plan-memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: 'pipe.load_weights' op expects no range of a stage that reads some weights in f32 and bf16 copies of others
