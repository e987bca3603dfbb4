// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: pipewright-opt %s --emit-bytecode | pipewright-opt | FileCheck %s

// The fixed part of one rank's arena.

// CHECK-LABEL: pipe.arena rank 0 bytes 4096
pipe.arena rank 0 bytes 4096 {
  // CHECK: pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner
  // GENERIC: "pipe.place"() <{buffer = #pipe.buffer<arena 0 at 0 bytes 64>, gradient = #pipe.buffer<arena 0 at 64 bytes 64>, owner, stage = @s0, weight = @w}>
  pipe.place @w in @s0 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> owner
  // CHECK: pipe.place @running_mean in @s0 weight <arena 0 at 128 bytes 64>{{$}}
  pipe.place @running_mean in @s0 weight <arena 0 at 128 bytes 64>
  // CHECK: pipe.optimizer @s0 kernels [@kernels::@adamw_16]
  pipe.optimizer @s0 kernels [@kernels::@adamw_16]
      weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64>
      states [#pipe.buffer<arena 0 at 192 bytes 64>] hyper <arena 0 at 256 bytes 16>
  // CHECK: pipe.optimizer @s1 {{.*}} hyper <arena 0 at 272 bytes 16> versions [#pipe.buffer<arena 0 at 1408 bytes 64>]
  pipe.optimizer @s1 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64>
      states [] hyper <arena 0 at 272 bytes 16> versions [#pipe.buffer<arena 0 at 1408 bytes 64>]
  // CHECK: pipe.place @tied in @s0 weight <arena 0 at 1472 bytes 64> gradient <arena 0 at 1536 bytes 64> rounded <arena 0 at 1600 bytes 32> kernel @kernels::@round_16{{$}}
  pipe.place @tied in @s0 weight <arena 0 at 1472 bytes 64> gradient <arena 0 at 1536 bytes 64>
      rounded <arena 0 at 1600 bytes 32> kernel @kernels::@round_16
  // CHECK: pipe.optimizer @s2 {{.*}} rounded <arena 0 at 1664 bytes 32> versions [#pipe.buffer<arena 0 at 1728 bytes 32>]
  pipe.optimizer @s2 weights <arena 0 at 0 bytes 64> gradients <arena 0 at 64 bytes 64>
      states [] hyper <arena 0 at 272 bytes 16> rounded <arena 0 at 1664 bytes 32>
      versions [#pipe.buffer<arena 0 at 1728 bytes 32>]
  // CHECK: pipe.place @matrix in @s3 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64> kernel @kernels::@muon_direction_4x4 finish @kernels::@muon_finish_4x4 owner{{$}}
  pipe.place @matrix in @s3 weight <arena 0 at 0 bytes 64> gradient <arena 0 at 64 bytes 64>
      kernel @kernels::@muon_direction_4x4 finish @kernels::@muon_finish_4x4 owner
  // CHECK: pipe.optimizer @s3 {{.*}} hyper <arena 0 at 272 bytes 16> elementwise 64 workspace <arena 0 at 1792 bytes 320>
  pipe.optimizer @s3 weights <arena 0 at 0 bytes 128> gradients <arena 0 at 128 bytes 128>
      states [] hyper <arena 0 at 272 bytes 16> elementwise 64 workspace <arena 0 at 1792 bytes 320>
  // CHECK: pipe.region "activations" <arena 0 at 320 bytes 1024>
  pipe.region "activations" <arena 0 at 320 bytes 1024>
}
