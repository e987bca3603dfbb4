// RUN: pipewright-opt %s --kernel-approximate-math | FileCheck %s

// No calls, and no flag that would let the rounding trick be folded away.
// CHECK-LABEL: func.func @functions
func.func @functions(%x: f32, %v: vector<16xf32>) -> (f32, f32, f32, f32, f32, f32, vector<16xf32>) {
  // CHECK-NOT: math.exp
  // CHECK-NOT: math.log
  // CHECK-NOT: math.erf
  // CHECK-NOT: math.tanh
  // CHECK-NOT: math.log1p
  // CHECK-NOT: math.expm1
  // CHECK-NOT: reassoc
  // CHECK: math.fma %{{.*}} : vector<16xf32>
  %0 = math.exp %x fastmath<contract> : f32
  %1 = math.log %x : f32
  %2 = math.erf %x : f32
  %3 = math.tanh %x : f32
  %4 = math.exp %v : vector<16xf32>
  %5 = math.log1p %x : f32
  %6 = math.expm1 %x : f32
  return %0, %1, %2, %3, %5, %6, %4 : f32, f32, f32, f32, f32, f32, vector<16xf32>
}

// Other types keep their calls.
// CHECK-LABEL: func.func @double
func.func @double(%x: f64) -> f64 {
  // CHECK: math.exp
  %0 = math.exp %x : f64
  return %0 : f64
}
