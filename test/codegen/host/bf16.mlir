// A model in bf16 with a tied weight: shapes say their types, an update writes
// the bf16 copies too, and a copy on another rank is rounded again.

// DEFINE: %{allocated} = pipewright-opt %s --nn-lower-precision --pipe-partition-stages=stages=2 --pipe-differentiate --nn-form-kernels \
// DEFINE:   --pipewright-unrolled --pipewright-scheduled="policy=1f1b ranks=2 tied-weights=owner" --pipewright-allocated
// RUN: %{allocated} | FileCheck %s --check-prefix=ATTACH
// RUN: %{allocated} --print-host -o /dev/null | FileCheck %s

// ATTACH-DAG: func.func private @sgd_bf16_128
// ATTACH-DAG: func.func private @round_128
// ATTACH: pipe.place @table in @s0 {{.*}} rounded {{.*}} owner
// ATTACH: pipe.optimizer @s0 kernels [@kernels::@sgd_bf16_128]
// ATTACH: pipe.place @table in @s1 {{.*}} rounded {{.*}} kernel @kernels::@round_128{{$}}

// CHECK: .name = "table", .buffer = {0, 512}, .shape = "16x8"},
// CHECK-NEXT: .name = "table", .buffer = {{.*}}, .shape = "16x8", .role = Role::Gradient},
// CHECK-NEXT: .name = "table", .buffer = {512, 256}, .shape = "16x8", .role = Role::Rounded, .type = ElementType::BF16, .from = {0, 512}},
// CHECK: .name = "table", .buffer = {0, 512}, .shape = "16x8", .owner = false
// CHECK: void rank1_setUp(Rank &rank) {
// CHECK-NEXT: prepareMatmul(rank, {.m = 4, .n = 16, .k = 8, .transposeB = true,
// CHECK-NEXT: .type = ElementType::BF16, .result = ElementType::BF16});
// CHECK: void rank1_step(Rank &rank) {
// CHECK: const Buffer [[NEW:table_[0-9]]] = {{.*}}, 512};
// CHECK: const Buffer [[TABLE:table_[0-9]]] = {0, 512};
// CHECK: const Buffer [[COPY:table_bf16_[0-9]]] = {[[AT:[0-9]+]], 256};
// CHECK: copy(rank, [[NEW]], [[TABLE]]); {{.*}} tied weight
// CHECK-NEXT: launch(rank, "round_128", round_128, [[TABLE]], [[COPY]]);
// CHECK: void stage0_update(Rank &rank) {
// CHECK: const Buffer rounded = {512, 256};
// CHECK: launch(rank, "sgd_bf16_128", sgd_bf16_128, weights, gradients, hyper,
// CHECK-NEXT: rounded);
// CHECK: void stage1_backward(
// CHECK: matmul(rank, {.m = 16, .n = 8, .k = 4, .transposeA = true, .beta = 1.0f,
// CHECK-NEXT: .type = ElementType::BF16},
module attributes {pipe.program = #pipe.program<micro_batches = 1, micro_batch_size = 4, optimizer = <sgd lr = 0.1>>} {
  nn.weight @table role = parameter : tensor<16x8xf32>
  func.func @model(%tokens: tensor<4xi64> {nn.name = "tokens"}, %labels: tensor<4xi64> {nn.name = "labels"}) -> (tensor<f32> {nn.name = "loss"}) {
    %table = nn.parameter @table : tensor<16x8xf32>
    %0 = nn.embedding %table, %tokens : (tensor<16x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
    %1 = nn.tanh %0 : tensor<4x8xf32>
    %2 = nn.matmul %1, %table transpose_b : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %2, %labels ignore_index = -100 : (tensor<4x16xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    return %loss : tensor<f32>
  }
}
