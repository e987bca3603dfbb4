// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of launches and subviews, one violation each.

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

// -----

func.func @subview_c1_beyond(%x: tensor<4x16xf32>) {
  // expected-error @below {{expects 32 elements of 'tensor<4x16xf32>', but got those from 48 on}}
  %0 = nn.subview %x at 48 : tensor<4x16xf32> -> tensor<2x16xf32>
  return
}

// -----

func.func @subview_c1_before(%x: tensor<4x16xf32>) {
  // expected-error @below {{expects 32 elements of 'tensor<4x16xf32>', but got those from -16 on}}
  %0 = nn.subview %x at -16 : tensor<4x16xf32> -> tensor<2x16xf32>
  return
}

// -----

func.func @subview_c1_larger(%x: tensor<4x16xf32>) {
  // expected-error @below {{expects 80 elements of 'tensor<4x16xf32>', but got those from 0 on}}
  %0 = nn.subview %x at 0 : tensor<4x16xf32> -> tensor<5x16xf32>
  return
}

// -----

func.func @subview_c2_types_differ(%x: tensor<4x16xf32>) {
  // expected-error @below {{expects one element type, but got 'tensor<4x16xf32>' and 'tensor<2x16xbf16>'}}
  %0 = nn.subview %x at 16 : tensor<4x16xf32> -> tensor<2x16xbf16>
  return
}

// -----

func.func @subview_c3_unaligned(%x: tensor<4x16xbf16>) {
  // expected-error @below {{expects to begin at a multiple of 64 bytes, but got byte 32}}
  %0 = nn.subview %x at 16 : tensor<4x16xbf16> -> tensor<2x16xbf16>
  return
}
