// Which weights an optimizer takes as matrices: those that only products read, but
// for the last layer.

// RUN: pipewright-opt %s --nn-mark-matrices --split-input-file | FileCheck %s
// RUN: pipewright-opt %s --nn-mark-matrices --nn-mark-matrices --split-input-file | FileCheck %s
// RUN: pipewright-opt %s --nn-mark-matrices="names=table|^last$" --split-input-file | FileCheck %s --check-prefix=NAMED
// RUN: not pipewright-opt %s --nn-mark-matrices="names=frozen|bias|padded" --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: --matrices frozen|bias|padded matches no matrix that is trained

// The outputs of x w are columns of w, those of w x and of x w^T rows.
// CHECK: nn.weight @table role = parameter : tensor<16x4xf32>
// CHECK: nn.weight @columns role = parameter outputs = columns : tensor<4x8xf32>
// CHECK: nn.weight @rows role = parameter outputs = rows : tensor<4x8xf32>
// CHECK: nn.weight @turned role = parameter outputs = rows : tensor<8x4xf32>
// CHECK: nn.weight @left role = parameter outputs = rows : tensor<4x4xf32>
// CHECK: nn.weight @both role = parameter : tensor<8x8xf32>
// CHECK: nn.weight @frozen role = frozen : tensor<8x8xf32>
// CHECK: nn.weight @bias role = parameter : tensor<4xf32>
// CHECK: nn.weight @last role = parameter : tensor<8x16xf32>
// NAMED: nn.weight @table role = parameter outputs = rows : tensor<16x4xf32>
// NAMED: nn.weight @columns role = parameter : tensor<4x8xf32>
// NAMED: nn.weight @last role = parameter outputs = columns : tensor<8x16xf32>
module {
  nn.weight @table role = parameter : tensor<16x4xf32>
  nn.weight @columns role = parameter : tensor<4x8xf32>
  nn.weight @rows role = parameter : tensor<4x8xf32>
  nn.weight @turned role = parameter : tensor<8x4xf32>
  nn.weight @left role = parameter : tensor<4x4xf32>
  nn.weight @both role = parameter : tensor<8x8xf32>
  nn.weight @frozen role = frozen : tensor<8x8xf32>
  nn.weight @bias role = parameter : tensor<4xf32>
  nn.weight @last role = parameter : tensor<8x16xf32>
  func.func @model(%tokens: tensor<4xi64>, %labels: tensor<4xi64>) -> tensor<f32> {
    %table = nn.parameter @table : tensor<16x4xf32>
    %columns = nn.parameter @columns : tensor<4x8xf32>
    %rows = nn.parameter @rows : tensor<4x8xf32>
    %turned = nn.parameter @turned : tensor<8x4xf32>
    %left = nn.parameter @left : tensor<4x4xf32>
    %both = nn.parameter @both : tensor<8x8xf32>
    %frozen = nn.parameter @frozen : tensor<8x8xf32>
    %bias = nn.parameter @bias : tensor<4xf32>
    %last = nn.parameter @last : tensor<8x16xf32>
    %0 = nn.embedding %table, %tokens : (tensor<16x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
    %1 = nn.add %0, %bias : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    %2 = nn.matmul %left, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = nn.matmul %2, %columns : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %4 = nn.matmul %3, %rows transpose_b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
    %5 = nn.transpose %turned permutation = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %6 = nn.matmul %4, %5 : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %7 = nn.matmul %6, %both : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %8 = nn.matmul %7, %frozen : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %9 = nn.reduce_sum %both axes = [0] : tensor<8x8xf32> -> tensor<8xf32>
    %10 = nn.add %8, %9 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %11 = nn.matmul %10, %last : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %loss, %largest, %sum = nn.softmax_cross_entropy %11, %labels ignore_index = -100 : (tensor<4x16xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    return %loss : tensor<f32>
  }
}

// -----

// Without labels, whatever the results come from is last. In bf16 a weight is read
// rounded. Rows that no file has are not the model's.
// CHECK: nn.weight @first role = parameter outputs = rows : tensor<8x4xf32>
// CHECK: nn.weight @padded role = parameter file_rows = 6 : tensor<8x4xf32>
// CHECK: nn.weight @other role = parameter : tensor<8x8xf32>
// NAMED: nn.weight @first role = parameter : tensor<8x4xf32>
module {
  nn.weight @first role = parameter : tensor<8x4xf32>
  nn.weight @padded role = parameter file_rows = 6 : tensor<8x4xf32>
  nn.weight @other role = parameter : tensor<8x8xf32>
  nn.weight @table role = parameter : tensor<8x8xf32>
  func.func @model(%x: tensor<2x4xbf16>) -> tensor<2x8xbf16> {
    %first = nn.parameter @first : tensor<8x4xbf16>
    %padded = nn.parameter @padded : tensor<8x4xbf16>
    %other = nn.parameter @other : tensor<8x8xbf16>
    %0 = nn.matmul %x, %first transpose_b : (tensor<2x4xbf16>, tensor<8x4xbf16>) -> tensor<2x8xbf16>
    %1 = nn.matmul %0, %padded : (tensor<2x8xbf16>, tensor<8x4xbf16>) -> tensor<2x4xbf16>
    %2 = nn.matmul %1, %first transpose_b : (tensor<2x4xbf16>, tensor<8x4xbf16>) -> tensor<2x8xbf16>
    %3 = nn.matmul %2, %other : (tensor<2x8xbf16>, tensor<8x8xbf16>) -> tensor<2x8xbf16>
    %4 = nn.relu %3 : tensor<2x8xbf16>
    return %4 : tensor<2x8xbf16>
  }
}
