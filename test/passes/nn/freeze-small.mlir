// Weights of few elements are not trained; other roles stay.

// RUN: pipewright-opt %s --nn-freeze-small="least=8" | FileCheck %s
// RUN: pipewright-opt %s --nn-freeze-small="least=8" --nn-freeze-small="least=8" | FileCheck %s
// RUN: pipewright-opt %s --nn-freeze-small | FileCheck %s --check-prefix=STANDARD
// RUN: not pipewright-opt %s --nn-freeze-small="least=33" 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: nn.weight @w role = parameter : tensor<8x4xf32>
// CHECK: nn.weight @exact role = parameter : tensor<8xf32>
// CHECK: nn.weight @b role = frozen : tensor<4xf32>
// CHECK: nn.weight @mean role = state : tensor<4xf32>
// STANDARD: nn.weight @b role = parameter : tensor<4xf32>
// NONE: error: nn-freeze-small expects a weight of at least 33 elements to train, but has none
module {
  nn.weight @w role = parameter : tensor<8x4xf32>
  nn.weight @exact role = parameter : tensor<8xf32>
  nn.weight @b role = parameter : tensor<4xf32>
  nn.weight @mean role = state : tensor<4xf32>
}
