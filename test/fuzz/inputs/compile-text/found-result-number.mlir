module attributes {nn.counted_inputs = {n = {ignored = -100 : i64, labels = "t", ranges = array<i64: 0, 1>}}} {
  nn.weight @w role = parameter : tensor<8x4xf32>
  nn.weight @b role = parameter : tensor<4xf32>
  func.func @model(%x: tensor<2x8xf32> {nn.name = "x"}, %t: tensor<2xi64> {nn.name = "t"}, %n: tensor<f32> {nn.name = "n"}) -> (tensor<f32> {nn.name = "loss"}, tensor<2x4xf32> {nn.name = "y"}) {
    %w = nn.parameter @w : tensor<8x4xf32>
    %b = nn.parameter @b : tensor<4xf32>
    %0 = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    %1 = nn.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %2 = nn.relu %1 : tensor<2x4xf32>
    %a:3 = nn.softmax_cross_entropy %2, %t divisor %n ignore_index = -100 : (tensor<2x4xf32>, tensor<2xi64>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>, tensor<2xf32>)
    return %a#1000000000, %2 : tensor<f32>, tensor<2x4xf32>
  }
}
