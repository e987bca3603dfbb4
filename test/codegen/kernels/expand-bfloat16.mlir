// RUN: pipewright-opt %s --kernel-expand-bfloat16 | FileCheck %s

// Nothing of bf16 is left but bits.
// CHECK-LABEL: func @convert
// CHECK-NOT: arith.extf
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @convert(%x: bf16) -> bf16 {
  %wide = arith.extf %x : bf16 to f32
  %sum = arith.addf %wide, %wide : f32
  %short = arith.truncf %sum : f32 to bf16
  return %short : bf16
}

// CHECK-LABEL: func @choose
// CHECK-DAG: %[[A:.*]] = arith.bitcast %{{.*}} : bf16 to i16
// CHECK-DAG: %[[B:.*]] = arith.bitcast %{{.*}} : bf16 to i16
// CHECK: %[[BITS:.*]] = arith.select %{{.*}}, %[[A]], %[[B]] : i16
// CHECK: arith.bitcast %[[BITS]] : i16 to bf16
// CHECK: arith.select %{{.*}} : vector<8xi1>, vector<8xi16>
// CHECK: arith.select %{{.*}} : f32
func.func @choose(%c: i1, %a: bf16, %b: bf16, %cs: vector<8xi1>, %as: vector<8xbf16>, %bs: vector<8xbf16>, %x: f32, %y: f32) -> (bf16, vector<8xbf16>, f32) {
  %one = arith.select %c, %a, %b : bf16
  %eight = arith.select %cs, %as, %bs : vector<8xi1>, vector<8xbf16>
  %other = arith.select %c, %x, %y : f32
  return %one, %eight, %other : bf16, vector<8xbf16>, f32
}
