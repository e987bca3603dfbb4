// RUN: pipewright-opt %s --split-input-file --verify-diagnostics --pipe-partition-stages=stages=3

// Two operations make two stages at most.
// expected-error @below {{pipe-partition-stages: expects at most 2 stages, one for each operation or layer of the model, but got 3}}
module {
  nn.weight @w role = parameter : tensor<8x8xf32>
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w = nn.parameter @w : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.reduce_mean %0 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// expected-error @below {{pipe-partition-stages: expects a function '@model', but the module has none}}
module {
}

// -----

// expected-error @below {{expects the loss as its first result to be 'tensor<f32>', but got 'tensor<4xf32>'}}
func.func @model(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expects the loss to depend on a trained weight, but it does not}}
func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.exp %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @below {{expects argument 0 to have an 'nn.name'}}
func.func @model(%x: tensor<f32>) -> (tensor<f32> {nn.name = "loss"}) {
  return %x : tensor<f32>
}

// -----

func.func @model(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  // expected-error @below {{is not allowed in the model, which holds nn and call ops only}}
  %0 = arith.addf %x, %x : tensor<f32>
  return %0 : tensor<f32>
}
