// RUN: pipewright-opt %s --split-input-file --kernel-select-buffers | FileCheck %s
// RUN: pipewright-opt %s --split-input-file --kernel-select-buffers --pipewright-kernel-pipeline --canonicalize | FileCheck %s --check-prefix=LLVM

// Nine parts of a concatenation: one load.
// CHECK-LABEL: func @parts
// CHECK: scf.for %[[PART:.*]] = %c0
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK: %[[FIRST:.*]] = arith.select %{{.*}}, %arg1, %arg0 : memref<8xf32>
// CHECK-COUNT-6: arith.select {{.*}} : memref<8xf32>
// CHECK: %[[LAST:.*]] = arith.select %{{.*}}, %arg8, %{{.*}} : memref<8xf32>
// CHECK: %[[X:.*]] = memref.load %[[LAST]][%[[I]]]
// CHECK-NOT: arith.select
// CHECK-NOT: memref.load
// CHECK: memref.store %[[X]]
// LLVM-LABEL: llvm.func @parts
// LLVM-NOT: llvm.struct
// LLVM-COUNT-8: llvm.select %{{.*}} : i1, !llvm.ptr
// LLVM-NOT: llvm.struct
// LLVM: llvm.load
// LLVM-NOT: llvm.load
// LLVM: llvm.return
func.func @parts(%m0: memref<8xf32>, %m1: memref<8xf32>, %m2: memref<8xf32>, %m3: memref<8xf32>, %m4: memref<8xf32>, %m5: memref<8xf32>, %m6: memref<8xf32>, %m7: memref<8xf32>, %m8: memref<8xf32>, %y: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %part = %c0 to %c9 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x0 = memref.load %m0[%i] : memref<8xf32>
      %x1 = memref.load %m1[%i] : memref<8xf32>
      %is1 = arith.cmpi eq, %part, %c1 : index
      %s1 = arith.select %is1, %x1, %x0 : f32
      %x2 = memref.load %m2[%i] : memref<8xf32>
      %is2 = arith.cmpi eq, %part, %c2 : index
      %s2 = arith.select %is2, %x2, %s1 : f32
      %x3 = memref.load %m3[%i] : memref<8xf32>
      %is3 = arith.cmpi eq, %part, %c3 : index
      %s3 = arith.select %is3, %x3, %s2 : f32
      %x4 = memref.load %m4[%i] : memref<8xf32>
      %is4 = arith.cmpi eq, %part, %c4 : index
      %s4 = arith.select %is4, %x4, %s3 : f32
      %x5 = memref.load %m5[%i] : memref<8xf32>
      %is5 = arith.cmpi eq, %part, %c5 : index
      %s5 = arith.select %is5, %x5, %s4 : f32
      %x6 = memref.load %m6[%i] : memref<8xf32>
      %is6 = arith.cmpi eq, %part, %c6 : index
      %s6 = arith.select %is6, %x6, %s5 : f32
      %x7 = memref.load %m7[%i] : memref<8xf32>
      %is7 = arith.cmpi eq, %part, %c7 : index
      %s7 = arith.select %is7, %x7, %s6 : f32
      %x8 = memref.load %m8[%i] : memref<8xf32>
      %is8 = arith.cmpi eq, %part, %c8 : index
      %s8 = arith.select %is8, %x8, %s7 : f32
      %at = arith.addi %start, %i : index
      memref.store %s8, %y[%at] : memref<72xf32>
    }
  }
  return
}

// -----

