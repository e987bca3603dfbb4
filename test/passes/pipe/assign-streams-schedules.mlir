// What is special about the events of some schedules; 1F1B is in
// assign-streams.mlir. What goes over links shares bytes with all else here, so
// that there is more to wait for.
// DEFINE: %{streams} = --pipe-accumulate-in-kernels --pipe-plan-memory --pipe-attach-optimizer-kernels --pipe-verify-allocated --pipe-assign-streams --pipe-verify-streams
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipewright-unrolled --pipewright-scheduled="policy=gpipe ranks=2 tied-weights=owner" %{streams} -o %t.mlir
// RUN: FileCheck %s --check-prefix=GPIPE --input-file %t.mlir
// RUN: FileCheck %s --check-prefix=TIED --input-file %t.mlir
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-split-backward --pipewright-unrolled --pipewright-scheduled="policy=zb-h1 ranks=2 tied-weights=owner" %{streams} | FileCheck %s --check-prefix=SPLIT
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-mirror-stages --pipewright-unrolled --pipewright-scheduled="policy=chimera ranks=2 tied-weights=owner" %{streams} | FileCheck %s --check-prefix=COPIES
// RUN: sed 's/micro_batches = 4/micro_batches = 2/; s/#pipe.program</&task_times = [array<f64: 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 0.0>, array<f64: 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 0.0>, array<f64: 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 0.0>, array<f64: 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 1.0e-7, 0.0>], /' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=interleaved ranks=2 tied-weights=owner" %{streams} -o %t.mlir
// RUN: FileCheck %s --check-prefix=LOOPS --input-file %t.mlir
// RUN: FileCheck %s --check-prefix=EVALUATE --input-file %t.mlir
// RUN: sed 's/micro_batches = 4/micro_batches = 4, updates = 4/' %inputs/pipe/chain.mlir | pipewright-opt --pipewright-unrolled --pipewright-scheduled="policy=pipedream ranks=4 tied-weights=owner" %{streams} | FileCheck %s --check-prefix=STALE
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=1 tied-weights=owner" %{streams} | FileCheck %s --check-prefix=SINGLE

// GPipe: both forwards, then both backwards. Nothing is overwritten, so each
// transfer is waited for by its one reader, or by nobody.
// GPIPE-LABEL: pipe.rank 0 train
// GPIPE: forward @s0 micro_batch 0
// GPIPE-NEXT: pipe.record_event 0 on compute
// GPIPE-NEXT: pipe.wait_event 0 on send to 1
// GPIPE-NEXT: post_send %{{.*}} event 1
// GPIPE: forward @s0 micro_batch 1
// GPIPE-NEXT: pipe.record_event 2 on compute
// GPIPE-NEXT: pipe.wait_event 2 on send to 1
// GPIPE-NEXT: post_send %{{.*}} event 3
// GPIPE-NEXT: post_receive from 1 {{.*}} event 4
// GPIPE-NEXT: post_receive from 1 {{.*}} event 5
// GPIPE: pipe.wait_event 4 on compute
// GPIPE-NEXT: backward @s0 micro_batch 0
// GPIPE: pipe.wait_event 5 on compute
// GPIPE-NEXT: backward @s0 micro_batch 1

// Tied weights: the gradient of the other stage comes into bytes that the first
// send (event 1) and the first backward (event 6) were the last to read. Its
// sum is on compute, as is the update, whose weights are then sent.
// TIED-LABEL: pipe.rank 0 train
// TIED: backward @s0 micro_batch 0
// TIED-NEXT: pipe.record_event 6 on compute
// TIED: backward @s0 micro_batch 1
// TIED-NEXT: pipe.wait_event 1 on receive from 1
// TIED-NEXT: pipe.wait_event 6 on receive from 1
// TIED-NEXT: post_receive from 1 {{.*}} event 7
// TIED-NEXT: pipe.wait_receive
// TIED-NEXT: pipe.wait_event 7 on compute
// TIED-NEXT: pipe.add_gradient @wte in @s0
// TIED-NEXT: update @s0
// TIED-NEXT: pipe.record_event 8 on compute
// TIED-NEXT: pipe.weight_of @wte in @s0
// TIED-NEXT: pipe.wait_event 8 on send to 1
// TIED-NEXT: post_send %{{.*}} to 1 event 9
// The replica's gradient is cleared when it has been sent, its weight written
// when it has come.
// TIED-LABEL: pipe.rank 1 train
// TIED: %[[D:.*]] = pipe.gradient_of @wte in @s1
// TIED: post_send %[[D]] to 0 event [[SENT:[0-9]+]]
// TIED: post_receive from 0 {{.*}} event [[CAME:[0-9]+]]
// TIED: pipe.wait_receive
// TIED-NEXT: pipe.wait_event [[SENT]] on compute
// TIED-NEXT: pipe.wait_event [[CAME]] on compute
// TIED-NEXT: pipe.set_weight @wte in @s1

