// RUN: pipewright-opt %s --convert-nn-to-linalg --kernel-fuse-rows-gpu --canonicalize --cse | FileCheck %s

// How rows, columns and elements are dealt to threads.

// CHECK:       memref.global "private" constant @constants_constant_0 : memref<3xf32> = dense<{{.*}}> {alignment = 16 : i64}

// Eight bf16 are as many bytes as four f32.
// CHECK-LABEL: gpu.func @bfloat16(
// CHECK:       vector.load %{{.*}} {alignment = 16 : i64} : memref<8192xbf16>, vector<8xbf16>
// CHECK:       vector.store %{{.*}} {alignment = 16 : i64} : memref<8192xbf16>, vector<8xbf16>
func.func private @bfloat16(%x: tensor<8x1024xbf16>) -> tensor<8x1024xbf16> {
  %0 = nn.relu %x : tensor<8x1024xbf16>
  return %0 : tensor<8x1024xbf16>
}

// What is left of a vector is taken by threads behind the others.
// CHECK-LABEL: gpu.func @tail(
// CHECK:       %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c250
// CHECK:       scf.if %[[INSIDE]] {
// CHECK:         vector.load
// CHECK:         vector.store
// CHECK:       %[[LEFT:.*]] = arith.cmpi ult, %{{.*}}, %c3
// CHECK:       scf.if %[[LEFT]] {
// CHECK:         memref.load
// CHECK:         memref.store
func.func private @tail(%x: tensor<1003xf32>) -> tensor<1003xf32> {
  %0 = nn.relu %x : tensor<1003xf32>
  return %0 : tensor<1003xf32>
}

// Rows that start anywhere: neighbouring threads take neighbouring columns.
// CHECK-LABEL: gpu.func @odd_rows(
// CHECK-NOT:   vector.
// CHECK:       gpu.return
func.func private @odd_rows(%x: tensor<64x1003xf32>, %b: tensor<1003xf32>) -> tensor<64x1003xf32> {
  %0 = nn.add %x, %b : (tensor<64x1003xf32>, tensor<1003xf32>) -> tensor<64x1003xf32>
  return %0 : tensor<64x1003xf32>
}

// A transpose writes neighbours and reads from far, in tiles of 32 x 32.
// CHECK-LABEL: gpu.func @transpose(
// CHECK:       arith.remui %thread_id_x, %c32
// CHECK-NOT:   vector.
// CHECK:       gpu.return
func.func private @transpose(%x: tensor<64x32xf32>) -> tensor<32x64xf32> {
  %0 = nn.transpose %x permutation = [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Heads are whole rows of 64.
// CHECK-LABEL: gpu.func @heads(
// CHECK:       vector.load
// CHECK:       vector.store
func.func private @heads(%x: tensor<2x8x192xf32>) -> tensor<2x3x8x64xf32> {
  %0 = nn.reshape %x : tensor<2x8x192xf32> -> tensor<2x8x3x64xf32>
  %1 = nn.transpose %0 permutation = [0, 2, 1, 3] : tensor<2x8x3x64xf32> -> tensor<2x3x8x64xf32>
  return %1 : tensor<2x3x8x64xf32>
}

// Four threads share a row of ten.
// CHECK-LABEL: gpu.func @short_rows(
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK-NOT:   gpu.shuffle
// CHECK:       gpu.return
func.func private @short_rows(%x: tensor<64x10xf32>) -> tensor<64xf32> {
  %0 = nn.reduce_sum %x axes = [1] : tensor<64x10xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// Sums of rows and over rows in one walk, in registers.
// CHECK-LABEL: gpu.func @layer_norm_backward$1(
// CHECK:       scf.for %{{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK:         gpu.shuffle
// CHECK:         vector.store
// CHECK:         scf.yield
// CHECK:       gpu.barrier
// CHECK-LABEL: gpu.func @layer_norm_backward$2(
// CHECK-NOT:   gpu.func @layer_norm_backward$3(
func.func private @layer_norm_backward(%dy: tensor<64x128xf32>, %x: tensor<64x128xf32>,
    %s: tensor<128xf32>, %m: tensor<64xf32>, %r: tensor<64xf32>)
    -> (tensor<64x128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %0:3 = nn.layer_norm_backward %dy, %x, %s, %m, %r
      : (tensor<64x128xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<64xf32>, tensor<64xf32>)
      -> (tensor<64x128xf32>, tensor<128xf32>, tensor<128xf32>)
  return %0#0, %0#1, %0#2 : tensor<64x128xf32>, tensor<128xf32>, tensor<128xf32>
}

// Half a warp has 64 columns, so a block of 128 threads has eight rows at once.
// CHECK-LABEL: gpu.func @few_columns$1(
// CHECK:       arith.remui %thread_id_x, %c16
// CHECK:       arith.divui %thread_id_x, %c16
// CHECK-NOT:   arith.minui
// CHECK:       scf.for {{.*}} to %c4096 step %c2048
// CHECK:         vector.load
// CHECK-LABEL: gpu.func @few_columns$2(
func.func private @few_columns(%x: tensor<4096x64xf32>) -> tensor<64xf32> {
  %0 = nn.reduce_sum %x axes = [0] : tensor<4096x64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// A constant that is no splat lies in memory of the module (see the top).
// CHECK-LABEL: gpu.func @constants(
// CHECK:       memref.get_global @constants_constant_0
func.func private @constants(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = nn.constant dense<[1.0, 2.5, -4.0]> : tensor<3xf32>
  %0 = nn.mul %x, %c : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
