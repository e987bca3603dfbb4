// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-verify-staged | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-differentiate --pipe-differentiate | FileCheck %s

// The loss is seeded with 1 / M; the relu mask is made from the result that the
// next product keeps anyway; the input is a model input and gets no gradient.
module attributes {pipe.program = #pipe.program<micro_batches = 8>} {
nn.weight @w0 role = parameter : tensor<8x8xf32>
nn.weight @w1 role = parameter : tensor<8x2xf32>
// CHECK-LABEL: pipe.stage @perceptron {
// CHECK:       pipe.return stash %[[R:.*]], %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK:       pipe.backward inputs [0, 1] outputs [] gradients_of [] input_gradients [] {
// CHECK-NEXT:  ^bb0(%[[X:[^:]*]]: tensor<4x8xf32>, %[[T:[^:]*]]: tensor<4xi64>, %[[S0:[^:]*]]: tensor<4x8xf32>, %[[S1:[^:]*]]: tensor<4x2xf32>, %[[S2:[^:]*]]: tensor<4xf32>, %[[S3:[^:]*]]: tensor<4xf32>):
// CHECK:         %[[SEED:.*]] = nn.constant dense<1.250000e-01> : tensor<f32>
// CHECK:         %[[DY:.*]] = nn.softmax_cross_entropy_backward %[[SEED]], %[[S1]], %[[T]], %[[S2]], %[[S3]]
// CHECK:         %[[W1:.*]] = nn.parameter @w1
// CHECK:         nn.matmul %[[DY]], %[[W1]] transpose_b
// CHECK:         nn.accumulate_gradient @w1
// CHECK:         nn.compare %[[S0]]
// CHECK:         nn.matmul %[[X]], %{{.*}} transpose_a
// CHECK:         nn.accumulate_gradient @w0
// CHECK-NEXT:    pipe.return
pipe.stage @perceptron {
  pipe.forward sources [#pipe.input<"x">, #pipe.input<"t">] {
  ^bb0(%x: tensor<4x8xf32>, %t: tensor<4xi64>):
    %w0 = nn.parameter @w0 : tensor<8x8xf32>
    %0 = nn.matmul %x, %w0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.relu %0 : tensor<4x8xf32>
    %w1 = nn.parameter @w1 : tensor<8x2xf32>
    %2 = nn.matmul %1, %w1 : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %2, %t ignore_index = -100
      : (tensor<4x2xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    pipe.report "loss" %loss : tensor<f32>
    pipe.return
  }
}
}

// -----

// The gradient goes from stage to stage. What the first stage sends is saved as
// its output; a mask that is sent has no gradient.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @first {
// CHECK:       pipe.return %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>
// CHECK:       pipe.backward inputs [0] outputs [1] gradients_of [1] input_gradients [] {
// CHECK-NEXT:  ^bb0(%{{[^:]*}}: tensor<4x8xf32>, %[[Y:[^:]*]]: tensor<4x8xf32>, %[[D:[^:]*]]: tensor<4x8xf32>):
// CHECK-DAG:     nn.mul %[[Y]], %[[Y]]
// CHECK-DAG:     nn.accumulate_gradient @w
// CHECK-LABEL: pipe.stage @second {
// CHECK:       pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [1] {
// CHECK:         nn.where
// CHECK:         pipe.return %{{.*}} : tensor<4x8xf32>
pipe.stage @first {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.tanh %0 : tensor<4x8xf32>
    %2 = nn.compare %x, %0 predicate = lt : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    pipe.return %2, %1 : tensor<4x8xi1>, tensor<4x8xf32>
  }
}
pipe.stage @second {
  pipe.forward sources [#pipe.output<@first, 0>, #pipe.output<@first, 1>] {
  ^bb0(%m: tensor<4x8xi1>, %h: tensor<4x8xf32>):
    %zero = nn.constant dense<0.0> : tensor<f32>
    %0 = nn.where %m, %h, %zero : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %1 = nn.reduce_mean %0 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %1 : tensor<f32>
    pipe.return
  }
}
}

// -----

