// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// The constraint that all reductions share.

func.func @reduce_sum_c1_axis_beyond_rank(%x: tensor<4x8xf32>) {
  // expected-error @below {{'nn.reduce_sum' op expects axes in [0, 2), but got 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.reduce_sum %x axes = [2] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_mean_c1_repeated_axis(%x: tensor<4x8xf32>) {
  // expected-error @below {{'nn.reduce_mean' op expects ascending axes, but got [1, 1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.reduce_mean %x axes = [1, 1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_max_keeps_no_dims(%x: tensor<4x8xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.reduce_max %x axes = [1] : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @reduce_max_c1_negative_axis(%x: tensor<4x8xf32>) {
  // expected-error @below {{'nn.reduce_max' op expects axes in [0, 2), but got -1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.reduce_max %x axes = [-1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}
