// RUN: pipewright-opt %s --call-fuse-epilogues=epilogues=all | FileCheck %s
// RUN: pipewright-opt %s --call-fuse-epilogues=epilogues=all --call-fuse-epilogues=epilogues=all | FileCheck %s
// RUN: pipewright-opt %s --call-fuse-epilogues | FileCheck %s --check-prefix=AUTO
// RUN: pipewright-opt %s --call-fuse-epilogues=architecture=80 | FileCheck %s --check-prefix=BIAS
// RUN: pipewright-opt %s --call-fuse-epilogues="architecture=90 epilogues=bias" | FileCheck %s --check-prefix=BIAS
// RUN: pipewright-opt %s --call-fuse-epilogues="architecture=80 epilogues=all" | FileCheck %s
// RUN: pipewright-opt %s --call-fuse-epilogues=epilogues=none | FileCheck %s --check-prefix=NONE
// RUN: not pipewright-opt %s --call-fuse-epilogues=epilogues=most 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: expects epilogues to be auto, none, bias or all, but got 'most'
// NONE-NOT: call.matmul_epilogue

// What follows a product goes into its kernel where that saves a pass over memory.

// Before sm_90 only the addition of a bias does.
// BIAS:     @bias_before_library_call
// BIAS:       epilogue = bias :
// BIAS:     @bias_gelu
// BIAS-NOT:   epilogue = {{.*}}gelu

// GELU does only in bf16, unless all is asked for.
// AUTO:     @bias_gelu(
// AUTO-NOT:   epilogue = {{.*}}gelu
// AUTO:     @gelu_gradient(
// AUTO:       epilogue = gelu_gradient {{.*}}bf16
// AUTO-NOT:   epilogue = {{.*}}gelu

// CHECK-LABEL: func.func @bias_before_library_call
// CHECK-NEXT:    %[[Y:.*]] = call.matmul_epilogue %arg0, %arg1 transpose_b bias %arg2 epilogue = bias : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    nn.matmul %[[Y]], %arg3
func.func @bias_before_library_call(%x: tensor<8x16xf32>, %w: tensor<4x16xf32>, %b: tensor<4xf32>, %v: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %p = nn.matmul %x, %w transpose_b : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %y = nn.add %p, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %z = nn.matmul %y, %v : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %z : tensor<8x2xf32>
}

