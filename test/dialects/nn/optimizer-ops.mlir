// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Updates are printed as they are parsed, in both forms. What is not written
// has its default; what changes from step to step is printed where it differs.

// CHECK: module attributes {pipe.program = #pipe.program<optimizer = <sgd lr = 1.250000e-01, momentum = 0.000000e+00, weight_decay = 0.000000e+00, nesterov = false>>}
module attributes {pipe.program = #pipe.program<optimizer = <sgd lr = 0.125>>} {

// Plain, and with every option.
// CHECK-LABEL: func @sgd
func.func @sgd(%w: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %h: tensor<4xf32>) {
  // CHECK: nn.update %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} scalars %{{[a-z0-9_]+}} by <sgd momentum = 0.000000e+00, weight_decay = 0.000000e+00, nesterov = false> : (tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> tensor<64xf32>
  %0 = nn.update %w, %g scalars %h by <sgd> : (tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> tensor<64xf32>
  // CHECK: nn.update {{.*}} nesterov = false> may_skip : (tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> tensor<64xf32>
  %skippable = nn.update %w, %g scalars %h by <sgd> may_skip : (tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> tensor<64xf32>
  // CHECK: nn.update %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} states %{{[a-z0-9_]+}} scalars %{{[a-z0-9_]+}} by <sgd momentum = 9.000000e-01, weight_decay = 1.000000e-04, nesterov = true> : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %1, %2 = nn.update %w, %g states %m scalars %h by <sgd nesterov = true, momentum = 0.9, weight_decay = 1.0e-4>
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return
}

// Two running averages, over a weight as it is shaped.
// CHECK-LABEL: func @lamb
func.func @lamb(%w: tensor<3x5xf32>, %g: tensor<3x5xf32>, %m: tensor<3x5xf32>, %v: tensor<3x5xf32>, %h: tensor<4xf32>) {
  // CHECK: nn.update {{.*}} by <lamb beta1 = 9.000000e-01, beta2 = 9.375000e-01, eps = 1.000000e-08, weight_decay = 1.000000e-02>
  %0, %1, %2 = nn.update %w, %g states %m, %v scalars %h by <lamb beta2 = 9.375000e-01>
      : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<4xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
  return
}

}
