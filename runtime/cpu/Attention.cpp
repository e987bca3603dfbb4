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

using namespace pipewright::runtime;

namespace {

constexpr int64_t blockRows = attentionBlockRows;

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

/// The operands of one head and one thread's scratch.
struct Head {
  const AttentionShape &shape;
  int64_t columns;
  /// Distance between rows of a block: whole vectors.
  int64_t leading;
  AttentionRows rows;
  const float *q, *k, *v;
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

static int64_t leadingOf(const AttentionShape &shape) {
  const int64_t leading = wholeVectors(columnsOf(shape));
  // Rows a power of two apart fall into the same cache sets.
  return leading % 256 == 0 ? leading + vectorLanes : leading;
}

/// What backward needs; forward needs less. Whole vectors.
static int64_t floatsPerThread(const AttentionShape &s) {
  return (2 * blockRows + 2 * s.depth + 2) * leadingOf(s);
}

/// Calls body(first, count) for each strip of `count` rows or columns.
template <class Body>
static void forStrips(const Head &head, int64_t begin, int64_t end,
                      const Body &body) {
  for (int64_t first = begin; first < end; first += head.stripRows)
    body(first, std::min(head.stripRows, end - first));
}

/// y = alpha * a * b, of some of the head's rows and a transposed matrix.
static void multiplyTransposed(const Head &head, int64_t rows, float alpha,
                               const float *a, const float *b, int64_t visible,
                               float *y) {
  const int64_t depth = head.shape.depth;
  multiplyStrip({rows, wholeVectors(visible), depth, alpha}, {a, depth, 1},
                {b, head.leading}, y, head.leading);
}

static void forwardHead(const Head &head, float *o, RowStats *stats) {
  const int64_t depth = head.shape.depth;
  transposeRows(head.k, head.columns, depth, head.keys, head.leading);
  forStrips(head, 0, head.shape.rows, [&](int64_t first, int64_t rows) {
    const int64_t visible = head.visible(first + rows);
    multiplyTransposed(head, rows, head.shape.scale, head.q + first * depth,
                       head.keys, visible, head.scores);
    for (int64_t r = 0; r < rows; ++r) {
      float *row = head.scores + r * head.leading;
      head.rows.mask(row, first + r, visible);
      stats[first + r] = head.rows.exponentiate(row, first + r, visible);
    }
    float *out = o + first * depth;
    multiplyStrip({rows, depth, visible}, {head.scores, head.leading, 1},
                  {head.v, depth}, out, depth);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t d = 0; d < depth; ++d)
        out[r * depth + d] *= stats[first + r].inverse;
  });
}

/// Probabilities and gradients of the scores of a block of rows.
static void differentiateBlock(const Head &head, int64_t block, int64_t end,
                               const float *dO, const RowStats *stats) {
  const int64_t depth = head.shape.depth;
  forStrips(head, block, end, [&](int64_t first, int64_t rows) {
    const int64_t visible = head.visible(first + rows);
    float *scores = head.scores + (first - block) * head.leading;
    float *gradients = head.gradients + (first - block) * head.leading;
    multiplyTransposed(head, rows, head.shape.scale, head.q + first * depth,
                       head.keys, visible, scores);
    multiplyTransposed(head, rows, 1, dO + first * depth, head.values, visible,
                       gradients);
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

/// Adds to dk and dv.
static void backwardHead(const Head &head, const float *dO,
                         const RowStats *stats, float *dq, float *dk,
                         float *dv) {
  const AttentionShape &s = head.shape;
  const int64_t depth = s.depth, leading = head.leading;
  transposeRows(head.k, head.columns, depth, head.keys, leading);
  transposeRows(head.v, head.columns, depth, head.values, leading);
  for (int64_t block = 0; block < s.rows; block += blockRows) {
    const int64_t end = std::min(block + blockRows, s.rows);
    differentiateBlock(head, block, end, dO, stats);
    forStrips(head, block, end, [&](int64_t first, int64_t rows) {
      multiplyStrip({rows, depth, head.visible(first + rows)},
                    {head.gradients + (first - block) * leading, leading, 1},
                    {head.k, depth}, dq + first * depth, depth);
    });
    forStrips(head, 0, head.visible(end), [&](int64_t column, int64_t columns) {
      // The first row that sees any of these columns.
      const int64_t first = s.causal ? std::max(block, column) : block;
      const StripProduct product = {columns, depth, end - first, 1, true};
      const int64_t at = (first - block) * leading + column;
      multiplyStrip(product, {head.scores + at, 1, leading},
                    {dO + first * depth, depth}, dv + column * depth, depth);
      multiplyStrip(product, {head.gradients + at, 1, leading},
                    {head.q + first * depth, depth}, dk + column * depth,
                    depth);
    });
  }
}

template <>
void pipewright::runtime::prepareAttention(Rank &rank,
                                           const AttentionShape &shape) {
  if (shape.inputStride || shape.outputStride)
    fail("attention on a CPU expects dense operands, heads before rows, but "
         "got strides of ",
         shape.inputStride, " and ", shape.outputStride,
         " elements, which only GPUs read by");
  if (shape.type == ElementType::BF16)
    prepareAttentionBFloat16(rank, shape);
  else
    rank.library<AttentionScratch>().blocks(rank, floatsPerThread(shape));
}

/// Calls body(head, number, row offset, key offset) for every head of q; the
/// offsets are where the head's rows begin in q-like and k-like tensors.
template <class Body>
static void forHeads(Rank &rank, const AttentionShape &s, int64_t microBatch,
                     Buffer q, Buffer k, Buffer v, Buffer mask, Buffer dMask,
                     AttentionTurn turn, const Body &body) {
  const float *qData = rank.data<float>(q);
  const float *kData = rank.data<float>(k);
  const float *vData = rank.data<float>(v);
  const float *maskData = rank.data<float>(mask);
  float *dMaskData = rank.data<float>(dMask);
  const int64_t columns = columnsOf(s);
  const int64_t leading = leadingOf(s);
  const int64_t rowsSize = s.rows * s.depth, keysSize = columns * s.depth;
  const int64_t perThread = floatsPerThread(s);
  float *scratch = rank.library<AttentionScratch>().blocks(rank, perThread);
  forAttentionHeads(rank.threads(), s, turn, [&](int64_t n, int64_t thread) {
    float *blocks = scratch + thread * perThread;
    const AttentionRows rows(rank, s, microBatch, n, maskData, dMaskData,
                             blocks + 2 * blockRows * leading);
    const int64_t rowsAt = n * rowsSize;
    const int64_t keysAt = n / s.group() * keysSize;
    const Head head = {s,
                       columns,
                       leading,
                       rows,
                       qData + rowsAt,
                       kData + keysAt,
                       vData + keysAt,
                       blocks,
                       blocks + blockRows * leading,
                       blocks + (2 * blockRows + 2) * leading,
                       blocks + (2 * blockRows + 2 + s.depth) * leading,
                       stripRowsFor(keysSize)};
    body(head, n, rowsAt, keysAt);
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
           [&](const Head &head, int64_t n, int64_t at, int64_t) {
             forwardHead(head, out + at, rows + n * s.rows);
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
  const int64_t keyBytes =
      columnsOf(s) * s.depth * static_cast<int64_t>(sizeof(float));
  forHeads(rank, s, microBatch, q, k, v, mask, dMask, backwardTurn(s),
           [&](const Head &head, int64_t n, int64_t rowsAt, int64_t keysAt) {
             if (n % s.group() == 0) {
               std::memset(dkData + keysAt, 0, keyBytes);
               std::memset(dvData + keysAt, 0, keyBytes);
             }
             backwardHead(head, dOut + rowsAt, rows + n * s.rows,
                          dqData + rowsAt, dkData + keysAt, dvData + keysAt);
           });
}
