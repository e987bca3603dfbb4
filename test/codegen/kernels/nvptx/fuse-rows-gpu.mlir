// RUN: pipewright-opt %s --convert-nn-to-linalg --kernel-fuse-rows-gpu --canonicalize --cse | FileCheck %s

// Four neighbouring columns per thread, one access each; 1024 / 4 threads to a
// row, a row to a block.
// CHECK-LABEL: func.func @bias_relu(
// CHECK-SAME: %[[X:.*]]: memref<8192xf32>, %[[B:.*]]: memref<1024xf32>, %[[Y:.*]]: memref<8192xf32>)
// CHECK-DAG:   %[[GRID:.*]] = arith.constant 8 : index
// CHECK-DAG:   %[[BLOCK:.*]] = arith.constant 256 : index
// CHECK:       gpu.launch_func @kernels::@bias_relu blocks in (%[[GRID]], %{{.*}}, %{{.*}}) threads in (%[[BLOCK]],
// CHECK-SAME:  args(%[[X]] : memref<8192xf32>, %[[B]] : memref<1024xf32>, %[[Y]] : memref<8192xf32>)
func.func private @bias_relu(%x: tensor<8x1024xf32>, %b: tensor<1024xf32>) -> tensor<8x1024xf32> {
  %0 = nn.add %x, %b : (tensor<8x1024xf32>, tensor<1024xf32>) -> tensor<8x1024xf32>
  %1 = nn.relu %0 : tensor<8x1024xf32>
  return %1 : tensor<8x1024xf32>
}

