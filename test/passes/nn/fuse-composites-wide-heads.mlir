// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites=longest-attention=16 | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites=longest-attention=16 --nn-fuse-composites=longest-attention=16 | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites | FileCheck %s --check-prefix=ANY

// Vectors of 16 elements are fused, of 17 not, unless any may be.
// CHECK-LABEL: func.func @as_long
func.func @as_long(%q: tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32> {
  // CHECK: nn.attention
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.softmax %0 : tensor<1x2x8x8xf32>
  %2 = nn.matmul %1, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %2 : tensor<1x2x8x16xf32>
}

// -----

// CHECK-LABEL: func.func @longer
// ANY-LABEL: func.func @longer
func.func @longer(%q: tensor<1x2x8x17xf32>) -> tensor<1x2x8x17xf32> {
  // CHECK-NEXT: nn.matmul
  // CHECK-NEXT: nn.softmax
  // CHECK-NEXT: nn.matmul
  // CHECK-NEXT: return
  // ANY-NEXT: nn.attention
  %0 = nn.matmul %q, %q transpose_b : (tensor<1x2x8x17xf32>, tensor<1x2x8x17xf32>) -> tensor<1x2x8x8xf32>
  %1 = nn.softmax %0 : tensor<1x2x8x8xf32>
  %2 = nn.matmul %1, %q : (tensor<1x2x8x8xf32>, tensor<1x2x8x17xf32>) -> tensor<1x2x8x17xf32>
  return %2 : tensor<1x2x8x17xf32>
}

// -----

// All that the op can say, spelled out: scale, bound, mask, triangle, dropout,
// and heads of q that share those of k and v.
// CHECK-LABEL: func.func @spelled_out
// CHECK-SAME: %[[Q:[^:]*]]: tensor<3x4x8x17xf32>, %[[K:[^:]*]]: tensor<3x2x8x17xf32>, %[[M:[^:]*]]: tensor<8x8xf32>
// ANY-LABEL: func.func @spelled_out
func.func @spelled_out(%q: tensor<3x4x8x17xf32>, %k: tensor<3x2x8x17xf32>, %m: tensor<8x8xf32>) -> tensor<3x4x8x17xf32> {
  // CHECK-DAG: %[[IN:.*]] = nn.constant dense<2.500000e-01>
  // CHECK-DAG: %[[OUT:.*]] = nn.constant dense<2.000000e+00>
  // CHECK-DAG: %[[LOW:.*]] = nn.constant dense<0xFF800000>
  // CHECK: %[[ROWS:.*]] = nn.reshape %[[Q]] : tensor<3x4x8x17xf32> -> tensor<3x2x16x17xf32>
  // CHECK-NEXT: %[[PRODUCT:.*]] = nn.matmul %[[ROWS]], %[[K]] transpose_b
  // CHECK-NEXT: %[[SCORES:.*]] = nn.reshape %[[PRODUCT]] : tensor<3x2x16x8xf32> -> tensor<3x4x8x8xf32>
  // CHECK: %[[SMALL:.*]] = nn.mul %[[SCORES]], %[[IN]]
  // CHECK-NEXT: %[[TANH:.*]] = nn.tanh %[[SMALL]]
  // CHECK: %[[BOUNDED:.*]] = nn.mul %[[TANH]], %[[OUT]]
  // CHECK-NEXT: %[[MASKED:.*]] = nn.add %[[BOUNDED]], %[[M]]
  // CHECK: %[[TRIANGLE:.*]] = nn.causal_mask : tensor<1x1x8x8xi1>
  // CHECK: %[[SEEN:.*]] = nn.where %[[TRIANGLE]], %[[MASKED]], %[[LOW]]
  // CHECK-NEXT: %[[SOFTMAX:.*]] = nn.softmax %[[SEEN]] safe
  // CHECK-NEXT: %[[DROPPED:.*]] = nn.dropout %[[SOFTMAX]] rate = 1.000000e-01 id = 7
  // CHECK-NEXT: %[[WEIGHTS:.*]] = nn.reshape %[[DROPPED]] : tensor<3x4x8x8xf32> -> tensor<3x2x16x8xf32>
  // CHECK-NEXT: %[[O:.*]] = nn.matmul %[[WEIGHTS]], %[[K]]
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[O]] : tensor<3x2x16x17xf32> -> tensor<3x4x8x17xf32>
  // CHECK-NEXT: return %[[Y]]
  // ANY-NEXT: nn.attention
  %o, %stats = nn.attention %q, %k, %k mask %m scale = 0.5 softcap = 2.0 causal dropout_rate = 0.1 dropout_id = 7
    : (tensor<3x4x8x17xf32>, tensor<3x2x8x17xf32>, tensor<3x2x8x17xf32>, tensor<8x8xf32>) -> (tensor<3x4x8x17xf32>, tensor<3x4x8x2xf32>)
  return %o : tensor<3x4x8x17xf32>
}

// -----

// A mask of windows, which repeat.
// CHECK-LABEL: func.func @windows
func.func @windows(%q: tensor<6x2x8x17xf32>, %m: tensor<3x1x8x8xf32>) -> tensor<6x2x8x17xf32> {
  // CHECK: %[[PARTED:.*]] = nn.reshape %{{.*}} : tensor<6x2x8x8xf32> -> tensor<2x3x2x8x8xf32>
  // CHECK-NEXT: %[[SUM:.*]] = nn.add %[[PARTED]], %{{.*}} : (tensor<2x3x2x8x8xf32>, tensor<3x1x8x8xf32>)
  // CHECK-NEXT: nn.reshape %[[SUM]] : tensor<2x3x2x8x8xf32> -> tensor<6x2x8x8xf32>
  // CHECK-NEXT: nn.softmax
  %o, %stats = nn.attention %q, %q, %q mask %m scale = 1.0 dropout_rate = 0.0 dropout_id = 0
    : (tensor<6x2x8x17xf32>, tensor<6x2x8x17xf32>, tensor<6x2x8x17xf32>, tensor<3x1x8x8xf32>) -> (tensor<6x2x8x17xf32>, tensor<6x2x8x2xf32>)
  return %o : tensor<6x2x8x17xf32>
}