// Split backwards: the send waits for I alone, and runs beside W.
// SPLIT-LABEL: pipe.rank 1 train
// SPLIT: input_gradient @s1 micro_batch 1
// SPLIT-NEXT: pipe.record_event [[I:[0-9]+]] on compute
// SPLIT-NEXT: pipe.wait_event [[I]] on send to 0
// SPLIT-NEXT: post_send
// SPLIT-NEXT: weight_gradient @s1 micro_batch 0
// SPLIT-NEXT: wait_send
// SPLIT-NEXT: weight_gradient @s1 micro_batch 1

// Two copies: a gradient goes out and another comes in over bytes that the same
// backward has read. Both links wait for its one event.
// COPIES-LABEL: pipe.rank 0 train
// COPIES: backward @s3 micro_batch 1
// COPIES-NEXT: pipe.record_event [[B:[0-9]+]] on compute
// COPIES-NEXT: pipe.wait_event [[B]] on send to 1
// COPIES-NEXT: post_send
// COPIES-NEXT: pipe.wait_event [[B]] on receive from 1
// COPIES-NEXT: post_receive
// At the end the new weight is sent and copied to the rank's own replica: both
// read it, so neither waits for the other.
// COPIES: update @s0
// COPIES-NEXT: pipe.record_event [[U:[0-9]+]] on compute
// COPIES-NEXT: %[[W:.*]] = pipe.weight_of @wte in @s0
// COPIES-NEXT: pipe.wait_event [[U]] on send to 1
// COPIES-NEXT: post_send %[[W]] to 1
// The stream has waited for the update already.
// COPIES-NEXT: pipe.weight_of @bias in @s0
// COPIES-NEXT: post_send
// COPIES-NEXT: pipe.wait_send
// COPIES-NEXT: pipe.wait_send
// COPIES-NEXT: pipe.set_weight @wte in @s3(%[[W]]

// Two stages on each rank, whose tasks take less time than a message, so that a
// receive waits for bytes that a send still reads: stage 2 overwrites what stage 0 sent, and a receive
// comes over bytes from which another link sent: two links, no compute.
// LOOPS-LABEL: pipe.rank 0 train
// LOOPS: forward @s0 micro_batch 0{{.*}} buffers [#pipe.buffer<[[H0:arena 0 at [0-9]+ bytes 32]]>]
// LOOPS: post_send %{{.*}} to 1 event [[H0SENT:[0-9]+]]
// LOOPS: pipe.wait_event [[H0SENT]] on compute
// LOOPS: forward @s2 micro_batch 0{{.*}} buffers [#pipe.buffer<[[H0]]>]
// LOOPS: forward @s2 micro_batch 1{{.*}} buffers [#pipe.buffer<[[H2:arena 0 at [0-9]+ bytes 32]]>]
// LOOPS: post_send %{{.*}} to 1 event [[H2SENT:[0-9]+]]
// LOOPS: pipe.wait_event [[H2SENT]] on receive from 1
// LOOPS-NEXT: post_receive from 1 buffers [#pipe.buffer<[[H2]]>]

// Evaluation keeps nothing: what is received goes where an input was, behind the
// task that read it.
// EVALUATE-LABEL: pipe.rank 0 evaluate
// EVALUATE: pipe.input "x" micro_batch 1 for @s0 buffers [#pipe.buffer<[[X:arena 0 at [0-9]+ bytes 32]]>]
// EVALUATE-NEXT: evaluate @s0 micro_batch 1
// EVALUATE-NEXT: pipe.record_event [[E:[0-9]+]] on compute
// EVALUATE-NEXT: pipe.wait_event [[E]] on send to 1
// EVALUATE-NEXT: post_send
// EVALUATE-NEXT: pipe.wait_event [[E]] on receive from 1
// EVALUATE-NEXT: post_receive from 1 buffers [#pipe.buffer<[[X]]>]

// Stale weights: updates stand between other tasks and touch no transfer, so
// they need no event.
// STALE-LABEL: pipe.rank 1 train
// STALE: backward @s1 micro_batch 0
// STALE-NEXT: pipe.record_event
// STALE-NEXT: pipe.wait_event {{.*}} on send to 0
// STALE-NEXT: post_send
// STALE-NEXT: pipe.wait_send
// STALE-NEXT: update @s1 number 0
// STALE-NOT: pipe.record_event
// STALE: forward @s1 micro_batch 3

// One rank has one stream.
// SINGLE-LABEL: pipe.rank 0 train
// SINGLE-NOT: event
