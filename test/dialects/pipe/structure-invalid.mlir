// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// stage (C1): only bodies may stand in a stage.
pipe.stage @stage_c1_foreign_op {
  // expected-error @below {{is not allowed in a stage}}
  builtin.module {
  }
}

// -----

// stage (C1): the forward is there once.
// expected-error @below {{expects a 'pipe.forward', but got none}}
pipe.stage @stage_c1_no_forward {
}

// -----

// stage (C1): no body is there twice.
// expected-error @below {{expects at most one 'pipe.evaluate', but got 2}}
pipe.stage @stage_c1_twice {
  pipe.forward sources [] {
  }
  pipe.evaluate sources [] {
  }
  pipe.evaluate sources [] {
  }
}

// -----

// stage (C2): ranks are of a program.
// expected-error @below {{expects a rank from 0 to 65535, but got -1}}
pipe.stage @stage_c2 on rank -1 {
  pipe.forward sources [] {
  }
}

// -----

// stage (C2): and there are not more than a program has.
// expected-error @below {{expects a rank from 0 to 65535, but got 65536}}
pipe.stage @stage_c2_many on rank 65536 {
  pipe.forward sources [] {
  }
}

// -----

// stage (C3): a backward has both halves or none.
// expected-error @below {{expects 'pipe.input_gradient' and 'pipe.weight_gradient' together, and beside 'pipe.backward'}}
pipe.stage @stage_c3 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
  }
}

// -----

// stage (C3): what recomputes begins a backward.
// expected-error @below {{expects 'pipe.recompute' beside 'pipe.backward'}}
pipe.stage @stage_c3_recompute {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.recompute inputs [0] outputs [] stash [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}

// -----

// stage (C4): who keeps some stashes makes the others again.
// expected-error @below {{keeps the stashes of some micro-batches, but has no 'pipe.recompute' that makes those of others again}}
pipe.stage @stage_c4 keeps <first 2> {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}

// -----

// stage (C5): a stash is split for the half that reads a part of it.
// expected-error @below {{splits its stash, but has no 'pipe.weight_gradient' that reads a part of it}}
pipe.stage @stage_c5 splits_stash {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}

// -----

// A window has micro-batches.
// expected-error @below {{expects a window of at least 1 micro-batch, but got 0 of 4}}
pipe.stage @window keeps <first 0 of 4> {
}

// -----

// recompute (C3): it makes the whole stash.
pipe.stage @recompute_c3_types keeps <first 1 of 2> {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  // expected-error @below {{expects to make the stash of the forward again, 'tensor<4xf32>', 'tensor<4xf32>', but makes 'tensor<4xf32>'}}
  pipe.recompute inputs [0] outputs [] stash [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    pipe.return
  }
}

// -----

// recompute (C3): it needs none of that stash.
pipe.stage @recompute_c3_reads keeps <last 1> {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  // expected-error @below {{makes the stash of the forward again, but takes 1 values of it}}
  pipe.recompute inputs [] outputs [] stash [0] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  ^bb0(%a: tensor<4xf32>):
    pipe.return
  }
}

// -----

// recompute (C1): it reads no gradient.
pipe.stage @recompute_c1 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32>
  }
  // expected-error @below {{expects arguments 'tensor<4xf32>', but got 'tensor<4xf32>', 'tensor<4xf32>'}}
  pipe.recompute inputs [0] outputs [] stash [] {
  ^bb0(%x: tensor<4xf32>, %dy: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  pipe.backward inputs [] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%dy: tensor<4xf32>, %h: tensor<4xf32>):
    pipe.return
  }
}

// -----

// recompute (C2): it hands over what it computes, and nothing else.
pipe.stage @recompute_c2 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  // expected-error @below {{expects a stash, but got none}}
  pipe.recompute inputs [0] outputs [] stash [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}

// -----

// backward (C1): it takes all that is recomputed.
pipe.stage @backward_c1_recomputed {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32>
  }
  pipe.recompute inputs [0] outputs [] stash [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  // expected-error @below {{expects arguments 'tensor<4xf32>', 'tensor<4xf32>', but got 'tensor<4xf32>'}}
  pipe.backward inputs [] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%dy: tensor<4xf32>):
    pipe.return
  }
}

// -----

// forward (C1): one source per argument.
pipe.stage @forward_c1 {
  // expected-error @below {{expects one source per argument, but got 0 sources for 1 arguments}}
  pipe.forward sources [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}

// -----

// forward (C1): a source is a model input or another stage's result.
pipe.stage @forward_c1_kind {
  // expected-error @below {{expects source 0 to be #pipe.input or #pipe.output, but got 7 : i64}}
  pipe.forward sources [7] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}

// -----

// forward (C2): shapes are static.
pipe.stage @forward_c2 {
  // expected-error @below {{expects arguments of static shape, but argument 0 is 'tensor<?xf32>'}}
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<?xf32>):
    pipe.return
  }
}

// -----

// evaluate (C1): one source per argument.
pipe.stage @evaluate_c1 {
  pipe.forward sources [] {
  }
  // expected-error @below {{expects one source per argument, but got 0 sources for 1 arguments}}
  pipe.evaluate sources [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}

// -----

// evaluate (C2): nothing is stashed.
pipe.stage @evaluate_c2 {
  pipe.forward sources [] {
  }
  // expected-error @below {{expects no stash, but got 1 values}}
  pipe.evaluate sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}

// -----

// backward (C1): the arguments follow from the forward.
pipe.stage @backward_c1 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32>
  }
  // expected-error @below {{expects arguments}}
  pipe.backward inputs [0] outputs [] gradients_of [0] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}

