//===- kernels.h - Kernels of generated programs, by hand ------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_UNIT_PROGRAMS_CPU_KERNELS_H
#define PIPEWRIGHT_TEST_UNIT_PROGRAMS_CPU_KERNELS_H

#include <cstdint>

/// Plain SGD of a flat range of three weights, each at an aligned address.
inline void sgd_48(float *weights, float *gradients, const float *hyper) {
  for (int64_t i = 0; i < 48; ++i) {
    weights[i] -= hyper[0] * hyper[3] * gradients[i];
    gradients[i] = 0;
  }
}

#endif // PIPEWRIGHT_TEST_UNIT_PROGRAMS_CPU_KERNELS_H
