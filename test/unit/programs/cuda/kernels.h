//===- kernels.h - Kernels of generated programs, by hand ------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_UNIT_PROGRAMS_CUDA_KERNELS_H
#define PIPEWRIGHT_TEST_UNIT_PROGRAMS_CUDA_KERNELS_H

#include "runtime/DeviceRuntime.h"

#include <iterator>

/// Plain SGD of a flat range of three weights, each at an aligned address: one
/// thread for each number, of which there are 48.
inline const char sgdPtx[] = R"ptx(
.version 7.0
.target sm_80
.address_size 64

// w -= hyper[0] * hyper[3] * g, g = 0
.visible .entry sgd_48(.param .u64 pw, .param .u64 pg, .param .u64 phyper)
{
  .reg .b32 %r<2>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<10>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [pw];
  ld.param.u64 %rd2, [pg];
  ld.param.u64 %rd3, [phyper];
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  cvta.to.global.u64 %rd6, %rd3;
  mul.wide.u32 %rd7, %r1, 4;
  add.s64 %rd8, %rd4, %rd7;
  add.s64 %rd9, %rd5, %rd7;
  ld.global.f32 %f1, [%rd8];
  ld.global.f32 %f2, [%rd9];
  ld.global.f32 %f3, [%rd6];
  ld.global.f32 %f4, [%rd6+12];
  mul.rn.f32 %f5, %f3, %f4;
  mul.rn.f32 %f6, %f5, %f2;
  sub.rn.f32 %f7, %f1, %f6;
  st.global.f32 [%rd8], %f7;
  mov.f32 %f2, 0f00000000;
  st.global.f32 [%rd9], %f2;
  ret;
}
)ptx";

inline const pipewright::runtime::DeviceKernel sgd_48 = {
    "sgd_48", {{"sgd_48", 1, 48}}, 0};
inline const pipewright::runtime::DeviceProgram deviceProgram = {
    {{80, std::begin(sgdPtx), std::end(sgdPtx)}}, {&sgd_48}};

#endif // PIPEWRIGHT_TEST_UNIT_PROGRAMS_CUDA_KERNELS_H
