// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: pipewright-opt %s --emit-bytecode | pipewright-opt | FileCheck %s

// What comes in on one link goes out on the other.

// CHECK-LABEL: pipe.rank 1 train
pipe.rank 1 train {
  // CHECK: %[[R:.*]] = pipe.post_receive from 0 buffers [#pipe.buffer<arena 0 at 64 bytes 16>] : <tensor<4xf32>>
  // GENERIC: "pipe.post_receive"() <{buffers = [#pipe.buffer<arena 0 at 64 bytes 16>], peer = 0 : i64}>
  %r = pipe.post_receive from 0 buffers [#pipe.buffer<arena 0 at 64 bytes 16>] : <tensor<4xf32>>
  // CHECK: %[[X:.*]] = pipe.wait_receive %[[R]] from 0 : tensor<4xf32>
  %x = pipe.wait_receive %r from 0 : tensor<4xf32>
  // CHECK: %[[S:.*]] = pipe.post_send %[[X]] to 2 : tensor<4xf32>
  %s = pipe.post_send %x to 2 : tensor<4xf32>
  // CHECK: pipe.wait_send %[[S]] to 2 : <tensor<4xf32>>
  pipe.wait_send %s to 2 : <tensor<4xf32>>
}