// A value with several uses: the gradients are added in the reverse order of
// the uses. Of a weight that is used twice both are accumulated, unsummed.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @uses {
// CHECK:       pipe.backward
// CHECK:         %[[W:.*]] = nn.parameter @w
// CHECK-NEXT:    %[[LAST:.*]] = nn.mul %[[DY:.*]], %[[W]]
// CHECK-NEXT:    %[[PRODUCT:.*]] = nn.mul %[[W]], %in0
// CHECK-NEXT:    %[[DB:.*]] = nn.mul %[[DY]], %[[PRODUCT]]
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DB]]
// CHECK-NEXT:    %[[FIRST:.*]] = nn.mul %[[DY]], %stash0
// CHECK-NEXT:    %[[SUM:.*]] = nn.add %[[LAST]], %[[FIRST]]
// CHECK-NEXT:    %[[DA:.*]] = nn.mul %[[SUM]], %in0
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DA]]
pipe.stage @uses {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<8xf32>):
    %a = nn.parameter @w : tensor<8xf32>
    %b = nn.parameter @w : tensor<8xf32>
    %0 = nn.mul %a, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = nn.exp %0 : tensor<8xf32>
    %2 = nn.mul %0, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %3 = nn.add %1, %2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = nn.reduce_mean %3 axes = [0] : tensor<8xf32> -> tensor<f32>
    pipe.report "loss" %4 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Views and mask arithmetic are repeated, so what is saved is the small model
// input and not the mask, and the value in front of the view only once.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @cheap {
// CHECK:       pipe.return stash %{{[^,]*}} : tensor<4x2x8xf32>{{$}}
// CHECK:       pipe.backward inputs [0, 1] outputs []
// CHECK-NEXT:  ^bb0(%{{[^:]*}}: tensor<4x2x8xf32>, %[[M:[^:]*]]: tensor<8x1xi64>, %[[S:[^:]*]]: tensor<4x2x8xf32>)
// CHECK-DAG:     nn.cast %[[M]]
// CHECK-DAG:     nn.reshape %[[S]]
pipe.stage @cheap {
  pipe.forward sources [#pipe.input<"x">, #pipe.input<"mask">] {
  ^bb0(%x: tensor<4x2x8xf32>, %mask: tensor<8x1xi64>):
    %w = nn.parameter @w : tensor<8xf32>
    %0 = nn.mul %x, %w : (tensor<4x2x8xf32>, tensor<8xf32>) -> tensor<4x2x8xf32>
    %1 = nn.exp %0 : tensor<4x2x8xf32>
    %2 = nn.reshape %1 : tensor<4x2x8xf32> -> tensor<8x8xf32>
    %3 = nn.mul %2, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = nn.cast %mask : tensor<8x1xi64> -> tensor<8x1xf32>
    %5 = nn.mul %3, %4 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
    %6 = nn.reduce_mean %5 axes = [0, 1] : tensor<8x8xf32> -> tensor<f32>
    pipe.report "loss" %6 : tensor<f32>
    pipe.return
  }
}
}

// -----

