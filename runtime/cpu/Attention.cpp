//===- Attention.cpp - Attention in strips of rows ------------------------===//
//
// A strip is a few query rows by the columns that they may see. Backward sums
// the gradients of keys and values over blocks of 64 rows, whose probabilities
// fit in the cache. Blocks of one head run in order. Heads are shared out to
// threads, backward with all that read the same keys together, so sums have
// one fixed order.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Attention.h"
#include "runtime/core/Error.h"
#include "runtime/cpu/AttentionBFloat16.h"
#include "runtime/cpu/AttentionRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Rank.h"
#include "runtime/cpu/StripProduct.h"

#include <cmath>
#include <cstdlib>
#include <optional>

using namespace pipewright::runtime;

namespace {

constexpr int64_t blockRows = attentionBlockRows;

/// Fewer rows than these are no block of their own: they go to the one before.
constexpr int64_t leastBlockRows = 16;
constexpr int64_t mostBlockRows = blockRows + leastBlockRows - 1;

/// Columns behind the last whole vector that are cheaper as dot products. A
/// model of images has one: the class stands beside 64, 196 or 256 patches.
constexpr int64_t fewColumns = 2;

/// Where keys of a head have no more elements, its operands and those of the
/// next head fit in the second-level cache.
constexpr int64_t mostPrefetched = 16384;

/// Room for each thread: blocks of scores and of their gradients, keys and
/// values transposed, and two rows.
class AttentionScratch : public LibraryState {
public:
  ~AttentionScratch() override { std::free(memory); }

  float *blocks(Rank &rank, int64_t perThread) {
    const int64_t bytes =
        rank.threads() * perThread * static_cast<int64_t>(sizeof(float));
    if (bytes > size) {
      std::free(memory);
      memory = static_cast<float *>(std::aligned_alloc(64, bytes));
      if (!memory)
        fail("cannot allocate ", bytes, " bytes for attention blocks");
      // Padding is computed on too: it must hold numbers.
      std::memset(memory, 0, bytes);
      rank.countScratch(bytes - size);
      size = bytes;
    }
    return memory;
  }

private:
  float *memory = nullptr;
  int64_t size = 0;
};

/// Where the vectors of one head lie in a tensor.
struct Place {
  int64_t begin;
  /// Elements from row to row.
  int64_t stride;
  /// Where those of the next head begin; nothing if they are not worth a
  /// prefetch.
  std::optional<int64_t> next;
};

/// In q, in k and v, in o, and in their gradients.
struct Places {
  Places(const AttentionShape &shape, int64_t head);

  Place rows, keys, outputs;
};

/// An operand of one head: a vector for each row.
struct Vectors {
  const float *tensor;
  Place place;

  const float *row(int64_t index) const {
    return tensor + place.begin + index * place.stride;
  }
  StripRows rowsFrom(int64_t first) const {
    return {row(first), place.stride, 1};
  }
  StripColumns columnsFrom(int64_t first) const {
    return {row(first), place.stride};
  }

  void prefetchNext(int64_t first, int64_t count, int64_t depth) const {
    if (!place.next)
      return;
    for (int64_t r = first; r < first + count; ++r)
      for (int64_t d = 0; d < depth; d += vectorLanes)
        __builtin_prefetch(tensor + *place.next + r * place.stride + d,
                           /*rw=*/0, /*locality=*/2);
  }
};

/// A result of one head.
struct ResultVectors {
  float *tensor;
  Place place;

  float *row(int64_t index) const {
    return tensor + place.begin + index * place.stride;
  }
  int64_t stride() const { return place.stride; }
};

/// The operands of one head and one thread's scratch.
struct Head {
  const AttentionShape &shape;
  int64_t columns;
  /// Distance between rows of a block: whole vectors.
  int64_t leading;
  AttentionRows rows;
  Vectors q, k, v;
  float *scores, *gradients;
  /// k and v as [depth, columns].
  float *keys, *values;
  int64_t stripRows;

  /// Columns that the rows before `end` see.
  int64_t visible(int64_t end) const {
    return shape.causal ? std::min(columns, end) : columns;
  }
};

} // namespace

Places::Places(const AttentionShape &s, int64_t head) {
  const bool isLast = head + 1 == s.batch * s.heads;
  const HeadStart start(s, head), following(s, isLast ? head : head + 1);
  const bool prefetches = keysOf(s) * s.depth <= mostPrefetched && !isLast;
  auto place = [&](int64_t HeadStart::*at, const AttentionStrides &strides) {
    Place result = {start.*at, strides.row, std::nullopt};
    if (prefetches)
      result.next = following.*at;
    return result;
  };
  rows = place(&HeadStart::rows, rowStrides(s));
  keys = place(&HeadStart::keys, keyStrides(s));
  outputs = place(&HeadStart::outputs, outputStrides(s));
}

static int64_t leadingOf(const AttentionShape &shape) {
  const int64_t leading = wholeVectors(keysOf(shape));
  // Rows a power of two apart fall into the same cache sets.
  return leading % 256 == 0 ? leading + vectorLanes : leading;
}

