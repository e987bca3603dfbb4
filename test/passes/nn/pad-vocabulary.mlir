// Rows of zeros behind a vocabulary, where logits come straight from a product
// of a weight that only embeddings read besides.

// RUN: pipewright-opt %s --nn-pad-vocabulary="least-classes=1" --split-input-file --verify-diagnostics | FileCheck %s
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
// CHECK: %[[LOSS:.*]], %{{.*}}, %{{.*}} = nn.softmax_cross_entropy %[[ROWS]], %{{.*}} ignore_index = -100 classes = 50 :
// CHECK: return %[[LOSS]], %[[OUT]]
module {
  nn.weight @wte role = parameter : tensor<50x8xf32>
  func.func @tied(%tokens: tensor<2x3xi64>, %labels: tensor<6xi64>) -> (tensor<f32>, tensor<2x3x50xf32>) {
    %w = nn.parameter @wte : tensor<50x8xf32>
    %x = nn.embedding %w, %tokens : (tensor<50x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
    %y = nn.matmul %x, %w transpose_b : (tensor<2x3x8xf32>, tensor<50x8xf32>) -> tensor<2x3x50xf32>
    %rows = nn.reshape %y : tensor<2x3x50xf32> -> tensor<6x50xf32>
    %loss, %largest, %total = nn.softmax_cross_entropy %rows, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
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
    %loss, %largest, %sum = nn.softmax_cross_entropy %y, %labels ignore_index = -100 : (tensor<6x64xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
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
    // expected-remark@+1 {{its logits of 50 classes get no columns of zeros up to 64: weight 'w' is read by more than that layer and embeddings, which would see the zeros}}
    %loss, %largest, %sum = nn.softmax_cross_entropy %y, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    %mean = nn.reduce_mean %w axes = [0, 1] : tensor<50x8xf32> -> tensor<f32>
    return %loss, %mean : tensor<f32>, tensor<f32>
  }
}

// -----

// A bias gets as many zeros, whose logits the loss does not look at.
// CHECK: nn.weight @w role = parameter file_rows = 50 : tensor<64x8xf32>
// CHECK: nn.weight @b role = parameter file_rows = 50 : tensor<64xf32>
// CHECK-LABEL: func.func @bias
// CHECK-DAG: %[[W:.*]] = nn.parameter @w : tensor<64x8xf32>
// CHECK-DAG: %[[B:.*]] = nn.parameter @b : tensor<64xf32>
// CHECK: %[[Y:.*]] = nn.matmul %{{.*}}, %[[W]] transpose_b : (tensor<2x3x8xf32>, tensor<64x8xf32>) -> tensor<2x3x64xf32>
// CHECK: %[[SUM:.*]] = nn.add %[[B]], %[[Y]] : (tensor<64xf32>, tensor<2x3x64xf32>) -> tensor<2x3x64xf32>
// CHECK: %[[OUT:.*]] = nn.slice %[[SUM]] starts = [0, 0, 0] sizes = [2, 3, 50]
// CHECK: %[[ROWS:.*]] = nn.reshape %[[SUM]] : tensor<2x3x64xf32> -> tensor<6x64xf32>
// CHECK: nn.softmax_cross_entropy %[[ROWS]], %{{.*}} ignore_index = -100 classes = 50 :
module {
  nn.weight @w role = parameter : tensor<50x8xf32>
  nn.weight @b role = parameter : tensor<50xf32>
  func.func @bias(%x: tensor<2x3x8xf32>, %labels: tensor<6xi64>) -> (tensor<f32>, tensor<2x3x50xf32>) {
    %w = nn.parameter @w : tensor<50x8xf32>
    %b = nn.parameter @b : tensor<50xf32>
    %y = nn.matmul %x, %w transpose_b : (tensor<2x3x8xf32>, tensor<50x8xf32>) -> tensor<2x3x50xf32>
    %sum = nn.add %b, %y : (tensor<50xf32>, tensor<2x3x50xf32>) -> tensor<2x3x50xf32>
    %rows = nn.reshape %sum : tensor<2x3x50xf32> -> tensor<6x50xf32>
    %loss, %largest, %total = nn.softmax_cross_entropy %rows, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    return %loss, %sum : tensor<f32>, tensor<2x3x50xf32>
  }
}

// -----

// CHECK-LABEL: module {
// CHECK-NOT: file_rows
module {
  nn.weight @w role = parameter : tensor<8x50xf32>
  func.func @columns(%x: tensor<6x8xf32>, %labels: tensor<6xi64>) -> tensor<f32> {
    %w = nn.parameter @w : tensor<8x50xf32>
    %y = nn.matmul %x, %w : (tensor<6x8xf32>, tensor<8x50xf32>) -> tensor<6x50xf32>
    // expected-remark@+1 {{up to 64: weight 'w' has the classes as its columns, and only rows can be added; export it as [classes, features] (Gemm with transB = 1)}}
    %loss, %largest, %sum = nn.softmax_cross_entropy %y, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    return %loss : tensor<f32>
  }
}

// -----

// The weight of the product could have more rows, but the bias is not trained.
module {
  nn.weight @w role = parameter : tensor<50x8xf32>
  nn.weight @b role = constant : tensor<50xf32>
  func.func @frozen(%x: tensor<6x8xf32>, %labels: tensor<6xi64>) -> tensor<f32> {
    %w = nn.parameter @w : tensor<50x8xf32>
    %b = nn.parameter @b : tensor<50xf32>
    %y = nn.matmul %x, %w transpose_b : (tensor<6x8xf32>, tensor<50x8xf32>) -> tensor<6x50xf32>
    %sum = nn.add %y, %b : (tensor<6x50xf32>, tensor<50xf32>) -> tensor<6x50xf32>
    // expected-remark@+1 {{up to 64: weight 'b' is not a parameter, and only parameters can have other sizes in files}}
    %loss, %largest, %total = nn.softmax_cross_entropy %sum, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    return %loss : tensor<f32>
  }
}

// -----

module {
  func.func @others(%x: tensor<6x50xf32>, %y: tensor<6x5xf32>, %z: tensor<50x5xf32>, %labels: tensor<6xi64>) -> tensor<f32> {
    // expected-remark@+1 {{up to 64: they do not come from a product, by reshapes and biases alone}}
    %l0:3 = nn.softmax_cross_entropy %x, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    %2 = nn.matmul %y, %z transpose_b : (tensor<6x5xf32>, tensor<50x5xf32>) -> tensor<6x50xf32>
    // expected-remark@+1 {{up to 64: they come from a product or a sum with something else than a weight}}
    %l3:3 = nn.softmax_cross_entropy %2, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    %5 = nn.add %2, %x : (tensor<6x50xf32>, tensor<6x50xf32>) -> tensor<6x50xf32>
    // expected-remark@+1 {{up to 64: they are a sum with something else than a bias}}
    %l6:3 = nn.softmax_cross_entropy %5, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    %8 = nn.reshape %x : tensor<6x50xf32> -> tensor<300xf32>
    %9 = nn.reshape %8 : tensor<300xf32> -> tensor<6x50xf32>
    // expected-remark@+1 {{up to 64: a reshape splits their classes}}
    %l10:3 = nn.softmax_cross_entropy %9, %labels ignore_index = -100 : (tensor<6x50xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<6xf32>)
    %12 = nn.add %l0#0, %l3#0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %13 = nn.add %l6#0, %l10#0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %14 = nn.add %12, %13 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %14 : tensor<f32>
  }
}
