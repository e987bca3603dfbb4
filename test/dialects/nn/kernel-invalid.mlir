// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of launches, one violation each.

func.func @launch_c1_no_such_kernel(%x: tensor<4xf32>) {
  // expected-error @below {{expects @kernels::@f to name a function, but found none}}
  %0 = nn.launch @kernels::@f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

nn.weight @w role = parameter : tensor<4xf32>
func.func @launch_c1_not_a_function(%x: tensor<4xf32>) {
  // expected-error @below {{expects @w to name a function, but found another op}}
  %0 = nn.launch @w(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

module @kernels {
  // expected-note @below {{the kernel is here}}
  func.func private @f(tensor<5xf32>) -> tensor<4xf32>
}
func.func @launch_c2_types_differ(%x: tensor<4xf32>) {
  // expected-error @below {{expects operands and results of '(tensor<5xf32>) -> tensor<4xf32>', but got '(tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = nn.launch @kernels::@f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