// Results in place have no parameter; what is written is not readonly.
// CHECK-LABEL: func.func @accumulate(
// CHECK-SAME: %{{.*}}: memref<64xf32>, %{{.*}}: memref<64xf32>) {
func.func private @accumulate(%g: tensor<64xf32>, %x: tensor<64xf32>)
    -> (tensor<64xf32> {nn.in_place = 0 : i64}) {
  %0 = nn.add %g, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// Sums over rows that several blocks share pass through scratch memory.
// CHECK-LABEL: func.func @bias_gradient(
// CHECK:       %[[SCRATCH:.*]] = memref.alloc() : memref<8192xi8>
// CHECK:       gpu.launch_func @kernels::@bias_gradient$1 {{.*}}%[[SCRATCH]] : memref<8192xi8>)
// CHECK:       gpu.launch_func @kernels::@bias_gradient$2 {{.*}}%[[SCRATCH]] : memref<8192xi8>)
func.func private @bias_gradient(%x: tensor<64x512xf32>) -> tensor<512xf32> {
  %0 = nn.reduce_sum %x axes = [0] : tensor<64x512xf32> -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// CHECK-LABEL: func.func @softmax(
func.func private @softmax(%x: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %0 = nn.softmax %x : tensor<32x128xf32>
  return %0 : tensor<32x128xf32>
}

// CHECK-LABEL: func.func @long_softmax(
func.func private @long_softmax(%x: tensor<2x40001xf32>) -> tensor<2x40001xf32> {
  %0 = nn.softmax %x : tensor<2x40001xf32>
  return %0 : tensor<2x40001xf32>
}

// CHECK-LABEL: func.func @layer_norm_gradient(
func.func private @layer_norm_gradient(%dy: tensor<64x768xf32>, %x: tensor<64x768xf32>, %s: tensor<768xf32>, %m: tensor<64xf32>, %r: tensor<64xf32>)
    -> (tensor<64x768xf32>, tensor<768xf32> {nn.added}, tensor<768xf32>) {
  %0:3 = nn.layer_norm_backward %dy, %x, %s, %m, %r
      : (tensor<64x768xf32>, tensor<64x768xf32>, tensor<768xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64x768xf32>, tensor<768xf32>, tensor<768xf32>)
  return %0#0, %0#1, %0#2 : tensor<64x768xf32>, tensor<768xf32>, tensor<768xf32>
}

// CHECK-LABEL: func.func @kept_softmax(
// CHECK:       %[[BYTES:.*]] = arith.constant 80000 : i32
// CHECK:       gpu.launch_func @kernels::@kept_softmax {{.*}} dynamic_shared_memory_size %[[BYTES]]
func.func private @kept_softmax(%x: tensor<2x40000xbf16>) -> tensor<2x40000xbf16> {
  %0 = nn.softmax %x : tensor<2x40000xbf16>
  return %0 : tensor<2x40000xbf16>
}

// CHECK-LABEL: func.func @wide(
// CHECK:       gpu.launch_func @large_kernels::@wide
func.func private @wide(%g: tensor<3000000000xf32>, %x: tensor<3000000000xf32>)
    -> (tensor<3000000000xf32> {nn.in_place = 0 : i64}) {
  %0 = nn.add %g, %x : (tensor<3000000000xf32>, tensor<3000000000xf32>) -> tensor<3000000000xf32>
  return %0 : tensor<3000000000xf32>
}

// CHECK:       gpu.module @kernels attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}

// CHECK-LABEL: gpu.func @bias_relu(
// CHECK-SAME:  %[[X:[a-z0-9]+]]: memref<8192xf32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME:  %[[B:[a-z0-9]+]]: memref<1024xf32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME:  %[[Y:[a-z0-9]+]]: memref<8192xf32> {llvm.align = 16 : i64, llvm.noalias})
// CHECK-SAME:  kernel attributes {known_block_size = array<i32: 256, 1, 1>}
// CHECK:       vector.load %[[X]][%{{.*}}] {alignment = 16 : i64} : memref<8192xf32>, vector<4xf32>
// CHECK:       vector.load %[[B]][%{{.*}}] {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
// CHECK-NOT:   memref.load
// CHECK:       vector.store %{{.*}}, %[[Y]][%{{.*}}] {alignment = 16 : i64}
// CHECK-NEXT:  gpu.return

// CHECK-LABEL: gpu.func @accumulate(
// CHECK-SAME:  memref<64xf32> {llvm.align = 16 : i64, llvm.noalias}, %{{.*}}: memref<64xf32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly})

// Each of four groups adds every 16th row: four blocks of four. The groups of
// a block are added in shared memory, one after the other.
// CHECK-LABEL: gpu.func @bias_gradient$1(
// CHECK-SAME:  workgroup(%[[SHARED:.*]] : memref<512xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:       scf.for %{{.*}} = %{{.*}} to %c64 step %c16 iter_args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> (f32, f32, f32, f32) {
// CHECK:         vector.load
// CHECK-COUNT-4: arith.addf
// CHECK:         scf.yield
// CHECK:       vector.store %{{.*}}, %[[SHARED]]
// CHECK:       gpu.barrier
// CHECK:       scf.if
// CHECK-COUNT-3: vector.load %[[SHARED]]
// CHECK:         memref.view
// CHECK:         vector.store

// Then the four blocks of each column, as a tree.
// CHECK-LABEL: gpu.func @bias_gradient$2(
// CHECK:       scf.for %{{.*}} = %{{.*}} to %c4 step %c8

// One warp for each row: what the first pass loads is there in the last.
// CHECK-LABEL: gpu.func @softmax(
// CHECK:       vector.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:       math.exp
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT:   math.exp
// CHECK-NOT:   vector.load
// CHECK:       vector.store
// CHECK-NEXT:  gpu.return

// A block walks a row that is too long for registers, once for each pass.
// CHECK-LABEL: gpu.func @long_softmax(
// CHECK-SAME:  memref<16xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:  known_block_size = array<i32: 512, 1, 1>, nvvm.minctasm = 2 : i32
// CHECK:       scf.for
// CHECK:         arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:       gpu.barrier
// CHECK:       scf.for
// CHECK:         math.exp
// CHECK:       gpu.barrier
// CHECK:       scf.for
// CHECK:         math.exp
// CHECK:         memref.store

// Registers have no room for two sums of 24 columns beside a row: they stand in
// shared memory while a warp walks its rows, then the four warps join.
// CHECK-LABEL: gpu.func @layer_norm_gradient$1(
// CHECK-SAME:  workgroup(%[[S1:[a-z0-9]+]] : memref<3072xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %[[S2:[a-z0-9]+]] : memref<3072xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:       vector.store %{{.*}}, %[[S1]]
// CHECK:       vector.store %{{.*}}, %[[S2]]
// CHECK:       scf.for %{{[^(]*}} {
// CHECK:         vector.load %[[S1]]
// CHECK:         arith.addf
// CHECK:         vector.store %{{.*}}, %[[S1]]
// CHECK:       gpu.barrier
// CHECK:       scf.if

// A result that is added to what is there begins with it.
// CHECK-LABEL: gpu.func @layer_norm_gradient$2(
// CHECK-SAME:  , %[[SCALE:[a-z0-9]+]]: memref<768xf32> {llvm.align = 16 : i64, llvm.noalias},
// CHECK:       %[[BEFORE:.*]] = memref.load %[[SCALE]]
// CHECK-NEXT:  %[[AFTER:.*]] = arith.addf %[[BEFORE]],
// CHECK-NEXT:  memref.store %[[AFTER]], %[[SCALE]]

// The first pass over a row that fits leaves it in shared memory for the others.
// CHECK-LABEL: gpu.func @kept_softmax(
// CHECK-SAME:  %[[X:[a-z0-9]+]]: memref<80000xbf16>
// CHECK:       %[[ALL:.*]] = gpu.dynamic_shared_memory
// CHECK:       %[[ROW:.*]] = memref.view %[[ALL]]
// CHECK:       scf.for
// CHECK:         %[[CHUNK:.*]] = vector.load %[[X]]{{.*}} {alignment = 16 : i64} : memref<80000xbf16>, vector<8xbf16>
// CHECK:         vector.store %[[CHUNK]], %[[ROW]]
// CHECK:         arith.maximumf
// CHECK:       gpu.barrier
// CHECK:       scf.for
// CHECK-NOT:     vector.load %[[X]]
// CHECK:         vector.load %[[ROW]]
// CHECK:         math.exp
// CHECK:       gpu.barrier
// CHECK:       scf.for
// CHECK-NOT:     vector.load %[[X]]
// CHECK:         vector.load %[[ROW]]
// CHECK:         math.exp

// CHECK:       gpu.module @large_kernels attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>}
