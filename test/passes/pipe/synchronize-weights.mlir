// Holders of a weight on different ranks sum their gradients and update a copy
// each; other weights keep their owner.

// DEFINE: %{unrolled} = pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches
// RUN: %{unrolled} --pipe-schedule="policy=1f1b ranks=2" --pipe-synchronize-weights > %t
// RUN: FileCheck %s --check-prefix=STEP < %t
// RUN: pipewright-opt %t --pipe-synchronize-weights | diff - %t
// RUN: pipewright-opt %t --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | FileCheck %s
// RUN: %{unrolled} --pipe-schedule="policy=1f1b ranks=1" --pipe-synchronize-weights | FileCheck %s --check-prefix=OWNER
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-mirror-stages --pipe-unroll-microbatches --pipe-schedule="policy=chimera ranks=2" --pipe-synchronize-weights | FileCheck %s --check-prefix=COPIES
// RUN: sed 's/#pipe.program</&replicas = 3, /' %inputs/pipe/chain.mlir | pipewright-opt --pipe-mirror-stages --pipe-unroll-microbatches --pipe-schedule="policy=chimera ranks=4" --pipe-synchronize-weights=copies-last --pipe-verify-unrolled | FileCheck %s --check-prefix=LAST
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-mirror-stages --pipe-unroll-microbatches --pipe-schedule="policy=chimera ranks=4" --pipe-synchronize-weights --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated=assign-streams | FileCheck %s --check-prefix=WHOLE

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
// CHECK-NEXT:  pipe.optimizer @s1 kernels {{.*}} weights {{.*}} bytes 128>

// Nothing but the sum is between the last backward and the update.
// CHECK-LABEL: pipe.rank 0 train
// CHECK:      pipe.wait_event {{[0-9]+}} on collective
// CHECK:      %[[SUM:.*]] = pipe.collective all_reduce of @wte in @s0(%{{.*}}) over [0, 1] buffers [#pipe.buffer<arena 0 at {{[0-9]+}} bytes 64>] event [[OVER:[0-9]+]] :
// CHECK-NEXT: pipe.wait_collective %[[SUM]]
// CHECK-NEXT: pipe.wait_event [[OVER]] on compute
// CHECK-NEXT: pipe.task update @s0(%[[SUM]])
// CHECK-NEXT: }
// CHECK-LABEL: pipe.rank 1 train
// CHECK:      pipe.post_send
// CHECK:      %[[SUM:.*]] = pipe.collective all_reduce of @wte in @s1
// CHECK-NEXT: pipe.wait_collective %[[SUM]]
// CHECK:      pipe.task update @s1(%[[SUM]])
// CHECK-NEXT: pipe.wait_send
// CHECK-NEXT: }

// In two copies of the model a weight that two stages share has four holders on
// two ranks, and keeps its owner; what stage 0 has besides is reduced alone.
// COPIES: nn.weight @wte role = parameter :
// COPIES: nn.weight @bias role = parameter {pipe.all_reduced}
// COPIES: pipe.add_gradient @wte in @s0
// COPIES: pipe.collective all_reduce of @bias in @s0(%{{.*}}) over [0, 1]
// COPIES-NEXT: pipe.collective all_reduce of @bias in @s2(%{{.*}}) over [0, 1]
// COPIES: pipe.set_weight @wte in @s1

// Where the copies are all that holds weights, the gradients of a stage are one
// range; all that a rank reduces is under way together.
// WHOLE-LABEL: pipe.rank 0 train
// WHOLE:      %[[A:.*]] = pipe.collective all_reduce in @s7(%{{.*}}) over [0, 3]
// WHOLE:      %[[B:.*]] = pipe.collective all_reduce in @s0(%{{.*}}) over [0, 3]
// WHOLE-NEXT: pipe.wait_collective %[[A]]
// WHOLE-NEXT: pipe.wait_collective %[[B]]
// WHOLE:      pipe.task update @s0(%[[B]])
// WHOLE:      pipe.task update @s7(%[[A]])

// Two copies of the model add up what replicas have summed.
// LAST: [[S0:%[a-z_0-9]+]] = pipe.collective all_reduce in @s0(%{{.*}}) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
// LAST: [[S4:%[a-z_0-9]+]] = pipe.collective all_reduce in @s4(%{{.*}}) over replicas
// LAST: pipe.collective all_reduce in @s0([[S0]]) over [0, 3] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
// LAST: pipe.collective all_reduce in @s4([[S4]]) over [0, 3]
