//===- ProductTime.h - How long a matrix product takes ----------*- C++ -*-===//
//
// The rate of a GPU is that of large products. Each is cut into tiles, one for
// each processor at a time, so that the last wave of tiles may leave most of
// them idle; where there are few tiles and much to sum, the sums are split, and
// parts added up behind (NVIDIA, "Matrix Multiplication Background User's
// Guide": tile and wave quantization, split-K).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_PRODUCTTIME_H
#define PIPEWRIGHT_PASSES_PLANNING_PRODUCTTIME_H

#include "passes/planning/MachineModel.h"

namespace pipewright {

/// y[batch, m, n] = a[batch, m, k] b[batch, k, n]
struct ProductSize {
  int64_t batch = 1, m = 0, n = 0, k = 0;

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) *
           static_cast<double>(n) * static_cast<double>(k);
  }
};

/// Seconds of the arithmetic, without what is read and written beside it but
/// for parts of sums; at the machine's rate, whatever the size, where it has
/// one processor.
double secondsOfProduct(const ProductSize &size, const MachineModel &machine);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_PRODUCTTIME_H