// The last is no load: the others are one.
// CHECK-LABEL: func @constant_below
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK: %[[EITHER:.*]] = arith.ori %{{.*}}, %{{.*}} : i1
// CHECK: %[[LAST:.*]] = arith.select %{{.*}}, %arg8, %{{.*}} : memref<8xf32>
// CHECK-NEXT: %[[ANY:.*]] = arith.ori %{{.*}}, %{{.*}} : i1
// CHECK-NEXT: %[[X:.*]] = memref.load %[[LAST]][%[[I]]]
// CHECK-NEXT: arith.select %[[ANY]], %[[X]], %cst : f32
// CHECK-NOT: memref.load
// CHECK: return
func.func @constant_below(%m0: memref<8xf32>, %m1: memref<8xf32>, %m2: memref<8xf32>, %m3: memref<8xf32>, %m4: memref<8xf32>, %m5: memref<8xf32>, %m6: memref<8xf32>, %m7: memref<8xf32>, %m8: memref<8xf32>, %y: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  scf.for %part = %c0 to %c9 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x0 = memref.load %m0[%i] : memref<8xf32>
      %is0 = arith.cmpi eq, %part, %c0 : index
      %s0 = arith.select %is0, %x0, %zero : f32
      %x1 = memref.load %m1[%i] : memref<8xf32>
      %is1 = arith.cmpi eq, %part, %c1 : index
      %s1 = arith.select %is1, %x1, %s0 : f32
      %x2 = memref.load %m2[%i] : memref<8xf32>
      %is2 = arith.cmpi eq, %part, %c2 : index
      %s2 = arith.select %is2, %x2, %s1 : f32
      %x3 = memref.load %m3[%i] : memref<8xf32>
      %is3 = arith.cmpi eq, %part, %c3 : index
      %s3 = arith.select %is3, %x3, %s2 : f32
      %x4 = memref.load %m4[%i] : memref<8xf32>
      %is4 = arith.cmpi eq, %part, %c4 : index
      %s4 = arith.select %is4, %x4, %s3 : f32
      %x5 = memref.load %m5[%i] : memref<8xf32>
      %is5 = arith.cmpi eq, %part, %c5 : index
      %s5 = arith.select %is5, %x5, %s4 : f32
      %x6 = memref.load %m6[%i] : memref<8xf32>
      %is6 = arith.cmpi eq, %part, %c6 : index
      %s6 = arith.select %is6, %x6, %s5 : f32
      %x7 = memref.load %m7[%i] : memref<8xf32>
      %is7 = arith.cmpi eq, %part, %c7 : index
      %s7 = arith.select %is7, %x7, %s6 : f32
      %x8 = memref.load %m8[%i] : memref<8xf32>
      %is8 = arith.cmpi eq, %part, %c8 : index
      %s8 = arith.select %is8, %x8, %s7 : f32
      %at = arith.addi %start, %i : index
      memref.store %s8, %y[%at] : memref<72xf32>
    }
  }
  return
}

// -----

// Few parts are left to LLVM.
// CHECK-LABEL: func @few
// CHECK-NOT: arith.select {{.*}} : memref
// CHECK: return
func.func @few(%m0: memref<8xf32>, %m1: memref<8xf32>, %m2: memref<8xf32>, %m3: memref<8xf32>, %m4: memref<8xf32>, %m5: memref<8xf32>, %m6: memref<8xf32>, %m7: memref<8xf32>, %y: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  scf.for %part = %c0 to %c8 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x0 = memref.load %m0[%i] : memref<8xf32>
      %x1 = memref.load %m1[%i] : memref<8xf32>
      %is1 = arith.cmpi eq, %part, %c1 : index
      %s1 = arith.select %is1, %x1, %x0 : f32
      %x2 = memref.load %m2[%i] : memref<8xf32>
      %is2 = arith.cmpi eq, %part, %c2 : index
      %s2 = arith.select %is2, %x2, %s1 : f32
      %x3 = memref.load %m3[%i] : memref<8xf32>
      %is3 = arith.cmpi eq, %part, %c3 : index
      %s3 = arith.select %is3, %x3, %s2 : f32
      %x4 = memref.load %m4[%i] : memref<8xf32>
      %is4 = arith.cmpi eq, %part, %c4 : index
      %s4 = arith.select %is4, %x4, %s3 : f32
      %x5 = memref.load %m5[%i] : memref<8xf32>
      %is5 = arith.cmpi eq, %part, %c5 : index
      %s5 = arith.select %is5, %x5, %s4 : f32
      %x6 = memref.load %m6[%i] : memref<8xf32>
      %is6 = arith.cmpi eq, %part, %c6 : index
      %s6 = arith.select %is6, %x6, %s5 : f32
      %x7 = memref.load %m7[%i] : memref<8xf32>
      %is7 = arith.cmpi eq, %part, %c7 : index
      %s7 = arith.select %is7, %x7, %s6 : f32
      %at = arith.addi %start, %i : index
      memref.store %s7, %y[%at] : memref<72xf32>
    }
  }
  return
}

// -----

