// Four stages in a row, one weight each; 4 micro-batches.
module attributes {pipe.program = #pipe.program<micro_batches = 4, optimizer = <adamw>>} {
  nn.weight @w0 role = parameter : tensor<4xf32>
  nn.weight @w1 role = parameter : tensor<4xf32>
  nn.weight @w2 role = parameter : tensor<4xf32>
  nn.weight @w3 role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w0 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
    ^bb0(%x: tensor<2x4xf32>, %dy: tensor<2x4xf32>):
      %dxw = nn.mul %dy, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %dw = nn.reduce_sum %dxw axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w0, %dw : tensor<4xf32>
      pipe.return
    }
    pipe.evaluate sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w0 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
  }
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w1 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [0] {
    ^bb0(%x: tensor<2x4xf32>, %dy: tensor<2x4xf32>):
      %dxw = nn.mul %dy, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %dw = nn.reduce_sum %dxw axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w1, %dw : tensor<4xf32>
      %w = nn.parameter @w1 : tensor<4xf32>
      %dx = nn.mul %dy, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %dx : tensor<2x4xf32>
    }
    pipe.evaluate sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w1 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
  }
  pipe.stage @s2 {
    pipe.forward sources [#pipe.output<@s1, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w2 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [0] {
    ^bb0(%x: tensor<2x4xf32>, %dy: tensor<2x4xf32>):
      %dxw = nn.mul %dy, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %dw = nn.reduce_sum %dxw axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w2, %dw : tensor<4xf32>
      %w = nn.parameter @w2 : tensor<4xf32>
      %dx = nn.mul %dy, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %dx : tensor<2x4xf32>
    }
    pipe.evaluate sources [#pipe.output<@s1, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w2 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
  }
  pipe.stage @s3 {
    pipe.forward sources [#pipe.output<@s2, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w3 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %loss = nn.reduce_mean %y axes = [0, 1] : tensor<2x4xf32> -> tensor<f32>
      pipe.report "loss" %loss : tensor<f32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [0] {
    ^bb0(%x: tensor<2x4xf32>):
      %seed = nn.constant dense<2.5e-01> : tensor<f32>
      %dy = nn.broadcast_to %seed : tensor<f32> -> tensor<2x4xf32>
      %dxw = nn.mul %dy, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %dw = nn.reduce_sum %dxw axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @w3, %dw : tensor<4xf32>
      %w = nn.parameter @w3 : tensor<4xf32>
      %dx = nn.mul %dy, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %dx : tensor<2x4xf32>
    }
    pipe.evaluate sources [#pipe.output<@s2, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %w = nn.parameter @w3 : tensor<4xf32>
      %y = nn.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %loss = nn.reduce_mean %y axes = [0, 1] : tensor<2x4xf32> -> tensor<f32>
      pipe.report "loss" %loss : tensor<f32>
      pipe.return
    }
  }
}
