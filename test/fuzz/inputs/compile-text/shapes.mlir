#loc = loc("place")
nn.weight @w role = parameter : tensor<8x4xf32>
nn.weight @b role = constant {nn.reason = "a table"} : tensor<4xf32>
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<8x4xf32>
  %b = nn.parameter @b : tensor<4xf32>
  %c = nn.constant dense<5.000000e-01> : tensor<f32>
  %0 = nn.reshape %w : tensor<8x4xf32> -> tensor<4x8xf32>
  %1 = nn.transpose %0 permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %2 = nn.slice %1 starts = [2, 0] sizes = [4, 4] steps = [1, 1] : tensor<8x4xf32> -> tensor<4x4xf32>
  %3 = nn.slice %x starts = [0, 1] sizes = [4, 4] steps = [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %4 = nn.mul %3, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc(#loc)
  %5 = nn.add %4, %b : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %6 = nn.mul %5, %c : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %7 = nn.reduce_mean %6 axes = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %7 : tensor<f32>
}
