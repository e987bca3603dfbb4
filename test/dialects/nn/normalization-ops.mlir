// RUN: pipewright-opt %s --verify-roundtrip | FileCheck %s
// RUN: pipewright-opt %s --mlir-print-op-generic | pipewright-opt | FileCheck %s

// Normalizations are printed as they are parsed, in both forms.

nn.weight @mean role = state : tensor<6xf32>
nn.weight @variance role = state : tensor<6xf32>

// Statistics per row.
// CHECK-LABEL: func @layer_norm
func.func @layer_norm(%x: tensor<4x16x8xf32>, %s: tensor<8xf32>, %dy: tensor<4x16x8xf32>, %m: tensor<4x16xf32>) {
  // CHECK: nn.layer_norm %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} epsilon = 9.99999974E-6 : (tensor<4x16x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x16x8xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
  %y, %mean, %rstd = nn.layer_norm %x, %s, %s epsilon = 1.000000e-05
      : (tensor<4x16x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x16x8xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
  // CHECK: nn.layer_norm_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<8xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %dx, %ds, %db = nn.layer_norm_backward %dy, %x, %s, %m, %m
      : (tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<8xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: func @group_norm
func.func @group_norm(%x: tensor<4x6x8x8xf32>, %s: tensor<6xf32>, %dy: tensor<4x6x8x8xf32>) {
  // CHECK: nn.group_norm %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} groups = 3 epsilon = 9.99999974E-6 : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  %y, %m, %v = nn.group_norm %x, %s, %s groups = 3 epsilon = 1.000000e-05
    : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  // CHECK: nn.group_norm_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} epsilon = 9.99999974E-6 : (tensor<4x6x8x8xf32>, tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  %0:5 = nn.group_norm_backward %dy, %x, %s, %m, %v epsilon = 1.000000e-05
    : (tensor<4x6x8x8xf32>, tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
      -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
  return
}

// With running statistics and without.
// CHECK-LABEL: func @batch_norm
func.func @batch_norm(%x: tensor<4x6x8x8xf32>, %s: tensor<6xf32>, %dy: tensor<4x6x8x8xf32>) {
  // CHECK: nn.batch_norm %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} epsilon = 9.99999974E-6 momentum = 7.500000e-01 running_mean = @mean running_variance = @variance : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  %y, %m, %v = nn.batch_norm %x, %s, %s epsilon = 1.000000e-05 momentum = 7.500000e-01 running_mean = @mean running_variance = @variance
      : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  // CHECK: nn.batch_norm %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} epsilon = 9.99999974E-6 momentum = 7.500000e-01 : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  %z, %m1, %v1 = nn.batch_norm %x, %s, %s epsilon = 1.000000e-05 momentum = 7.500000e-01
      : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  // CHECK: nn.batch_norm {{.*}} running_variance = @variance sample_variance : (
  %w, %m2, %v2 = nn.batch_norm %x, %s, %s epsilon = 1.000000e-05 momentum = 7.500000e-01 running_mean = @mean running_variance = @variance sample_variance
      : (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  // CHECK: nn.batch_norm_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} epsilon = 9.99999974E-6 : (tensor<4x6x8x8xf32>, tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  %dx, %ds, %db = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.000000e-05
      : (tensor<4x6x8x8xf32>, tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  return
}

// Rows of the last dimension.
// CHECK-LABEL: func @softmax
func.func @softmax(%x: tensor<4x16xf32>, %dy: tensor<4x16xf32>) {
  // CHECK: nn.softmax %{{[a-z0-9_]+}} : tensor<4x16xf32>
  %0 = nn.softmax %x : tensor<4x16xf32>
  // CHECK: nn.log_softmax %{{[a-z0-9_]+}} : tensor<4x16xf32>
  %1 = nn.log_softmax %x : tensor<4x16xf32>
  // CHECK: nn.softmax_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<4x16xf32>
  %2 = nn.softmax_backward %dy, %0 : tensor<4x16xf32>
  // CHECK: nn.log_softmax_backward %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<4x16xf32>
  %3 = nn.log_softmax_backward %dy, %1 : tensor<4x16xf32>
  return
}
