// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of products with epilogues, one violation each.

func.func @matmul_epilogue_c1_contracted_dimensions_differ(%a: tensor<3x8xf32>, %b: tensor<4x8xf32>, %c: tensor<8xf32>) {
  // expected-error @below {{expects equal contracted dimensions, but got 8 in 'tensor<3x8xf32>' and 4 in 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = call.matmul_epilogue %a, %b bias %c epilogue = bias : (tensor<3x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @matmul_epilogue_c1_batch(%a: tensor<2x3x8xf32>, %b: tensor<2x8x4xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{expects one matrix and not a batch of them, but got 'tensor<2x3x8xf32>' and 'tensor<2x8x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = call.matmul_epilogue %a, %b bias %c epilogue = bias : (tensor<2x3x8xf32>, tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @matmul_epilogue_c1_transposed_batch(%a: tensor<2x8x3xf32>, %b: tensor<8x4xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{expects one matrix and not a batch of them}}
  // expected-error @below {{failed to infer returned types}}
  %0 = call.matmul_epilogue %a, %b transpose_a bias %c epilogue = bias : (tensor<2x8x3xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @matmul_epilogue_c2_no_bias(%a: tensor<3x8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @below {{expects a bias with epilogue bias}}
  // expected-error @below {{failed to infer returned types}}
  %0 = call.matmul_epilogue %a, %b epilogue = bias : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @matmul_epilogue_c2_bias_of_rows(%a: tensor<3x8xf32>, %b: tensor<8x4xf32>, %c: tensor<3xf32>) {
  // expected-error @below {{expects a bias of type 'tensor<4xf32>', but got 'tensor<3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = call.matmul_epilogue %a, %b bias %c epilogue = bias : (tensor<3x8xf32>, tensor<8x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @matmul_epilogue_c2_f32_bias(%a: tensor<3x8xbf16>, %b: tensor<8x4xbf16>, %c: tensor<4xf32>) {
  // expected-error @below {{expects a bias of type 'tensor<4xbf16>', but got 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = call.matmul_epilogue %a, %b bias %c epilogue = bias : (tensor<3x8xbf16>, tensor<8x4xbf16>, tensor<4xf32>) -> tensor<3x4xbf16>
  return
}

// -----

func.func @matmul_epilogue_c3_pre_activation_of_forward(%a: tensor<3x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8xf32>, %h: tensor<3x8xf32>) {
  // expected-error @below {{expects no pre-activation with epilogue bias_gelu}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = call.matmul_epilogue %a, %b bias %c pre_activation %h epilogue = bias_gelu : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>)
  return
}

// -----

func.func @matmul_epilogue_c3_other_pre_activation(%a: tensor<3x8xf32>, %b: tensor<8x8xf32>, %h: tensor<8x3xf32>) {
  // expected-error @below {{expects a pre-activation of type 'tensor<3x8xf32>', but got 'tensor<8x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = call.matmul_epilogue %a, %b pre_activation %h epilogue = gelu_gradient : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @matmul_epilogue_c4_columns(%a: tensor<3x8xf32>, %b: tensor<8x12xf32>, %c: tensor<12xf32>) {
  // expected-error @below {{expects a multiple of 8 columns, but got 12}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = call.matmul_epilogue %a, %b bias %c epilogue = bias_gelu : (tensor<3x8xf32>, tensor<8x12xf32>, tensor<12xf32>) -> (tensor<3x12xf32>, tensor<3x12xf32>)
  return
}

// -----

func.func @matmul_epilogue_c5_bias_gradient_in_bf16(%a: tensor<3x8xbf16>, %b: tensor<8x8xbf16>, %h: tensor<3x8xbf16>) {
  // expected-error @below {{expects f32 operands with epilogue gelu_bias_gradient, but got 'tensor<3x8xbf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = call.matmul_epilogue %a, %b pre_activation %h epilogue = gelu_bias_gradient : (tensor<3x8xbf16>, tensor<8x8xbf16>, tensor<3x8xbf16>) -> (tensor<3x8xbf16>, tensor<8xbf16>)
  return
}
