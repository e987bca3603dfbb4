// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=2 tied-weights=owner" | FileCheck %s
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=1 tied-weights=owner" | FileCheck %s --check-prefix=SINGLE

// CHECK-NOT: pipe.step
// CHECK-LABEL: pipe.rank 0 train

// A send is posted right behind its task and waited for behind the next.
// CHECK: %[[H0:.*]], %{{.*}} = pipe.task forward @s0 micro_batch 0
// CHECK-NEXT: %[[P0:.*]] = pipe.post_send %[[H0]] to 1
// CHECK: pipe.task forward @s0 micro_batch 1
// CHECK: pipe.wait_send %[[P0]] to 1
// CHECK: %[[D0:.*]] = pipe.wait_receive %{{.*}} from 1
// CHECK-NEXT: pipe.task backward @s0 micro_batch 0({{.*}}, %[[D0]])

// All gradients of the tied weight are in before the first update.
// CHECK: %[[Q:.*]] = pipe.post_receive from 1
// CHECK-NEXT: %[[DW:.*]] = pipe.wait_receive %[[Q]] from 1
// CHECK-NEXT: pipe.add_gradient @wte in @s0({{.*}}, %[[DW]])
// CHECK-NEXT: pipe.task update @s0
// CHECK-NEXT: %[[W:.*]] = pipe.weight_of @wte in @s0
// CHECK-NEXT: %[[S:.*]] = pipe.post_send %[[W]] to 1
// CHECK-NEXT: pipe.wait_send %[[S]] to 1
// CHECK-NEXT: }

// CHECK-LABEL: pipe.rank 1 train
// The replica's gradient has been sent before it is cleared.
// CHECK: %[[DW1:.*]] = pipe.gradient_of @wte in @s1
// CHECK-NEXT: %[[S1:.*]] = pipe.post_send %[[DW1]] to 0
// CHECK: pipe.wait_send %[[S1]] to 0
// CHECK-NEXT: %[[W1:.*]] = pipe.wait_receive %{{.*}} from 0
// CHECK-NEXT: pipe.set_weight @wte in @s1

// Evaluation sends activations only.
// CHECK-LABEL: pipe.rank 0 evaluate
// CHECK-NOT: receive
// CHECK-LABEL: pipe.rank 1 evaluate
// CHECK-NOT: send

// One rank has nothing to send, and its replicas still follow the owner.
// SINGLE-LABEL: pipe.rank 0 train
// SINGLE-NOT: post_
// SINGLE: pipe.add_gradient @wte in @s0
// SINGLE: pipe.set_weight @wte in @s1
// SINGLE-NOT: pipe.rank 1

// What nothing takes is not left out.
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" | sed 's/^\( *\)\(%[a-z0-9_]*\) = pipe.task  *update @s3.*/&\n\1%w = pipe.weight_of @w3 in @s3(\2) : (!pipe.updated<@s3>) -> tensor<4xf32>/' | pipewright-opt --pipe-insert-transfers | FileCheck %s --check-prefix=UNUSED
// UNUSED-LABEL: pipe.rank 3 train
// UNUSED: pipe.task update @s3
// UNUSED: pipe.weight_of @w3 in @s3
// UNUSED: pipe.rank 0 evaluate