// A choice for each element is left alone.
// CHECK-LABEL: func @elements
// CHECK-NOT: arith.select {{.*}} : memref
// CHECK: return
func.func @elements(%m0: memref<8xf32>, %m1: memref<8xf32>, %m2: memref<8xf32>, %m3: memref<8xf32>, %m4: memref<8xf32>, %m5: memref<8xf32>, %m6: memref<8xf32>, %m7: memref<8xf32>, %m8: memref<8xf32>, %y: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %part = %c0 to %c9 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x0 = memref.load %m0[%i] : memref<8xf32>
      %x1 = memref.load %m1[%i] : memref<8xf32>
      %is1 = arith.cmpi eq, %i, %c1 : index
      %s1 = arith.select %is1, %x1, %x0 : f32
      %x2 = memref.load %m2[%i] : memref<8xf32>
      %is2 = arith.cmpi eq, %i, %c2 : index
      %s2 = arith.select %is2, %x2, %s1 : f32
      %x3 = memref.load %m3[%i] : memref<8xf32>
      %is3 = arith.cmpi eq, %i, %c3 : index
      %s3 = arith.select %is3, %x3, %s2 : f32
      %x4 = memref.load %m4[%i] : memref<8xf32>
      %is4 = arith.cmpi eq, %i, %c4 : index
      %s4 = arith.select %is4, %x4, %s3 : f32
      %x5 = memref.load %m5[%i] : memref<8xf32>
      %is5 = arith.cmpi eq, %i, %c5 : index
      %s5 = arith.select %is5, %x5, %s4 : f32
      %x6 = memref.load %m6[%i] : memref<8xf32>
      %is6 = arith.cmpi eq, %i, %c6 : index
      %s6 = arith.select %is6, %x6, %s5 : f32
      %x7 = memref.load %m7[%i] : memref<8xf32>
      %is7 = arith.cmpi eq, %i, %c7 : index
      %s7 = arith.select %is7, %x7, %s6 : f32
      %x8 = memref.load %m8[%i] : memref<8xf32>
      %is8 = arith.cmpi eq, %i, %c8 : index
      %s8 = arith.select %is8, %x8, %s7 : f32
      %at = arith.addi %start, %i : index
      memref.store %s8, %y[%at] : memref<72xf32>
    }
  }
  return
}

// -----

// So are numbers of different places,
// CHECK-LABEL: func @another_place
// CHECK-NOT: arith.select {{.*}} : memref
// CHECK: return
func.func @another_place(%m0: memref<8xf32>, %m1: memref<8xf32>, %m2: memref<8xf32>, %m3: memref<8xf32>, %m4: memref<8xf32>, %m5: memref<8xf32>, %m6: memref<8xf32>, %m7: memref<8xf32>, %m8: memref<8xf32>, %y: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %part = %c0 to %c9 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x0 = memref.load %m0[%i] : memref<8xf32>
      %x1 = memref.load %m1[%i] : memref<8xf32>
      %is1 = arith.cmpi eq, %part, %c1 : index
      %s1 = arith.select %is1, %x1, %x0 : f32
      %x2 = memref.load %m2[%i] : memref<8xf32>
      %is2 = arith.cmpi eq, %part, %c2 : index
      %s2 = arith.select %is2, %x2, %s1 : f32
      %x3 = memref.load %m3[%i] : memref<8xf32>
      %is3 = arith.cmpi eq, %part, %c3 : index
      %s3 = arith.select %is3, %x3, %s2 : f32
      %x4 = memref.load %m4[%i] : memref<8xf32>
      %is4 = arith.cmpi eq, %part, %c4 : index
      %s4 = arith.select %is4, %x4, %s3 : f32
      %x5 = memref.load %m5[%c0] : memref<8xf32>
      %is5 = arith.cmpi eq, %part, %c5 : index
      %s5 = arith.select %is5, %x5, %s4 : f32
      %x6 = memref.load %m6[%i] : memref<8xf32>
      %is6 = arith.cmpi eq, %part, %c6 : index
      %s6 = arith.select %is6, %x6, %s5 : f32
      %x7 = memref.load %m7[%i] : memref<8xf32>
      %is7 = arith.cmpi eq, %part, %c7 : index
      %s7 = arith.select %is7, %x7, %s6 : f32
      %x8 = memref.load %m8[%i] : memref<8xf32>
      %is8 = arith.cmpi eq, %part, %c8 : index
      %s8 = arith.select %is8, %x8, %s7 : f32
      %at = arith.addi %start, %i : index
      memref.store %s8, %y[%at] : memref<72xf32>
    }
  }
  return
}

// -----

