// Two stages with a tied weight (@wte), a stash, and a state; 2 micro-batches.
module attributes {pipe.program = #pipe.program<micro_batches = 2, optimizer = <sgd momentum = 0.9>>} {
  nn.weight @wte role = parameter : tensor<8x4xf32>
  nn.weight @bias role = parameter : tensor<4xf32>
  nn.weight @mask role = constant : tensor<4xf32>

  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"tokens">] {
    ^bb0(%tokens: tensor<2xi64>):
      %wte = nn.parameter @wte : tensor<8x4xf32>
      %bias = nn.parameter @bias : tensor<4xf32>
      %mask = nn.parameter @mask : tensor<4xf32>
      %e = nn.embedding %wte, %tokens : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
      %b = nn.add %e, %bias : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %h = nn.mul %b, %mask : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %y = nn.relu %h : tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32> stash %h : tensor<2x4xf32>
    }
    pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
    ^bb0(%tokens: tensor<2xi64>, %h: tensor<2x4xf32>, %dy: tensor<2x4xf32>):
      %dh = nn.mul %dy, %h : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %db = nn.reduce_sum %dh axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @bias, %db : tensor<4xf32>
      %dwte = nn.embedding_backward %dh, %tokens : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<8x4xf32>
      nn.accumulate_gradient @wte, %dwte : tensor<8x4xf32>
      pipe.return
    }
    pipe.evaluate sources [#pipe.input<"tokens">] {
    ^bb0(%tokens: tensor<2xi64>):
      %wte = nn.parameter @wte : tensor<8x4xf32>
      %e = nn.embedding %wte, %tokens : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
      pipe.return %e : tensor<2x4xf32>
    }
  }
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"targets">] {
    ^bb0(%h: tensor<2x4xf32>, %targets: tensor<2xi64>):
      %wte = nn.parameter @wte : tensor<8x4xf32>
      %logits = nn.matmul %h, %wte transpose_b : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
      %loss, %largest, %sum = nn.softmax_cross_entropy %logits, %targets ignore_index = -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>, tensor<2xf32>)
      pipe.report "loss" %loss : tensor<f32>
      pipe.return stash %logits, %largest, %sum : tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>
    }
    pipe.backward inputs [0, 1] outputs [] gradients_of [] input_gradients [0] {
    ^bb0(%h: tensor<2x4xf32>, %targets: tensor<2xi64>, %logits: tensor<2x8xf32>, %largest: tensor<2xf32>, %sum: tensor<2xf32>):
      %seed = nn.constant dense<5.0e-01> : tensor<f32>
      %dl = nn.softmax_cross_entropy_backward %seed, %logits, %targets, %largest, %sum ignore_index = -100 : (tensor<f32>, tensor<2x8xf32>, tensor<2xi64>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x8xf32>
      %wte = nn.parameter @wte : tensor<8x4xf32>
      %dwte = nn.matmul %dl, %h transpose_a : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
      nn.accumulate_gradient @wte, %dwte : tensor<8x4xf32>
      %dh = nn.matmul %dl, %wte : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
      pipe.return %dh : tensor<2x4xf32>
    }
    pipe.evaluate sources [#pipe.output<@s0, 0>, #pipe.input<"targets">] {
    ^bb0(%h: tensor<2x4xf32>, %targets: tensor<2xi64>):
      %wte = nn.parameter @wte : tensor<8x4xf32>
      %logits = nn.matmul %h, %wte transpose_b : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
      %loss, %largest, %sum = nn.softmax_cross_entropy %logits, %targets ignore_index = -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>, tensor<2xf32>)
      pipe.report "loss" %loss : tensor<f32>
      pipe.return
    }
  }
}
