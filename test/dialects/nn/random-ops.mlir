// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Dropout is printed as it is parsed, in both forms.

// The id tells the dropouts of a model apart.
// CHECK-LABEL: func @dropout
func.func @dropout(%x: tensor<4x8xf32>) {
  // CHECK: nn.dropout %{{[a-z0-9_]+}} rate = 1.000000e-01 id = 3 : tensor<4x8xf32>
  %0 = nn.dropout %x rate = 1.000000e-01 id = 3 : tensor<4x8xf32>
  return
}
