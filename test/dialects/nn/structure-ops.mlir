// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// Weights, constants and their uses are printed as they are parsed, in both
// forms.

// CHECK: nn.weight @h.0.weight role = parameter : tensor<64x32xf32>
// GENERIC: "nn.weight"() <{role = #nn<role parameter>, sym_name = "h.0.weight", type = tensor<64x32xf32>}>
nn.weight @h.0.weight role = parameter : tensor<64x32xf32>
// CHECK: nn.weight @matrix role = parameter outputs = columns : tensor<64x32xf32>
nn.weight @matrix role = parameter outputs = columns : tensor<64x32xf32>
// CHECK: nn.weight @steps role = state : tensor<1xf32>
nn.weight @steps role = state : tensor<1xf32>
// CHECK: nn.weight @"a/positions" role = constant : tensor<1x128xi64>
nn.weight @"a/positions" role = constant : tensor<1x128xi64>

// A value is named after its weight.
// CHECK-LABEL: func @parameter
func.func @parameter() {
  // CHECK: %h_0_weight = nn.parameter @h.0.weight : tensor<64x32xf32>
  %0 = nn.parameter @h.0.weight : tensor<64x32xf32>
  // CHECK: %a_positions = nn.parameter @"a/positions" : tensor<1x128xi64>
  %1 = nn.parameter @"a/positions" : tensor<1x128xi64>
  return
}

// CHECK-LABEL: func @constant
func.func @constant() {
  // CHECK: nn.constant dense<5.000000e-01> : tensor<f32>
  %0 = nn.constant dense<0.5> : tensor<f32>
  // CHECK: nn.constant dense<1.000000e+00> : tensor<1024x1024xf32>
  %1 = nn.constant dense<1.0> : tensor<1024x1024xf32>
  // CHECK: nn.constant dense<[1, -1]> : tensor<2xi64>
  %2 = nn.constant dense<[1, -1]> : tensor<2xi64>
  return
}

// CHECK-LABEL: func @causal_mask
func.func @causal_mask() {
  // CHECK: nn.causal_mask : tensor<1x1x128x128xi1>
  %0 = nn.causal_mask : tensor<1x1x128x128xi1>
  return
}

// Inner symbol tables do not hide the weights of the module.
module @inner {
  // CHECK-LABEL: func @effects
  func.func @effects(%v: tensor<1xf32>, %g: tensor<64x32xf32>) {
    // CHECK: nn.assign_state @steps, %{{.*}} : tensor<1xf32>
    nn.assign_state @steps, %v : tensor<1xf32>
    // CHECK: nn.assign_state @steps, %{{.*}} decay = 5.000000e-01 : tensor<1xf32>
    nn.assign_state @steps, %v decay = 0.5 : tensor<1xf32>
    // CHECK: nn.accumulate_gradient @h.0.weight, %{{.*}} : tensor<64x32xf32>
    nn.accumulate_gradient @h.0.weight, %g : tensor<64x32xf32>
    return
  }
}
