// RUN: pipewright-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(kernel-gpu-to-nvvm))' | FileCheck %s

// Bare pointers that keep what is known of them, positions of 32 bits.
gpu.module @kernels attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  // CHECK-LABEL: llvm.func @copy
  // CHECK-SAME:  %{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
  // CHECK-SAME:  nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>
  // CHECK:       nvvm.read.ptx.sreg.tid.x
  // CHECK:       llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
  gpu.func @copy(%x: memref<256xf32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly},
                 %y: memref<256xf32> {llvm.align = 16 : i64, llvm.noalias})
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %thread = gpu.thread_id x
    %c4 = arith.constant 4 : index
    %i = arith.muli %thread, %c4 : index
    %0 = vector.load %x[%i] {alignment = 16 : i64} : memref<256xf32>, vector<4xf32>
    vector.store %0, %y[%i] {alignment = 16 : i64} : memref<256xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

// There is no library of functions to call.
gpu.module @kernels {
  gpu.func @sine(%x: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %0 = memref.load %x[%c0] : memref<1xf32>
    // expected-error@+1 {{'math.sin' op has no instruction on a GPU}}
    %1 = math.sin %0 : f32
    memref.store %1, %x[%c0] : memref<1xf32>
    gpu.return
  }
}
