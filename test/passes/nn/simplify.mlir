// RUN: pipewright-opt %s --split-input-file --nn-simplify | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-simplify --nn-simplify | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --nn-simplify=no-dropout | FileCheck %s --check-prefix=NO-DROPOUT

// Mask arithmetic on constants is computed, in f32.
// CHECK-LABEL: func.func @pointwise_constants
func.func @pointwise_constants() -> tensor<3xf32> {
  %0 = nn.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
  %1 = nn.constant dense<3.0> : tensor<f32>
  %2 = nn.div %0, %1 : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %3 = nn.sqrt %2 : tensor<3xf32>
  // CHECK-NEXT: %[[C:.*]] = nn.constant dense<[0.577350259, 0.816496611, 1.15470052]>
  // CHECK-NEXT: return %[[C]]
  return %3 : tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @moved_constants
func.func @moved_constants() -> (tensor<2x3xi64>, tensor<4xi64>, tensor<2x2xi64>) {
  %0 = nn.constant dense<[[0, 1], [2, 3], [4, 5]]> : tensor<3x2xi64>
  %1 = nn.transpose %0 permutation = [1, 0] : tensor<3x2xi64> -> tensor<2x3xi64>
  %2 = nn.reshape %1 : tensor<2x3xi64> -> tensor<6xi64>
  %3 = nn.slice %2 starts = [4] sizes = [2] steps = [-3] : tensor<6xi64> -> tensor<2xi64>
  %4 = nn.constant dense<7> : tensor<2xi64>
  %5 = nn.concat %3, %4 axis = 0 : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %6 = nn.pad %3 low = [0] high = [2] : tensor<2xi64> -> tensor<4xi64>
  %7 = nn.reshape %6 : tensor<4xi64> -> tensor<2x2xi64>
  // CHECK-DAG: nn.constant dense<{{\[}}[0, 2, 4], [1, 3, 5]]>
  // CHECK-DAG: nn.constant dense<[3, 2, 7, 7]>
  // CHECK-DAG: nn.constant dense<{{\[}}[3, 2], [0, 0]]>
  // CHECK: return
  return %1, %5, %7 : tensor<2x3xi64>, tensor<4xi64>, tensor<2x2xi64>
}

// -----

// Every pointwise op that is known, on numbers that show which one it was.
// CHECK-LABEL: func.func @every_float_op
func.func @every_float_op() -> tensor<17xf32> {
  %x = nn.constant dense<4.0> : tensor<1xf32>
  %y = nn.constant dense<-2.0> : tensor<1xf32>
  %z = nn.constant dense<0.0> : tensor<1xf32>
  %0 = nn.neg %x : tensor<1xf32>
  %1 = nn.exp %z : tensor<1xf32>
  %2 = nn.log %x : tensor<1xf32>
  %3 = nn.rsqrt %x : tensor<1xf32>
  %4 = nn.reciprocal %x : tensor<1xf32>
  %5 = nn.abs %y : tensor<1xf32>
  %6 = nn.erf %z : tensor<1xf32>
  %7 = nn.tanh %z : tensor<1xf32>
  %8 = nn.sigmoid %z : tensor<1xf32>
  %9 = nn.relu %y : tensor<1xf32>
  %10 = nn.add %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %11 = nn.sub %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %12 = nn.mul %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %13 = nn.pow %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %14 = nn.maximum %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %15 = nn.minimum %x, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %16 = nn.broadcast_to %z : tensor<1xf32> -> tensor<1xf32>
  %17 = nn.concat %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16 axis = 0
    : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>,
       tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>,
       tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<17xf32>
  // CHECK-NEXT: nn.constant dense<[-4.000000e+00, 1.000000e+00, 1.38629436, 5.000000e-01, 2.500000e-01, 2.000000e+00, 0.000000e+00, 0.000000e+00, 5.000000e-01, 0.000000e+00, 2.000000e+00, 6.000000e+00, -8.000000e+00, 6.250000e-02, 4.000000e+00, -2.000000e+00, 0.000000e+00]>
  // CHECK-NEXT: return
  return %17 : tensor<17xf32>
}

// -----

// CHECK-LABEL: func.func @fake_quantize
func.func @fake_quantize() -> (tensor<4xf32>, tensor<4xf32>) {
  %x = nn.constant dense<[1.0625, -0.3, 500.0, 0.0009]> : tensor<4xf32>
  // CHECK-NEXT: nn.constant dense<[1.000000e+00, -3.125000e-01, 4.480000e+02, 0.000000e+00]>
  %0 = nn.fake_quantize %x to f8E4M3FN saturate : tensor<4xf32>
  // CHECK-NEXT: nn.constant dense<[1.000000e+00, -3.125000e-01, 5.120000e+02, 8.54492188E-4]>
  %1 = nn.fake_quantize %x to f8E5M2 : tensor<4xf32>
  // CHECK-NEXT: return
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @integer_and_truth_ops
func.func @integer_and_truth_ops() -> (tensor<3xi64>, tensor<3xi1>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>) {
  %a = nn.constant dense<[7, -7, 0]> : tensor<3xi64>
  %b = nn.constant dense<2> : tensor<i64>
  %zero = nn.constant dense<0> : tensor<i64>
  %0 = nn.div %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  %1 = nn.compare %a, %zero predicate = gt : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %2 = nn.compare %a, %zero predicate = le : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %3 = nn.compare %a, %zero predicate = ne : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %4 = nn.compare %a, %zero predicate = eq : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %5 = nn.logical_and %1, %3 : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %6 = nn.logical_or %5, %4 : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %7 = nn.where %2, %a, %b : (tensor<3xi1>, tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  %8 = nn.cast %7 : tensor<3xi64> -> tensor<3xf32>
  %9 = nn.cast %8 : tensor<3xf32> -> tensor<3xi1>
  %10 = nn.logical_not %9 : tensor<3xi1>
  %11 = nn.neg %0 : tensor<3xi64>
  // CHECK-DAG: %[[A:.*]] = nn.constant dense<[-3, 3, 0]> : tensor<3xi64>
  // CHECK-DAG: %[[B:.*]] = nn.constant dense<[true, false, true]>
  // CHECK-DAG: %[[C:.*]] = nn.constant dense<[2.000000e+00, -7.000000e+00, 0.000000e+00]>
  // CHECK-DAG: %[[D:.*]] = nn.constant dense<[false, false, true]>
  // CHECK-DAG: %[[E:.*]] = nn.constant dense<[true, true, false]>
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]]
  return %11, %6, %8, %10, %9 : tensor<3xi64>, tensor<3xi1>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>
}

// -----

// A number without an integer is left for run time.
// CHECK-LABEL: func.func @cast_out_of_range
func.func @cast_out_of_range() -> tensor<i64> {
  %0 = nn.constant dense<1.0e30> : tensor<f32>
  // CHECK: nn.cast
  %1 = nn.cast %0 : tensor<f32> -> tensor<i64>
  return %1 : tensor<i64>
}

// -----

// A splat stays one number however large it is.
// CHECK-LABEL: func.func @large_splat
func.func @large_splat() -> tensor<1024x1024xf32> {
  %0 = nn.constant dense<2.0> : tensor<f32>
  %1 = nn.broadcast_to %0 : tensor<f32> -> tensor<1024x1024xf32>
  %2 = nn.mul %1, %1 : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  // CHECK-NEXT: nn.constant dense<4.000000e+00> : tensor<1024x1024xf32>
  return %2 : tensor<1024x1024xf32>
}

// -----

// Undefined arithmetic is left for run time.
// CHECK-LABEL: func.func @division_by_zero
func.func @division_by_zero() -> tensor<i64> {
  %0 = nn.constant dense<1> : tensor<i64>
  %1 = nn.constant dense<0> : tensor<i64>
  // CHECK: nn.div
  %2 = nn.div %0, %1 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %2 : tensor<i64>
}

// -----

// row >= column, computed from two ranges, is the causal mask at any size.
// CHECK-LABEL: func.func @causal_mask_from_ranges
func.func @causal_mask_from_ranges() -> (tensor<4x4xi1>, tensor<4x4xi1>) {
  %0 = nn.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %1 = nn.reshape %0 : tensor<4xi64> -> tensor<4x1xi64>
  %2 = nn.compare %1, %0 predicate = ge : (tensor<4x1xi64>, tensor<4xi64>) -> tensor<4x4xi1>
  %3 = nn.compare %1, %0 predicate = lt : (tensor<4x1xi64>, tensor<4xi64>) -> tensor<4x4xi1>
  // CHECK: %[[MASK:.*]] = nn.causal_mask : tensor<4x4xi1>
  // CHECK: %[[NOT:.*]] = nn.logical_not %[[MASK]]
  // CHECK: return %[[MASK]], %[[NOT]]
  return %2, %3 : tensor<4x4xi1>, tensor<4x4xi1>
}

// -----

// CHECK-LABEL: func.func @neutral_operands
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @neutral_operands(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<8xf32>
  %0 = nn.add %zero, %x : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %one : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = nn.sub %1, %zero : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = nn.div %2, %one : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %4 = nn.pow %3, %one : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: return %[[X]]
  return %4 : tensor<4x8xf32>
}

// -----

// An operand that is broadcast does not equal the result.
// CHECK-LABEL: func.func @neutral_but_broadcast
func.func @neutral_but_broadcast(%x: tensor<8xf32>) -> tensor<4x8xf32> {
  %one = nn.constant dense<1.0> : tensor<4x8xf32>
  // CHECK: nn.mul
  %0 = nn.mul %x, %one : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @powers
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %two = nn.constant dense<2.0> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %three = nn.constant dense<3.0> : tensor<f32>
  // CHECK: nn.mul %[[X]], %[[X]]
  %0 = nn.pow %x, %two : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: nn.sqrt %[[X]]
  %1 = nn.pow %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: nn.pow %[[X]]
  %2 = nn.pow %x, %three : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @conditions
// CHECK-SAME: %[[C:.*]]: tensor<4xi1>, %[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>
func.func @conditions(%c: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %true = nn.constant dense<true> : tensor<4xi1>
  %and = nn.logical_and %c, %true : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %as_number = nn.cast %and : tensor<4xi1> -> tensor<4xi64>
  %again = nn.cast %as_number : tensor<4xi64> -> tensor<4xi1>
  %not = nn.logical_not %again : tensor<4xi1>
  %not_not = nn.logical_not %not : tensor<4xi1>
  %0 = nn.where %true, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.where %c, %b, %b : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[W:.*]] = nn.where %[[C]], %[[B]], %[[A]]
  %2 = nn.where %not, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: return %[[A]], %[[B]], %[[W]], %[[C]]
  return %0, %1, %2, %not_not : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}

// -----

// What exporters wrap around a weight becomes a flag of the product.
// CHECK-LABEL: func.func @transposed_weight
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<8x4xf32>
func.func @transposed_weight(%x: tensor<2x4xf32>, %w: tensor<8x4xf32>) -> tensor<2x8xf32> {
  %0 = nn.transpose %w permutation = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: nn.matmul %[[X]], %[[W]] transpose_b
  %1 = nn.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// -----

// A permutation of the batch dimensions too is not a flag.
// CHECK-LABEL: func.func @permuted_batch
func.func @permuted_batch(%x: tensor<2x4x8xf32>, %w: tensor<4x8x2xf32>) -> tensor<2x4x4xf32> {
  // CHECK: nn.transpose
  %0 = nn.transpose %w permutation = [2, 1, 0] : tensor<4x8x2xf32> -> tensor<2x8x4xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : (
  %1 = nn.matmul %x, %0 : (tensor<2x4x8xf32>, tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}

// -----

// Exporters transpose keys that have their heads joined, and the recognised
// attention transposes them back.
// CHECK-LABEL: func.func @transposed_twice
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5x4xf32>
func.func @transposed_twice(%x: tensor<2x3x5x4xf32>) -> (tensor<2x3x5x4xf32>, tensor<6x1x5x4xf32>) {
  %0 = nn.reshape %x : tensor<2x3x5x4xf32> -> tensor<6x5x4xf32>
  %1 = nn.transpose %0 permutation = [0, 2, 1] : tensor<6x5x4xf32> -> tensor<6x4x5xf32>
  %2 = nn.reshape %1 : tensor<6x4x5xf32> -> tensor<2x3x4x5xf32>
  %3 = nn.transpose %2 permutation = [0, 1, 3, 2] : tensor<2x3x4x5xf32> -> tensor<2x3x5x4xf32>
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[X]] : tensor<2x3x5x4xf32> -> tensor<6x1x5x4xf32>
  %4 = nn.reshape %1 : tensor<6x4x5xf32> -> tensor<6x4x1x5xf32>
  %5 = nn.transpose %4 permutation = [0, 2, 3, 1] : tensor<6x4x1x5xf32> -> tensor<6x1x5x4xf32>
  // CHECK-NEXT: return %[[X]], %[[Y]]
  return %3, %5 : tensor<2x3x5x4xf32>, tensor<6x1x5x4xf32>
}

// -----

// Not where the reshape cuts what the second one takes apart.
// CHECK-LABEL: func.func @transposed_apart
func.func @transposed_apart(%x: tensor<4x6xf32>) -> (tensor<2x6x2xf32>, tensor<4x6xf32>) {
  // CHECK-COUNT-2: nn.transpose
  %0 = nn.transpose %x permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %1 = nn.reshape %0 : tensor<6x4xf32> -> tensor<6x2x2xf32>
  %2 = nn.transpose %1 permutation = [1, 0, 2] : tensor<6x2x2xf32> -> tensor<2x6x2xf32>
  // CHECK: nn.transpose
  %6 = nn.reshape %0 : tensor<6x4xf32> -> tensor<3x8xf32>
  %7 = nn.transpose %6 permutation = [1, 0] : tensor<3x8xf32> -> tensor<8x3xf32>
  %8 = nn.reshape %7 : tensor<8x3xf32> -> tensor<4x6xf32>
  return %2, %8 : tensor<2x6x2xf32>, tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func.func @repeated_and_dead_code
func.func @repeated_and_dead_code(%x: tensor<4xf32>) -> tensor<4xf32> {
  %dead = nn.exp %x : tensor<4xf32>
  %0 = nn.tanh %x : tensor<4xf32>
  %1 = nn.tanh %x : tensor<4xf32>
  // CHECK-NEXT: %[[T:.*]] = nn.tanh
  // CHECK-NEXT: nn.mul %[[T]], %[[T]]
  // CHECK-NEXT: return
  %2 = nn.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Only dropout of rate 0 goes, unless no dropout is wanted.
// CHECK-LABEL: func.func @dropout
// NO-DROPOUT-LABEL: func.func @dropout
func.func @dropout(%x: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  // CHECK-NEXT: nn.dropout %{{.*}} rate = 1.000000e-01 id = 0
  // CHECK-NEXT: nn.attention {{.*}} dropout_rate = 5.000000e-01
  // NO-DROPOUT-NEXT: nn.attention {{.*}} dropout_rate = 0.000000e+00
  // NO-DROPOUT-NEXT: return
  %0 = nn.dropout %x rate = 0.1 id = 0 : tensor<1x1x4x8xf32>
  %1 = nn.dropout %0 rate = 0.0 id = 1 : tensor<1x1x4x8xf32>
  %o, %stats = nn.attention %1, %1, %1 scale = 1.0 dropout_rate = 0.5 dropout_id = 2
    : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x2xf32>)
  return %o : tensor<1x1x4x8xf32>
}
