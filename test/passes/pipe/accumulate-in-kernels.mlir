// RUN: pipewright-opt %s --split-input-file --pipe-accumulate-in-kernels | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --pipe-accumulate-in-kernels --pipe-accumulate-in-kernels | FileCheck %s

// Sums over rows that only a gradient takes are added by the kernel, also
// through a view; other results stay. One that is not a sum does not change.
// CHECK-LABEL: pipe.stage @s0
// CHECK:         nn.launch @kernels::@bias_gradient(%{{.*}}) {nn.added = array<i64: 1>}
// CHECK:         nn.launch @kernels::@scale(%{{[a-z0-9]+}}) :
// CHECK:       func.func private @bias_gradient(%{{.*}}) -> (tensor<4x8xf32>, tensor<8xf32> {nn.added})
// CHECK:       func.func private @scale(%{{.*}}) -> tensor<8xf32> {
nn.weight @b role = parameter : tensor<1x8xf32>
nn.weight @s role = parameter : tensor<8xf32>
pipe.stage @s0 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %0:2 = nn.launch @kernels::@bias_gradient(%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
    %1 = nn.reshape %0#1 : tensor<8xf32> -> tensor<1x8xf32>
    nn.accumulate_gradient @b, %1 : tensor<1x8xf32>
    %2 = nn.launch @kernels::@scale(%x) : (tensor<4x8xf32>) -> tensor<8xf32>
    nn.accumulate_gradient @s, %2 : tensor<8xf32>
    pipe.report "y" %0#0 : tensor<4x8xf32>
    pipe.return
  }
}
module @kernels {
  func.func private @bias_gradient(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
    %0 = nn.relu %x : tensor<4x8xf32>
    %1 = nn.reduce_sum %0 axes = [0] : tensor<4x8xf32> -> tensor<8xf32>
    return %0, %1 : tensor<4x8xf32>, tensor<8xf32>
  }
  func.func private @scale(%x: tensor<4x8xf32>) -> tensor<8xf32> {
    %0 = nn.reduce_sum %x axes = [0] : tensor<4x8xf32> -> tensor<8xf32>
    %1 = nn.tanh %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// A kernel that somebody else wants as it is gets a copy that adds. What is
// read again, and a second sum for the same weight, are not added in place.
// CHECK-LABEL: pipe.stage @s1
// CHECK:         nn.launch @kernels::@sum(%{{[a-z0-9]+}}) :
// CHECK:         nn.launch @kernels::@sum_added(%{{[a-z0-9]+}}) {nn.added = array<i64: 0>}
// CHECK:         nn.launch @kernels::@both(%{{[a-z0-9]+}}) {nn.added = array<i64: 0>}
// CHECK:       func.func private @sum(%{{.*}}) -> tensor<8xf32> {
// CHECK:       func.func private @both(%{{.*}}) -> (tensor<8xf32> {nn.added}, tensor<8xf32>) {
// CHECK:       func.func private @sum_added(%{{.*}}) -> (tensor<8xf32> {nn.added}) {
nn.weight @b role = parameter : tensor<8xf32>
pipe.stage @s1 {
  pipe.forward sources [#pipe.input<"x">] {
  ^bb0(%x: tensor<4x8xf32>):
    %0 = nn.launch @kernels::@sum(%x) : (tensor<4x8xf32>) -> tensor<8xf32>
    nn.accumulate_gradient @b, %0 : tensor<8xf32>
    pipe.report "y" %0 : tensor<8xf32>
    %1 = nn.launch @kernels::@sum(%x) : (tensor<4x8xf32>) -> tensor<8xf32>
    nn.accumulate_gradient @b, %1 : tensor<8xf32>
    %2:2 = nn.launch @kernels::@both(%x) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    nn.accumulate_gradient @b, %2#0 : tensor<8xf32>
    nn.accumulate_gradient @b, %2#1 : tensor<8xf32>
    pipe.return
  }
}
module @kernels {
  func.func private @sum(%x: tensor<4x8xf32>) -> tensor<8xf32> {
    %0 = nn.reduce_sum %x axes = [0] : tensor<4x8xf32> -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @both(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %0 = nn.reduce_sum %x axes = [0] : tensor<4x8xf32> -> tensor<8xf32>
    %1 = nn.relu %x : tensor<4x8xf32>
    %2 = nn.reduce_sum %1 axes = [0] : tensor<4x8xf32> -> tensor<8xf32>
    return %0, %2 : tensor<8xf32>, tensor<8xf32>
  }
}
