// What goes over a link has bytes of its own, which take turns.

// DEFINE: %{ranks} = pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" --pipe-synchronize-weights --pipe-insert-transfers
// RUN: %{ranks} --pipe-plan-memory=link-buffers=2 --pipe-verify-allocated > %t
// RUN: sed -n '/pipe.rank 3 *train/,/^  }/p' %t | FileCheck %s
// One is in use at a time, and two are spare; then those that it sends.
// CHECK: pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at [[A:[0-9]+]] bytes 32>]
// CHECK: pipe.post_receive from 2 buffers [#pipe.buffer<arena 0 at [[B:[0-9]+]] bytes 32>]
// CHECK: backward @s3 micro_batch 0{{.*}} buffers [#pipe.buffer<arena 0 at [[D:[0-9]+]] bytes 32>]
// CHECK: backward @s3 micro_batch 3{{.*}} buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 32>]

// Receives wait for no other link, and for no task that has just begun.
// RUN: %{ranks} --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=STREAMS
// STREAMS-NOT: pipe.wait_event {{[0-9]+}} on receive_from
// STREAMS: pipe.post_receive

// As many as messages are enough; none spare is the plan without.
// RUN: %{ranks} --pipe-plan-memory=link-buffers=100 --pipe-verify-allocated > %t.all
// RUN: %{ranks} --pipe-plan-memory=link-buffers=0 > %t.none
// RUN: %{ranks} --pipe-plan-memory | diff %t.none -
// RUN: grep -oE 'pipe.arena rank 1 bytes [0-9]+' %t.none %t %t.all | grep -oE '[0-9]+$' > %t.bytes
// RUN: awk 'NR > 1 && $1 <= before { exit 1 } { before = $1 }' %t.bytes
// RUN: not %{ranks} --pipe-plan-memory=link-buffers=-1 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: pipe-plan-memory expects link-buffers of at least 0, but got -1

// Where many are in use at a time (all 40 of what rank 0 gets back between the loops), they share
// bytes with others, and still no receive waits for what ran since the third one before it.
// RUN: sed 's/micro_batches = 4/micro_batches = 40/' %inputs/pipe/chain.mlir | pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=2" --pipe-synchronize-weights --pipe-insert-transfers > %t.many
// RUN: pipewright-opt %t.many --pipewright-allocated=assign-streams | %S/Inputs/waits-of-receives 3
// RUN: pipewright-opt %t.many --pipewright-allocated=assign-streams | not %S/Inputs/waits-of-receives 5