// A product of what is kept is computed again by the kernel that multiplies by
// it; one that a matrix product reads is kept, as it would be stored again.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @gate role = parameter : tensor<8x8xf32>
nn.weight @down role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @silu {
// CHECK:         %[[GATE:.*]] = nn.matmul
// CHECK:         %[[SIGMOID:.*]] = nn.sigmoid %[[GATE]]
// CHECK:         %[[SILU:.*]] = nn.mul %[[GATE]], %[[SIGMOID]]
// CHECK:         %[[PRODUCT:.*]] = nn.mul %[[SILU]], %{{.*}}
// CHECK:         pipe.return stash %[[GATE]], %[[SIGMOID]], %[[UP:[^,]*]], %[[PRODUCT]] :
// CHECK:       pipe.backward
// CHECK-NEXT:  ^bb0(%in0: tensor<4x8xf32>, %[[G:[^:]*]]: tensor<4x8xf32>, %[[S:[^:]*]]: tensor<4x8xf32>, %[[U:[^:]*]]: tensor<4x8xf32>, %[[P:[^:]*]]: tensor<4x8xf32>)
// CHECK:         nn.matmul %[[P]], %{{.*}} transpose_a
// CHECK:         %[[AGAIN:.*]] = nn.mul %[[G]], %[[S]]
// CHECK:         nn.mul %{{.*}}, %[[AGAIN]]
pipe.stage @silu {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %gate = nn.parameter @gate : tensor<8x8xf32>
    %0 = nn.matmul %x, %gate : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = nn.sigmoid %0 : tensor<4x8xf32>
    %2 = nn.mul %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %up = nn.tanh %0 : tensor<4x8xf32>
    %3 = nn.mul %2, %up : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %down = nn.parameter @down : tensor<8x8xf32>
    %4 = nn.matmul %3, %down : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %5 = nn.reduce_mean %4 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %5 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Dropout keeps nothing: its gradient draws the same numbers again.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @dropout {
// CHECK:       pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
// CHECK-NEXT:  ^bb0(%{{[^,]*}}: tensor<4x8xf32>):
// CHECK:         nn.dropout %{{.*}} rate = 5.000000e-01 id = 7
pipe.stage @dropout {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8xf32>
    %0 = nn.mul %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = nn.dropout %0 rate = 0.5 id = 7 : tensor<4x8xf32>
    %2 = nn.reduce_mean %1 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %2 : tensor<f32>
    pipe.return
  }
}
}

// -----

// A stage in front of all weights has no backward, and none is sent to it;
// frozen weights get no gradient.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @frozen role = constant : tensor<8xf32>
nn.weight @w role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @input {
// CHECK-NOT:   pipe.backward
// CHECK-LABEL: pipe.stage @trained {
// CHECK:       pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [] {
// CHECK-NOT:   nn.accumulate_gradient @frozen
pipe.stage @input {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %f = nn.parameter @frozen : tensor<8xf32>
    %0 = nn.mul %x, %f : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    pipe.return %0 : tensor<4x8xf32>
  }
}
pipe.stage @trained {
  pipe.forward sources [#pipe.output<@input, 0>] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8xf32>
    %f = nn.parameter @frozen : tensor<8xf32>
    %0 = nn.mul %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = nn.mul %0, %f : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %2 = nn.reduce_mean %1 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    pipe.report "loss" %2 : tensor<f32>
    pipe.return
  }
}
}

// -----

// The parts of a split get their gradients; the whole gets them side by side.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @split {
// CHECK:       pipe.backward
// CHECK:         nn.concat %{{.*}}, %{{.*}} axis = 1 : (tensor<4x2xf32>, tensor<4x6xf32>) -> tensor<4x8xf32>
// CHECK-NOT:     nn.pad
pipe.stage @split {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %w = nn.parameter @w : tensor<8xf32>
    %0 = nn.mul %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = nn.slice %0 starts = [0, 0] sizes = [4, 2] steps = [1, 1] : tensor<4x8xf32> -> tensor<4x2xf32>
    %2 = nn.slice %0 starts = [0, 2] sizes = [4, 6] steps = [1, 1] : tensor<4x8xf32> -> tensor<4x6xf32>
    %3 = nn.tanh %1 : tensor<4x2xf32>
    %4 = nn.exp %2 : tensor<4x6xf32>
    %5 = nn.reduce_mean %3 axes = [0, 1] : tensor<4x2xf32> -> tensor<f32>
    %6 = nn.reduce_mean %4 axes = [0, 1] : tensor<4x6xf32> -> tensor<f32>
    %7 = nn.add %5, %6 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    pipe.report "loss" %7 : tensor<f32>
    pipe.return
  }
}
}

// -----

