//===- PaddedProduct.cpp - Products of matrices with long rows ------------===//

#include "runtime/cpu/PaddedProduct.h"
#include "runtime/cpu/CpuFeatures.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Rank.h"
#include "runtime/cpu/Sgemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace pipewright::runtime;

/// Rows and columns of b that are copied at a time: half a MiB.
static constexpr int64_t blockRows = 256, blockColumns = 512;
/// What makes rows begin at other places of a page.
static constexpr int64_t padding = 16;
/// Threads share rows or columns out by so many: a line of the cache.
static constexpr int64_t unit = 16;
/// Elements between rows that begin at multiples of 2 KiB.
static constexpr int64_t period = 512;
/// With more rows, columns and sums dnnl_sgemm copies operands itself.
static constexpr int64_t maxRows = 512, maxColumns = 511, maxSums = 32;
/// With AVX-512: what pays for a copy of a, and with how many columns.
static constexpr int64_t minWideRows = 1024, minWideSums = 512,
                         maxWideColumns = 512;

static bool hasAlignedA(const MatmulShape &s) {
  return s.transposeA && s.m % period == 0;
}

static bool hasAlignedB(const MatmulShape &s) {
  return !s.transposeB && s.n % period == 0;
}

bool pipewright::runtime::isFasterPadded(const MatmulShape &s) {
  static const bool isWide = hasCpuFeature("avx512f").value_or(true);
  if (s.batch != 1)
    return false;
  if (isWide)
    return hasAlignedA(s) && s.m >= minWideRows && s.k >= minWideSums &&
           s.n <= maxWideColumns;
  return (hasAlignedA(s) || hasAlignedB(s)) &&
         (s.m <= maxRows || s.n <= maxColumns || s.k <= maxSums);
}

namespace {

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

static Rows copyPadded(Rows from, int64_t rows, int64_t columns, float *to) {
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(to + i * (columns + padding), from.data + i * from.stride,
                columns * sizeof(float));
  return {to, columns + padding};
}

/// A part of y; rows and columns are [begin, end). Each of its elements is
/// summed by blocks of k.
struct Part {
  int64_t rowBegin, rowEnd, columnBegin, columnEnd;
};

static void multiplyPart(const MatmulShape &s, const float *a, const float *b,
                         float *y, const Part &part, float *copyOfA,
                         float *copyOfB) {
  const int64_t rows = part.rowEnd - part.rowBegin;
  for (int64_t k = 0; k < s.k; k += blockRows) {
    const int64_t sums = std::min(blockRows, s.k - k);
    Rows left = s.transposeA ? Rows{a + k * s.m + part.rowBegin, s.m}
                             : Rows{a + part.rowBegin * s.k + k, s.k};
    if (hasAlignedA(s))
      left = copyPadded(left, sums, rows, copyOfA);
    for (int64_t n = part.columnBegin; n < part.columnEnd; n += blockColumns) {
      const int64_t columns = std::min(blockColumns, part.columnEnd - n);
      Rows right = s.transposeB ? Rows{b + n * s.k + k, s.k}
                                : Rows{b + k * s.n + n, s.n};
      if (hasAlignedB(s))
        right = copyPadded(right, sums, columns, copyOfB);
      MatmulShape block = s;
      block.m = rows;
      block.n = columns;
      block.k = sums;
      block.beta = k == 0 ? s.beta : 1;
      sgemm(block, left, right, y + part.rowBegin * s.n + n, s.n);
    }
  }
}

void pipewright::runtime::multiplyPadded(Rank &rank, const MatmulShape &s,
                                         const float *a, const float *b,
                                         float *y) {
  constexpr int64_t sizeOfB = blockRows * (blockColumns + padding);
  const int64_t sizeOfA =
      s.transposeA ? std::min(blockRows, s.k) * (s.m + padding) : 0;
  // Half a block is worth a thread.
  const bool byRows = s.m > s.n;
  const int64_t units = (std::max(s.m, s.n) + unit - 1) / unit;
  const int64_t threads =
      std::clamp<int64_t>(2 * units * unit / blockColumns, 1, rank.threads());
  Copies &copies = rank.library<Copies>();
  copies.reserve(rank, threads, sizeOfB + sizeOfA);
  parallelFor(threads, units, [&](int64_t first, int64_t last, int64_t thread) {
    float *const room = copies.of(thread);
    Part part = {0, s.m, 0, s.n};
    (byRows ? part.rowBegin : part.columnBegin) = first * unit;
    (byRows ? part.rowEnd : part.columnEnd) =
        std::min(last * unit, byRows ? s.m : s.n);
    multiplyPart(s, a, b, y, part, room + sizeOfB, room);
  });
}
