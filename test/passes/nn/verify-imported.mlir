// RUN: pipewright-opt %s --split-input-file --verify-diagnostics --nn-verify-imported

// What the frontends make is accepted.
nn.weight @w role = parameter : tensor<8xf32>
func.func @model(%x: tensor<8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}, tensor<8xf32> {nn.name = "y"}) {
  %w = nn.parameter @w : tensor<8xf32>
  %0 = nn.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = nn.reduce_mean %0 axes = [0] : tensor<8xf32> -> tensor<f32>
  return %1, %0 : tensor<f32>, tensor<8xf32>
}

// -----

// expected-error @below {{expects a function '@model', but has none}}
module {
}

// -----

module {
  // expected-error @below {{'func.func' op is not allowed in an imported module, which holds 'nn.weight' and one function '@model'}}
  func.func private @helper()
  func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    return %x : tensor<f32>
  }
}

// -----

// expected-error @below {{expects the loss as its first result, but has no results}}
func.func @model() {
  return
}

// -----

// expected-error @below {{expects its first result, the loss, to be 'tensor<f32>', but got 'tensor<4xf32>'}}
func.func @model(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "loss"}) {
  return %x : tensor<4xf32>
}

// -----

// Every violation is reported.
// expected-error @below {{expects argument 0 to have an 'nn.name'}}
// expected-error @below {{has two arguments named "x"}}
// expected-error @below {{expects result 0 to have an 'nn.name'}}
func.func @model(%a: tensor<f32>, %b: tensor<f32> {nn.name = "x"}, %c: tensor<f32> {nn.name = "x"}) -> tensor<f32> {
  return %a : tensor<f32>
}

// -----

nn.weight @w role = parameter : tensor<f32>
func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  // expected-error @below {{'nn.accumulate_gradient' op does not occur before a model is differentiated}}
  nn.accumulate_gradient @w, %x : tensor<f32>
  // expected-error @below {{'arith.addf' op is not allowed in '@model', which holds nn and call ops that compute}}
  %0 = arith.addf %x, %x : tensor<f32>
  return %0 : tensor<f32>
}
