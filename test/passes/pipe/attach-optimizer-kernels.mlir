// RUN: not pipewright-opt %s --split-input-file --pipe-attach-optimizer-kernels 2> %t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERROR < %t.err
// RUN: not pipewright-opt %s --split-input-file --pipe-attach-optimizer-kernels --pipe-attach-optimizer-kernels 2> %t.err | FileCheck %s

// One kernel updates the flat range of a stage; the learning rate, which each
// step has anew, is no part of it.
// CHECK-LABEL: optimizer = <sgd lr = 5.000000e-01,
// CHECK: pipe.optimizer @s0 kernels [@kernels::@sgd_32] weights
// CHECK: func.func private @sgd_32(%{{.*}}: tensor<32xf32> {nn.name = "weights"}, %{{.*}}: tensor<32xf32> {nn.name = "gradient"}, %{{.*}}: tensor<32xf32> {nn.name = "momentum"}, %{{.*}}: tensor<4xf32> {nn.name = "hyper"})
// CHECK: nn.update {{.*}} by <sgd momentum = 9.000000e-01, weight_decay = 0.000000e+00, nesterov = false>
module attributes {pipe.program = #pipe.program<optimizer = <sgd lr = 0.5, momentum = 0.9>>} {
  nn.weight @a role = parameter : tensor<4x4xf32>
  pipe.arena rank 0 bytes 1024 {
    pipe.place @a in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 128 bytes 64> owner
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 128> gradients <arena 0 at 128 bytes 128>
        states [#pipe.buffer<arena 0 at 256 bytes 128>] hyper <arena 0 at 384 bytes 16>
  }
}

// -----

// Norms are of whole weights: each has a kernel of its shape, which equal shapes
// share, and a scalar is a row of one. Frozen weights have none.
// CHECK-LABEL: optimizer = <lamb beta1
// CHECK: pipe.place @a {{.*}} kernel @kernels::@lamb_bf16_4x4 owner
// CHECK: pipe.place @b {{.*}} kernel @kernels::@lamb_bf16_4x4 owner
// CHECK: pipe.place @scalar {{.*}} kernel @kernels::@lamb_bf16_1 owner
// CHECK: pipe.place @frozen in @s0 weight <arena 0 at 832 bytes 64> owner
// CHECK: pipe.optimizer @s0 weights
// CHECK-COUNT-2: func.func private @lamb
// CHECK-NOT: func.func
module attributes {pipe.program = #pipe.program<optimizer = <lamb>>} {
  nn.weight @a role = parameter : tensor<4x4xf32>
  nn.weight @b role = parameter : tensor<4x4xf32>
  nn.weight @scalar role = parameter : tensor<f32>
  nn.weight @frozen role = frozen : tensor<4x4xf32>
  pipe.arena rank 0 bytes 2048 {
    pipe.place @a in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 192 bytes 64> rounded <arena 0 at 896 bytes 32> owner
    pipe.place @b in @s0 weight <arena 0 at 64 bytes 64> gradient <arena 0 at 256 bytes 64> rounded <arena 0 at 928 bytes 32> owner
    pipe.place @scalar in @s0 weight <arena 0 at 128 bytes 4> gradient <arena 0 at 320 bytes 4> rounded <arena 0 at 960 bytes 2> owner
    pipe.place @frozen in @s0 weight <arena 0 at 832 bytes 64> owner
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 192> gradients <arena 0 at 192 bytes 192>
        states [#pipe.buffer<arena 0 at 384 bytes 192>, #pipe.buffer<arena 0 at 576 bytes 192>] hyper <arena 0 at 768 bytes 16> rounded <arena 0 at 896 bytes 96>
  }
}

// -----

// Of a matrix, a kernel makes a direction, and another goes there: how far depends
// on which dimension has the outputs. What lies in front of matrices has one kernel.
// CHECK-LABEL: optimizer = <muon momentum
// CHECK: pipe.place @bias in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 256 bytes 64> rounded <arena 0 at 1024 bytes 32> owner
// CHECK: pipe.place @wide {{.*}} kernel @kernels::@muon_direction_4x8 finish @kernels::@muon_bf16_finish_4x8_columns owner
// CHECK: pipe.place @tall {{.*}} kernel @kernels::@muon_direction_4x4 finish @kernels::@muon_bf16_finish_4x4 owner
// CHECK: pipe.optimizer @s0 kernels [@kernels::@muon_bf16_16] weights
// CHECK: func.func private @muon_bf16_16(
// CHECK: func.func private @muon_direction_4x8(%{{.*}}: tensor<4x8xf32> {nn.name = "m"}, %{{.*}}: tensor<4x8xf32> {nn.name = "gradient"}, %{{.*}}: tensor<4xf32> {nn.name = "hyper"}) -> (tensor<4x8xf32> {nn.in_place = 0 : i64}, tensor<4x8xf32> {nn.name = "direction"})
// CHECK: func.func private @muon_bf16_finish_4x8_columns(%{{.*}}: tensor<4x8xf32> {nn.name = "weights"}, %{{.*}}: tensor<4x8xf32> {nn.name = "gradient"}, %{{.*}}: tensor<4x8xf32> {nn.name = "direction"}, %{{.*}}: tensor<4xf32> {nn.name = "hyper"})
// CHECK: nn.constant dense<1.41421354> : tensor<f32>
module attributes {pipe.program = #pipe.program<optimizer = <muon>>} {
  nn.weight @bias role = parameter : tensor<16xf32>
  nn.weight @wide role = parameter outputs = columns : tensor<4x8xf32>
  nn.weight @tall role = parameter outputs = rows : tensor<4x4xf32>
  pipe.arena rank 0 bytes 4096 {
    pipe.place @bias in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 256 bytes 64> rounded <arena 0 at 1024 bytes 32> owner
    pipe.place @wide in @s0 weight <arena 0 at 64 bytes 128> gradient <arena 0 at 320 bytes 128> rounded <arena 0 at 1056 bytes 64> owner
    pipe.place @tall in @s0 weight <arena 0 at 192 bytes 64> gradient <arena 0 at 448 bytes 64> rounded <arena 0 at 1120 bytes 32> owner
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 256> gradients <arena 0 at 256 bytes 256>
        states [#pipe.buffer<arena 0 at 512 bytes 256>, #pipe.buffer<arena 0 at 768 bytes 64>] hyper <arena 0 at 960 bytes 16> rounded <arena 0 at 1024 bytes 128>
        elementwise 64 workspace <arena 0 at 1216 bytes 512>
  }
}

// -----

// ERROR: 'pipe.optimizer' op expects 2 states for adam, but got 0
module attributes {pipe.program = #pipe.program<optimizer = <adam>>} {
  pipe.arena rank 0 bytes 1024 {
    pipe.optimizer @s0 weights <arena 0 at 0 bytes 128> gradients <arena 0 at 128 bytes 128> states [] hyper <arena 0 at 384 bytes 16>
  }
}
