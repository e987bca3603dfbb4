// An update after every micro-batch (PipeDream), or after half of them (2BW).
// DEFINE: %{dream} = sed 's/micro_batches = 4/micro_batches = 4, updates = 4/' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled
// DEFINE: %{twobw} = sed 's/micro_batches = 4/micro_batches = 8, updates = 2/' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled
// RUN: %{dream} | FileCheck %s --check-prefix=UNROLLED
// RUN: %{dream} --pipewright-scheduled="policy=pipedream ranks=4" --pipewright-allocated | FileCheck %s --check-prefix=DREAM
// RUN: %{twobw} --pipewright-scheduled="policy=pipedream-2bw ranks=4" --pipewright-allocated | FileCheck %s --check-prefix=TWOBW
// One rank and an odd number of updates.
// RUN: sed 's/micro_batches = 4/micro_batches = 3, updates = 3/' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=pipedream-2bw:batches=3 ranks=1" --pipewright-allocated | FileCheck %s --check-prefix=ODD

// Gradients pass from an update to the next backward: the update clears them.
// UNROLLED: %{{.*}}, %[[G0:.*]] = pipe.task backward @s1 micro_batch 0
// UNROLLED: %[[U0:.*]] = pipe.task update @s1 number 0(%[[G0]])
// UNROLLED: %{{.*}}, %[[G1:.*]] = pipe.task backward @s1 micro_batch 1({{.*}}, %[[U0]])
// UNROLLED: pipe.task update @s1 number 1(%[[G1]])

// Bodies read weights at a distance from the version that the task is told;
// evaluation reads the newest.
// DREAM-LABEL: pipe.stage @s1
// DREAM: pipe.forward
// DREAM: nn.parameter @w1 {pipe.buffers = [#pipe.buffer<weights 0 at 0 bytes 16>]}
// DREAM: pipe.backward
// DREAM: nn.parameter @w1 {pipe.buffers = [#pipe.buffer<weights 0 at 0 bytes 16>]}
// DREAM: pipe.evaluate
// DREAM: nn.parameter @w1 {pipe.buffers = [#pipe.buffer<arena 0 at 0 bytes 16>]}

// The optimizer works on the newest weights, which are where they always are;
// there is room for as many old versions as are in use at once.
// DREAM-LABEL: pipe.arena rank 1
// DREAM: pipe.optimizer @s1 kernels {{.*}} weights <[[$NEW:arena 0 at 0 bytes 64]]>
// DREAM-SAME: versions [#pipe.buffer<[[$OLD0:arena 0 at 256 bytes 64]]>, #pipe.buffer<[[$OLD1:arena 0 at 320 bytes 64]]>]
// DREAM: pipe.region "old weights" <arena 0 at 256 bytes 128>

// The last rank needs none: its weights are updated in place.
// DREAM-LABEL: pipe.arena rank 3
// DREAM: pipe.optimizer @s3
// DREAM-NOT: versions
// DREAM: pipe.region

// Three forwards read version 0 on rank 1 before its first update, which keeps
// it for the two that are still on their way; nobody needs version 3 later.
// DREAM-LABEL: pipe.rank 1 train
// DREAM: forward @s1 micro_batch 0 version 0{{.*}} weights <[[$NEW]]>
// DREAM: forward @s1 micro_batch 1 version 0{{.*}} weights <[[$NEW]]>
// DREAM: forward @s1 micro_batch 2 version 0{{.*}} weights <[[$NEW]]>
// DREAM: backward @s1 micro_batch 0 version 0{{.*}} weights <[[$NEW]]>
// DREAM: update @s1 number 0{{.*}} weights <[[$OLD0]]>
// DREAM: forward @s1 micro_batch 3 version 1{{.*}} weights <[[$NEW]]>
// DREAM: backward @s1 micro_batch 1 version 0{{.*}} weights <[[$OLD0]]>
// DREAM: update @s1 number 1{{.*}} weights <[[$OLD1]]>
// DREAM: backward @s1 micro_batch 2 version 0{{.*}} weights <[[$OLD0]]>
// DREAM: update @s1 number 2
// DREAM-NOT: weights
// DREAM: backward @s1 micro_batch 3 version 1{{.*}} weights <[[$OLD1]]>
// DREAM: update @s1 number 3
// DREAM-NOT: weights
// DREAM-LABEL: pipe.rank 2 train

// One old version is enough for 2BW. The first batch of a step reads what the
// last step's last update overwrote, and the last update keeps that again.
// TWOBW: pipe.optimizer @s0 kernels {{.*}} weights <[[$NEW:arena 0 at 0 bytes 64]]>
// TWOBW-SAME: versions [#pipe.buffer<[[$OLD:arena 0 at 256 bytes 64]]>]
// TWOBW-LABEL: pipe.rank 0 train
// TWOBW: forward @s0 micro_batch 0 version -1{{.*}} weights <[[$OLD]]>
// TWOBW: backward @s0 micro_batch 0 version -1{{.*}} weights <[[$OLD]]>
// TWOBW: forward @s0 micro_batch 4 version 0{{.*}} weights <[[$NEW]]>
// TWOBW: backward @s0 micro_batch 3 version -1{{.*}} weights <[[$OLD]]>
// TWOBW: update @s0 number 0{{.*}} weights <[[$OLD]]>
// TWOBW: forward @s0 micro_batch 7 version 0{{.*}} weights <[[$OLD]]>
// TWOBW: backward @s0 micro_batch 7 version 0{{.*}} weights <[[$OLD]]>
// TWOBW: update @s0 number 1{{.*}} weights <[[$OLD]]>

// ODD: forward @s0 micro_batch 0 version -1{{.*}} weights <[[$OLD:arena 0 at [0-9]+ bytes 64]]>
// ODD: update @s0 number 0{{.*}} weights <[[$OLD]]>
// ODD: forward @s0 micro_batch 2 version 1{{.*}} weights <[[$OLD]]>
// ODD: update @s0 number 2{{.*}} weights <[[$OLD]]>
