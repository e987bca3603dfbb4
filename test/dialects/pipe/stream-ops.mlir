// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: pipewright-opt %s --emit-bytecode | pipewright-opt | FileCheck %s

// Transfers record events of their own; work of other streams is recorded and
// waited for.

// CHECK-LABEL: pipe.rank 1 train
pipe.rank 1 train {
  // CHECK: pipe.post_receive from 0 buffers [#pipe.buffer<arena 0 at 64 bytes 16>] event 0 : <tensor<4xf32>>
  // GENERIC: "pipe.post_receive"() <{buffers = [#pipe.buffer<arena 0 at 64 bytes 16>], event = 0 : i64, peer = 0 : i64}>
  %r = pipe.post_receive from 0 buffers [#pipe.buffer<arena 0 at 64 bytes 16>] event 0 : <tensor<4xf32>>
  %x = pipe.wait_receive %r from 0 : tensor<4xf32>
  // CHECK: pipe.wait_event 0 on compute
  // GENERIC: "pipe.wait_event"() <{event = 0 : i64, stream = #pipe.stream<compute>}>
  pipe.wait_event 0 on compute
  // CHECK: pipe.record_event 1 on compute
  // GENERIC: "pipe.record_event"() <{event = 1 : i64, stream = #pipe.stream<compute>}>
  pipe.record_event 1 on compute
  // CHECK: pipe.wait_event 1 on send to 2
  // GENERIC: "pipe.wait_event"() <{event = 1 : i64, stream = #pipe.stream<send to 2>}>
  pipe.wait_event 1 on send to 2
  // CHECK: pipe.post_send %{{.*}} to 2 event 2 : tensor<4xf32>
  %s = pipe.post_send %x to 2 event 2 : tensor<4xf32>
  pipe.wait_send %s to 2 : <tensor<4xf32>>
  // CHECK: pipe.wait_event 2 on receive from 0
  // GENERIC: "pipe.wait_event"() <{event = 2 : i64, stream = #pipe.stream<receive from 0>}>
  pipe.wait_event 2 on receive from 0
}
