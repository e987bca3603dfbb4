// RUN: pipewright-opt %s --split-input-file --verify-diagnostics --pipe-verify-staged

// Two stages and their gradient: nothing to say.
nn.weight @w role = parameter : tensor<4xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %w = nn.parameter @w : tensor<4xf32>
    %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
  pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%h: tensor<4xf32>):
    %0 = nn.reduce_mean %h axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [0] {
    %0 = nn.constant dense<0.25> : tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
}

// -----

// expected-error @below {{holds no 'pipe.stage'}}
module {
  // expected-error @below {{is left beside the stages; run 'pipe-partition-stages'}}
  func.func private @model()
}

// -----

// expected-error @below {{expects one stage to report the loss, but none does}}
module {
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      // expected-error @below {{'arith.addf' op is not allowed in 'pipe.forward', which holds nn and call ops, 'pipe.report' and 'pipe.return'}}
      %0 = arith.addf %x, %x : tensor<4xf32>
      pipe.return
    }
  }
}

// -----

pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    // expected-note @below {{this is the first}}
    pipe.report "loss" %x : tensor<f32>
    // expected-error @below {{reports a second loss}}
    pipe.report "loss" %x : tensor<f32>
    pipe.return
  }
}

// -----

pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<2xf32>):
    // expected-error @below {{expects the loss to be 'tensor<f32>', but got 'tensor<2xf32>'}}
    pipe.report "loss" %x : tensor<2xf32>
    pipe.return
  }
}

// -----

// Stages are listed in the order of the model.
pipe.stage @s0 {
  // expected-error @below {{expects source 0 to be an earlier stage's result, but got #pipe.output<@s1, 0>}}
  pipe.forward sources [#pipe.output<@s1, 0>] {
  ^bb0(%x: tensor<f32>):
    pipe.report "loss" %x : tensor<f32>
    pipe.return
  }
}
pipe.stage @s1 {
  // expected-error @below {{returns result 0, which no stage consumes}}
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    pipe.return %x : tensor<f32>
  }
}

// -----

// All that is wrong with one stage's sources.
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    pipe.return %x : tensor<f32>
  }
}
pipe.stage @s1 {
  // expected-note @below {{this is the consumer}}
  // expected-error @below {{expects argument 0 to be 'tensor<f32>' as #pipe.output<@s0, 0> is, but got 'tensor<2xf32>'}}
  // expected-error @below {{uses #pipe.output<@s0, 0>, which has a consumer already}}
  // expected-error @below {{expects source 2 to exist, but @s0 has 1 results}}
  pipe.forward sources [#pipe.output<@s0, 0>, #pipe.output<@s0, 0>, #pipe.output<@s0, 1>] {
  ^bb0(%a: tensor<2xf32>, %b: tensor<f32>, %c: tensor<f32>):
    pipe.report "loss" %b : tensor<f32>
    pipe.return
  }
}

// -----

nn.weight @w role = parameter : tensor<4xf32>
nn.weight @state role = state : tensor<4xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    // expected-error @below {{is only allowed in 'pipe.backward'}}
    nn.accumulate_gradient @w, %x : tensor<4xf32>
    %0 = nn.reduce_mean %x axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
  pipe.evaluate sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    // expected-error @below {{is only allowed in 'pipe.forward'}}
    nn.assign_state @state, %x : tensor<4xf32>
    pipe.return
  }
}

// -----

// A stash without anyone who reads it.
pipe.stage @s0 {
  // expected-error @below {{stashes 1 values, but there is no 'pipe.backward'}}
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    pipe.report "loss" %x : tensor<f32>
    pipe.return stash %x : tensor<f32>
  }
}

// -----

// Gradients that have only one end.
nn.weight @w role = parameter : tensor<f32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    %w = nn.parameter @w : tensor<f32>
    pipe.return %w, %x : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{takes the gradient of result 0, but stage @s1 does not return it}}
  pipe.backward inputs [] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%d: tensor<f32>):
    nn.accumulate_gradient @w, %d : tensor<f32>
    pipe.return
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>, #pipe.output<@s0, 1>, #pipe.input<"x">] {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %x: tensor<f32>):
    pipe.report "loss" %a : tensor<f32>
    pipe.return
  }
  // expected-error @below {{returns a gradient of #pipe.output<@s0, 1>, but that stage's backward does not take it}}
  // expected-error @below {{returns a gradient of #pipe.input<"x">, which is a model input}}
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [1, 2] {
    %0 = nn.constant dense<1.0> : tensor<f32>
    pipe.return %0, %0 : tensor<f32>, tensor<f32>
  }
}

// -----

// A backward in two halves: nothing to say.
nn.weight @w role = parameter : tensor<4xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %w = nn.parameter @w : tensor<4xf32>
    %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
  pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
  }
  pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [0] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%h: tensor<4xf32>):
    %0 = nn.reduce_mean %h axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [0] {
    %0 = nn.constant dense<0.25> : tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
}

// -----

// Halves that do not take a gradient which the whole takes, and forget a weight.
nn.weight @w role = parameter : tensor<4xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %w = nn.parameter @w : tensor<4xf32>
    %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
  pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
  // expected-error @below {{and 'pipe.weight_gradient' leave the gradient of result 0 alone, which the backward takes}}
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
  }
  // expected-error @below {{expects to add to the gradients of the same weights in the same order as the backward}}
  pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%h: tensor<4xf32>):
    %0 = nn.reduce_mean %h axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [0] {
    %0 = nn.constant dense<0.25> : tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
}

// -----