// numbers that may be written before one is chosen,
// CHECK-LABEL: func @written_between
// CHECK-NOT: arith.select {{.*}} : memref
// CHECK: return
func.func @written_between(%m0: memref<8xf32>, %m1: memref<8xf32>, %m2: memref<8xf32>, %m3: memref<8xf32>, %m4: memref<8xf32>, %m5: memref<8xf32>, %m6: memref<8xf32>, %m7: memref<8xf32>, %m8: memref<8xf32>, %y: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %part = %c0 to %c9 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x0 = memref.load %m0[%i] : memref<8xf32>
      %x1 = memref.load %m1[%i] : memref<8xf32>
      %is1 = arith.cmpi eq, %part, %c1 : index
      %s1 = arith.select %is1, %x1, %x0 : f32
      %x2 = memref.load %m2[%i] : memref<8xf32>
      %is2 = arith.cmpi eq, %part, %c2 : index
      %s2 = arith.select %is2, %x2, %s1 : f32
      %x3 = memref.load %m3[%i] : memref<8xf32>
      %is3 = arith.cmpi eq, %part, %c3 : index
      %s3 = arith.select %is3, %x3, %s2 : f32
      %x4 = memref.load %m4[%i] : memref<8xf32>
      memref.store %x4, %m4[%part] : memref<8xf32>
      %is4 = arith.cmpi eq, %part, %c4 : index
      %s4 = arith.select %is4, %x4, %s3 : f32
      %x5 = memref.load %m5[%i] : memref<8xf32>
      %is5 = arith.cmpi eq, %part, %c5 : index
      %s5 = arith.select %is5, %x5, %s4 : f32
      %x6 = memref.load %m6[%i] : memref<8xf32>
      %is6 = arith.cmpi eq, %part, %c6 : index
      %s6 = arith.select %is6, %x6, %s5 : f32
      %x7 = memref.load %m7[%i] : memref<8xf32>
      %is7 = arith.cmpi eq, %part, %c7 : index
      %s7 = arith.select %is7, %x7, %s6 : f32
      %x8 = memref.load %m8[%i] : memref<8xf32>
      %is8 = arith.cmpi eq, %part, %c8 : index
      %s8 = arith.select %is8, %x8, %s7 : f32
      %at = arith.addi %start, %i : index
      memref.store %s8, %y[%at] : memref<72xf32>
    }
  }
  return
}

// -----

// and numbers that are needed whatever is chosen.
// CHECK-LABEL: func @used_beside
// CHECK-NOT: arith.select {{.*}} : memref
// CHECK: return
func.func @used_beside(%m0: memref<8xf32>, %m1: memref<8xf32>, %m2: memref<8xf32>, %m3: memref<8xf32>, %m4: memref<8xf32>, %m5: memref<8xf32>, %m6: memref<8xf32>, %m7: memref<8xf32>, %m8: memref<8xf32>, %y: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %part = %c0 to %c9 step %c1 {
    %start = arith.muli %part, %c8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x0 = memref.load %m0[%i] : memref<8xf32>
      %x1 = memref.load %m1[%i] : memref<8xf32>
      %is1 = arith.cmpi eq, %part, %c1 : index
      %s1 = arith.select %is1, %x1, %x0 : f32
      %x2 = memref.load %m2[%i] : memref<8xf32>
      %is2 = arith.cmpi eq, %part, %c2 : index
      %s2 = arith.select %is2, %x2, %s1 : f32
      %x3 = memref.load %m3[%i] : memref<8xf32>
      %is3 = arith.cmpi eq, %part, %c3 : index
      %s3 = arith.select %is3, %x3, %s2 : f32
      %x4 = memref.load %m4[%i] : memref<8xf32>
      %is4 = arith.cmpi eq, %part, %c4 : index
      %s4 = arith.select %is4, %x4, %s3 : f32
      %x5 = memref.load %m5[%i] : memref<8xf32>
      %is5 = arith.cmpi eq, %part, %c5 : index
      %s5 = arith.select %is5, %x5, %s4 : f32
      %x6 = memref.load %m6[%i] : memref<8xf32>
      %is6 = arith.cmpi eq, %part, %c6 : index
      %s6 = arith.select %is6, %x6, %s5 : f32
      %x7 = memref.load %m7[%i] : memref<8xf32>
      %is7 = arith.cmpi eq, %part, %c7 : index
      %s7 = arith.select %is7, %x7, %s6 : f32
      %x8 = memref.load %m8[%i] : memref<8xf32>
      %is8 = arith.cmpi eq, %part, %c8 : index
      %s8 = arith.select %is8, %x8, %s7 : f32
      %at = arith.addi %start, %i : index
      memref.store %s8, %y[%at] : memref<72xf32>
      memref.store %x4, %y[%i] : memref<72xf32>
    }
  }
  return
}
