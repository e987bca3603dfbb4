// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites --nn-fuse-composites | FileCheck %s

// Unsqueeze, Expand, Reshape, as LLaMA is exported.
// CHECK-LABEL: func.func @grouped
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x16xf32>, %[[K:.*]]: tensor<2x2x8x16xf32>, %[[V:.*]]: tensor<2x2x8x16xf32>
// CHECK-NOT: nn.broadcast_to
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] scale = 2.500000e-01 {{.*}} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>)
// CHECK-NEXT: return
func.func @grouped(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %scale = nn.constant dense<0.25> : tensor<f32>
  %0 = nn.reshape %k : tensor<2x2x8x16xf32> -> tensor<2x2x1x8x16xf32>
  %1 = nn.broadcast_to %0 : tensor<2x2x1x8x16xf32> -> tensor<2x2x2x8x16xf32>
  %2 = nn.reshape %1 : tensor<2x2x2x8x16xf32> -> tensor<2x4x8x16xf32>
  %3 = nn.reshape %v : tensor<2x2x8x16xf32> -> tensor<2x2x1x8x16xf32>
  %4 = nn.broadcast_to %3 : tensor<2x2x1x8x16xf32> -> tensor<2x2x2x8x16xf32>
  %5 = nn.reshape %4 : tensor<2x2x2x8x16xf32> -> tensor<2x4x8x16xf32>
  %6 = nn.matmul %q, %2 transpose_b : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %7 = nn.mul %6, %scale : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %8 = nn.softmax %7 : tensor<2x4x8x8xf32>
  %9 = nn.matmul %8, %5 : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %9 : tensor<2x4x8x16xf32>
}

// -----

// k is transposed behind the copies, by way of three dimensions, as the newer
// exporter does; one head for all comes from a product that broadcasts.
// CHECK-LABEL: func.func @transposed_copies
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x16xf32>, %[[K:.*]]: tensor<2x1x8x16xf32>
// CHECK-NOT: nn.broadcast_to
// CHECK: nn.attention %[[Q]], %{{.*}}, %[[K]] {{.*}} : (tensor<2x4x8x16xf32>, tensor<2x1x8x16xf32>, tensor<2x1x8x16xf32>)
// CHECK-NOT: nn.broadcast_to
func.func @transposed_copies(%q: tensor<2x4x8x16xf32>, %k: tensor<2x1x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %0 = nn.broadcast_to %k : tensor<2x1x8x16xf32> -> tensor<2x4x8x16xf32>
  %1 = nn.reshape %0 : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
  %2 = nn.transpose %1 permutation = [0, 2, 1] : tensor<8x8x16xf32> -> tensor<8x16x8xf32>
  %3 = nn.reshape %2 : tensor<8x16x8xf32> -> tensor<2x4x16x8xf32>
  %4 = nn.matmul %q, %3 : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %5 = nn.softmax %4 : tensor<2x4x8x8xf32>
  %6 = nn.matmul %5, %0 : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %6 : tensor<2x4x8x16xf32>
}

// -----

// Heads folded into the batch.
// CHECK-LABEL: func.func @three_dims
// CHECK-NOT: nn.broadcast_to
// CHECK: nn.attention {{.*}} : (tensor<1x8x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>)
func.func @three_dims(%q: tensor<8x8x16xf32>, %k: tensor<2x2x8x16xf32>) -> tensor<8x8x16xf32> {
  %0 = nn.reshape %k : tensor<2x2x8x16xf32> -> tensor<2x2x1x8x16xf32>
  %1 = nn.broadcast_to %0 : tensor<2x2x1x8x16xf32> -> tensor<2x2x2x8x16xf32>
  %2 = nn.reshape %1 : tensor<2x2x2x8x16xf32> -> tensor<8x8x16xf32>
  %3 = nn.matmul %q, %2 transpose_b : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x8xf32>
  %4 = nn.softmax %3 : tensor<8x8x8xf32>
  %5 = nn.matmul %4, %2 : (tensor<8x8x8xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  return %5 : tensor<8x8x16xf32>
}

// -----

// All heads one behind the other, again and again: head h reads head h % 2.
// CHECK-LABEL: func.func @interleaved
// CHECK: nn.broadcast_to
// CHECK: nn.attention {{.*}} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
func.func @interleaved(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %0 = nn.reshape %k : tensor<2x2x8x16xf32> -> tensor<2x1x2x8x16xf32>
  %1 = nn.broadcast_to %0 : tensor<2x1x2x8x16xf32> -> tensor<2x2x2x8x16xf32>
  %2 = nn.reshape %1 : tensor<2x2x2x8x16xf32> -> tensor<2x4x8x16xf32>
  %o, %stats = nn.attention %q, %2, %2 scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x2xf32>)
  return %o : tensor<2x4x8x16xf32>
}

// -----

// Samples, positions, or only one of k and v are repeated.
// CHECK-LABEL: func.func @other_copies
// CHECK-COUNT-3: nn.broadcast_to
// CHECK-COUNT-3: nn.attention {{.*}} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
func.func @other_copies(%q: tensor<2x4x8x16xf32>, %a: tensor<1x4x8x16xf32>, %b: tensor<2x4x1x16xf32>, %c: tensor<2x1x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) {
  %0 = nn.broadcast_to %a : tensor<1x4x8x16xf32> -> tensor<2x4x8x16xf32>
  %1 = nn.broadcast_to %b : tensor<2x4x1x16xf32> -> tensor<2x4x8x16xf32>
  %2 = nn.broadcast_to %c : tensor<2x1x8x16xf32> -> tensor<2x4x8x16xf32>
  %o:2 = nn.attention %q, %0, %0 scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x2xf32>)
  %p:2 = nn.attention %q, %1, %1 scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x2xf32>)
  %r:2 = nn.attention %q, %2, %q scale = 0.5 dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x2xf32>)
  return %o#0, %p#0, %r#0 : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>
}
