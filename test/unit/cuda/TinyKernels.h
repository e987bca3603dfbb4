//===- TinyKernels.h - Kernels of a few lines of PTX -----------*- C++ -*-===//
//
// What tests of the device core launch: one warp, a few numbers. Compiled
// kernels and those of the runtime have tests of their own.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_CUDA_TINYKERNELS_H
#define PIPEWRIGHT_TEST_UNIT_CUDA_TINYKERNELS_H

#include "runtime/cuda/DeviceKernel.h"

#include <cstdint>
#include <iterator>

namespace pipewright::runtime::tiny {

/// Of every buffer but scalars.
inline constexpr int64_t elements = 8;

inline const char ptx[] = R"ptx(
.version 7.0
.target sm_80
.address_size 64

// y[i] = x[i] * w
.visible .entry scale(.param .u64 px, .param .u64 pw, .param .u64 py)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<10>;
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 8;
  @%p1 bra $done;
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [pw];
  ld.param.u64 %rd3, [py];
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  cvta.to.global.u64 %rd6, %rd3;
  mul.wide.u32 %rd7, %r1, 4;
  add.s64 %rd8, %rd4, %rd7;
  add.s64 %rd9, %rd6, %rd7;
  ld.global.f32 %f1, [%rd8];
  ld.global.f32 %f2, [%rd5];
  mul.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd9], %f3;
$done:
  ret;
}

// sum += a . b, by one thread
.visible .entry dot(.param .u64 pa, .param .u64 pb, .param .u64 psum)
{
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<7>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $done;
  ld.param.u64 %rd1, [pa];
  ld.param.u64 %rd2, [pb];
  ld.param.u64 %rd3, [psum];
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  cvta.to.global.u64 %rd6, %rd3;
  ld.global.f32 %f1, [%rd6];
  mov.u32 %r2, 0;
$next:
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f1, %f2, %f3, %f1;
  add.s64 %rd4, %rd4, 4;
  add.s64 %rd5, %rd5, 4;
  add.s32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 8;
  @%p2 bra $next;
  st.global.f32 [%rd6], %f1;
$done:
  ret;
}

// w -= hyper[0] * hyper[3] * g, g = 0, by one thread
.visible .entry sgd(.param .u64 pw, .param .u64 pg, .param .u64 phyper)
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<7>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $done;
  ld.param.u64 %rd1, [pw];
  ld.param.u64 %rd2, [pg];
  ld.param.u64 %rd3, [phyper];
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  cvta.to.global.u64 %rd6, %rd3;
  ld.global.f32 %f1, [%rd4];
  ld.global.f32 %f2, [%rd5];
  ld.global.f32 %f3, [%rd6];
  ld.global.f32 %f4, [%rd6+12];
  mul.rn.f32 %f5, %f3, %f4;
  mul.rn.f32 %f6, %f5, %f2;
  sub.rn.f32 %f7, %f1, %f6;
  st.global.f32 [%rd4], %f7;
  mov.f32 %f2, 0f00000000;
  st.global.f32 [%rd5], %f2;
$done:
  ret;
}
)ptx";

// With more shared memory than a block has unasked.
inline const DeviceKernel scale = {"scale", {{"scale", 1, 32, 60000}}, 0};
inline const DeviceKernel dot = {"dot", {{"dot", 1, 32}}, 0};
inline const DeviceKernel sgd = {"sgd", {{"sgd", 1, 32}}, 0};
/// Its PTX is not there.
inline const DeviceKernel missing = {"missing", {{"missing_entry", 1, 32}}, 0};

inline const DeviceProgram device = {{{80, std::begin(ptx), std::end(ptx)}},
                                     {&scale, &dot, &sgd}};

} // namespace pipewright::runtime::tiny

#endif // PIPEWRIGHT_TEST_UNIT_CUDA_TINYKERNELS_H
