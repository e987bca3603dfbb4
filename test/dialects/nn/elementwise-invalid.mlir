// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// Every constraint of the pointwise ops, one violation each.

func.func @cast_c1_shapes_differ(%x: tensor<4xf32>) {
  // expected-error @below {{'nn.cast' op expects one shape, but got 'tensor<4xf32>' and 'tensor<5xf32>'}}
  %0 = nn.cast %x : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @add_c1_shapes_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.add' op expects shapes that broadcast, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.add %a, %b : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @mul_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.mul' op expects operands of one element type, but got 'tensor<4xf32>' and 'tensor<4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.mul %a, %b : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @result_type_is_not_the_inferred_one(%a: tensor<4xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<5xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @compare_c1_shapes_do_not_broadcast(%a: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{'nn.compare' op expects shapes that broadcast}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.compare %a, %b predicate = lt : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @compare_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.compare' op expects operands of one element type}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.compare %a, %b predicate = lt : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xi1>
  return
}

// -----

func.func @compare_unknown_predicate(%a: tensor<4xf32>) {
  // expected-error @below {{expected one of [eq, ne, lt, le, gt, ge]}}
  // expected-error @below {{failed to parse}}
  %0 = nn.compare %a, %a predicate = less : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @where_c1_condition_does_not_broadcast(%p: tensor<3xi1>, %a: tensor<4xf32>) {
  // expected-error @below {{'nn.where' op expects shapes that broadcast, but got 'tensor<3xi1>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.where %p, %a, %a : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @where_c2_element_types_differ(%p: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.where' op expects operands of one element type}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.where %p, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

// Shapes are static in every nn op.
func.func @dynamic_shape(%x: tensor<?xf32>) {
  // expected-error @below {{must be statically shaped tensor}}
  %0 = nn.exp %x : tensor<?xf32>
  return
}

// -----

func.func @add_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.add' op expects operands of one element type, but got 'tensor<4xf32>' and 'tensor<4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.add %a, %b : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @sub_c1_shapes_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.sub' op expects shapes that broadcast, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.sub %a, %b : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sub_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.sub' op expects operands of one element type, but got 'tensor<4xf32>' and 'tensor<4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.sub %a, %b : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @mul_c1_shapes_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.mul' op expects shapes that broadcast, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.mul %a, %b : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @div_c1_shapes_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.div' op expects shapes that broadcast, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.div %a, %b : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @div_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.div' op expects operands of one element type, but got 'tensor<4xf32>' and 'tensor<4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.div %a, %b : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @pow_c1_shapes_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.pow' op expects shapes that broadcast, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.pow %a, %b : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pow_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xbf16>) {
  // expected-error @below {{'nn.pow' op expects operands of one element type, but got 'tensor<4xf32>' and 'tensor<4xbf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.pow %a, %b : (tensor<4xf32>, tensor<4xbf16>) -> tensor<4xf32>
  return
}

// -----

func.func @maximum_c1_shapes_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.maximum' op expects shapes that broadcast, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.maximum %a, %b : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @maximum_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.maximum' op expects operands of one element type, but got 'tensor<4xf32>' and 'tensor<4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.maximum %a, %b : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @minimum_c1_shapes_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.minimum' op expects shapes that broadcast, but got 'tensor<4x8xf32>' and 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.minimum %a, %b : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @minimum_c2_element_types_differ(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @below {{'nn.minimum' op expects operands of one element type, but got 'tensor<4xf32>' and 'tensor<4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.minimum %a, %b : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @logical_and_c1_shapes_do_not_broadcast(%a: tensor<4x8xi1>, %b: tensor<4xi1>) {
  // expected-error @below {{'nn.logical_and' op expects shapes that broadcast, but got 'tensor<4x8xi1>' and 'tensor<4xi1>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.logical_and %a, %b : (tensor<4x8xi1>, tensor<4xi1>) -> tensor<4x8xi1>
  return
}

// -----

func.func @logical_and_c2_element_types_differ(%a: tensor<4xi1>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.logical_and' op operand #1 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = nn.logical_and %a, %b : (tensor<4xi1>, tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @logical_or_c1_shapes_do_not_broadcast(%a: tensor<4x8xi1>, %b: tensor<4xi1>) {
  // expected-error @below {{'nn.logical_or' op expects shapes that broadcast, but got 'tensor<4x8xi1>' and 'tensor<4xi1>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = nn.logical_or %a, %b : (tensor<4x8xi1>, tensor<4xi1>) -> tensor<4x8xi1>
  return
}

// -----

func.func @logical_or_c2_element_types_differ(%a: tensor<4xi1>, %b: tensor<4xf32>) {
  // expected-error @below {{'nn.logical_or' op operand #1 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = nn.logical_or %a, %b : (tensor<4xi1>, tensor<4xf32>) -> tensor<4xi1>
  return
}
