// RUN: pipewright-opt %s --split-input-file --convert-nn-to-linalg --kernel-fuse-rows --canonicalize --cse | FileCheck %s

// Rows are merged as far as the bias permits.
// CHECK-LABEL: func.func @bias_relu
// CHECK-SAME: (%[[X:.*]]: memref<1024xf32> {llvm.noalias}, %[[B:.*]]: memref<16xf32> {llvm.noalias}, %[[Y:.*]]: memref<1024xf32> {llvm.noalias})
func.func @bias_relu(%x: tensor<4x16x16xf32>, %b: tensor<16xf32>) -> tensor<4x16x16xf32> {
  // CHECK: scf.for %[[R:.*]] = %c0 to %c64
  // CHECK: %[[START:.*]] = arith.muli %[[R]], %c16
  // CHECK: scf.for %[[C:.*]] = %c0 to %c16
  // CHECK: %[[AT:.*]] = arith.addi %[[START]], %[[C]]
  // CHECK: memref.load %[[X]][%[[AT]]]
  // CHECK: memref.load %[[B]][%[[C]]]
  // CHECK: memref.store %{{.*}}, %[[Y]][%[[AT]]]
  %0 = nn.add %x, %b : (tensor<4x16x16xf32>, tensor<16xf32>) -> tensor<4x16x16xf32>
  %1 = nn.relu %0 : tensor<4x16x16xf32>
  return %1 : tensor<4x16x16xf32>
}

// -----

// Without a broadcast there is one flat loop.
// CHECK-LABEL: func.func @flat
func.func @flat(%x: tensor<4x16x16xf32>) -> tensor<4x16x16xf32> {
  // CHECK: scf.for %{{.*}} = %c0 to %c1024
  // CHECK-NOT: scf.for
  %0 = nn.relu %x : tensor<4x16x16xf32>
  return %0 : tensor<4x16x16xf32>
}

// -----

// Three passes over a row; the powers of one row are kept on the stack. A
// reduction adds column j to lane j % 64 (of a row of 256), whatever the loop does besides, and
// adds the lanes as a tree.
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<8x256xf32>) -> tensor<8x256xf32> {
  // CHECK-DAG: %[[ROW:.*]] = memref.alloca() : memref<256xf32>
  // CHECK-DAG: %[[SUMS:.*]] = memref.alloca() : memref<64xf32>
  // CHECK: scf.for %{{.*}} = %c0 to %c8 step
  // CHECK: scf.for %{{.*}} = %c0 to %c4 step
  // CHECK: arith.maximumf
  // CHECK: arith.subf
  // CHECK: math.exp
  // CHECK: arith.addf
  // CHECK: memref.store %{{.*}} : memref<64xf32>
  // CHECK: scf.for %{{.*}} = %c0 to %c32 step
  // CHECK: arith.divf
  // CHECK: scf.for %{{.*}} = %c0 to %c256 step
  // CHECK: memref.load %[[ROW]]
  // CHECK-NOT: math.exp
  %0 = nn.softmax %x : tensor<8x256xf32>
  return %0 : tensor<8x256xf32>
}

// -----

// Reductions over rows are accumulated in the pass that reads the rows anyway.
// CHECK-LABEL: func.func @layer_norm_backward
// CHECK-SAME: %[[DS:[a-z0-9]*]]: memref<40xf32> {llvm.noalias}, %[[DB:[a-z0-9]*]]: memref<40xf32> {llvm.noalias}) {
func.func @layer_norm_backward(%dy: tensor<8x40xf32>, %x: tensor<8x40xf32>, %s: tensor<40xf32>, %mean: tensor<8xf32>, %rstd: tensor<8xf32>)
    -> (tensor<8x40xf32>, tensor<40xf32>, tensor<40xf32>) {
  // CHECK: scf.for %{{.*}} = %c0 to %c40
  // CHECK-NEXT: memref.store %cst{{.*}}, %[[DS]]
  // CHECK: scf.for %{{.*}} = %c0 to %c8 step
  // CHECK: memref.store %{{.*}}, %[[DS]][%[[C:.*]]]
  // CHECK-NEXT: memref.store %{{.*}}, %[[DB]][%[[C]]]
  %dx, %ds, %db = nn.layer_norm_backward %dy, %x, %s, %mean, %rstd
    : (tensor<8x40xf32>, tensor<8x40xf32>, tensor<40xf32>, tensor<8xf32>, tensor<8xf32>)
    -> (tensor<8x40xf32>, tensor<40xf32>, tensor<40xf32>)
  return %dx, %ds, %db : tensor<8x40xf32>, tensor<40xf32>, tensor<40xf32>
}

