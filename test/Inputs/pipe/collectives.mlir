// Three stages with three weights each, all of which all stages hold: gradients
// of @w are all-reduced, those of @v are reduced to parts and its values put
// together again, and those of @u are reduced to one rank, which hands out its
// value. What that makes of the weights is what `pipe-unroll-microbatches` makes
// of the same stages (all above the step), where the first of them updates for
// all.
module attributes {pipe.program = #pipe.program<ranks = 3, micro_batches = 2, micro_batch_size = 1, optimizer = <sgd>>} {
  nn.weight @w role = parameter {pipe.all_reduced} : tensor<1x4xf32>
  nn.weight @v role = parameter {pipe.all_reduced} : tensor<1x5xf32>
  nn.weight @u role = parameter {pipe.all_reduced} : tensor<1x1xf32>

  pipe.stage @s0 on rank 0 {
    pipe.forward sources [#pipe.input<"x0">, #pipe.input<"y0">, #pipe.input<"z0">] {
    ^bb0(%x: tensor<1x4xf32>, %y: tensor<1x5xf32>, %z: tensor<1x1xf32>):
      pipe.return %x : tensor<1x4xf32>
    }
    pipe.backward inputs [0, 1, 2] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<1x4xf32>, %y: tensor<1x5xf32>, %z: tensor<1x1xf32>):
      nn.accumulate_gradient @w, %x : tensor<1x4xf32>
      nn.accumulate_gradient @v, %y : tensor<1x5xf32>
      nn.accumulate_gradient @u, %z : tensor<1x1xf32>
      pipe.return
    }
  }

  pipe.stage @s1 on rank 1 {
    pipe.forward sources [#pipe.input<"x1">, #pipe.input<"y1">, #pipe.input<"z1">, #pipe.output<@s0, 0>] {
    ^bb0(%x: tensor<1x4xf32>, %y: tensor<1x5xf32>, %z: tensor<1x1xf32>, %h: tensor<1x4xf32>):
      pipe.return %x : tensor<1x4xf32>
    }
    pipe.backward inputs [0, 1, 2] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<1x4xf32>, %y: tensor<1x5xf32>, %z: tensor<1x1xf32>):
      nn.accumulate_gradient @w, %x : tensor<1x4xf32>
      nn.accumulate_gradient @v, %y : tensor<1x5xf32>
      nn.accumulate_gradient @u, %z : tensor<1x1xf32>
      pipe.return
    }
  }

  pipe.stage @s2 on rank 2 {
    pipe.forward sources [#pipe.input<"x2">, #pipe.input<"y2">, #pipe.input<"z2">, #pipe.output<@s1, 0>] {
    ^bb0(%x: tensor<1x4xf32>, %y: tensor<1x5xf32>, %z: tensor<1x1xf32>, %h: tensor<1x4xf32>):
      pipe.return
    }
    pipe.backward inputs [0, 1, 2] outputs [] gradients_of [] input_gradients [] {
    ^bb0(%x: tensor<1x4xf32>, %y: tensor<1x5xf32>, %z: tensor<1x1xf32>):
      nn.accumulate_gradient @w, %x : tensor<1x4xf32>
      nn.accumulate_gradient @v, %y : tensor<1x5xf32>
      nn.accumulate_gradient @u, %z : tensor<1x1xf32>
      pipe.return
    }
  }

  pipe.step train {
    %x00 = pipe.input "x0" micro_batch 0 for @s0 : tensor<1x4xf32>
    %y00 = pipe.input "y0" micro_batch 0 for @s0 : tensor<1x5xf32>
    %z00 = pipe.input "z0" micro_batch 0 for @s0 : tensor<1x1xf32>
    %h00 = pipe.task forward @s0 micro_batch 0 (%x00, %y00, %z00)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>) -> tensor<1x4xf32>
    %x10 = pipe.input "x1" micro_batch 0 for @s1 : tensor<1x4xf32>
    %y10 = pipe.input "y1" micro_batch 0 for @s1 : tensor<1x5xf32>
    %z10 = pipe.input "z1" micro_batch 0 for @s1 : tensor<1x1xf32>
    %h10 = pipe.task forward @s1 micro_batch 0 (%x10, %y10, %z10, %h00)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %x20 = pipe.input "x2" micro_batch 0 for @s2 : tensor<1x4xf32>
    %y20 = pipe.input "y2" micro_batch 0 for @s2 : tensor<1x5xf32>
    %z20 = pipe.input "z2" micro_batch 0 for @s2 : tensor<1x1xf32>
    pipe.task forward @s2 micro_batch 0 (%x20, %y20, %z20, %h10)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>, tensor<1x4xf32>) -> ()
    %g00 = pipe.task backward @s0 micro_batch 0 (%x00, %y00, %z00)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>) -> !pipe.gradient<@s0>
    %g10 = pipe.task backward @s1 micro_batch 0 (%x10, %y10, %z10)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>) -> !pipe.gradient<@s1>
    %g20 = pipe.task backward @s2 micro_batch 0 (%x20, %y20, %z20)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>) -> !pipe.gradient<@s2>
    %x01 = pipe.input "x0" micro_batch 1 for @s0 : tensor<1x4xf32>
    %y01 = pipe.input "y0" micro_batch 1 for @s0 : tensor<1x5xf32>
    %z01 = pipe.input "z0" micro_batch 1 for @s0 : tensor<1x1xf32>
    %h01 = pipe.task forward @s0 micro_batch 1 (%x01, %y01, %z01)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>) -> tensor<1x4xf32>
    %x11 = pipe.input "x1" micro_batch 1 for @s1 : tensor<1x4xf32>
    %y11 = pipe.input "y1" micro_batch 1 for @s1 : tensor<1x5xf32>
    %z11 = pipe.input "z1" micro_batch 1 for @s1 : tensor<1x1xf32>
    %h11 = pipe.task forward @s1 micro_batch 1 (%x11, %y11, %z11, %h01)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %x21 = pipe.input "x2" micro_batch 1 for @s2 : tensor<1x4xf32>
    %y21 = pipe.input "y2" micro_batch 1 for @s2 : tensor<1x5xf32>
    %z21 = pipe.input "z2" micro_batch 1 for @s2 : tensor<1x1xf32>
    pipe.task forward @s2 micro_batch 1 (%x21, %y21, %z21, %h11)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>, tensor<1x4xf32>) -> ()
    %g01 = pipe.task backward @s0 micro_batch 1 (%x01, %y01, %z01, %g00)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>, !pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %g11 = pipe.task backward @s1 micro_batch 1 (%x11, %y11, %z11, %g10)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>, !pipe.gradient<@s1>) -> !pipe.gradient<@s1>
    %g21 = pipe.task backward @s2 micro_batch 1 (%x21, %y21, %z21, %g20)
      : (tensor<1x4xf32>, tensor<1x5xf32>, tensor<1x1xf32>, !pipe.gradient<@s2>) -> !pipe.gradient<@s2>
    %w0 = pipe.collective all_reduce of @w in @s0 (%g01) over [0, 1, 2]
      : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %w1 = pipe.collective all_reduce of @w in @s1 (%g11) over [0, 1, 2]
      : (!pipe.gradient<@s1>) -> !pipe.gradient<@s1>
    %w2 = pipe.collective all_reduce of @w in @s2 (%g21) over [0, 1, 2]
      : (!pipe.gradient<@s2>) -> !pipe.gradient<@s2>
    %v0 = pipe.collective reduce_scatter of @v in @s0 (%w0) over [0, 1, 2]
      : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %v1 = pipe.collective reduce_scatter of @v in @s1 (%w1) over [0, 1, 2]
      : (!pipe.gradient<@s1>) -> !pipe.gradient<@s1>
    %v2 = pipe.collective reduce_scatter of @v in @s2 (%w2) over [0, 1, 2]
      : (!pipe.gradient<@s2>) -> !pipe.gradient<@s2>
    %u0 = pipe.collective reduce of @u in @s0 (%v0) over [0, 1, 2] root 0
      : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
    %u1 = pipe.collective reduce of @u in @s1 (%v1) over [0, 1, 2] root 0
      : (!pipe.gradient<@s1>) -> !pipe.gradient<@s1>
    %u2 = pipe.collective reduce of @u in @s2 (%v2) over [0, 1, 2] root 0
      : (!pipe.gradient<@s2>) -> !pipe.gradient<@s2>
    %n0 = pipe.task update @s0 (%u0) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
    %n1 = pipe.task update @s1 (%u1) : (!pipe.gradient<@s1>) -> !pipe.updated<@s1>
    %n2 = pipe.task update @s2 (%u2) : (!pipe.gradient<@s2>) -> !pipe.updated<@s2>
    %p0 = pipe.collective all_gather of @v in @s0 (%n0) over [0, 1, 2]
      : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
    %p1 = pipe.collective all_gather of @v in @s1 (%n1) over [0, 1, 2]
      : (!pipe.updated<@s1>) -> !pipe.updated<@s1>
    %p2 = pipe.collective all_gather of @v in @s2 (%n2) over [0, 1, 2]
      : (!pipe.updated<@s2>) -> !pipe.updated<@s2>
    %q0 = pipe.collective broadcast of @u in @s0 (%p0) over [0, 1, 2] root 0
      : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
    %q1 = pipe.collective broadcast of @u in @s1 (%p1) over [0, 1, 2] root 0
      : (!pipe.updated<@s1>) -> !pipe.updated<@s1>
    %q2 = pipe.collective broadcast of @u in @s2 (%p2) over [0, 1, 2] root 0
      : (!pipe.updated<@s2>) -> !pipe.updated<@s2>
  }
}
