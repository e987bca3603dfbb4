// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-verify-unrolled | FileCheck %s
// A second run changes nothing.
// RUN: pipewright-opt %inputs/pipe/tied.mlir --pipe-unroll-microbatches --pipe-unroll-microbatches | FileCheck %s

// CHECK-LABEL: pipe.step train

// Saved inputs come first, then the stash, then the gradients of the outputs.
// CHECK: %[[X0:.*]] = pipe.input "tokens" micro_batch 0 for @s0
// CHECK: %[[H0:.*]], %[[ST00:.*]] = pipe.task forward @s0 micro_batch 0(%[[X0]])
// CHECK: %[[T0:.*]] = pipe.input "targets" micro_batch 0 for @s1
// CHECK: %[[ST10:.*]] = pipe.task forward @s1 micro_batch 0(%[[H0]], %[[T0]])
// CHECK: %[[D0:.*]], %[[G10:.*]] = pipe.task backward @s1 micro_batch 0(%[[H0]], %[[T0]], %[[ST10]])
// CHECK: %[[G00:.*]] = pipe.task backward @s0 micro_batch 0(%[[X0]], %[[ST00]], %[[D0]])

// The gradients summed so far go into the next micro-batch.
// CHECK: pipe.task forward @s0 micro_batch 1
// CHECK: %[[D1:.*]], %[[G11:.*]] = pipe.task backward @s1 micro_batch 1({{.*}}, %[[G10]])
// CHECK: %[[G01:.*]] = pipe.task backward @s0 micro_batch 1({{.*}}, %[[D1]], %[[G00]])

// Each stage updates what it owns from its own gradients; the second owns
// nothing, so it has no update (pipe-synchronize-weights adds what is missing).
// CHECK-NEXT: pipe.task update @s0(%[[G01]])
// CHECK-NEXT: }

// CHECK-LABEL: pipe.step evaluate
// CHECK: %[[E0:.*]] = pipe.task evaluate @s0 micro_batch 0
// CHECK: pipe.task evaluate @s1 micro_batch 0(%[[E0]],
// CHECK: pipe.task evaluate @s0 micro_batch 1
// CHECK: pipe.task evaluate @s1 micro_batch 1
