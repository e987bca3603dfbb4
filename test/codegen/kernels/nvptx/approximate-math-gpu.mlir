// RUN: pipewright-opt %s --pass-pipeline='builtin.module(gpu.module(kernel-approximate-math-gpu))' | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: func @exp
  // CHECK:       llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%{{.*}}) : (f32) -> f32
  func.func @exp(%x: f32) -> f32 {
    %0 = math.exp %x : f32
    return %0 : f32
  }
  // CHECK-LABEL: func @exp_afn
  // CHECK-NEXT:  %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
  // CHECK-NEXT:  %[[T:.*]] = arith.mulf %{{.*}}, %[[LOG2E]]
  // CHECK-NEXT:  %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[T]])
  // CHECK-NEXT:  return %[[POWER]]
  func.func @exp_afn(%x: f32) -> f32 {
    %0 = math.exp %x fastmath<afn> : f32
    return %0 : f32
  }
  // CHECK-LABEL: func @div
  // CHECK-NEXT:  llvm.call_intrinsic "llvm.nvvm.div.full.ftz"(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
  func.func @div(%x: f32, %y: f32) -> f32 {
    %0 = arith.divf %x, %y : f32
    return %0 : f32
  }
  // CHECK-LABEL: func @reciprocal
  // CHECK-NEXT:  llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%{{.*}}) : (f32) -> f32
  func.func @reciprocal(%x: f32) -> f32 {
    %one = arith.constant 1.0 : f32
    %0 = arith.divf %one, %x : f32
    return %0 : f32
  }
  // CHECK-LABEL: func @sqrt
  // CHECK-NEXT:  llvm.call_intrinsic "llvm.nvvm.sqrt.approx.ftz.f"(%{{.*}}) : (f32) -> f32
  func.func @sqrt(%x: f32) -> f32 {
    %0 = math.sqrt %x : f32
    return %0 : f32
  }
  // The division inside of a formula is an instruction too.
  // CHECK-LABEL: func @erf
  // CHECK-NOT:   math.erf
  // CHECK-NOT:   arith.divf
  // CHECK:       div.full.ftz
  func.func @erf(%x: f32) -> f32 {
    %0 = math.erf %x : f32
    return %0 : f32
  }
  // CHECK-LABEL: func @pow
  // CHECK-NOT:   math.powf
  // CHECK-NOT:   math.log
  // CHECK:       ex2.approx.ftz
  // CHECK:       return
  func.func @pow(%x: f32, %y: f32) -> f32 {
    %0 = math.powf %x, %y : f32
    return %0 : f32
  }
}
