// RUN: pipewright-opt %s --split-input-file --nn-fuse-composites | FileCheck %s

// What loses digits, or its gradient, when it is spelt out.

// torch.log1p, by both exporters.
// CHECK-LABEL: func.func @log1p
func.func @log1p(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = nn.constant dense<1.0> : tensor<f32>
  %0 = nn.add %x, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[Y:.*]] = nn.log1p %{{.*}} : tensor<8xf32>
  // CHECK-NEXT: return %[[Y]]
  %1 = nn.log %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @expm1
func.func @expm1(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = nn.constant dense<1.0> : tensor<f32>
  %0 = nn.exp %x : tensor<8xf32>
  // CHECK-NEXT: nn.expm1 %{{.*}} : tensor<8xf32>
  %1 = nn.sub %0, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @softplus
func.func @softplus(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = nn.constant dense<1.0> : tensor<f32>
  %0 = nn.exp %x : tensor<8xf32>
  %1 = nn.add %one, %0 : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT: nn.softplus %{{.*}} : tensor<8xf32>
  %2 = nn.log %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Logarithms of both sides of a sigmoid: cross entropy of two classes.
// CHECK-LABEL: func.func @log_sigmoids
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
func.func @log_sigmoids(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %one = nn.constant dense<1.0> : tensor<f32>
  %0 = nn.sigmoid %x : tensor<8xf32>
  %1 = nn.sub %one, %0 : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  // CHECK-DAG: %[[NEGATED:.*]] = nn.neg %[[X]]
  // CHECK-DAG: %[[A:.*]] = nn.softplus %[[NEGATED]]
  // CHECK-DAG: %[[YES:.*]] = nn.neg %[[A]]
  // CHECK-DAG: %[[B:.*]] = nn.softplus %[[X]]
  // CHECK-DAG: %[[NO:.*]] = nn.neg %[[B]]
  // CHECK: return %[[YES]], %[[NO]]
  %2 = nn.log %0 : tensor<8xf32>
  %3 = nn.log %1 : tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}

// -----

// torch.std: no root of 0 is differentiated.
// CHECK-LABEL: func.func @deviation
func.func @deviation(%x: tensor<2x4xf32>) -> tensor<2xf32> {
  %c = nn.constant dense<1.33333337> : tensor<f32>
  %0 = nn.reduce_mean %x axes = [1] keep_dims : tensor<2x4xf32> -> tensor<2x1xf32>
  %1 = nn.sub %x, %0 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %2 = nn.mul %1, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[MEAN:.*]] = nn.reduce_mean %{{.*}} axes = [1] :
  %3 = nn.reduce_mean %2 axes = [1] : tensor<2x4xf32> -> tensor<2xf32>
  // CHECK: %[[VARIANCE:.*]] = nn.mul %[[MEAN]]
  %4 = nn.mul %3, %c : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  // CHECK: %[[ZERO:.*]] = nn.compare %[[VARIANCE]], %{{.*}} predicate = eq
  // CHECK: %[[SAFE:.*]] = nn.where %[[ZERO]], %{{.*}}, %[[VARIANCE]]
  // CHECK: %[[ROOT:.*]] = nn.sqrt %[[SAFE]]
  // CHECK: nn.where %[[ZERO]], %{{.*}}, %[[ROOT]]
  %5 = nn.sqrt %4 : tensor<2xf32>
  return %5 : tensor<2xf32>
}

// -----

// Cosine similarity: max(sqrt(a b), 1e-8).
// CHECK-LABEL: func.func @bounded_root
func.func @bounded_root(%x: tensor<8xf32>) -> tensor<8xf32> {
  %bound = nn.constant dense<1.0e-8> : tensor<f32>
  %0 = nn.sqrt %x : tensor<8xf32>
  // CHECK: %[[SQUARE:.*]] = nn.constant dense<1.000000e-16>
  // CHECK: %[[MAX:.*]] = nn.maximum %{{.*}}, %[[SQUARE]]
  // CHECK: nn.sqrt %[[MAX]]
  %1 = nn.maximum %0, %bound : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A root of something else keeps its infinite slope at 0, as PyTorch's does.
// CHECK-LABEL: func.func @plain_root
func.func @plain_root(%x: tensor<2x4xf32>) -> tensor<2xf32> {
  %0 = nn.mul %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = nn.reduce_sum %0 axes = [1] : tensor<2x4xf32> -> tensor<2xf32>
  // CHECK-NOT: nn.where
  %2 = nn.sqrt %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