/// What backward needs; forward needs less. Whole vectors.
static int64_t floatsPerThread(const AttentionShape &s) {
  return (2 * mostBlockRows + 2 * s.depth + 2) * leadingOf(s);
}

/// Calls body(first, count) for each strip of `count` rows or columns.
template <class Body>
static void forStrips(const Head &head, int64_t begin, int64_t end,
                      const Body &body) {
  for (int64_t first = begin; first < end; first += head.stripRows)
    body(first, std::min(head.stripRows, end - first));
}

/// The dot product of two vectors of whole `depth`.
static float multiplyVectors(const float *a, const float *b, int64_t depth) {
  Floats sum = {};
  for (int64_t d = 0; d < depth; d += vectorLanes)
    sum += loadFloats(a + d) * loadFloats(b + d);
  return sumLanes(sum);
}

/// y = alpha * a * b^T, of some rows and of the columns that they see; `bT` is
/// b transposed.
static void multiplyTransposed(const Head &head, int64_t rows, float alpha,
                               StripRows a, const Vectors &b, const float *bT,
                               int64_t visible, float *y) {
  const int64_t depth = head.shape.depth;
  const int64_t whole = visible / vectorLanes * vectorLanes;
  const bool areFew =
      whole > 0 && visible - whole <= fewColumns && depth % vectorLanes == 0;
  multiplyStrip({rows, areFew ? whole : wholeVectors(visible), depth, alpha}, a,
                {bT, head.leading}, y, head.leading);
  if (!areFew)
    return;
  for (int64_t c = whole; c < visible; ++c)
    for (int64_t r = 0; r < rows; ++r)
      y[r * head.leading + c] =
          alpha * multiplyVectors(a.data + r * a.row, b.row(c), depth);
}

static void forwardHead(const Head &head, ResultVectors o, RowStats *stats) {
  const int64_t depth = head.shape.depth;
  transposeRows(head.k.columnsFrom(0), head.columns, depth, head.keys,
                head.leading);
  forStrips(head, 0, head.shape.rows, [&](int64_t first, int64_t rows) {
    const int64_t visible = head.visible(first + rows);
    for (const Vectors &operand : {head.q, head.k, head.v})
      operand.prefetchNext(first, rows, depth);
    multiplyTransposed(head, rows, head.shape.scale, head.q.rowsFrom(first),
                       head.k, head.keys, visible, head.scores);
    for (int64_t r = 0; r < rows; ++r) {
      float *row = head.scores + r * head.leading;
      head.rows.mask(row, first + r, visible);
      stats[first + r] = head.rows.exponentiate(row, first + r, visible);
    }
    multiplyStrip({rows, depth, visible}, {head.scores, head.leading, 1},
                  head.v.columnsFrom(0), o.row(first), o.stride());
    for (int64_t r = 0; r < rows; ++r) {
      float *out = o.row(first + r);
      for (int64_t d = 0; d < depth; ++d)
        out[d] *= stats[first + r].inverse;
    }
  });
}

/// Probabilities and gradients of the scores of a block of rows.
static void differentiateBlock(const Head &head, int64_t block, int64_t end,
                               const Vectors &dO, const RowStats *stats) {
  forStrips(head, block, end, [&](int64_t first, int64_t rows) {
    const int64_t visible = head.visible(first + rows);
    float *scores = head.scores + (first - block) * head.leading;
    float *gradients = head.gradients + (first - block) * head.leading;
    for (const Vectors &operand : {head.q, head.k, head.v, dO})
      operand.prefetchNext(first, rows, head.shape.depth);
    multiplyTransposed(head, rows, head.shape.scale, head.q.rowsFrom(first),
                       head.k, head.keys, visible, scores);
    multiplyTransposed(head, rows, 1, dO.rowsFrom(first), head.v, head.values,
                       visible, gradients);
    for (int64_t r = 0; r < rows; ++r) {
      float *row = scores + r * head.leading;
      float *gradient = gradients + r * head.leading;
      std::fill(gradient + visible, gradient + wholeVectors(visible), 0.0f);
      head.rows.mask(row, first + r, visible);
      head.rows.differentiate(row, gradient, first + r, visible,
                              stats[first + r]);
    }
  });
}

/// Zeros in a gradient of keys or values.
static void clearRows(const Head &head, ResultVectors gradient) {
  for (int64_t c = 0; c < head.columns; ++c)
    std::fill_n(gradient.row(c), head.shape.depth, 0.0f);
}

/// Where the block of rows that begins at `block` ends.
static int64_t blockEnd(const Head &head, int64_t block) {
  const int64_t left = head.shape.rows - block;
  return block + (left <= mostBlockRows ? left : blockRows);
}

