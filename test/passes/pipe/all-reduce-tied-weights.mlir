// Two holders of a weight on two ranks exchange their gradients and update a
// copy each; other weights keep their owner.

// DEFINE: %{unrolled} = pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches
// RUN: %{unrolled} --pipe-schedule="policy=1f1b ranks=2" --pipe-all-reduce-tied-weights > %t
// RUN: FileCheck %s --check-prefix=STEP < %t
// RUN: pipewright-opt %t --pipe-all-reduce-tied-weights | diff - %t
// RUN: pipewright-opt %t --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | FileCheck %s
// RUN: %{unrolled} --pipe-schedule="policy=1f1b ranks=1" --pipe-all-reduce-tied-weights | FileCheck %s --check-prefix=OWNER
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-mirror-stages --pipe-unroll-microbatches --pipe-schedule="policy=chimera ranks=2" --pipe-all-reduce-tied-weights | FileCheck %s --check-prefix=OWNER

// STEP: nn.weight @wte role = parameter {pipe.all_reduced}
// STEP: nn.weight @bias role = parameter : tensor
// STEP-LABEL: pipe.step train
// STEP:      %[[SUM0:.*]] = pipe.collective all_reduce of @wte in @s0(%{{.*}}) over [0, 1] :
// STEP-NEXT: %[[SUM1:.*]] = pipe.collective all_reduce of @wte in @s1(%{{.*}}) over [0, 1] :
// STEP-NEXT: pipe.task update @s0(%[[SUM0]])
// The second holder has no other weight, and so had no update.
// STEP-NEXT: pipe.task update @s1(%[[SUM1]])
// STEP-NEXT: }

// OWNER-NOT: pipe.all_reduced
// OWNER: pipe.set_weight @wte in @s1

// One copy is saved, both are updated.
// CHECK-LABEL: pipe.arena rank 0
// CHECK:       pipe.place @wte in @s0 weight {{.*}} owner{{$}}
// CHECK-LABEL: pipe.arena rank 1
// CHECK-NEXT:  pipe.place @wte in @s1 weight {{.*}} updated{{$}}
// CHECK-NEXT:  pipe.optimizer @s1 kernel {{.*}} weights {{.*}} bytes 128>

// Each sends what it has before it adds what it gets, both at once.
// CHECK-LABEL: pipe.rank 0 train
// CHECK:      %[[MINE:.*]] = pipe.gradient_of @wte in @s0
// CHECK:      %[[RECEIVING:.*]] = pipe.post_receive from 1 {{.*}} event [[RECEIVED:[0-9]+]]
// CHECK:      %[[SENDING:.*]] = pipe.post_send %[[MINE]] to 1 event [[SENT:[0-9]+]]
// CHECK:      %[[THEIRS:.*]] = pipe.wait_receive %[[RECEIVING]] from 1
// CHECK-NEXT: pipe.wait_send %[[SENDING]] to 1
// CHECK-NEXT: pipe.wait_event [[RECEIVED]] on compute
// CHECK-NEXT: pipe.wait_event [[SENT]] on compute
// CHECK-NEXT: pipe.add_gradient @wte in @s0({{.*}}, %[[THEIRS]])
// CHECK-NEXT: pipe.task update @s0
// CHECK-NEXT: }
// CHECK-LABEL: pipe.rank 1 train
// CHECK:      pipe.post_send %{{.*}} to 0
// CHECK:      pipe.post_receive from 0
// CHECK:      pipe.add_gradient @wte in @s1
// CHECK-NEXT: pipe.task update @s1
// CHECK-NEXT: }