// -----

// Splitting heads copies whole rows: positions are divided once per row.
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<2x8x12xf32>) -> tensor<2x3x8x4xf32> {
  // CHECK: scf.for %{{.*}} = %c0 to %c48
  // CHECK: arith.remui
  // CHECK: scf.for %{{.*}} = %c0 to %c4
  // CHECK-NOT: arith.remui
  // CHECK-NOT: arith.divui
  // CHECK: return
  %0 = nn.reshape %x : tensor<2x8x12xf32> -> tensor<2x8x3x4xf32>
  %1 = nn.transpose %0 permutation = [0, 2, 1, 3] : tensor<2x8x3x4xf32> -> tensor<2x3x8x4xf32>
  return %1 : tensor<2x3x8x4xf32>
}

// -----

// A result that overwrites an argument has no argument of its own.
// CHECK-LABEL: func.func @update
// CHECK-SAME: (%[[W:.*]]: memref<8xf32> {llvm.noalias}, %[[G:.*]]: memref<8xf32> {llvm.noalias})
func.func @update(%w: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32> {nn.in_place = 0 : i64}) {
  // CHECK: memref.store %{{.*}}, %[[W]]
  %0 = nn.sub %w, %g : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The rows of the transposed halves are summed in one nest and read again in another, whose
// columns they do not fit: the sums are stored.
// CHECK-LABEL: func.func @rotated
// CHECK: %[[SUMS:.*]] = memref.{{.*}} memref<24xf32>
// CHECK: memref.store %{{.*}}, %[[SUMS]]
// CHECK: memref.load %[[SUMS]]
func.func @rotated(%x: tensor<2x4x3x8xf32>, %y: tensor<2x3x4x8xf32>, %z: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %low = nn.slice %x starts = [0, 0, 0, 0] sizes = [2, 4, 3, 4] steps = [1, 1, 1, 1] : tensor<2x4x3x8xf32> -> tensor<2x4x3x4xf32>
  %high = nn.slice %x starts = [0, 0, 0, 4] sizes = [2, 4, 3, 4] steps = [1, 1, 1, 1] : tensor<2x4x3x8xf32> -> tensor<2x4x3x4xf32>
  %turned = nn.neg %low : tensor<2x4x3x4xf32>
  %both = nn.concat %high, %turned axis = 3 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x8xf32>
  %t = nn.transpose %both permutation = [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %products = nn.mul %t, %y : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  %sums = nn.reduce_sum %products axes = [3] keep_dims : tensor<2x3x4x8xf32> -> tensor<2x3x4x1xf32>
  %wide = nn.broadcast_to %sums : tensor<2x3x4x1xf32> -> tensor<2x3x4x8xf32>
  %0 = nn.mul %wide, %z : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  %1 = nn.add %t, %0 : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %1 : tensor<2x3x4x8xf32>
}

// -----

// The last part has one column, which is found where the columns begin: what computes it does not
// depend on them.
// CHECK-LABEL: func.func @one_column_backwards
// CHECK: scf.for
// CHECK: memref.load
func.func @one_column_backwards(%x: tensor<16x5xf32>) -> tensor<f32> {
  %low = nn.slice %x starts = [0, 2] sizes = [16, 2] steps = [1, -1] : tensor<16x5xf32> -> tensor<16x2xf32>
  %high = nn.slice %x starts = [0, 3] sizes = [16, 1] steps = [1, -1] : tensor<16x5xf32> -> tensor<16x1xf32>
  %all = nn.concat %low, %x, %high axis = 1 : (tensor<16x2xf32>, tensor<16x5xf32>, tensor<16x1xf32>) -> tensor<16x8xf32>
  %squares = nn.mul %all, %all : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %0 = nn.reduce_sum %squares axes = [0, 1] : tensor<16x8xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A transpose: strips of 8 columns, each 64 rows long.
// CHECK-LABEL: func.func @transpose(
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %c128 step %c64 {
// CHECK:   scf.for %[[C:.*]] = %{{.*}} to %c96 step %c8 {
// CHECK:     scf.for %{{.*}} = %[[R]] to %{{.*}} step
// CHECK:       scf.for %{{.*}} = %[[C]] to %{{.*}} step
func.func @transpose(%x: tensor<96x128xf32>) -> tensor<128x96xf32> {
  %0 = nn.transpose %x permutation = [1, 0] : tensor<96x128xf32> -> tensor<128x96xf32>
  return %0 : tensor<128x96xf32>
}
