// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of the ops that move elements, one violation each.

func.func @reshape_c1_element_counts_differ(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects as many elements after as before, but got 32 in 'tensor<4x8xf32>' and 33 in 'tensor<33xf32>'}}
  %0 = nn.reshape %x : tensor<4x8xf32> -> tensor<33xf32>
  return
}

// -----

func.func @reshape_c2_element_types_differ(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.reshape' op expects one element type}}
  %0 = nn.reshape %x : tensor<4xf32> -> tensor<4xi64>
  return
}

// -----

func.func @transpose_c1_repeated_dimension(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects a permutation of 2 dimensions, but got [0, 0]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.transpose %x permutation = [0, 0] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_c1_missing_dimension(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects a permutation of 2 dimensions, but got [1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.transpose %x permutation = [1] : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @slice_c1_entries_missing(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects starts, sizes and steps of 2 entries, but got [1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.slice %x starts = [0, 0] sizes = [1] steps = [1, 1] : tensor<4x8xf32> -> tensor<1x8xf32>
  return
}

// -----

func.func @slice_c2_step_of_zero(%x: tensor<4xf32>) {
  // expected-error @below {{expects sizes of at least 1 and steps that are not 0, but got size 2 and step 0}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.slice %x starts = [0] sizes = [2] steps = [0] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @slice_c3_beyond_the_end(%x: tensor<4xf32>) {
  // expected-error @below {{expects elements in [0, 4), but got 2 to 4}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.slice %x starts = [2] sizes = [3] steps = [1] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @slice_c3_backwards_beyond_the_start(%x: tensor<4xf32>) {
  // expected-error @below {{expects elements in [0, 4), but got 1 to -1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.slice %x starts = [1] sizes = [3] steps = [-1] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @pad_c1_negative(%x: tensor<4xf32>) {
  // expected-error @below {{expects low and high of 1 entries of at least 0, but got [-1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.pad %x low = [0] high = [-1] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @concat_c1_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{expects operands of one element type}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat %a, %b axis = 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<8xf32>
  return
}

// -----

func.func @concat_c1_no_operand() {
  // expected-error @below {{expects at least 1 operand, but got 0}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "nn.concat"() <{axis = 0 : i64}> : () -> tensor<8xf32>
  return
}

// -----

func.func @concat_c2_axis_beyond_rank(%a: tensor<4xf32>) {
  // expected-error @below {{expects an axis in [0, 1), but got 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat %a, %a axis = 1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @concat_c3_other_dimension_differs(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) {
  // expected-error @below {{expects operands that differ along axis 0 only, but got 'tensor<4x2xf32>' and 'tensor<4x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.concat %a, %b axis = 0 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @broadcast_to_c1_smaller_result(%x: tensor<4x8xf32>) {
  // expected-error @below {{expects a shape that broadcasts to 'tensor<1x8xf32>', but got 'tensor<4x8xf32>'}}
  %0 = nn.broadcast_to %x : tensor<4x8xf32> -> tensor<1x8xf32>
  return
}

// -----

func.func @broadcast_to_c2_element_types_differ(%x: tensor<8xf32>) {
  // expected-error @below {{'nn.broadcast_to' op expects one element type}}
  %0 = nn.broadcast_to %x : tensor<8xf32> -> tensor<4x8xi64>
  return
}

// -----

func.func @embedding_c1_table_rank(%t: tensor<8xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{expects a table of rank 2, but got 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.embedding %t, %i : (tensor<8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @embedding_c2_padding_row(%t: tensor<8x4xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{expects a padding row of [0, 8), but got 8}}
  %0 = nn.embedding %t, %i {padding_row = 8 : i64}
      : (tensor<8x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  return
}

// -----

func.func @embedding_backward_c3_padding_row(%dy: tensor<4x8xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{expects a padding row of [0, 16), but got -1}}
  %0 = nn.embedding_backward %dy, %i {padding_row = -1 : i64}
      : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<16x8xf32>
  return
}

// -----

func.func @embedding_backward_c1_result_rank(%dy: tensor<4x8xf32>, %i: tensor<4xi64>) {
  // expected-error @below {{expects a result of rank 2, but got 'tensor<8xf32>'}}
  %0 = nn.embedding_backward %dy, %i : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<8xf32>
  return
}

// -----

func.func @embedding_backward_c2_gradient_shape(%dy: tensor<4x8xf32>, %i: tensor<5xi64>) {
  // expected-error @below {{expects a gradient of shape [5, 8], but got 'tensor<4x8xf32>'}}
  %0 = nn.embedding_backward %dy, %i : (tensor<4x8xf32>, tensor<5xi64>) -> tensor<16x8xf32>
  return
}
