// RUN: pipewright-opt %s --nn-share-transposes | FileCheck %s

// 512 rows in 8 products.
// CHECK-LABEL: func @steps
// CHECK: %[[T:.*]] = nn.transpose %arg1 permutation = [1, 0] : tensor<32x8xf32> -> tensor<8x32xf32>
// CHECK-COUNT-8: nn.matmul %{{.*}}, %[[T]] : (tensor<64x8xf32>, tensor<8x32xf32>)
// CHECK-NOT: transpose
// CHECK: return
func.func @steps(%h: tensor<64x8xf32>, %r: tensor<32x8xf32>) -> tensor<64x8xf32> {
  %y0 = nn.matmul %h, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s0 = nn.slice %y0 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y1 = nn.matmul %s0, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s1 = nn.slice %y1 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y2 = nn.matmul %s1, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s2 = nn.slice %y2 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y3 = nn.matmul %s2, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s3 = nn.slice %y3 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y4 = nn.matmul %s3, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s4 = nn.slice %y4 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y5 = nn.matmul %s4, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s5 = nn.slice %y5 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y6 = nn.matmul %s5, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s6 = nn.slice %y6 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y7 = nn.matmul %s6, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s7 = nn.slice %y7 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  return %s7 : tensor<64x8xf32>
}

// Fewer rows are not worth it.
// CHECK-LABEL: func @few
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @few(%h: tensor<64x8xf32>, %r: tensor<32x8xf32>) -> tensor<64x8xf32> {
  %y0 = nn.matmul %h, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s0 = nn.slice %y0 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y1 = nn.matmul %s0, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s1 = nn.slice %y1 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y2 = nn.matmul %s1, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s2 = nn.slice %y2 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y3 = nn.matmul %s2, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s3 = nn.slice %y3 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y4 = nn.matmul %s3, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s4 = nn.slice %y4 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y5 = nn.matmul %s4, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s5 = nn.slice %y5 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  %y6 = nn.matmul %s5, %r transpose_b : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %s6 = nn.slice %y6 starts = [0, 0] sizes = [64, 8] steps = [1, 1] : tensor<64x32xf32> -> tensor<64x8xf32>
  return %s6 : tensor<64x8xf32>
}

// Tall products copy the matrix themselves.
// CHECK-LABEL: func @tall
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @tall(%h: tensor<65x8xf32>, %r: tensor<32x8xf32>) -> tensor<65x8xf32> {
  %y0 = nn.matmul %h, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s0 = nn.slice %y0 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  %y1 = nn.matmul %s0, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s1 = nn.slice %y1 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  %y2 = nn.matmul %s1, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s2 = nn.slice %y2 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  %y3 = nn.matmul %s2, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s3 = nn.slice %y3 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  %y4 = nn.matmul %s3, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s4 = nn.slice %y4 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  %y5 = nn.matmul %s4, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s5 = nn.slice %y5 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  %y6 = nn.matmul %s5, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s6 = nn.slice %y6 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  %y7 = nn.matmul %s6, %r transpose_b : (tensor<65x8xf32>, tensor<32x8xf32>) -> tensor<65x32xf32>
  %s7 = nn.slice %y7 starts = [0, 0] sizes = [65, 8] steps = [1, 1] : tensor<65x32xf32> -> tensor<65x8xf32>
  return %s7 : tensor<65x8xf32>
}

// Of two matrices each by itself; the products with the one as it lies stay,
// and so does a batch of matrices.
// CHECK-LABEL: func @others
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @others(%h: tensor<512x8xf32>, %g: tensor<512x32xf32>, %b: tensor<16x32x8xf32>, %r: tensor<32x8xf32>) -> (tensor<512x8xf32>, tensor<16x32x32xf32>) {
  %0 = nn.matmul %g, %r : (tensor<512x32xf32>, tensor<32x8xf32>) -> tensor<512x8xf32>
  %1 = nn.reshape %h : tensor<512x8xf32> -> tensor<16x32x8xf32>
  %2 = nn.matmul %1, %b transpose_b : (tensor<16x32x8xf32>, tensor<16x32x8xf32>) -> tensor<16x32x32xf32>
  return %0, %2 : tensor<512x8xf32>, tensor<16x32x32xf32>
}

// The rows of all dimensions count, and those of an operand that lies the other
// way round; the transposition stands behind what makes the matrix.
// CHECK-LABEL: func @dimensions
// CHECK: %[[R:.*]] = nn.mul
// CHECK: %[[T:.*]] = nn.transpose %[[R]]
// CHECK-COUNT-8: nn.matmul %{{.*}}, %[[T]] transpose_a :
// CHECK-COUNT-8: nn.matmul %{{.*}}, %[[T]] :
func.func @dimensions(%h: tensor<8x64xf32>, %g: tensor<4x8x8xf32>, %w: tensor<32x8xf32>) -> (tensor<64x32xf32>, tensor<4x8x32xf32>) {
  %r = nn.mul %w, %w : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
  %a0 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %a1 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %a2 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %a3 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %a4 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %a5 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %a6 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %a7 = nn.matmul %h, %r transpose_a transpose_b : (tensor<8x64xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %b0 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %b1 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %b2 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %b3 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %b4 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %b5 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %b6 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %b7 = nn.matmul %g, %r transpose_b : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  return %a7, %b7 : tensor<64x32xf32>, tensor<4x8x32xf32>
}
