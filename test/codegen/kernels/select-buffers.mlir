// RUN: pipewright-opt %s --split-input-file --kernel-select-buffers | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --kernel-select-buffers --pipewright-kernel-pipeline --canonicalize | FileCheck %s --check-prefix=LLVM

// Three parts of a concatenation: one load.
// CHECK-LABEL: func @parts
// CHECK: scf.for %[[PART:.*]] = %c0
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK-DAG: %[[FIRST:.*]] = arith.cmpi eq, %[[PART]], %c1
// CHECK-DAG: %[[SECOND:.*]] = arith.cmpi eq, %[[PART]], %c2
// CHECK: %[[AB:.*]] = arith.select %[[FIRST]], %arg1, %arg0 : memref<8xf32>
// CHECK: %[[ABC:.*]] = arith.select %[[SECOND]], %arg2, %[[AB]] : memref<8xf32>
// CHECK: %[[X:.*]] = memref.load %[[ABC]][%[[I]]]
// CHECK-NOT: memref.load
// CHECK: memref.store %[[X]]
// LLVM-LABEL: llvm.func @parts
// LLVM-NOT: llvm.struct
// LLVM: llvm.select %{{.*}} : i1, !llvm.ptr
// LLVM: llvm.select %{{.*}} : i1, !llvm.ptr
// LLVM: llvm.load
// LLVM-NOT: llvm.load
// LLVM: llvm.return
func.func @parts(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>, %y: memref<24xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  scf.for %part = %c0 to %c3 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %0 = memref.load %a[%i] : memref<8xf32>
      %1 = memref.load %b[%i] : memref<8xf32>
      %2 = memref.load %c[%i] : memref<8xf32>
      %isB = arith.cmpi eq, %part, %c1 : index
      %isC = arith.cmpi eq, %part, %c2 : index
      %3 = arith.select %isB, %1, %0 : f32
      %4 = arith.select %isC, %2, %3 : f32
      %at = arith.addi %start, %i : index
      memref.store %4, %y[%at] : memref<24xf32>
    }
  }
  return
}

// -----

// The part below is no load: the others are one.
// CHECK-LABEL: func @constant_below
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK: %[[EITHER:.*]] = arith.ori %arg3, %arg2
// CHECK: %[[BUFFER:.*]] = arith.select %arg3, %arg1, %arg0 : memref<8xf32>
// CHECK: %[[X:.*]] = memref.load %[[BUFFER]][%[[I]]]
// CHECK: arith.select %[[EITHER]], %[[X]], %cst : f32
func.func @constant_below(%a: memref<8xf32>, %b: memref<8xf32>, %isA: i1, %isB: i1, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %a[%i] : memref<8xf32>
    %1 = memref.load %b[%i] : memref<8xf32>
    %2 = arith.select %isA, %0, %zero : f32
    %3 = arith.select %isB, %1, %2 : f32
    memref.store %3, %y[%i] : memref<8xf32>
  }
  return
}

// -----

// Left alone: a choice for each element, by a mask or by its place; another
// place; a number that is needed beside; a store between load and choice.
// CHECK-LABEL: func @others
// CHECK-NOT: arith.select {{.*}} : memref
// CHECK: return
func.func @others(%a: memref<8xf32>, %b: memref<8xf32>, %mask: memref<8xi1>, %c: i1, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %a[%i] : memref<8xf32>
    %1 = memref.load %b[%i] : memref<8xf32>
    %m = memref.load %mask[%i] : memref<8xi1>
    %2 = arith.select %m, %0, %1 : f32
    %3 = memref.load %a[%i] : memref<8xf32>
    %4 = memref.load %b[%c0] : memref<8xf32>
    %5 = arith.select %c, %3, %4 : f32
    %6 = memref.load %a[%i] : memref<8xf32>
    %7 = memref.load %b[%i] : memref<8xf32>
    %8 = arith.select %c, %6, %7 : f32
    %early = arith.cmpi ult, %i, %c4 : index
    %9 = memref.load %a[%i] : memref<8xf32>
    %10 = memref.load %b[%i] : memref<8xf32>
    %11 = arith.select %early, %9, %10 : f32
    %late = memref.load %a[%i] : memref<8xf32>
    %later = memref.load %b[%i] : memref<8xf32>
    memref.store %11, %a[%i] : memref<8xf32>
    %16 = arith.select %c, %late, %later : f32
    memref.store %16, %b[%i] : memref<8xf32>
    %12 = arith.addf %2, %5 : f32
    %13 = arith.addf %8, %6 : f32
    %14 = arith.addf %12, %13 : f32
    %15 = arith.addf %14, %11 : f32
    memref.store %15, %y[%i] : memref<8xf32>
  }
  return
}
