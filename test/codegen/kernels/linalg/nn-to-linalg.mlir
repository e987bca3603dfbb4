// RUN: pipewright-opt %s --split-input-file --convert-nn-to-linalg --verify-diagnostics | FileCheck %s

// Broadcasting is in the maps: a dimension of one is read at zero.
// CHECK-DAG: #[[$FULL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[$STRETCHED:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%a: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<4x1xf32>) -> tensor<4x8xf32> {
  // CHECK: linalg.generic {indexing_maps = [#[[$FULL]], #[[$ROW]], #[[$FULL]]]
  // CHECK: arith.addf %{{.*}}, %{{.*}} : f32
  // CHECK: linalg.generic {indexing_maps = [#[[$FULL]], #[[$STRETCHED]], #[[$FULL]]]
  // CHECK: arith.mulf
  // CHECK-NOT: nn.
  %0 = nn.add %a, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %c : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// No flag lets a sum depend on what it is fused with.
// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  // CHECK: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4xf32>)
  // CHECK: iterator_types = ["parallel", "reduction"]
  // CHECK: arith.addf %{{.*}}, %{{.*}} : f32
  // CHECK: tensor.expand_shape %{{.*}} : tensor<4xf32> into tensor<4x1xf32>
  %0 = nn.reduce_sum %x axes = [1] keep_dims : tensor<4x8xf32> -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// -----

// Softmax subtracts the largest element before it takes powers.
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: arith.constant 0xFF800000 : f32
  // CHECK: arith.maximumf
  // CHECK: arith.subf
  // CHECK: math.exp
  // CHECK: arith.addf
  // CHECK: arith.divf
  // CHECK: arith.mulf
  %0 = nn.softmax %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Squares need no library call.
// CHECK-LABEL: func.func @power
func.func @power(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: arith.mulf
  // CHECK: math.powf
  %two = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.pow %x, %two : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = nn.pow %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<4x6xf32>) -> (tensor<2x2x6xf32>, tensor<4x3xf32>, tensor<8x3xf32>) {
  // CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]]
  // CHECK: tensor.extract_slice %{{.*}}[0, 1] [4, 3] [1, 2]
  // CHECK: %[[C:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]]
  // CHECK: tensor.expand_shape %[[C]] {{\[\[}}0, 1]]
  %0 = nn.reshape %x : tensor<4x6xf32> -> tensor<2x2x6xf32>
  %1 = nn.slice %x starts = [0, 1] sizes = [4, 3] steps = [1, 2] : tensor<4x6xf32> -> tensor<4x3xf32>
  %2 = nn.reshape %x : tensor<4x6xf32> -> tensor<8x3xf32>
  return %0, %1, %2 : tensor<2x2x6xf32>, tensor<4x3xf32>, tensor<8x3xf32>
}

// -----

func.func @library(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{cannot be compiled into a kernel}}
  %0 = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @call(%x: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{cannot be compiled into a kernel}}
  %0 = call.matmul_epilogue %x, %x bias %b epilogue = bias
    : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
