// RUN: pipewright-opt %s --split-input-file --verify-diagnostics --pipe-differentiate

// The number of micro-batches scales the loss.
// expected-error @below {{expects 'pipe.program' to have 'micro_batches'}}
module {
}

// -----

// A backward op has no derivative of its own.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<4x8xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<4x8xf32>
    // expected-error @below {{'nn.gelu_backward' op has no derivative, but stands between a trained weight and the loss}}
    %0 = nn.gelu_backward %x, %w approximate = none : tensor<4x8xf32>
    %1 = nn.reduce_mean %0 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %1 : tensor<f32>
    pipe.return
  }
}
}

// -----

// The same op beside the gradient's path does no harm.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<4x8xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<4x8xf32>
    %0 = nn.gelu_backward %x, %x approximate = none : tensor<4x8xf32>
    %1 = nn.mul %0, %w : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = nn.reduce_mean %1 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %2 : tensor<f32>
    pipe.return
  }
}
}

// -----

// What an op cannot do is said by the op and where it stands.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<4x3xf32>
pipe.stage @s0 {
  pipe.forward sources [] {
    %w = nn.parameter @w : tensor<4x3xf32>
    %labels = nn.constant dense<0> : tensor<4xi64>
    // expected-error @below {{expects a gradient of its first result only}}
    // expected-error @below {{could not be differentiated}}
    %0, %largest, %sum = nn.softmax_cross_entropy %w, %labels ignore_index = -100
      : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %1 = nn.reduce_mean %largest axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %1 : tensor<f32>
    pipe.return
  }
}
}
