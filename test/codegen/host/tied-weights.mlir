// A tied weight: gradients are added at the owner, the new weight comes back;
// and the update of each stage, whose kernel is attached.

// DEFINE: %{unrolled} = pipewright-opt %inputs/pipe/tied.mlir --nn-form-kernels --pipewright-unrolled
// RUN: %{unrolled} --pipewright-scheduled="policy=1f1b ranks=2 tied-weights=owner" \
// RUN:   --pipewright-allocated -o %t.mlir
// RUN: FileCheck %s --check-prefix=ATTACH < %t.mlir
// RUN: pipewright-opt %t.mlir --print-host -o /dev/null | FileCheck %s
// RUN: %{unrolled} --pipewright-scheduled="policy=1f1b ranks=2" --pipewright-allocated \
// RUN:   --print-host -o /dev/null | FileCheck %s --check-prefix=BOTH

// ATTACH: func.func private @sgd_48
// ATTACH: pipe.optimizer @s0 kernels [@kernels::@sgd_48]

// CHECK-LABEL: void rank0_step(Rank &rank) {
// CHECK:         rank.postReceive(1, [[RECEIVED:d_wte_[0-9]]]);
// CHECK:         accumulate(rank, [[RECEIVED]], d_wte_{{[0-9]}}); // tied weight
// CHECK-NEXT:    stage0_update(rank); // U0
// CHECK-NEXT:    rank.postSend(1, wte_0); // to rank 1
// CHECK-NEXT:    rank.waitSend(1);
// CHECK-NEXT:  }

// CHECK-LABEL: void rank0_evaluate(Rank &rank) {
// CHECK:         stage0_evaluate(rank, 0, {{.*}} // E0.0

// CHECK-LABEL: void rank1_step(Rank &rank) {
// CHECK:         copy(rank, wte_0, wte_1); // tied weight
// CHECK-NEXT:    zero(rank, d_wte_0);
// CHECK-NEXT:  }

// Where both holders update, the owner's copy alone is saved.
// BOTH:         {.name = "wte", {{.*}}.role = Role::Gradient}
// BOTH:         {.name = "wte", {{.*}}.owner = false}
// BOTH:       .groups = {
// BOTH-NEXT:    {.ranks = {0, 1}},
// BOTH-NEXT:  },
// BOTH-LABEL: void rank0_step(Rank &rank) {
// BOTH:         rank.allReduce(0, ElementType::F32, d_wte_0, scratch_0); // over ranks 0, 1
// BOTH-NEXT:    rank.waitCollective(); // d_wte_0 is whole
// BOTH-NEXT:    stage0_update(rank); // U0
// BOTH-NEXT:  }
// BOTH-LABEL: void rank1_step(Rank &rank) {
// BOTH:         rank.allReduce(0, ElementType::F32, d_wte_{{.*}});
// BOTH-NEXT:    rank.waitCollective();
// BOTH-NEXT:    stage1_update(rank); // U1
// BOTH-NEXT:    rank.waitSend(0);
// BOTH-NEXT:  }
// BOTH-LABEL: void stage1_update(Rank &rank) {
// BOTH:         launch(rank, "sgd_32", sgd_32, weights, gradients, state, hyper);

// A buffer that is called like its kernel does not hide it.
// CHECK-LABEL: void stage0_forward(Rank &rank, int64_t microBatch,
// CHECK:         launch(rank, "[[KERNEL:[a-z0-9_]+]]", ::[[KERNEL]],

// CHECK-LABEL: void stage0_update(Rank &rank) {
// CHECK-NEXT:    rank.task("U", 0, 0);
// CHECK-NEXT:    const Buffer weights = {0, 192};
// CHECK-NEXT:    const Buffer gradients = {256, 192};
// CHECK-NEXT:    const Buffer state = {448, 192};
// CHECK-NEXT:    const Buffer hyper = {640, 16};
// CHECK-NEXT:    rank.loadHyper(hyper);
// CHECK-NEXT:    launch(rank, "sgd_48", sgd_48, weights, gradients, state, hyper);
// CHECK-NEXT:  }
