// What generated code calls values: after the model's op that each belongs to,
// also where one kernel makes several, and after which of an op's results it is.

// DEFINE: %{differentiated} = pipewright-opt --split-input-file \
// DEFINE:   --pipe-partition-stages=stages=1 --pipe-differentiate --pipe-hoist-loss-gradient
// DEFINE: %{emit} = --nn-form-kernels --pipewright-unrolled --pipewright-scheduled \
// DEFINE:   --pipewright-allocated --print-host -o /dev/null
// RUN: %{differentiated} %{emit} %s | FileCheck %s

// The sum, the norm of it and what the norm's backward reads come from one
// kernel; so do a loss and its gradient, which the forward keeps.
// CHECK:      void stage0_forward(
// CHECK:        const Buffer net_add = stash.at
// CHECK-NEXT:   const Buffer net_norm = stash.at
// CHECK-NEXT:   const Buffer net_norm_mean = stash.at
// CHECK-NEXT:   const Buffer net_norm_rstd = stash.at
// CHECK:        const Buffer loss =
// CHECK-NEXT:   const Buffer loss_largest =
// CHECK-NEXT:   const Buffer loss_sum =
// CHECK-NEXT:   const Buffer d_loss = stash.at
// CHECK:      void stage0_backward(
// CHECK:        const Buffer d_loss = stash.at
// CHECK:        const Buffer d_net_head =
// CHECK:        launch(rank, "layer_norm_backward_{{.*}}, d_net_head,
// CHECK-NEXT:       net_add, scale, net_norm_mean, net_norm_rstd, d_net_norm_x,
// CHECK-NEXT:       d_net_norm_scale, d_net_norm_bias);
// CHECK:        accumulate(rank, d_net_norm_scale, d_scale);
module attributes {pipe.program = #pipe.program<micro_batches = 1, micro_batch_size = 4, optimizer = <sgd lr = 0.1>>} {
  nn.weight @w role = parameter : tensor<8x8xf32>
  nn.weight @scale role = parameter : tensor<8xf32>
  nn.weight @bias role = parameter : tensor<8xf32>
  nn.weight @head role = parameter : tensor<8x6xf32>
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %labels: tensor<4xi64> {nn.name = "labels"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w = nn.parameter @w : tensor<8x8xf32>
    %scale = nn.parameter @scale : tensor<8xf32>
    %bias = nn.parameter @bias : tensor<8xf32>
    %head = nn.parameter @head : tensor<8x6xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("/net/fc")
    %1 = nn.add %0, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> loc("/net/add")
    %y, %mean, %rstd = nn.layer_norm %1, %scale, %bias epsilon = 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) loc("/net/norm")
    %2 = nn.matmul %y, %head : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32> loc("/net/head")
    %loss, %largest, %sum = nn.softmax_cross_entropy %2, %labels ignore_index = -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) loc("loss")
    return %loss : tensor<f32>
  }
}

// -----

// No op of this backward is called so, and its first gradient comes from the
// loss's constant factor.
// CHECK:      void stage0_backward(
// CHECK:        const Buffer d_square =
// CHECK:        matmul(rank, {{.*}}, d_square, head,
// CHECK-NEXT:       d_net_head);
// CHECK:        const Buffer d_net_relu =
// CHECK:        matmul(rank, {{.*}}, x,
// CHECK-NEXT:       d_net_relu, d_w);
module attributes {pipe.program = #pipe.program<micro_batches = 1, micro_batch_size = 4, optimizer = <sgd lr = 0.1>>} {
  nn.weight @w role = parameter : tensor<8x8xf32>
  nn.weight @head role = parameter : tensor<8x6xf32>
  func.func @model(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<4x6xf32> {nn.name = "t"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w = nn.parameter @w : tensor<8x8xf32>
    %head = nn.parameter @head : tensor<8x6xf32>
    %0 = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("/net/fc")
    %1 = nn.relu %0 : tensor<4x8xf32> loc("/net/relu")
    %2 = nn.matmul %1, %head : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32> loc("/net/head")
    %3 = nn.sub %2, %t : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> loc("error")
    %4 = nn.mul %3, %3 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> loc("square")
    %5 = nn.reduce_mean %4 axes = [0, 1] : tensor<4x6xf32> -> tensor<f32> loc("loss")
    return %5 : tensor<f32>
  }
}