// A recurrent layer: the products of its steps become one product of all rows,
// and what is added to the halves of its weight is added at once.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<16x16xf32>
// CHECK-LABEL: pipe.stage @recurrent {
// CHECK:       pipe.backward
// CHECK:         %[[D0:.*]] = nn.reshape %{{.*}} : tensor<2x16xf32> -> tensor<1x2x16xf32>
// CHECK:         %[[D:.*]] = nn.concat %[[D0]], %{{.*}}, %{{.*}} axis = 0 : {{.*}} -> tensor<3x2x16xf32>
// CHECK:         %[[ROWS:.*]] = nn.reshape %[[D]] : tensor<3x2x16xf32> -> tensor<6x16xf32>
// CHECK:         %[[H0:.*]] = nn.reshape %in0 : tensor<2x16xf32> -> tensor<1x2x16xf32>
// CHECK:         nn.concat %[[H0]], %{{.*}}, %{{.*}} axis = 0 : {{.*}} -> tensor<3x2x16xf32>
// CHECK:         nn.matmul %[[ROWS]], %{{.*}} transpose_a : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<16x16xf32>
// CHECK-NOT:     transpose_a
// CHECK-NOT:     nn.pad
// CHECK:         %[[DW:.*]] = nn.concat %{{.*}}, %{{.*}} axis = 0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DW]]
// CHECK-NOT:     nn.accumulate_gradient
pipe.stage @recurrent {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<2x16xf32>):
    %w = nn.parameter @w : tensor<16x16xf32>
    %low = nn.slice %w starts = [0, 0] sizes = [8, 16] steps = [1, 1] : tensor<16x16xf32> -> tensor<8x16xf32>
    %high = nn.slice %w starts = [8, 0] sizes = [8, 16] steps = [1, 1] : tensor<16x16xf32> -> tensor<8x16xf32>
    %swapped = nn.concat %high, %low axis = 0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %0 = nn.matmul %x, %swapped transpose_b : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %1 = nn.tanh %0 : tensor<2x16xf32>
    %2 = nn.matmul %1, %swapped transpose_b : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %3 = nn.tanh %2 : tensor<2x16xf32>
    %4 = nn.matmul %3, %swapped transpose_b : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %5 = nn.reduce_mean %4 axes = [0, 1] : tensor<2x16xf32> -> tensor<f32>
    pipe.report "loss" %5 : tensor<f32>
    pipe.return
  }
}
}

// -----

// So do those that are added to the weight one by one; others stay.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<16x16xf32>
nn.weight @v role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @recurrent_weight {
// CHECK:       pipe.backward
// CHECK-COUNT-2: nn.accumulate_gradient @v
// CHECK:         %[[DW:.*]] = nn.matmul %{{.*}}, %{{.*}} transpose_a : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<16x16xf32>
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DW]]
// CHECK-NOT:     nn.accumulate_gradient
pipe.stage @recurrent_weight {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<2x16xf32>):
    %w = nn.parameter @w : tensor<16x16xf32>
    %0 = nn.matmul %x, %w transpose_b : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %1 = nn.tanh %0 : tensor<2x16xf32>
    %2 = nn.matmul %1, %w transpose_b : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %v = nn.parameter @v : tensor<8x8xf32>
    %3 = nn.reshape %2 : tensor<2x16xf32> -> tensor<4x8xf32>
    %4 = nn.matmul %3, %v transpose_b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %5 = nn.concat %4, %4 axis = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %6 = nn.matmul %5, %v transpose_b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %7 = nn.reduce_mean %6 axes = [0, 1] : tensor<8x8xf32> -> tensor<f32>
    pipe.report "loss" %7 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Of 33 rows and more each is added by itself, though 40 * (128 + 128) are less
// than 128 * 128: all would be kept until the last is there.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<128x128xf32>
// CHECK-LABEL: pipe.stage @shared_layer {
// CHECK:       pipe.backward
// CHECK-COUNT-2: nn.accumulate_gradient @w
pipe.stage @shared_layer {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<40x128xf32>):
    %w = nn.parameter @w : tensor<128x128xf32>
    %0 = nn.matmul %x, %w transpose_b : (tensor<40x128xf32>, tensor<128x128xf32>) -> tensor<40x128xf32>
    %1 = nn.tanh %0 : tensor<40x128xf32>
    %2 = nn.matmul %1, %w transpose_b : (tensor<40x128xf32>, tensor<128x128xf32>) -> tensor<40x128xf32>
    %3 = nn.reduce_mean %2 axes = [0, 1] : tensor<40x128xf32> -> tensor<f32>
    pipe.report "loss" %3 : tensor<f32>
    pipe.return
  }
}
}

