//===- Attention.cpp - Attention in row blocks ----------------------------===//
//
// One block is 64 query rows by all columns that they may see: small enough
// for the cache, large enough for the matrix products. Blocks of one head run
// in order. Heads are shared out to threads, backward with all that read the
// same keys together, so sums have one fixed order.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Attention.h"
#include "runtime/core/Error.h"
#include "runtime/cpu/AttentionBFloat16.h"
#include "runtime/cpu/AttentionRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Rank.h"

#include <cmath>
#include <cstdlib>
#include <dnnl.h>

using namespace pipewright::runtime;

namespace {

constexpr int64_t blockRows = attentionBlockRows;

/// Room for each thread: blocks of scores and of their gradients, and two rows.
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
};

} // namespace

static int64_t leadingOf(const AttentionShape &shape) {
  const int64_t leading = wholeVectors(columnsOf(shape));
  // Rows a power of two apart fall into the same cache sets.
  return leading % 256 == 0 ? leading + vectorLanes : leading;
}

/// What backward needs; forward needs less. Whole vectors.
static int64_t floatsPerThread(const AttentionShape &s) {
  return (2 * blockRows + 2) * leadingOf(s);
}

static void product(char ta, char tb, int64_t m, int64_t n, int64_t k,
                    float alpha, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float beta, float *c, int64_t ldc) {
  if (dnnl_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) !=
      dnnl_success)
    fail("dnnl_sgemm failed in attention");
}

/// Scaled scores of the rows [first, first + rows).
static void computeScores(const Head &head, int64_t first, int64_t rows,
                          int64_t visible) {
  const AttentionShape &s = head.shape;
  product('N', 'T', rows, visible, s.depth, s.scale, head.q + first * s.depth,
          s.depth, head.k, s.depth, 0, head.scores, head.leading);
}

static void forwardHead(const Head &head, float *o, RowStats *stats) {
  const AttentionShape &s = head.shape;
  for (int64_t first = 0; first < s.rows; first += blockRows) {
    const int64_t rows = std::min(blockRows, s.rows - first);
    const int64_t visible =
        s.causal ? std::min(head.columns, first + rows) : head.columns;
    computeScores(head, first, rows, visible);
    float inverse[blockRows];
    for (int64_t r = 0; r < rows; ++r) {
      float *row = head.scores + r * head.leading;
      head.rows.mask(row, first + r, visible);
      stats[first + r] = head.rows.exponentiate(row, first + r, visible);
      inverse[r] = stats[first + r].inverse;
    }
    float *out = o + first * s.depth;
    product('N', 'N', rows, s.depth, visible, 1, head.scores, head.leading,
            head.v, s.depth, 0, out, s.depth);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t d = 0; d < s.depth; ++d)
        out[r * s.depth + d] *= inverse[r];
  }
}

/// Adds to dk and dv.
static void backwardHead(const Head &head, const float *dO,
                         const RowStats *stats, float *dq, float *dk,
                         float *dv) {
  const AttentionShape &s = head.shape;
  for (int64_t first = 0; first < s.rows; first += blockRows) {
    const int64_t rows = std::min(blockRows, s.rows - first);
    const int64_t visible =
        s.causal ? std::min(head.columns, first + rows) : head.columns;
    const int64_t padded = wholeVectors(visible);
    const float *dOut = dO + first * s.depth;
    computeScores(head, first, rows, visible);
    product('N', 'T', rows, visible, s.depth, 1, dOut, s.depth, head.v, s.depth,
            0, head.gradients, head.leading);
    for (int64_t r = 0; r < rows; ++r) {
      float *gradient = head.gradients + r * head.leading;
      for (int64_t c = visible; c < padded; ++c)
        gradient[c] = 0;
      const int64_t row = first + r;
      float *scores = head.scores + r * head.leading;
      head.rows.mask(scores, row, visible);
      head.rows.differentiate(scores, gradient, row, visible, stats[row]);
    }
    product('T', 'N', visible, s.depth, rows, 1, head.scores, head.leading,
            dOut, s.depth, 1, dv, s.depth);
    product('N', 'N', rows, s.depth, visible, 1, head.gradients, head.leading,
            head.k, s.depth, 0, dq + first * s.depth, s.depth);
    product('T', 'N', visible, s.depth, rows, 1, head.gradients, head.leading,
            head.q + first * s.depth, s.depth, 1, dk, s.depth);
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
                       blocks + blockRows * leading};
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
