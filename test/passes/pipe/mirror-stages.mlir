// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-mirror-stages --pipe-verify-staged | FileCheck %s
// A second run changes nothing.
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-mirror-stages --pipe-mirror-stages | FileCheck %s
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-mirror-stages --pipewright-unrolled | FileCheck %s --check-prefix=STEP

// The first copy is what it was.
// CHECK-LABEL: pipe.stage @s0 {
// CHECK: pipe.evaluate
// CHECK-LABEL: pipe.stage @s1 {
// CHECK: pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"targets">]
// CHECK: pipe.evaluate

// The second has the same bodies but the evaluation, and feeds itself.
// CHECK-LABEL: pipe.stage @s2 mirrors @s0 {
// CHECK: pipe.forward sources [#pipe.input<"tokens">]
// CHECK: pipe.return {{.*}} stash
// CHECK: pipe.backward
// CHECK: nn.accumulate_gradient @wte
// CHECK-NOT: pipe.evaluate
// CHECK-LABEL: pipe.stage @s3 mirrors @s1 {
// CHECK: pipe.forward sources [#pipe.output<@s2, 0>, #pipe.input<"targets">]
// CHECK: pipe.report "loss"
// CHECK: pipe.backward
// CHECK: nn.constant dense<5.000000e-01>
// CHECK-NOT: pipe.evaluate

// Each copy trains on its half of the micro-batches: here one each.
// STEP-LABEL: pipe.step train
// STEP: forward @s0 micro_batch 0
// STEP: forward @s1 micro_batch 0
// STEP: %{{.*}}, %[[G1:.*]] = pipe.task backward @s1 micro_batch 0
// STEP: %[[G0:.*]] = pipe.task backward @s0 micro_batch 0
// STEP-NOT: pipe.task {{.*}} @s0
// STEP-NOT: pipe.task {{.*}} @s1
// STEP: forward @s2 micro_batch 1
// STEP: forward @s3 micro_batch 1
// STEP: %{{.*}}, %[[G3:.*]] = pipe.task backward @s3 micro_batch 1
// STEP: %[[G2:.*]] = pipe.task backward @s2 micro_batch 1

// STEP-NEXT: pipe.task update @s0(%[[G0]])
// STEP-NEXT: }

// Evaluation goes through the first copy, with all micro-batches.
// STEP-LABEL: pipe.step evaluate
// STEP-NOT: @s2
// STEP-NOT: @s3
// STEP: evaluate @s1 micro_batch 1
