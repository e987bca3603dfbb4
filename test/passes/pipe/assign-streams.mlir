// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=4" --pipewright-allocated --pipe-assign-streams -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// Running it again changes nothing, nor does planning again.
// RUN: pipewright-opt %t.mlir --pipe-assign-streams | diff %t.mlir -
// RUN: pipewright-opt %t.mlir --pipewright-allocated --pipe-assign-streams | diff %t.mlir -

// Rank 1 of 1F1B with 4 ranks: F0 F1 F2 B0 F3 B1 B2 B3.
// CHECK-LABEL: pipe.rank 1 train

// Four receives are posted at once: nothing was in their buffers before, so
// their stream waits for nobody. Each records an event.
// CHECK-NEXT: post_receive from 0 {{.*}} event 0
// CHECK-NEXT: post_receive from 0 {{.*}} event 1
// CHECK-NEXT: post_receive from 0 {{.*}} event 2
// CHECK-NEXT: post_receive from 0 {{.*}} event 3

// F0 waits for what it reads; the send of its result waits for it.
// CHECK-NEXT: wait_receive
// CHECK-NEXT: pipe.wait_event 0 on compute
// CHECK-NEXT: forward @s1 micro_batch 0{{.*}} buffers [#pipe.buffer<arena 0 at [[H0:[0-9]+]] bytes 32>]
// CHECK-NEXT: pipe.record_event 4 on compute
// CHECK-NEXT: pipe.wait_event 4 on send to 2
// CHECK-NEXT: post_send %{{.*}} to 2 event 5

// CHECK: pipe.wait_event 1 on compute
// CHECK-NEXT: forward @s1 micro_batch 1
// CHECK: post_send %{{.*}} to 2 event 7

// F2 overwrites the bytes from which F0's result was sent (event 5), behind
// the op that says that this send is over.
// CHECK-NEXT: pipe.wait_send
// CHECK-NEXT: wait_receive
// CHECK-NEXT: pipe.wait_event 2 on compute
// CHECK-NEXT: pipe.wait_event 5 on compute
// CHECK-NEXT: forward @s1 micro_batch 2{{.*}} buffers [#pipe.buffer<arena 0 at [[H0]] bytes 32>]

// A receive into bytes that B1 has read waits for B1, whose event the send of
// its gradient waits for, too.
// CHECK: backward @s1 micro_batch 1
// CHECK-NEXT: pipe.record_event [[B1:[0-9]+]] on compute
// CHECK-NEXT: pipe.wait_event [[B1]] on send to 0
// CHECK-NEXT: post_send %{{.*}} to 0
// CHECK-NEXT: pipe.wait_event [[B1]] on receive from 2
// CHECK-NEXT: post_receive from 2

// Nothing waits for an update: the host waits for all streams at the end.
// CHECK: update @s1
// CHECK-NEXT: pipe.wait_send
// CHECK-NEXT: }

// Evaluation has events of its own, numbered from 0.
// CHECK-LABEL: pipe.rank 1 evaluate
// CHECK-NEXT: post_receive from 0 {{.*}} event 0
