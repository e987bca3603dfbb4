// RUN: pipewright-opt %s --pass-pipeline='builtin.module(pipewright-kernel-pipeline)' | FileCheck %s

// Bare pointers, inputs before results, and a byte for a truth value.
// CHECK-LABEL: llvm.func @positive
// CHECK-SAME: (%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias})
// CHECK: llvm.store %{{.*}} : i8, !llvm.ptr
// CHECK-NOT: builtin.unrealized_conversion_cast
func.func private @positive(%x: tensor<8x16xf32>) -> tensor<8x16xi1> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.compare %x, %zero predicate = gt : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xi1>
  return %0 : tensor<8x16xi1>
}
