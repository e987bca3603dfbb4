// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: pipewright-opt %s --emit-bytecode | pipewright-opt | FileCheck %s

pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    pipe.return %x : tensor<4x8xf32> stash %x : tensor<4x8xf32>
  }
  pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4x8xf32>, %s: tensor<4x8xf32>, %d: tensor<4x8xf32>):
    pipe.return
  }
  pipe.input_gradient inputs [] outputs [] stash [0] gradients_of [0] input_gradients [] {
  ^bb0(%s: tensor<4x8xf32>, %d: tensor<4x8xf32>):
    pipe.return stash %s : tensor<4x8xf32>
  }
  pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [0] {
  ^bb0(%x: tensor<4x8xf32>, %d: tensor<4x8xf32>, %held: tensor<4x8xf32>):
    pipe.return
  }
  pipe.evaluate sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    pipe.return %x : tensor<4x8xf32>
  }
}

// Three micro-batches of one stage: the gradient chain orders the backwards,
// and the half of one that adds to gradients.

// CHECK-LABEL: pipe.step train
pipe.step train {
  // CHECK: %[[X0:.*]] = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
  // GENERIC: "pipe.input"() <{micro_batch = 0 : i64, name = "x", stage = @s0}>
  %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
  %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4x8xf32>
  // CHECK: %[[H0:.*]], %[[S0:.*]] = pipe.task forward @s0 micro_batch 0(%[[X0]]) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  // GENERIC: kind = #pipe<task_kind forward>
  %h0, %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  %h1, %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  // CHECK: %[[G0:.*]] = pipe.task backward @s0 micro_batch 0(%[[X0]], %[[S0]], %[[H0]])
  %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %st0, %h0) : (tensor<4x8xf32>, !pipe.stash<@s0>, tensor<4x8xf32>) -> !pipe.gradient<@s0>
  // CHECK: pipe.task backward @s0 micro_batch 1({{.*}}, %[[G0]])
  %g1 = pipe.task backward @s0 micro_batch 1 (%x1, %st1, %h1, %g0) : (tensor<4x8xf32>, !pipe.stash<@s0>, tensor<4x8xf32>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
  %x2 = pipe.input "x" micro_batch 2 for @s0 : tensor<4x8xf32>
  %h2, %st2 = pipe.task forward @s0 micro_batch 2 (%x2) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  // CHECK: %[[HANDED:.*]] = pipe.task input_gradient @s0 micro_batch 2({{.*}}) : (!pipe.stash<@s0>, tensor<4x8xf32>) -> !pipe.handover<@s0>
  %ho = pipe.task input_gradient @s0 micro_batch 2 (%st2, %h2) : (!pipe.stash<@s0>, tensor<4x8xf32>) -> !pipe.handover<@s0>
  // CHECK: pipe.task weight_gradient @s0 micro_batch 2({{.*}}, %[[HANDED]], %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>, !pipe.handover<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
  %g3 = pipe.task weight_gradient @s0 micro_batch 2 (%x2, %h2, %ho, %g1) : (tensor<4x8xf32>, tensor<4x8xf32>, !pipe.handover<@s0>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
  // CHECK: pipe.gradient_of @w in @s0
  %t = pipe.gradient_of @w in @s0 (%g3) : (!pipe.gradient<@s0>) -> tensor<8x8xf32>
  // CHECK: pipe.add_gradient @w in @s0
  %g2 = pipe.add_gradient @w in @s0 (%g3, %t) : !pipe.gradient<@s0>, tensor<8x8xf32>
  // CHECK: pipe.task update @s0(%{{.*}}) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  %u = pipe.task update @s0 (%g2) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  // CHECK: pipe.weight_of @w in @s0
  %w = pipe.weight_of @w in @s0 (%u) : (!pipe.updated<@s0>) -> tensor<8x8xf32>
  // CHECK: pipe.set_weight @w in @s0
  pipe.set_weight @w in @s0 (%w, %g2) : tensor<8x8xf32>, !pipe.gradient<@s0>
}

// CHECK-LABEL: pipe.step evaluate
pipe.step evaluate {
  %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
  // CHECK: pipe.task evaluate @s0 micro_batch 0
  %h0 = pipe.task evaluate @s0 micro_batch 0 (%x0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
}

// Several updates in a step, on weights of several versions.
// CHECK-LABEL: pipe.step train
pipe.step train {
  %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
  // CHECK: pipe.task forward @s0 micro_batch 0 version -1({{.*}}) weights <arena 0 at 64 bytes 64>
  %h0, %st0 = pipe.task forward @s0 micro_batch 0 version -1 (%x0) weights <arena 0 at 64 bytes 64> : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  // CHECK: pipe.task backward @s0 micro_batch 0 version -1(
  %g0 = pipe.task backward @s0 micro_batch 0 version -1 (%x0, %st0, %h0) : (tensor<4x8xf32>, !pipe.stash<@s0>, tensor<4x8xf32>) -> !pipe.gradient<@s0>
  // CHECK: %[[U0:.*]] = pipe.task update @s0 number 0(
  %u0 = pipe.task update @s0 number 0 (%g0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4x8xf32>
  %h1, %st1 = pipe.task forward @s0 micro_batch 1 version 0 (%x1) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  // CHECK: pipe.task backward @s0 micro_batch 1 version 0({{.*}}, %[[U0]]) : ({{.*}}, !pipe.updated<@s0>) -> !pipe.gradient<@s0>
  %g1 = pipe.task backward @s0 micro_batch 1 version 0 (%x1, %st1, %h1, %u0) : (tensor<4x8xf32>, !pipe.stash<@s0>, tensor<4x8xf32>, !pipe.updated<@s0>) -> !pipe.gradient<@s0>
}

// Two tasks that are meant to run together.
// CHECK-LABEL: pipe.step train
pipe.step train {
  %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
  %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4x8xf32>
  // CHECK: pipe.task forward @s0 micro_batch 0({{.*}}) overlaps_next : (
  %h0, %st0 = pipe.task forward @s0 micro_batch 0 (%x0) overlaps_next : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  // CHECK-NOT: overlaps_next
  %h1, %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
}

// A stash that another rank keeps, and then another one in the same place.
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%x: tensor<4x8xf32>):
    pipe.return
  }
}
// CHECK-LABEL: pipe.step train
pipe.step train {
  %x0 = pipe.input "x" micro_batch 0 for @s0 : tensor<4x8xf32>
  %h0, %st0 = pipe.task forward @s0 micro_batch 0 (%x0) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  // CHECK: %[[BYTES:bytes_s0_0]] = pipe.hold(%{{.*}}) of @s0 micro_batch 0 in @s0 : !pipe.stash<@s0> -> tensor<128xi8>
  %bytes = pipe.hold (%st0) of @s0 micro_batch 0 in @s0 : !pipe.stash<@s0> -> tensor<128xi8>
  // CHECK: %[[KEPT:kept_s0_0]] = pipe.hold(%[[BYTES]]) of @s0 micro_batch 0 in @s1 : tensor<128xi8> -> tensor<128xi8>
  %kept = pipe.hold (%bytes) of @s0 micro_batch 0 in @s1 : tensor<128xi8> -> tensor<128xi8>
  // CHECK: %[[BACK:back_s0_0]] = pipe.hold(%[[KEPT]]) of @s0 micro_batch 0 in @s0 : tensor<128xi8> -> !pipe.stash<@s0>
  %back = pipe.hold (%kept) of @s0 micro_batch 0 in @s0 : tensor<128xi8> -> !pipe.stash<@s0>
  // CHECK: pipe.task backward @s0 micro_batch 0({{.*}}, %[[BACK]], {{.*}})
  %g0 = pipe.task backward @s0 micro_batch 0 (%x0, %back, %h0) : (tensor<4x8xf32>, !pipe.stash<@s0>, tensor<4x8xf32>) -> !pipe.gradient<@s0>
  %x1 = pipe.input "x" micro_batch 1 for @s0 : tensor<4x8xf32>
  %h1, %st1 = pipe.task forward @s0 micro_batch 1 (%x1) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, !pipe.stash<@s0>)
  %bytes1 = pipe.hold (%st1) of @s0 micro_batch 1 in @s0 : !pipe.stash<@s0> -> tensor<128xi8>
  // CHECK: pipe.hold({{.*}}) of @s0 micro_batch 1 in @s1 behind(%[[KEPT]] : tensor<128xi8>) : tensor<128xi8> -> tensor<128xi8>
  %kept1 = pipe.hold (%bytes1) of @s0 micro_batch 1 in @s1 behind (%kept : tensor<128xi8>) : tensor<128xi8> -> tensor<128xi8>
}