/// Adds to dk and dv.
static void backwardHead(const Head &head, const Vectors &dO,
                         const RowStats *stats, ResultVectors dq,
                         ResultVectors dk, ResultVectors dv) {
  const AttentionShape &s = head.shape;
  const int64_t depth = s.depth, leading = head.leading;
  transposeRows(head.k.columnsFrom(0), head.columns, depth, head.keys, leading);
  transposeRows(head.v.columnsFrom(0), head.columns, depth, head.values,
                leading);
  for (int64_t block = 0, end = 0; block < s.rows; block = end) {
    end = blockEnd(head, block);
    differentiateBlock(head, block, end, dO, stats);
    forStrips(head, block, end, [&](int64_t first, int64_t rows) {
      multiplyStrip({rows, depth, head.visible(first + rows)},
                    {head.gradients + (first - block) * leading, leading, 1},
                    head.k.columnsFrom(0), dq.row(first), dq.stride());
    });
    forStrips(head, 0, head.visible(end), [&](int64_t column, int64_t columns) {
      // The first row that sees any of these columns.
      const int64_t first = s.causal ? std::max(block, column) : block;
      const StripProduct product = {columns, depth, end - first, 1, true};
      const int64_t at = (first - block) * leading + column;
      multiplyStrip(product, {head.scores + at, 1, leading},
                    dO.columnsFrom(first), dv.row(column), dv.stride());
      multiplyStrip(product, {head.gradients + at, 1, leading},
                    head.q.columnsFrom(first), dk.row(column), dk.stride());
    });
  }
}

template <>
void pipewright::runtime::prepareAttention(Rank &rank,
                                           const AttentionShape &shape) {
  if (shape.type == ElementType::BF16)
    prepareAttentionBFloat16(rank, shape);
  else
    rank.library<AttentionScratch>().blocks(rank, floatsPerThread(shape));
}

/// Calls body(head, number, places) for every head of q.
template <class Body>
static void forHeads(Rank &rank, const AttentionShape &s, int64_t microBatch,
                     Buffer q, Buffer k, Buffer v, Buffer mask, Buffer dMask,
                     AttentionTurn turn, const Body &body) {
  const float *qData = rank.data<float>(q);
  const float *kData = rank.data<float>(k);
  const float *vData = rank.data<float>(v);
  const float *maskData = rank.data<float>(mask);
  float *dMaskData = rank.data<float>(dMask);
  const int64_t columns = keysOf(s);
  const int64_t leading = leadingOf(s);
  const int64_t perThread = floatsPerThread(s);
  float *scratch = rank.library<AttentionScratch>().blocks(rank, perThread);
  forAttentionHeads(rank.threads(), s, turn, [&](int64_t n, int64_t thread) {
    float *blocks = scratch + thread * perThread;
    const AttentionRows rows(rank, s, microBatch, n, maskData, dMaskData,
                             blocks + 2 * mostBlockRows * leading);
    const Places places(s, n);
    const Head head = {s,
                       columns,
                       leading,
                       rows,
                       {qData, places.rows},
                       {kData, places.keys},
                       {vData, places.keys},
                       blocks,
                       blocks + mostBlockRows * leading,
                       blocks + (2 * mostBlockRows + 2) * leading,
                       blocks + (2 * mostBlockRows + 2 + s.depth) * leading,
                       stripRowsFor(columns * s.depth)};
    body(head, n, places);
  });
  rank.poll();
}

template <>
void pipewright::runtime::attention(Rank &rank, const AttentionShape &s,
                                    int64_t microBatch, Buffer q, Buffer k,
                                    Buffer v, Buffer mask, Buffer o,
                                    Buffer stats) {
  if (s.type == ElementType::BF16)
    return attentionBFloat16(rank, s, microBatch, q, k, v, mask, o, stats);
  float *out = rank.data<float>(o);
  RowStats *rows = rank.data<RowStats>(stats);
  forHeads(rank, s, microBatch, q, k, v, mask, Buffer(), {1, 1},
           [&](const Head &head, int64_t n, const Places &places) {
             forwardHead(head, {out, places.outputs}, rows + n * s.rows);
           });
}

template <>
void pipewright::runtime::attentionBackward(Rank &rank, const AttentionShape &s,
                                            int64_t microBatch, Buffer dO,
                                            Buffer q, Buffer k, Buffer v,
                                            Buffer, Buffer stats, Buffer mask,
                                            Buffer dq, Buffer dk, Buffer dv,
                                            Buffer dMask) {
  if (s.type == ElementType::BF16)
    return attentionBackwardBFloat16(rank, s, microBatch, dO, q, k, v, stats,
                                     mask, dq, dk, dv, dMask);
  const float *dOut = rank.data<float>(dO);
  const RowStats *rows = rank.data<RowStats>(stats);
  float *dqData = rank.data<float>(dq);
  float *dkData = rank.data<float>(dk);
  float *dvData = rank.data<float>(dv);
  clearMaskGradient(rank, s, dMask);
  forHeads(rank, s, microBatch, q, k, v, mask, dMask, backwardTurn(s),
           [&](const Head &head, int64_t n, const Places &places) {
             const ResultVectors dkHead = {dkData, places.keys};
             const ResultVectors dvHead = {dvData, places.keys};
             if (n % s.group() == 0) {
               clearRows(head, dkHead);
               clearRows(head, dvHead);
             }
             backwardHead(head, {dOut, places.outputs}, rows + n * s.rows,
                          {dqData, places.rows}, dkHead, dvHead);
           });
}
