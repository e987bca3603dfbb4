//===- Matmul.cpp - Matrix products over row-major buffers ----------------===//
//
// dnnl_sgemm everywhere: oneDNN's matmul primitive on plain layouts falls to
// less than half of its speed where a row is a multiple of 4 KiB.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Matmul.h"
#include "runtime/core/Error.h"
#include "runtime/kernels/Parallel.h"

#include <dnnl.h>

using namespace pipewright::runtime;

static void multiply(const MatmulShape &s, const float *a, const float *b,
                     float *y) {
  const dnnl_status_t status =
      dnnl_sgemm(s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m, s.n,
                 s.k, s.alpha, a, s.transposeA ? s.m : s.k, b,
                 s.transposeB ? s.k : s.n, s.beta, y, s.n);
  if (status != dnnl_success)
    fail("dnnl_sgemm(", s.m, " x ", s.n, " x ", s.k, ") failed with status ",
         static_cast<int>(status));
}

void pipewright::runtime::matmul(Rank &rank, const MatmulShape &shape, Buffer a,
                                 Buffer b, Buffer y) {
  const float *aData = rank.data<float>(a);
  const float *bData = rank.data<float>(b);
  float *yData = rank.data<float>(y);
  MatmulShape s = shape;
  // One b for all rows: a batch of products is one taller product.
  if (s.broadcastB && !s.transposeA) {
    s.m *= s.batch;
    s.batch = 1;
  }
  if (s.batch == 1) {
    multiply(s, aData, bData, yData);
  } else {
    const int64_t bStride = s.broadcastB ? 0 : s.k * s.n;
    // Many small products: one thread each. A few large ones: each by all.
    const int64_t threads = s.batch >= rank.threads() ? rank.threads() : 1;
    parallelFor(threads, s.batch, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i)
        multiply(s, aData + i * s.m * s.k, bData + i * bStride,
                 yData + i * s.m * s.n);
    });
  }
  rank.poll();
}
