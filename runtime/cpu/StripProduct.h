//===- StripProduct.h - Products of matrices in the cache -------*- C++ -*-===//
//
// What attention multiplies lies in the cache. Eight rows at a time are as fast
// as dnnl_sgemm's 64, and compute less of what a causal mask hides. The two
// products of a head's attention, one thread of an Intel Xeon with AVX-512,
// microseconds of dnnl_sgemm in blocks / of strips of 8 and a transposition:
//   rows x columns x depth           causal
//   65 x 65 x 64      9.0 / 7.8
//   128 x 128 x 32                   11.9 / 8.3
//   128 x 128 x 64    30.2 / 29.2    23.2 / 17.5
//   197 x 197 x 64    72.8 / 63.7
//   512 x 512 x 128   845 / 802      472 / 422
//   1024 x 1024 x 128 3253 / 3364    1805 / 1810
//   2048 x 2048 x 128 13994 / 22608
// Where keys do not stay in the second-level cache, or without AVX-512, which
// has the registers for it, strips have 64 rows and go to dnnl_sgemm.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_STRIPPRODUCT_H
#define PIPEWRIGHT_RUNTIME_CPU_STRIPPRODUCT_H

#include "runtime/cpu/VectorMath.h"

namespace pipewright::runtime {

/// Rows of the result that are computed at a time, 8 or 64, where right
/// operands have so many elements.
int64_t stripRowsFor(int64_t elements);

/// The left operand: row i has its k-th number at i * row + k * sum, of which
/// one is 1.
struct StripRows {
  const float *data;
  int64_t row, sum;
};
/// The right operand; `stride` counts elements from row to row.
struct StripColumns {
  const float *data;
  int64_t stride;
};

/// y = alpha * a * b, or y += that, where y has at most 64 rows.
struct StripProduct {
  int64_t rows, columns, sums;
  float alpha = 1;
  bool adds = false;
};
void multiplyStrip(const StripProduct &product, StripRows a, StripColumns b,
                   float *y, int64_t stride);

/// to[j * stride + i] = from[i * from.stride + j]. Rows of `to` are whole
/// vectors, with zeros behind the last number; `stride` is a multiple of them.
void transposeRows(StripColumns from, int64_t rows, int64_t columns, float *to,
                   int64_t stride);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_STRIPPRODUCT_H
