//===- PaddedProduct.cpp - Products of matrices with long rows ------------===//

#include "runtime/cpu/PaddedProduct.h"
#include "runtime/core/Error.h"
#include "runtime/cpu/CpuFeatures.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/rank/Rank.h"

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>
#include <vector>

using namespace pipewright::runtime;

/// Rows and columns of b that are copied at a time: half a MiB.
static constexpr int64_t blockRows = 256, blockColumns = 512;
/// What makes rows begin at other places of a page.
static constexpr int64_t padding = 16;
/// Threads share columns out by so many: a line of the cache.
static constexpr int64_t unit = 16;
/// Elements between rows that begin at multiples of 2 KiB.
static constexpr int64_t period = 512;
/// With more rows of y, or of sums, dnnl_sgemm copies operands itself.
static constexpr int64_t mostRows = 512, mostSums = 32;

bool pipewright::runtime::isFasterPadded(const MatmulShape &s) {
  static const bool isWide = hasCpuFeature("avx512f").value_or(true);
  const bool isAligned = (!s.transposeB && s.n % period == 0) ||
                         (s.transposeA && s.m % period == 0);
  return !isWide && s.batch == 1 && isAligned &&
         (s.m <= mostRows || s.k <= mostSums);
}

namespace {

/// A matrix of f32 by rows.
struct Rows {
  const float *data;
  int64_t stride;
};

/// What the threads of a rank copy to.
class Copies : public LibraryState {
public:
  float *of(int64_t thread) { return blocks.data() + thread * floats; }

  void reserve(Rank &rank, int64_t threads, int64_t wanted) {
    floats = std::max(floats, wanted);
    const auto all = static_cast<size_t>(threads * floats);
    if (all <= blocks.size())
      return;
    rank.countScratch((all - blocks.size()) * sizeof(float));
    blocks.resize(all);
  }

private:
  std::vector<float> blocks;
  int64_t floats = 0;
};

} // namespace

static Rows copyPadded(const float *from, int64_t stride, int64_t rows,
                       int64_t columns, float *to) {
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(to + i * (columns + padding), from + i * stride,
                columns * sizeof(float));
  return {to, columns + padding};
}

/// Columns [begin, end) of y. Each of its elements is summed by blocks of k.
static void multiplyColumns(const MatmulShape &s, const float *a,
                            const float *b, float *y, int64_t begin,
                            int64_t end, float *copyOfA, float *copyOfB) {
  for (int64_t k = 0; k < s.k; k += blockRows) {
    const int64_t sums = std::min(blockRows, s.k - k);
    Rows left = {a + (s.transposeA ? k * s.m : k), s.transposeA ? s.m : s.k};
    if (s.transposeA && s.m % period == 0)
      left = copyPadded(left.data, left.stride, sums, s.m, copyOfA);
    for (int64_t n = begin; n < end; n += blockColumns) {
      const int64_t columns = std::min(blockColumns, end - n);
      Rows right = {b + (s.transposeB ? n * s.k + k : k * s.n + n),
                    s.transposeB ? s.k : s.n};
      if (!s.transposeB && s.n % period == 0)
        right = copyPadded(right.data, right.stride, sums, columns, copyOfB);
      const dnnl_status_t status =
          dnnl_sgemm(s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m,
                     columns, sums, s.alpha, left.data, left.stride, right.data,
                     right.stride, k == 0 ? s.beta : 1.0f, y + n, s.n);
      if (status != dnnl_success)
        fail("dnnl_sgemm(", s.m, " x ", columns, " x ", sums,
             ") failed with status ", static_cast<int>(status));
    }
  }
}

void pipewright::runtime::multiplyPadded(Rank &rank, const MatmulShape &s,
                                         const float *a, const float *b,
                                         float *y) {
  constexpr int64_t sizeOfB = blockRows * (blockColumns + padding);
  const int64_t sizeOfA =
      s.transposeA ? std::min(blockRows, s.k) * (s.m + padding) : 0;
  // Columns of at least half a block are worth a thread.
  const int64_t parts = (s.n + unit - 1) / unit;
  const int64_t threads = std::clamp<int64_t>(2 * s.n / blockColumns, 1,
                                              std::min(rank.threads(), parts));
  Copies &copies = rank.library<Copies>();
  copies.reserve(rank, threads, sizeOfB + sizeOfA);
  parallelFor(threads, parts, [&](int64_t first, int64_t last, int64_t thread) {
    float *const room = copies.of(thread);
    multiplyColumns(s, a, b, y, first * unit, std::min(last * unit, s.n),
                    room + sizeOfB, room);
  });
}
