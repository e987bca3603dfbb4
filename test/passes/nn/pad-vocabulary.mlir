// Rows of zeros behind a vocabulary, where logits come straight from a product
// of a weight that only embeddings read besides.

// RUN: pipewright-opt %s --nn-pad-vocabulary="least-classes=1" --split-input-file | FileCheck %s
// RUN: pipewright-opt %s --nn-pad-vocabulary --split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: not pipewright-opt %s --nn-pad-vocabulary="multiple=0" --split-input-file 2>&1 | FileCheck %s --check-prefix=BAD

// SMALL-NOT: file_rows
// BAD: error: nn-pad-vocabulary expects a multiple of at least 1, but got 0

// The table is tied, the logits are an output too.
// CHECK: nn.weight @wte role = parameter file_rows = 50 : tensor<64x8xf32>
// CHECK-LABEL: func.func @tied
// CHECK: %[[W:.*]] = nn.parameter @wte : tensor<64x8xf32>
// CHECK: nn.embedding %[[W]], %{{.*}} : (tensor<64x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
// CHECK: %[[Y:.*]] = nn.matmul %{{.*}}, %[[W]] transpose_b : (tensor<2x3x8xf32>, tensor<64x8xf32>) -> tensor<2x3x64xf32>
// CHECK: %[[OUT:.*]] = nn.slice %[[Y]] starts = [0, 0, 0] sizes = [2, 3, 50] steps = [1, 1, 1] : tensor<2x3x64xf32> -> tensor<2x3x50xf32>
// CHECK: %[[ROWS:.*]] = nn.reshape %[[Y]] : tensor<2x3x64xf32> -> tensor<6x64xf32>
// CHECK: %[[LOSS:.*]], %{{.*}} = nn.softmax_cross_entropy %[[ROWS]], %{{.*}} ignore_index = -100 classes = 50 :
// CHECK: return %[[LOSS]], %[[OUT]]
module {
  nn.weight @wte role = parameter : tensor<50x8xf32>
  func.func @tied(%tokens: tensor<2x3xi64>, %labels: tensor<6xi64>) -> (tensor<f32>, tensor<2x3x50xf32>) {
    %w = nn.parameter @wte : tensor<50x8xf32>
    %x = nn.embedding %w, %tokens : (tensor<50x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
    %y = nn.matmul %x, %w transpose_b : (tensor<2x3x8xf32>, tensor<50x8xf32>) -> tensor<2x3x50xf32>
    %rows = nn.reshape %y : tensor<2x3x50xf32> -> tensor<6x50xf32>
    %loss, %lse = nn.softmax_cross_entropy %rows, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>)
    return %loss, %y : tensor<f32>, tensor<2x3x50xf32>
  }
}

// -----

// Already a multiple.
// CHECK-LABEL: func.func @aligned
// CHECK: tensor<64x8xf32>
// CHECK-NOT: classes
module {
  nn.weight @w role = parameter : tensor<64x8xf32>
  func.func @aligned(%x: tensor<6x8xf32>, %labels: tensor<6xi64>) -> tensor<f32> {
    %w = nn.parameter @w : tensor<64x8xf32>
    %y = nn.matmul %x, %w transpose_b : (tensor<6x8xf32>, tensor<64x8xf32>) -> tensor<6x64xf32>
    %loss, %lse = nn.softmax_cross_entropy %y, %labels ignore_index = -100 : (tensor<6x64xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>)
    return %loss : tensor<f32>
  }
}

// -----

// Something else reads the weight, and would see the zeros.
// CHECK-LABEL: module {
// CHECK-NOT: file_rows
// CHECK-LABEL: func.func @regularized
// CHECK-NOT: classes
module {
  nn.weight @w role = parameter : tensor<50x8xf32>
  func.func @regularized(%x: tensor<6x8xf32>, %labels: tensor<6xi64>) -> (tensor<f32>, tensor<f32>) {
    %w = nn.parameter @w : tensor<50x8xf32>
    %y = nn.matmul %x, %w transpose_b : (tensor<6x8xf32>, tensor<50x8xf32>) -> tensor<6x50xf32>
    %loss, %lse = nn.softmax_cross_entropy %y, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>)
    %mean = nn.reduce_mean %w axes = [0, 1] : tensor<50x8xf32> -> tensor<f32>
    return %loss, %mean : tensor<f32>, tensor<f32>
  }
}
