// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Updates are printed as they are parsed, in both forms.

// Plain, and with every option.
// CHECK-LABEL: func @sgd
func.func @sgd(%w: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %h: tensor<4xf32>) {
  // CHECK: nn.sgd %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} momentum = 0.000000e+00 weight_decay = 0.000000e+00 : (tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> tensor<64xf32>
  %0 = nn.sgd %w, %g, %h momentum = 0.000000e+00 weight_decay = 0.000000e+00
      : (tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> tensor<64xf32>
  // CHECK: nn.sgd %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} momentum_buffer %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} momentum = 9.000000e-01 weight_decay = 1.000000e-04 nesterov : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %1, %2 = nn.sgd %w, %g momentum_buffer %m, %h momentum = 9.000000e-01 weight_decay = 1.000000e-04 nesterov
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return
}

// Two running averages.
// CHECK-LABEL: func @adam
func.func @adam(%w: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %h: tensor<4xf32>) {
  // CHECK: nn.adam %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} beta1 = 9.000000e-01 beta2 = 9.375000e-01 eps = 1.000000e-08 weight_decay = 1.000000e-02 : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  %0, %1, %2 = nn.adam %w, %g, %m, %v, %h beta1 = 9.000000e-01 beta2 = 9.375000e-01 eps = 1.000000e-08 weight_decay = 1.000000e-02
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}

// Two running averages.
// CHECK-LABEL: func @adamw
func.func @adamw(%w: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %h: tensor<4xf32>) {
  // CHECK: nn.adamw %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} beta1 = 9.000000e-01 beta2 = 9.375000e-01 eps = 1.000000e-08 weight_decay = 1.000000e-02 : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  %0, %1, %2 = nn.adamw %w, %g, %m, %v, %h beta1 = 9.000000e-01 beta2 = 9.375000e-01 eps = 1.000000e-08 weight_decay = 1.000000e-02
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}

// Without momentum and with it.
// CHECK-LABEL: func @rmsprop
func.func @rmsprop(%w: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %h: tensor<4xf32>) {
  // CHECK: nn.rmsprop %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} alpha = 9.375000e-01 eps = 1.000000e-08 momentum = 0.000000e+00 weight_decay = 0.000000e+00 : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %0, %1 = nn.rmsprop %w, %g, %v, %h alpha = 9.375000e-01 eps = 1.000000e-08 momentum = 0.000000e+00 weight_decay = 0.000000e+00
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  // CHECK: nn.rmsprop %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} momentum_buffer %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} alpha = 9.375000e-01 eps = 1.000000e-08 momentum = 9.000000e-01 weight_decay = 0.000000e+00 : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  %2, %3, %4 = nn.rmsprop %w, %g, %v momentum_buffer %m, %h alpha = 9.375000e-01 eps = 1.000000e-08 momentum = 9.000000e-01 weight_decay = 0.000000e+00
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}
