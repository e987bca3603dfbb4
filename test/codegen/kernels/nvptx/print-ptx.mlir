// RUN: pipewright-opt %s -o /dev/null --pass-pipeline='builtin.module(pipewright-gpu-kernel-pipeline,kernel-print-ptx)' | FileCheck %s --check-prefixes=CHECK,OLD
// RUN: pipewright-opt %s -o /dev/null --pass-pipeline='builtin.module(pipewright-gpu-kernel-pipeline,kernel-print-ptx{architecture=90})' | FileCheck %s --check-prefixes=CHECK,NEW

// Nothing is contracted (.rn says so to the assembler too), called, or put into
// local memory.

// CHECK:      .version 8.0
// OLD:        .target sm_80
// NEW:        .target sm_90
// CHECK:      .extern .shared .align 16 .b8 {{[a-z_0-9]+}}[];

// CHECK-LABEL: .entry bias_gelu(
// CHECK-NEXT:  .param .u64 .ptr .align 16 bias_gelu_param_0
// CHECK:       .maxntid 256, 1, 1
// CHECK-NOT:   .local
// CHECK:       ld.global.nc.v4.b32
// CHECK:       ld.global.nc.v4.b32
// CHECK:       add.rn.f32
// CHECK-NOT:   call
// CHECK-COUNT-4: div.full.ftz.f32
// CHECK:       st.global.v4.b32
// CHECK-NOT:   st.global
// CHECK:       ret;
func.func private @bias_gelu(%x: tensor<64x1024xf32>, %b: tensor<1024xf32>) -> tensor<64x1024xf32> {
  %0 = nn.add %x, %b : (tensor<64x1024xf32>, tensor<1024xf32>) -> tensor<64x1024xf32>
  %1 = nn.gelu %0 approximate = none : tensor<64x1024xf32>
  return %1 : tensor<64x1024xf32>
}

// Six loads, two reductions by five shuffles, 24 exponentials, six stores.
// CHECK-LABEL: .entry softmax(
// CHECK-NOT:   .local
// CHECK-COUNT-6: ld.global.nc.v4.b32
// CHECK-NOT:   ld.global
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK-COUNT-24: ex2.approx.ftz.f32
// CHECK-NOT:   ex2
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK:       rcp.approx.ftz.f32
// CHECK-COUNT-6: st.global.v4.b32
// CHECK:       ret;
func.func private @softmax(%x: tensor<64x768xf32>) -> tensor<64x768xf32> {
  %0 = nn.softmax %x : tensor<64x768xf32>
  return %0 : tensor<64x768xf32>
}

// CHECK-LABEL: .entry relu_bf16(
// CHECK:       ld.global.nc.v4.b32
// CHECK:       st.global.v4.b32
// CHECK:       ret;
func.func private @relu_bf16(%x: tensor<64x1024xbf16>) -> tensor<64x1024xbf16> {
  %0 = nn.relu %x : tensor<64x1024xbf16>
  return %0 : tensor<64x1024xbf16>
}

// CHECK-LABEL: .entry bias_gradient$1(
// CHECK-NOT:   .local
// CHECK-NOT:   atom
// CHECK:       ld.global.nc.v4.b32
// CHECK:       st.shared.v4.b32
// CHECK:       bar.sync 0;
// CHECK:       st.global.v4.b32
// CHECK:       ret;
// CHECK-LABEL: .entry bias_gradient$2(
func.func private @bias_gradient(%x: tensor<64x512xf32>) -> tensor<512xf32> {
  %0 = nn.reduce_sum %x axes = [0] : tensor<64x512xf32> -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// Read once from memory, 16 bytes at a time; then from shared memory of the
// size that the launch says.
// CHECK-LABEL: .entry long_softmax(
// CHECK:       .maxntid 512, 1, 1
// CHECK-NEXT:  .minnctapersm 2
// CHECK-NOT:   .local
// CHECK:       ld.global.nc.v4.b32
// CHECK:       st.shared.v4.b32
// CHECK:       bar.sync 0;
// CHECK-NOT:   ld.global
// CHECK:       ld.shared.v4.b32
// CHECK:       ex2.approx.ftz.f32
// CHECK-NOT:   ld.global
// CHECK:       st.global.v4.b32
// CHECK-NOT:   ld.global
// CHECK:       ret;
func.func private @long_softmax(%x: tensor<2x40000xbf16>) -> tensor<2x40000xbf16> {
  %0 = nn.softmax %x : tensor<2x40000xbf16>
  return %0 : tensor<2x40000xbf16>
}
