// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: pipewright-opt %s --emit-bytecode | pipewright-opt | FileCheck %s

// A stage with all bodies, the backward also in two halves: what is kept, and which gradients flow.

// CHECK-LABEL: pipe.stage @s0 on rank 1
pipe.stage @s0 on rank 1 {
  // CHECK: pipe.forward sources [#pipe.input<"x">, #pipe.output<@s7, 2>]
  // CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<4x8xf32>):
  // GENERIC: "pipe.forward"() <{sources = [#pipe.input<"x">, #pipe.output<@s7, 2>]}>
  pipe.forward sources [#pipe.input<"x">, #pipe.output<@s7, 2>] {
  ^bb0(%x: tensor<4x8xf32>, %skip: tensor<4x8xf32>):
    %c = pipe.copy %x : tensor<4x8xf32>
    // CHECK: pipe.return %[[S]] : tensor<4x8xf32> stash %{{.*}} : tensor<4x8xf32>
    pipe.return %skip : tensor<4x8xf32> stash %c : tensor<4x8xf32>
  }
  // CHECK: pipe.backward inputs [1] outputs [0] gradients_of [0] input_gradients [1]
  // CHECK-NEXT: ^bb0(%in1: tensor<4x8xf32>, %out0: tensor<4x8xf32>, %stash0: tensor<4x8xf32>, %d_out0: tensor<4x8xf32>):
  pipe.backward inputs [1] outputs [0] gradients_of [0] input_gradients [1] {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>, %d: tensor<4x8xf32>):
    pipe.return %d : tensor<4x8xf32>
  }
  // CHECK: pipe.input_gradient inputs [] outputs [0] stash [0] gradients_of [0] input_gradients [1]
  // CHECK-NEXT: ^bb0(%out0: tensor<4x8xf32>, %stash0: tensor<4x8xf32>, %d_out0: tensor<4x8xf32>):
  pipe.input_gradient inputs [] outputs [0] stash [0] gradients_of [0] input_gradients [1] {
  ^bb0(%b: tensor<4x8xf32>, %c: tensor<4x8xf32>, %d: tensor<4x8xf32>):
    // CHECK-NEXT: pipe.return %d_out0 : tensor<4x8xf32> stash %stash0 : tensor<4x8xf32>
    pipe.return %d : tensor<4x8xf32> stash %c : tensor<4x8xf32>
  }
  // CHECK: pipe.weight_gradient inputs [1] outputs [] stash [] gradients_of [0]
  // CHECK-NEXT: ^bb0(%in1: tensor<4x8xf32>, %d_out0: tensor<4x8xf32>, %handover0: tensor<4x8xf32>):
  // GENERIC: "pipe.weight_gradient"() <{gradients_of = array<i64: 0>, inputs = array<i64: 1>, outputs = array<i64>, stash = array<i64>}>
  pipe.weight_gradient inputs [1] outputs [] stash [] gradients_of [0] {
  ^bb0(%a: tensor<4x8xf32>, %d: tensor<4x8xf32>, %e: tensor<4x8xf32>):
    pipe.return
  }
  // CHECK: pipe.evaluate sources [#pipe.input<"x">]
  pipe.evaluate sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    // CHECK: pipe.report "logits" %{{.*}} : tensor<4x8xf32>
    pipe.report "logits" %x : tensor<4x8xf32>
  }
}