// -----

// backward (C1): indices name what the forward has.
pipe.stage @backward_c1_index {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32>
  }
  // expected-error @below {{names forward result 3, but the forward has 1}}
  pipe.backward inputs [] outputs [3] gradients_of [] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}

// -----

// backward (C2): it returns the gradients that it promises.
pipe.stage @backward_c2 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32>
  }
  // expected-error @below {{expects to return}}
  pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [0] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
}

// -----

// backward (C3): nothing is stashed.
pipe.stage @backward_c3 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  // expected-error @below {{expects no stash, but got 1 values}}
  pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}

// -----

// input_gradient (C1): fields of the stash are those of the forward.
pipe.stage @input_gradient_c1 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  // expected-error @below {{names forward stash value 1, but the forward has 1}}
  pipe.input_gradient inputs [] outputs [] stash [1] gradients_of [] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
  }
}

// -----

// input_gradient (C2): it returns the gradients that it promises.
pipe.stage @input_gradient_c2 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  // expected-error @below {{expects to return 'tensor<4xf32>', but returns}}
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [0] {
  }
  pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
  }
}

// -----

// weight_gradient (C1): all that is handed over is read.
pipe.stage @weight_gradient_c1 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  pipe.input_gradient inputs [0] outputs [] stash [] gradients_of [] input_gradients [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
  // expected-error @below {{expects arguments 'tensor<4xf32>', but got}}
  pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
  }
}

// -----

// A body that looks at another one bears that it is malformed.
pipe.stage @empty_input_gradient {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  pipe.weight_gradient inputs [] outputs [] stash [] gradients_of [] {
  }
  // expected-error @below {{expects a non-empty block}}
  "pipe.input_gradient"() <{inputs = array<i64>, outputs = array<i64>, stash = array<i64>, gradients_of = array<i64>, input_gradients = array<i64>}> ({
  ^bb0:
  }) : () -> ()
}

// -----

// The same of the forward.
pipe.stage @empty_forward {
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  // expected-error @below {{expects a non-empty block}}
  "pipe.forward"() <{sources = []}> ({
  ^bb0:
  }) : () -> ()
}

// -----

// weight_gradient (C2): nothing is returned.
pipe.stage @weight_gradient_c2 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
  }
  // expected-error @below {{expects to return , but returns 'tensor<4xf32>'}}
  pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return %x : tensor<4xf32>
  }
}

// -----

// weight_gradient (C2): nothing is stashed.
pipe.stage @weight_gradient_c2_stash {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
  pipe.input_gradient inputs [] outputs [] stash [] gradients_of [] input_gradients [] {
  }
  // expected-error @below {{expects no stash, but got 1 values}}
  pipe.weight_gradient inputs [0] outputs [] stash [] gradients_of [] {
  ^bb0(%x: tensor<4xf32>):
    pipe.return stash %x : tensor<4xf32>
  }
}

// -----

// A program is one attribute, of a module.
// expected-error @below {{expects 'pipe.program' to be a #pipe.program of a module, but got 3 : i64}}
module attributes {pipe.program = 3 : i64} {
}

// -----

// A misspelt part is refused.
// expected-error @below {{duplicate or unknown struct parameter name: micro_bathces}}
module attributes {pipe.program = #pipe.program<micro_bathces = 4>} {
}

// -----

// expected-error @below {{expects 'machine' to be the name of a machine or its figures, but got 4 : i64}}
module attributes {pipe.program = #pipe.program<machine = 4>} {
}

// -----

// Times are six for each stage, one for each kind of task.
// expected-error @below {{expects 'task_times' to be an array of six f64 numbers for each stage}}
module attributes {pipe.program = #pipe.program<task_times = [array<f64: 1.0, 2.0>]>} {
}

// -----

// So is a misspelt attribute of the dialect.
// expected-error @below {{has an unknown attribute 'pipe.micro_bathces'}}
module attributes {pipe.micro_bathces = 4 : i64} {
}

// -----

// Counts are positive.
// expected-error @below {{expects 'micro_batches' to be positive, but got 0}}
module attributes {pipe.program = #pipe.program<micro_batches = 0>} {
}

// -----

// There is memory for what is known of each rank.
// expected-error @below {{expects at most 65536 ranks of all replicas, but got 1 replica of 2000000000}}
module attributes {pipe.program = #pipe.program<ranks = 2000000000>} {
}

// -----

// expected-error @below {{expects 'pipe.buffers' to be an array of #pipe.buffer}}
module attributes {pipe.buffers = [1]} {
}

// -----

// Times of modules have names.
// expected-error @below {{expects 'pipe.layer_times' to be names of a module's modules with seconds}}
module attributes {pipe.layer_times = [[1.0]]} {
}

// -----

// Nothing takes less than no time.
// expected-error @below {{expects 'pipe.layer_times' to be names of a module's modules with seconds}}
module attributes {pipe.layer_times = [["fc1", -1.0]]} {
}

// -----

// expected-error @below {{expects 'pipe.op_seconds' to be seconds of the ops of a module's function}}
module attributes {pipe.op_seconds = array<f64: 1.0, -1.0>} {
}

// -----

// Sums of times stay finite.
// expected-error @below {{expects 'pipe.op_seconds' to be seconds of the ops of a module's function}}
module attributes {pipe.op_seconds = array<f64: 1.0e308>} {
}