// Half a backward that keeps a gradient to itself.
nn.weight @w role = parameter : tensor<4xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %w = nn.parameter @w : tensor<4xf32>
    %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
  pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
  }
  pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [0] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%h: tensor<4xf32>):
    %0 = nn.reduce_mean %h axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [0] {
    %0 = nn.constant dense<0.25> : tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
  // expected-error @below {{expects to return the gradients of arguments [0] as the backward does, but returns []}}
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
  }
  pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
  }
}

// -----

// Weights have their gradients from the second half.
nn.weight @w role = parameter : tensor<4xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %w = nn.parameter @w : tensor<4xf32>
    %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
  pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
  pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    // expected-error @below {{is only allowed in 'pipe.backward' and 'pipe.weight_gradient'}}
    nn.accumulate_gradient @w, %d : tensor<4xf32>
    pipe.return
  }
  pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [0] {
  ^bb0(%x: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.accumulate_gradient @w, %0 : tensor<4xf32>
    pipe.return
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%h: tensor<4xf32>):
    %0 = nn.reduce_mean %h axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [0] {
    %0 = nn.constant dense<0.25> : tensor<4xf32>
    pipe.return %0 : tensor<4xf32>
  }
}

// -----

// The second copy of a model is whole, trains only, and feeds itself.
// expected-error @below {{expects one stage of the second copy of the model to report the loss, but none does}}
module {
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    pipe.return %x : tensor<f32>
  }
}
pipe.stage @s1 {
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%x: tensor<f32>):
    pipe.report "loss" %x : tensor<f32>
    pipe.return
  }
}
pipe.stage @s2 mirrors @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    pipe.return
  }
  // expected-error @below {{is in the second copy of the model, which is never evaluated}}
  pipe.evaluate sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<f32>):
    pipe.return
  }
}
// expected-error @below {{expects to mirror a stage of the first copy of the model, but got @s2}}
pipe.stage @s3 mirrors @s2 {
  // expected-error @below {{expects source 0 to be of the same copy of the model, but got #pipe.output<@s0, 0>}}
  pipe.forward sources [#pipe.output<@s0, 0>] {
  ^bb0(%x: tensor<f32>):
    pipe.return
  }
}
}

// -----

// What is compiled as a kernel is one, and stands where kernels are.

nn.weight @w role = parameter : tensor<4xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    %0 = nn.reduce_mean %x axes = [0] : tensor<4xf32> -> tensor<f32>
    pipe.report "loss" %0 : tensor<f32>
    pipe.return
  }
}
module @kernels {
  // expected-error @below {{is no kernel; expects a function of one block}}
  nn.weight @inner role = parameter : tensor<4xf32>
  // expected-error @below {{is no kernel; expects a function of one block}}
  func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{expects tensors of static shapes, but got '(index) -> index'}}
  func.func @numbers(%i: index) -> index {
    return %i : index
  }
  func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @below {{is not allowed in a kernel, which holds nn ops that are compiled together}}
    %0 = nn.launch @calls(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// expected-error @below {{is not allowed beside stages; expects weights, stages, what runs them, and one module '@kernels'}}
module @others {
}

// -----

// Numbers that tasks are counted to are not larger than what there is.

// expected-error @below {{expects 'ranks' to be at most 1, the number of ranks with a program, but got 65536}}
// expected-error @below {{expects 'micro_batches' to be at most 1, the number of tasks, but got 1099511627776}}
module attributes {pipe.program = #pipe.program<ranks = 65536, micro_batches = 1099511627776>} {
  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<4xf32>):
      %0 = nn.reduce_mean %x axes = [0] : tensor<4xf32> -> tensor<f32>
      pipe.report "loss" %0 : tensor<f32>
      pipe.return
    }
  }
  pipe.rank 0 train {
    %x = pipe.input "x" micro_batch 0 for @s0 : tensor<4xf32>
    pipe.task forward @s0 micro_batch 0(%x) : (tensor<4xf32>) -> ()
  }
}

// -----

// Names, sizes and counted labels are as in an imported model.

// expected-error @below {{'nn.counted_inputs' of 'divisor' expects ranges in ascending order, without overlaps, within the 1 elements of a row of 'labels', but got 0 to 1000000000}}
// expected-error @below {{'nn.counted_inputs' of 'other' expects an argument of this name and type 'tensor<f32>'}}
module attributes {nn.counted_inputs = {
    divisor = {ignored = -1 : i64, labels = "labels", ranges = array<i64: 0, 1000000000>},
    other = {ignored = -1 : i64, labels = "labels", ranges = array<i64: 0, 1>}}} {
  // expected-error @below {{weight 'a\x0ab': expects a name of characters that can be seen}}
  nn.weight @w role = parameter {nn.name = "a\0Ab"} : tensor<4xf32>
  // expected-error @below {{'nn.weight' has no elements ('tensor<0x4xf32>')}}
  nn.weight @none role = parameter : tensor<0x4xf32>
  // expected-error @below {{is the second weight that files call 'none'}}
  nn.weight @again role = parameter {nn.name = "none"} : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">, #pipe.input<"labels">, #pipe.input<"divisor">] {
    ^bb0(%x: tensor<4xf32>, %labels: tensor<4xi64>, %divisor: tensor<f32>):
      %0 = nn.reduce_mean %x axes = [0] : tensor<4xf32> -> tensor<f32>
      pipe.report "loss" %0 : tensor<f32>
      pipe.return
    }
    // expected-error @below {{input 'x' is 'tensor<8xf32>' here, but 'tensor<4xf32>' before}}
    pipe.evaluate sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<8xf32>):
      %0 = nn.reduce_mean %x axes = [0] : tensor<8xf32> -> tensor<f32>
      pipe.report "loss" %0 : tensor<f32>
      pipe.return
    }
  }
}
