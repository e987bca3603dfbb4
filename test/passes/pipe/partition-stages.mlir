// RUN: pipewright-opt %s --split-input-file --pipe-partition-stages=stages=2 --pipe-verify-staged | FileCheck %s

// Two layers, two stages. The weights and the loss go where they are used; the
// other output is computed in evaluation only.
nn.weight @w0 role = parameter : tensor<8x8xf32>
nn.weight @w1 role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @s0 {
// CHECK-NEXT:   pipe.forward sources [#pipe.input<"x">] {
// CHECK-NEXT:   ^bb0(%[[X:.*]]: tensor<4x8xf32>):
// CHECK-NEXT:     %[[W0:.*]] = nn.parameter @w0
// CHECK-NEXT:     %[[H:.*]] = nn.matmul %[[X]], %[[W0]]
// CHECK-NEXT:     %[[R:.*]] = nn.relu %[[H]]
// CHECK-NEXT:     pipe.return %[[R]] : tensor<4x8xf32>
// CHECK:        pipe.evaluate sources [#pipe.input<"x">] {
// CHECK:          pipe.return %{{.*}} : tensor<4x8xf32>
// CHECK:      pipe.stage @s1 {
// CHECK-NEXT:   pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"t">] {
// CHECK-NEXT:   ^bb0(%[[A:.*]]: tensor<4x8xf32>, %[[T:.*]]: tensor<4xi64>):
// CHECK-NEXT:     %[[W1:.*]] = nn.parameter @w1
// CHECK-NEXT:     %[[Y:.*]] = nn.matmul %[[A]], %[[W1]]
// CHECK-NEXT:     %[[LOSS:.*]], %{{.*}}, %{{.*}} = nn.softmax_cross_entropy %[[Y]], %[[T]]
// CHECK-NEXT:     pipe.report "loss" %[[LOSS]]
// CHECK-NEXT:     pipe.return
// CHECK:        pipe.evaluate sources [#pipe.output<@s0, 0>, #pipe.input<"t">] {
// CHECK:          %[[P:.*]] = nn.softmax
// CHECK:          pipe.report "loss"
// CHECK-NEXT:     pipe.report "probabilities" %[[P]]
// CHECK-NOT:  func.func
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<4xi64> {nn.name = "t"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4x8xf32> {nn.name = "probabilities"}) {
  %w0 = nn.parameter @w0 : tensor<8x8xf32>
  %w1 = nn.parameter @w1 : tensor<8x8xf32>
  %0 = nn.matmul %x, %w0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.relu %0 : tensor<4x8xf32>
  %2 = nn.matmul %1, %w1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = nn.softmax %2 : tensor<4x8xf32>
  %loss, %largest, %sum = nn.softmax_cross_entropy %2, %t ignore_index = -100
    : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return %loss, %3 : tensor<f32>, tensor<4x8xf32>
}

// -----

// Mask arithmetic on a model input and views of what is sent are repeated in
// both stages; one tensor crosses, not three. The tied weight is read in both.
// Dead code has no stage.
nn.weight @w role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @s0 {
// CHECK:         pipe.forward sources [#pipe.input<"x">, #pipe.input<"mask">] {
// CHECK-NOT:       nn.log
// CHECK-DAG:       nn.cast
// CHECK-DAG:       nn.parameter @w
// CHECK-DAG:       nn.reshape
// CHECK:           pipe.return %{{[^,]*}} : tensor<2x2x8xf32>{{$}}
// CHECK:         pipe.evaluate
// CHECK-NOT:       nn.log
// CHECK:       pipe.stage @s1
// CHECK-NEXT:    pipe.forward sources [#pipe.output<@s0, 0>, #pipe.input<"mask">] {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<2x2x8xf32>, %[[M:.*]]: tensor<4x1xi64>):
// CHECK-DAG:       nn.reshape %[[A]]
// CHECK-DAG:       nn.cast %[[M]]
// CHECK-DAG:       nn.parameter @w
func.func @model(%x: tensor<2x2x8xf32> {nn.name = "x"}, %mask: tensor<4x1xi64> {nn.name = "mask"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<8x8xf32>
  %m = nn.cast %mask : tensor<4x1xi64> -> tensor<4x1xf32>
  %0 = nn.matmul %x, %w : (tensor<2x2x8xf32>, tensor<8x8xf32>) -> tensor<2x2x8xf32>
  %1 = nn.reshape %0 : tensor<2x2x8xf32> -> tensor<4x8xf32>
  %2 = nn.mul %1, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %3 = nn.reshape %2 : tensor<4x8xf32> -> tensor<2x2x8xf32>
  %dead = nn.log %3 : tensor<2x2x8xf32>
  %4 = nn.tanh %3 : tensor<2x2x8xf32>
  %5 = nn.reshape %4 : tensor<2x2x8xf32> -> tensor<4x8xf32>
  %6 = nn.matmul %5, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %7 = nn.mul %6, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %8 = nn.mul %7, %5 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %9 = nn.reduce_mean %8 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %9 : tensor<f32>
}

// -----

// In evaluation dropout is gone and running statistics are used; the loss needs
// the update of the statistics in training.
nn.weight @w0 role = parameter : tensor<8x8xf32>
nn.weight @w1 role = parameter : tensor<8x64xf32>
nn.weight @scale role = parameter : tensor<8xf32>
nn.weight @bias role = parameter : tensor<8xf32>
nn.weight @mean role = state : tensor<8xf32>
nn.weight @variance role = state : tensor<8xf32>
// CHECK-LABEL: pipe.stage @s0 {
// CHECK:       pipe.forward
// CHECK:         nn.dropout
// CHECK:         nn.batch_norm {{.*}} running_mean = @mean running_variance = @variance
// CHECK:       pipe.evaluate
// CHECK-NOT:     nn.batch_norm
// CHECK-NOT:     nn.dropout
// CHECK:         nn.parameter @mean
// CHECK:         nn.parameter @variance
// CHECK:       pipe.stage @s1
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w0 = nn.parameter @w0 : tensor<8x8xf32>
  %w1 = nn.parameter @w1 : tensor<8x64xf32>
  %scale = nn.parameter @scale : tensor<8xf32>
  %bias = nn.parameter @bias : tensor<8xf32>
  %0 = nn.matmul %x, %w0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.dropout %0 rate = 0.5 id = 0 : tensor<4x8xf32>
  %y, %mean, %variance = nn.batch_norm %1, %scale, %bias epsilon = 1.0e-5 momentum = 0.9
      running_mean = @mean running_variance = @variance
    : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %2 = nn.matmul %y, %w1 : (tensor<4x8xf32>, tensor<8x64xf32>) -> tensor<4x64xf32>
  %3 = nn.reduce_mean %2 axes = [0, 1] : tensor<4x64xf32> -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// A weight that is called as a stage would be keeps its name.
nn.weight @s0 role = parameter : tensor<8x8xf32>
// CHECK: nn.weight @s0
// CHECK: pipe.stage @s0_0 {
// CHECK: pipe.stage @s1 {
// CHECK-NEXT: #pipe.output<@s0_0, 0>
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @s0 : tensor<8x8xf32>
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = nn.matmul %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = nn.reduce_mean %1 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// An output that mixes early and late values: evaluation sends one more result
// than the forward.
nn.weight @w role = parameter : tensor<8x8xf32>
// CHECK-LABEL: pipe.stage @s0 {
// CHECK:       pipe.forward
// CHECK:         pipe.return %{{[^,]*}} : tensor<4x8xf32>{{$}}
// CHECK:       pipe.evaluate
// CHECK:         %[[E:.*]] = nn.exp
// CHECK:         pipe.return %{{[^,]*}}, %[[E]] : tensor<4x8xf32>, tensor<4x8xf32>
// CHECK:       pipe.stage @s1
// CHECK:       pipe.forward sources [#pipe.output<@s0, 0>] {
// CHECK:       pipe.evaluate sources [#pipe.output<@s0, 0>, #pipe.output<@s0, 1>] {
// CHECK:         pipe.report "mixed"
func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}, tensor<4x8xf32> {nn.name = "mixed"}) {
  %w = nn.parameter @w : tensor<8x8xf32>
  %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %early = nn.exp %0 : tensor<4x8xf32>
  %1 = nn.matmul %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = nn.reduce_mean %1 axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %mixed = nn.add %early, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2, %mixed : tensor<f32>, tensor<4x8xf32>
}
