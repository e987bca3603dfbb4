// A stage that lends one weight and owns another: what it adds to its own stands before what it
// lends, and hides nothing of that from the proof.

// RUN: pipewright-opt %s --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=3" --pipe-synchronize-weights=tied=owner --pipe-verify-unrolled > %t
// RUN: FileCheck %s < %t
// RUN: pipewright-opt %t --pipe-insert-transfers --pipe-verify-schedule --pipewright-allocated -o /dev/null
// CHECK: %[[A1:.*]] = pipe.collective all_reduce of @a in @s1({{.*}}) over replicas
// CHECK: %[[B:.*]] = pipe.add_gradient @b in @s1(%[[A1]],
// CHECK: %[[LENT:.*]] = pipe.gradient_of @a in @s1(%[[B]])
// CHECK: pipe.add_gradient @a in @s0(%{{.*}}, %[[LENT]])

// Without the sum it is refused as ever.
// RUN: sed -e 's/  */ /g' %t | sed -e '/of @a in @s1.*over replicas/d; s/add_gradient @b in @s1(%gradients_s1_[0-9]*,/add_gradient @b in @s1(%gradients_s1,/' | not pipewright-opt --pipe-verify-unrolled -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: error: 'pipe.add_gradient' op adds to the gradient of all replicas what one of them has

module attributes {pipe.program = #pipe.program<replicas = 2, micro_batches = 2, optimizer = <sgd momentum = 0.9>>} {
  nn.weight @b role = parameter : tensor<4xf32>
  nn.weight @a role = parameter : tensor<4xf32>
  pipe.stage @s0 {
    pipe.forward sources [#pipe.input<"x">] {
    ^bb0(%x: tensor<2x4xf32>):
      %a = nn.parameter @a : tensor<4xf32>
      %y = nn.mul %x, %a : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
    pipe.backward inputs [] outputs [] gradients_of [0] input_gradients [] {
    ^bb0(%dy: tensor<2x4xf32>):
      %da = nn.reduce_sum %dy axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @a, %da : tensor<4xf32>
      pipe.return
    }
  }
  pipe.stage @s1 {
    pipe.forward sources [#pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %a = nn.parameter @a : tensor<4xf32>
      %b = nn.parameter @b : tensor<4xf32>
      %h = nn.mul %x, %a : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %y = nn.mul %h, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      pipe.return %y : tensor<2x4xf32>
    }
    pipe.backward inputs [] outputs [] gradients_of [0] input_gradients [0] {
    ^bb0(%dy: tensor<2x4xf32>):
      %d = nn.reduce_sum %dy axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @a, %d : tensor<4xf32>
      nn.accumulate_gradient @b, %d : tensor<4xf32>
      pipe.return %dy : tensor<2x4xf32>
    }
  }
  pipe.stage @s2 {
    pipe.forward sources [#pipe.output<@s1, 0>] {
    ^bb0(%x: tensor<2x4xf32>):
      %b = nn.parameter @b : tensor<4xf32>
      %y = nn.mul %x, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %loss = nn.reduce_sum %y axes = [0, 1] : tensor<2x4xf32> -> tensor<f32>
      pipe.report "loss" %loss : tensor<f32>
      pipe.return
    }
    pipe.backward inputs [0] outputs [] gradients_of [] input_gradients [0] {
    ^bb0(%x: tensor<2x4xf32>):
      %d = nn.reduce_sum %x axes = [0] : tensor<2x4xf32> -> tensor<4xf32>
      nn.accumulate_gradient @b, %d : tensor<4xf32>
      pipe.return %x : tensor<2x4xf32>
    }
  }
}