// The other way round, of a batch that shares its weight, through views, in bf16.
// CHECK-LABEL: func.func @bias_through_views
// CHECK-NEXT:    %[[Y:.*]] = call.matmul_epilogue %arg0, %arg1 bias %arg2 epilogue = bias : (tensor<2x4x16xbf16>, tensor<16x4xbf16>, tensor<4xbf16>) -> tensor<2x4x4xbf16>
// CHECK-NEXT:    %[[R:.*]] = nn.reshape %[[Y]] : tensor<2x4x4xbf16> -> tensor<8x4xbf16>
// CHECK-NEXT:    return %[[R]]
func.func @bias_through_views(%x: tensor<2x4x16xbf16>, %w: tensor<16x4xbf16>, %b: tensor<4xbf16>) -> tensor<8x4xbf16> {
  %p = nn.matmul %x, %w : (tensor<2x4x16xbf16>, tensor<16x4xbf16>) -> tensor<2x4x4xbf16>
  %r = nn.reshape %p : tensor<2x4x4xbf16> -> tensor<8x4xbf16>
  %y = nn.add %b, %r : (tensor<4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
  return %y : tensor<8x4xbf16>
}

// A kernel that reads the product anyway adds the bias for nothing.
// CHECK-LABEL: func.func @bias_before_kernel
// CHECK-NOT:     call.matmul_epilogue
func.func @bias_before_kernel(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>, %b: tensor<4xf32>, %r: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %p = nn.matmul %x, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %y = nn.add %p, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %z = nn.add %y, %r : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y, %z : tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @bias_before_kernel_behind_view
// CHECK-NOT:     call.matmul_epilogue
func.func @bias_before_kernel_behind_view(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>, %b: tensor<4xf32>) -> tensor<4x8xf32> {
  %p = nn.matmul %x, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %y = nn.add %p, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %r = nn.reshape %y : tensor<8x4xf32> -> tensor<8x4xf32>
  %z = nn.transpose %r permutation = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// Not a bias: one element for each row, another user of the product, a product
// of a batch, a product that is not rounded to its operands' type.
// CHECK-LABEL: func.func @no_bias
// CHECK-NOT:     call.matmul_epilogue
func.func @no_bias(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %column: tensor<4x1xf32>, %b: tensor<8xf32>,
    %many: tensor<2x16x8xf32>, %xs: tensor<2x4x16xf32>, %l: tensor<4x16xbf16>, %m: tensor<16x8xbf16>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x4x8xf32>, tensor<4x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %0 = nn.add %p, %column : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %q = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %1 = nn.add %q, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %r = nn.matmul %xs, %many : (tensor<2x4x16xf32>, tensor<2x16x8xf32>) -> tensor<2x4x8xf32>
  %2 = nn.add %r, %b : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %s = nn.matmul %l, %m f32_result : (tensor<4x16xbf16>, tensor<16x8xbf16>) -> tensor<4x8xf32>
  %3 = nn.add %s, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %0, %q, %1, %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x4x8xf32>, tensor<4x8xf32>
}

// Columns that a view cuts elsewhere are not those of the bias.
// CHECK-LABEL: func.func @view_cuts_columns
// CHECK-NOT:     call.matmul_epilogue
func.func @view_cuts_columns(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %c: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<2x4x4xf32>) {
  %p = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %r = nn.reshape %p : tensor<4x8xf32> -> tensor<8x4xf32>
  %y = nn.add %r, %c : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %q = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %s = nn.reshape %q : tensor<4x8xf32> -> tensor<2x4x4xf32>
  %z = nn.add %s, %c : (tensor<2x4x4xf32>, tensor<4xf32>) -> tensor<2x4x4xf32>
  return %y, %z : tensor<8x4xf32>, tensor<2x4x4xf32>
}

// Of one column little would be saved.
// CHECK-LABEL: func.func @one_column
// CHECK-NOT:     call.matmul_epilogue
func.func @one_column(%x: tensor<4x16xf32>, %w: tensor<16x1xf32>, %b: tensor<1xf32>) -> tensor<4x1xf32> {
  %p = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x1xf32>) -> tensor<4x1xf32>
  %y = nn.add %p, %b : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  return %y : tensor<4x1xf32>
}

// The sum is kept for the backward.
// CHECK-LABEL: func.func @bias_gelu
// CHECK-NEXT:    %[[Y:.*]], %[[H:.*]] = call.matmul_epilogue %arg0, %arg1 bias %arg2 epilogue = bias_gelu : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK-NEXT:    return %[[Y]], %[[H]]
func.func @bias_gelu(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %h = nn.add %p, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %y = nn.gelu %h approximate = tanh : tensor<4x8xf32>
  return %y, %h : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @bias_gelu_through_views
// CHECK-NEXT:    %[[Y:.*]], %[[H:.*]] = call.matmul_epilogue %arg0, %arg1 bias %arg2 epilogue = bias_gelu
// CHECK-NEXT:    %[[R:.*]] = nn.reshape %[[H]] : tensor<4x8xf32> -> tensor<2x2x8xf32>
// CHECK-NEXT:    %[[Z:.*]] = nn.reshape %[[Y]] : tensor<4x8xf32> -> tensor<2x2x8xf32>
// CHECK-NEXT:    return %[[Z]], %[[R]]
func.func @bias_gelu_through_views(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) -> (tensor<2x2x8xf32>, tensor<2x2x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %h = nn.add %p, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %r = nn.reshape %h : tensor<4x8xf32> -> tensor<2x2x8xf32>
  %y = nn.gelu %r approximate = tanh : tensor<2x2x8xf32>
  return %y, %r : tensor<2x2x8xf32>, tensor<2x2x8xf32>
}

// GELU by erf, a width that is not a multiple of 8, another kernel that reads the sum.
// CHECK-LABEL: func.func @no_gelu
// CHECK-NOT:     call.matmul_epilogue
func.func @no_gelu(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>, %v: tensor<16x4xf32>, %c: tensor<4xf32>)
    -> (tensor<4x8xf32>, tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %h = nn.add %p, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %0 = nn.gelu %h approximate = none : tensor<4x8xf32>
  %q = nn.matmul %x, %v : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
  %g = nn.add %q, %c : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %1 = nn.gelu %g approximate = tanh : tensor<4x4xf32>
  %r = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %i = nn.add %r, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = nn.gelu %i approximate = tanh : tensor<4x8xf32>
  %3 = nn.relu %i : tensor<4x8xf32>
  return %0, %1, %2, %3 : tensor<4x8xf32>, tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// With the gradient of the bias, whose views and shapes stay as they were.
// CHECK-LABEL: func.func @gelu_bias_gradient
// CHECK-NEXT:    %[[X:.*]] = nn.reshape %arg2 : tensor<2x2x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:    %[[DX:.*]], %[[DB:.*]] = call.matmul_epilogue %arg0, %arg1 transpose_b pre_activation %[[X]] epilogue = gelu_bias_gradient : (tensor<4x16xf32>, tensor<8x16xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
// CHECK-NEXT:    %[[R:.*]] = nn.reshape %[[DX]] : tensor<4x8xf32> -> tensor<2x2x8xf32>
// CHECK-NEXT:    %[[K:.*]] = nn.reshape %[[DB]] : tensor<8xf32> -> tensor<1x1x8xf32>
// CHECK-NEXT:    return %[[R]], %[[K]]
func.func @gelu_bias_gradient(%dy: tensor<4x16xf32>, %w: tensor<8x16xf32>, %x: tensor<2x2x8xf32>) -> (tensor<2x2x8xf32>, tensor<1x1x8xf32>) {
  %p = nn.matmul %dy, %w transpose_b : (tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<4x8xf32>
  %r = nn.reshape %p : tensor<4x8xf32> -> tensor<2x2x8xf32>
  %dx = nn.gelu_backward %r, %x approximate = tanh : tensor<2x2x8xf32>
  %db = nn.reduce_sum %dx axes = [0, 1] keep_dims : tensor<2x2x8xf32> -> tensor<1x1x8xf32>
  return %dx, %db : tensor<2x2x8xf32>, tensor<1x1x8xf32>
}

// In bf16 the sums stay in a kernel, in f32.
// CHECK-LABEL: func.func @gelu_gradient
// CHECK-NEXT:    %[[DX:.*]] = call.matmul_epilogue %arg0, %arg1 pre_activation %arg2 epilogue = gelu_gradient : (tensor<4x16xbf16>, tensor<16x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
// CHECK-NEXT:    %[[C:.*]] = nn.cast %[[DX]]
// CHECK-NEXT:    nn.reduce_sum %[[C]]
func.func @gelu_gradient(%dy: tensor<4x16xbf16>, %w: tensor<16x8xbf16>, %x: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>) {
  %p = nn.matmul %dy, %w : (tensor<4x16xbf16>, tensor<16x8xbf16>) -> tensor<4x8xbf16>
  %dx = nn.gelu_backward %p, %x approximate = tanh : tensor<4x8xbf16>
  %c = nn.cast %dx : tensor<4x8xbf16> -> tensor<4x8xf32>
  %db = nn.reduce_sum %c axes = [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %dx, %db : tensor<4x8xbf16>, tensor<8xf32>
}

// Sums over other dimensions are none of a bias.
// CHECK-LABEL: func.func @other_sums
// CHECK:         epilogue = gelu_gradient
// CHECK:         nn.reduce_sum %{{.*}} axes = [1]
func.func @other_sums(%dy: tensor<4x16xf32>, %w: tensor<16x8xf32>, %x: tensor<4x8xf32>) -> tensor<4xf32> {
  %p = nn.matmul %dy, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %dx = nn.gelu_backward %p, %x approximate = tanh : tensor<4x8xf32>
  %db = nn.reduce_sum %dx axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %db : tensor<4xf32>
}

// The product is read elsewhere, too; GELU is the one by erf.
// CHECK-LABEL: func.func @no_gelu_gradient
// CHECK-NOT:     call.matmul_epilogue
func.func @no_gelu_gradient(%dy: tensor<4x16xf32>, %w: tensor<16x8xf32>, %x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %p = nn.matmul %dy, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %0 = nn.gelu_backward %p, %x approximate = tanh : tensor<4x8xf32>
  %q = nn.matmul %dy, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %1 = nn.gelu_backward %q, %x approximate = none : tensor<4x8xf32>
  return %p, %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
