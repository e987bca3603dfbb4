//===- Sgemm.h - oneDNN's product of f32 matrices ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_SGEMM_H
#define PIPEWRIGHT_RUNTIME_CPU_SGEMM_H

#include "runtime/calls/Matmul.h"
#include "runtime/core/Error.h"

#include <dnnl.hpp>

namespace pipewright::runtime {

/// A row-major matrix; `stride` counts elements from row to row.
struct Rows {
  const float *data;
  int64_t stride;
};

/// One product of the shape; y has rows of `stride` elements.
inline void sgemm(const MatmulShape &s, Rows a, Rows b, float *y,
                  int64_t stride) {
  const dnnl_status_t status = dnnl_sgemm(
      s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m, s.n, s.k,
      s.alpha, a.data, a.stride, b.data, b.stride, s.beta, y, stride);
  if (status != dnnl_success)
    fail("dnnl_sgemm(", s.m, " x ", s.n, " x ", s.k, ") failed with status ",
         static_cast<int>(status));
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_SGEMM_H
