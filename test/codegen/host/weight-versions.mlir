// Stale weights: functions are told which version to read, updates keep what is
// still needed before they overwrite it.

// RUN: sed 's/micro_batches = 4/micro_batches = 4, updates = 4/' %inputs/pipe/chain.mlir \
// RUN:   | pipewright-opt --nn-form-kernels --pipewright-unrolled \
// RUN:   --pipewright-scheduled="policy=pipedream ranks=4" --pipewright-allocated \
// RUN:   --print-host -o /dev/null | FileCheck %s

// The runtime fills old versions before the first step.
// CHECK-LABEL: // ===== main.cpp =====
// CHECK: .updates = 4,
// CHECK: .name = "w1", {{.*}} .state = "v"},
// CHECK-NEXT: .name = "w1", .buffer = {256, 16}, {{.*}} .role = Role::OldVersion, .from = {0, 16}},
// CHECK-NEXT: .name = "w1", .buffer = {320, 16}, {{.*}} .role = Role::OldVersion, .from = {0, 16}},
// CHECK: .name = "w3"
// CHECK-NOT: Role::OldVersion
// CHECK: .step = rank3_step

// CHECK-LABEL: // Rank 1: 4 optimizer steps.
// CHECK: const Buffer weights1_0 = {0, 64};
// CHECK-NEXT: const Buffer old1_0 = {256, 64};
// CHECK-NEXT: const Buffer old1_1 = {320, 64};
// CHECK: stage1_backward(rank, 0, {{.*}}, weights1_0); // B1.0, version 0
// CHECK: rank.beginUpdate(0);
// CHECK-NEXT: copy(rank, weights1_0, old1_0); // keeps version 0
// CHECK-NEXT: stage1_update(rank); // U1
// CHECK: stage1_forward(rank, 3, {{.*}}, weights1_0); // F1.3, version 1
// CHECK: stage1_backward(rank, 1, {{.*}}, old1_0); // B1.1, version 0
// CHECK: rank.beginUpdate(1);
// CHECK-NEXT: copy(rank, weights1_0, old1_1); // keeps version 1
// CHECK: rank.beginUpdate(2);
// CHECK-NEXT: stage1_update(rank); // U1.2

// CHECK-LABEL: // Rank 1: held-out data, forward only.
// CHECK: stage1_evaluate(rank, 0,
// CHECK-NOT: weights1
// CHECK-LABEL: // Rank 2: before the first step.

// CHECK-LABEL: void stage1_forward(
// CHECK: Buffer weights) {
// CHECK: const Buffer w1 = weights.at(0, 16);
// CHECK-LABEL: void stage1_evaluate(
// CHECK: const Buffer w1 = {0, 16};