// -----

// Products of many rows are not copied together: 12 * (8 + 8) > 8 * 8.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @tall {
// CHECK:       pipe.backward
// CHECK-COUNT-2: transpose_a : (tensor<12x8xf32>, tensor<12x8xf32>)
// CHECK-NOT:     nn.concat
// CHECK:         nn.add
pipe.stage @tall {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<12x8xf32>):
    %w = nn.parameter @w : tensor<8x8xf32>
    %positive = nn.exp %w : tensor<8x8xf32>
    %0 = nn.matmul %x, %positive : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
    %1 = nn.matmul %0, %positive : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
    %2 = nn.reduce_mean %1 axes = [0, 1] : tensor<12x8xf32> -> tensor<f32>
    pipe.report "loss" %2 : tensor<f32>
    pipe.return
  }
}
}

// -----

// In bf16 the gradients of weights are f32 all the way: products give f32, sums
// are of f32 values, and several uses are added in f32. What goes on to other
// values is rounded. Gradients of pointwise ops are computed in f32.
module attributes {pipe.program = #pipe.program<micro_batches = 1>} {
nn.weight @w role = parameter : tensor<8x8xf32>
nn.weight @b role = parameter : tensor<8xf32>
// CHECK-LABEL: pipe.stage @rounded {
// CHECK:       pipe.backward
// CHECK:         nn.softmax_cross_entropy_backward {{.*}} -> tensor<8x8xbf16>
// CHECK:         nn.matmul %{{.*}} transpose_b : {{.*}} -> tensor<8x8xbf16>
// CHECK:         %[[DW1:.*]] = nn.matmul %{{.*}} transpose_a f32_result : {{.*}} -> tensor<8x8xf32>
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DW1]]
// CHECK:         %[[Y:.*]] = nn.cast %{{.*}} : tensor<8x8xbf16> -> tensor<8x8xf32>
// CHECK-NEXT:    nn.mul %[[Y]], %[[Y]] : {{.*}} -> tensor<8x8xf32>
// CHECK-NEXT:    nn.sub %{{.*}} -> tensor<8x8xf32>
// CHECK:         %[[DX:.*]] = nn.mul %{{.*}} -> tensor<8x8xf32>
// CHECK-NEXT:    %[[SHORT:.*]] = nn.cast %[[DX]] : tensor<8x8xf32> -> tensor<8x8xbf16>
// CHECK:         %[[DB:.*]] = nn.reduce_sum %{{.*}} axes = [0] : tensor<8x8xf32> -> tensor<8xf32>
// CHECK-NEXT:    nn.accumulate_gradient @b, %[[DB]]
// CHECK-NEXT:    %[[DW0:.*]] = nn.matmul %{{.*}}, %[[SHORT]] transpose_a f32_result : {{.*}} -> tensor<8x8xf32>
// CHECK-NEXT:    nn.accumulate_gradient @w, %[[DW0]] : tensor<8x8xf32>
pipe.stage @rounded {
  pipe.forward sources [#pipe.input<"x">, #pipe.input<"labels">] {
  ^bb0(%x: tensor<8x8xbf16>, %labels: tensor<8xi64>):
    %w = nn.parameter @w : tensor<8x8xbf16>
    %b = nn.parameter @b : tensor<8xbf16>
    %0 = nn.matmul %x, %w : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    %1 = nn.add %0, %b : (tensor<8x8xbf16>, tensor<8xbf16>) -> tensor<8x8xbf16>
    %2 = nn.tanh %1 : tensor<8x8xbf16>
    %3 = nn.matmul %2, %w : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    %loss, %largest, %sum = nn.softmax_cross_entropy %3, %labels ignore_index = -100 : (tensor<8x8xbf16>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<8xf32>)
    pipe.report "loss" %loss : tensor<f32>
    pipe.return
  }
}
}
