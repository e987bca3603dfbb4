// A backward in two halves: functions and calls of their own, the handover as a
// buffer with fields, nothing of the whole that no rank runs.

// RUN: pipewright-opt %inputs/pipe/tied.mlir --nn-form-kernels \
// RUN:   --pipe-split-backward --pipewright-unrolled \
// RUN:   --pipewright-scheduled="policy=zb-h1 ranks=2 tied-weights=owner" \
// RUN:   --pipewright-allocated --print-host -o /dev/null | FileCheck %s
// RUN: pipewright-opt %inputs/pipe/chain.mlir --nn-form-kernels \
// RUN:   --pipe-split-backward --pipewright-unrolled \
// RUN:   --pipewright-scheduled="policy=dualpipev ranks=2" --pipewright-allocated \
// RUN:   --print-host -o /dev/null | FileCheck %s --check-prefix=MIXED

// CHECK-LABEL: void rank0_step(Rank &rank) {
// CHECK:         stage0_inputGradient(rank, 0); // I0.0
// CHECK:         stage0_weightGradient(rank, 0, tokens_0, d_bias_mul_relu_2x4_0, stash0_0); // W0.0
// CHECK-LABEL: void rank1_step(Rank &rank) {
// CHECK:         const Buffer handover1_0 =
// CHECK:         stage1_inputGradient(rank, 0, targets_0, d_bias_mul_relu_2x4_0, stash1_0,
// CHECK-NEXT:        handover1_0); // I1.0
// CHECK:         stage1_weightGradient(rank, 0, bias_mul_relu_2x4_0, handover1_0); // W1.0

// CHECK-LABEL: ===== stages.cpp =====
// CHECK-NOT:   backward(Rank
// CHECK:       // Stage 0, input gradient
// CHECK-NEXT:  void stage0_inputGradient(Rank &rank, int64_t microBatch) {
// CHECK-NEXT:    rank.task("I", 0, microBatch);
// CHECK-NEXT:    // No other stage needs a gradient of this one.
// CHECK-NEXT:  }
// CHECK-NOT:   backward(Rank
// CHECK:       // Stage 1, input gradient
// CHECK-NEXT:  void stage1_inputGradient(Rank &rank, int64_t microBatch, Buffer targets,
// CHECK-NEXT:      Buffer d_bias_mul_relu_2x4, Buffer stash, Buffer handover) {
// CHECK-NEXT:    rank.task("I", 1, microBatch);
// CHECK:         const Buffer [[D:d_.*]] = handover.at(0, 64);
// CHECK:         matmul(rank, {{.*}}, [[D]],
// CHECK-NEXT:        wte, d_bias_mul_relu_2x4);
// CHECK:       // Stage 1, weight gradient
// CHECK-NEXT:  void stage1_weightGradient(Rank &rank, int64_t microBatch,
// CHECK-NEXT:      Buffer bias_mul_relu_2x4, Buffer handover) {
// CHECK-NEXT:    rank.task("W", 1, microBatch);
// The value has the name that the other half gave it; the product is added in
// place.
// CHECK-NEXT:    const Buffer [[D]] = handover.at(0, 64);
// CHECK-NEXT:    const Buffer d_wte =
// CHECK-NEXT:    matmul(rank, {{.*}}.transposeA = true, .beta = 1.0f},
// CHECK-NEXT:        [[D]], bias_mul_relu_2x4, d_wte);
// CHECK-NEXT:  }
// CHECK-NOT:   backward(Rank

// A step may need both.
// MIXED: stage3_weightGradient(rank, 0, {{.*}} // W3.0
// MIXED: stage3_backward(rank, 1, {{.*}} // B3.1
