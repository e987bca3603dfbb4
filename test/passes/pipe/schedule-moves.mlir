// BPipe: stashes of rank 0 that rank 3 keeps for a while. Then the same program, broken.

// DEFINE: %{stash} = sed -e '0,/pipe.return %y : tensor<2x4xf32>/s//& stash %y : tensor<2x4xf32>/' -e '0,/%x: tensor<2x4xf32>, %dy/s//%x: tensor<2x4xf32>, %kept: tensor<2x4xf32>, %dy/' -e 's/micro_batches = 4/micro_batches = 8/' %inputs/pipe/chain.mlir
// DEFINE: %{schedule} = pipewright-opt --pipe-unroll-microbatches --pipe-schedule="policy=bpipe ranks=4" --pipe-synchronize-weights --pipe-verify-unrolled
// RUN: %{stash} | %{schedule} > %t
// RUN: FileCheck %s < %t

// Three stay, so one leaves while the forward before the fourth one runs.
// CHECK: pipe.task forward @s0 micro_batch 1
// CHECK: %[[BYTES:.*]] = pipe.hold(%stash_s0_1) of @s0 micro_batch 1 in @s0 : !pipe.stash<@s0> -> tensor<32xi8>
// CHECK-NEXT: %[[KEPT:.*]] = pipe.hold(%[[BYTES]]) of @s0 micro_batch 1 in @s3 : tensor<32xi8> -> tensor<32xi8>
// CHECK-NEXT: pipe.task forward @s0 micro_batch 2
// It comes back when the backward before its own is done.
// CHECK: pipe.task backward @s0 micro_batch 0
// CHECK: %[[BACK:.*]] = pipe.hold(%[[KEPT]]) of @s0 micro_batch 1 in @s0 : tensor<32xi8> -> !pipe.stash<@s0>
// CHECK-NEXT: pipe.task forward @s0 micro_batch 4
// CHECK: pipe.task backward @s0 micro_batch 1({{.*}}, %[[BACK]], {{.*}})
// The third one to go takes the place of the first one.
// CHECK: pipe.hold({{.*}}) of @s0 micro_batch 5 in @s3 behind(%[[KEPT]] : tensor<32xi8>)

// Scheduled again it is the same; by another schedule, all stay.
// RUN: pipewright-opt %t --pipe-schedule="policy=bpipe ranks=4" | diff %t -
// RUN: pipewright-opt %t --pipe-schedule="policy=1f1b ranks=4" | FileCheck %s --check-prefix=STAY
// STAY-NOT: pipe.hold

// DEFINE: %{ranks} = pipewright-opt --pipe-insert-transfers --pipe-verify-schedule
// RUN: %{ranks} %t > %t.ranks
// RUN: FileCheck %s --check-prefix=RANKS < %t.ranks
// RANKS-LABEL: pipe.rank 0 train
// RANKS: %[[SENT:.*]] = pipe.hold(%stash_s0_1) of @s0 micro_batch 1 in @s0
// RANKS-NEXT: %[[SENDING:.*]] = pipe.post_send %[[SENT]] to 3 : tensor<32xi8>
// RANKS: pipe.task forward @s0 micro_batch 2
// RANKS: pipe.wait_send %[[SENDING]] to 3
// RANKS: pipe.task forward @s0 micro_batch 3
// RANKS: pipe.task backward @s0 micro_batch 0
// RANKS: %[[RECEIVING:.*]] = pipe.post_receive from 3 : <tensor<32xi8>>
// RANKS: %[[RECEIVED:.*]] = pipe.wait_receive %[[RECEIVING]] from 3
// RANKS: pipe.hold(%[[RECEIVED]]) of @s0 micro_batch 1 in @s0
// RANKS: pipe.task backward @s0 micro_batch 1
// RANKS-LABEL: pipe.rank 3 train
// RANKS: %[[FIRST:.*]] = pipe.wait_receive %{{.*}} from 0
// RANKS-NEXT: %[[HELD:.*]] = pipe.hold(%[[FIRST]]) of @s0 micro_batch 1 in @s3
// RANKS-NEXT: %[[AWAY:.*]] = pipe.post_send %[[HELD]] to 0 : tensor<32xi8>
// What comes into its place is not received before it has left.
// RANKS: pipe.wait_send %[[AWAY]] to 0
// RANKS-NEXT: pipe.post_receive from 0
// RANKS-NOT: behind

// Streams of GPUs are ordered by events: a stash is sent when its forward is done.
// RUN: pipewright-opt %t.ranks --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=STREAMS
// STREAMS: pipe.task forward @s0 micro_batch 1
// STREAMS-NEXT: pipe.record_event [[DONE:[0-9]+]] on
// STREAMS: pipe.wait_event [[DONE]] on {{.*}}send to 3
// STREAMS-NEXT: pipe.post_send %bytes_s0_1 to 3 event

// The stash of another micro-batch comes back.
// RUN: sed 's/\(pipe.hold(%kept_s0_1) of @s0 micro_batch\) 1/\1 2/' %t | not pipewright-opt --pipe-verify-unrolled 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'pipe.hold' op expects stash of stage '@s0', micro-batch 2 as operand 0, but got stash of stage '@s0', micro-batch 1

// Only its keeper may have it.
// RUN: sed 's/pipe.post_send %bytes_s0_1 to 3/pipe.post_send %bytes_s0_1 to 2/; s/pipe.wait_send %\(.*\) to 3 : <tensor<32xi8>>/pipe.wait_send %\1 to 2 : <tensor<32xi8>>/' %t.ranks | not pipewright-opt --pipe-verify-schedule 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// ELSEWHERE: error:

// As many bytes as the stash has.
// RUN: sed 's/tensor<32xi8>/tensor<16xi8>/g' %t.ranks | not pipewright-opt --pipewright-allocated 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: 'pipe.hold' op expects 16 bytes, but takes #pipe.buffer<arena 0 at {{[0-9]+}} bytes 32>

// Stages that stash nothing.
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=bpipe ranks=4" 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: warning: the schedule moves stashes of stages that keep none: with less recomputation they may
// NOTHING-NOT: pipe.hold
