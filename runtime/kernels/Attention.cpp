//===- Attention.cpp - Attention in row blocks ----------------------------===//
//
// One block is 64 query rows by all columns that they may see: small enough
// for the cache, large enough for the matrix products. Blocks of one head run
// in order, heads are shared out to threads, so sums have one fixed order.
// bf16 operands of a head are widened first and its results rounded last: in
// between all is f32.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Attention.h"
#include "runtime/core/Error.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Parallel.h"
#include "runtime/kernels/RandomFactors.h"
#include "runtime/kernels/VectorMath.h"

#include <cmath>
#include <dnnl.h>
#include <limits>

using namespace pipewright::runtime;

namespace {

constexpr int64_t blockRows = 64;
constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

/// Room for each thread: blocks of scores and of their gradients, one row of
/// factors, and widened operands.
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
  RandomStream random;
  int64_t number;
  const float *q, *k, *v, *mask;
  float *scores, *gradients, *factors;
};

} // namespace

static int64_t columnsOf(const AttentionShape &shape) {
  return shape.columns ? shape.columns : shape.rows;
}

static int64_t leadingOf(const AttentionShape &shape) {
  const int64_t leading =
      (columnsOf(shape) + vectorLanes - 1) / vectorLanes * vectorLanes;
  // Rows a power of two apart fall into the same cache sets.
  return leading % 256 == 0 ? leading + vectorLanes : leading;
}

static int64_t blockFloats(const AttentionShape &s) {
  return (2 * blockRows + 1) * leadingOf(s);
}

/// What backward needs; forward needs less. Whole vectors.
static int64_t floatsPerThread(const AttentionShape &s) {
  if (s.type == ElementType::F32)
    return blockFloats(s);
  const int64_t widened = 4 * (s.rows + columnsOf(s)) * s.depth;
  return blockFloats(s) +
         (widened + vectorLanes - 1) / vectorLanes * vectorLanes;
}

namespace {

/// The parts of operands and results that belong to one head, as floats.
class HeadOperands {
public:
  HeadOperands(const AttentionShape &shape, float *room)
      : isShort(shape.type == ElementType::BF16), next(room) {}

  const float *read(const char *from, int64_t at, int64_t count) {
    if (!isShort)
      return reinterpret_cast<const float *>(from) + at;
    float *to = take(count);
    widen(reinterpret_cast<const BFloat16 *>(from) + at, count, to);
    return to;
  }
  /// Where to write a result; `finish` it then.
  float *write(char *to, int64_t at, int64_t count) {
    return isShort ? take(count) : reinterpret_cast<float *>(to) + at;
  }
  void finish(const float *written, char *to, int64_t at, int64_t count) const {
    if (isShort)
      narrow(written, count, reinterpret_cast<BFloat16 *>(to) + at);
  }

private:
  float *take(int64_t count) {
    next += count;
    return next - count;
  }

  bool isShort;
  float *next;
};

} // namespace

static void product(char ta, char tb, int64_t m, int64_t n, int64_t k,
                    float alpha, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float beta, float *c, int64_t ldc) {
  if (dnnl_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) !=
      dnnl_success)
    fail("dnnl_sgemm failed in attention");
}

/// Scaled and masked scores of the rows [first, first + rows); whatever lies
/// behind the last visible column becomes -inf.
static void computeScores(const Head &head, int64_t first, int64_t rows,
                          int64_t visible) {
  const AttentionShape &s = head.shape;
  product('N', 'T', rows, visible, s.depth, s.scale, head.q + first * s.depth,
          s.depth, head.k, s.depth, 0, head.scores, head.leading);
  const int64_t padded =
      (visible + vectorLanes - 1) / vectorLanes * vectorLanes;
  for (int64_t r = 0; r < rows; ++r) {
    float *row = head.scores + r * head.leading;
    if (head.mask) {
      const int64_t maskRow = s.maskRows == 1 ? 0 : first + r;
      const float *mask = head.mask + maskRow * s.maskColumns;
      if (s.maskColumns == 1)
        for (int64_t c = 0; c < visible; ++c)
          row[c] += mask[0];
      else
        for (int64_t c = 0; c < visible; ++c)
          row[c] += mask[c];
    }
    const int64_t seen = s.causal ? std::min(visible, first + r + 1) : visible;
    for (int64_t c = seen; c < padded; ++c)
      row[c] = minusInfinity;
  }
}

/// Dropout factors of one row of scores.
static void rowFactors(const Head &head, int64_t row, int64_t visible) {
  const int64_t element = (head.number * head.shape.rows + row) * head.columns;
  randomFactors(head.random, head.shape.dropoutRate, element, visible,
                head.factors);
}

/// Turns scores into exp(score - max), with dropout applied; returns the sum
/// before dropout and the max.
static std::pair<float, float> exponentiateRow(const Head &head, float *row,
                                               int64_t index, int64_t visible) {
  Floats best = loadFloats(row);
  for (int64_t c = vectorLanes; c < visible; c += vectorLanes) {
    const Floats v = loadFloats(row + c);
    best = v > best ? v : best;
  }
  const float max = maxLanes(best);
  Floats sum = {};
  for (int64_t c = 0; c < visible; c += vectorLanes) {
    const Floats e = exponential(loadFloats(row + c) - max);
    sum += e;
    storeFloats(row + c, e);
  }
  if (head.shape.dropoutRate > 0) {
    rowFactors(head, index, visible);
    for (int64_t c = 0; c < visible; ++c)
      row[c] *= head.factors[c];
  }
  return {sumLanes(sum), max};
}

static void forwardHead(const Head &head, float *o, float *lse) {
  const AttentionShape &s = head.shape;
  for (int64_t first = 0; first < s.rows; first += blockRows) {
    const int64_t rows = std::min(blockRows, s.rows - first);
    const int64_t visible =
        s.causal ? std::min(head.columns, first + rows) : head.columns;
    computeScores(head, first, rows, visible);
    float inverse[blockRows];
    for (int64_t r = 0; r < rows; ++r) {
      const auto [sum, max] = exponentiateRow(
          head, head.scores + r * head.leading, first + r, visible);
      inverse[r] = 1 / sum;
      lse[first + r] = max + std::log(sum);
    }
    float *out = o + first * s.depth;
    product('N', 'N', rows, s.depth, visible, 1, head.scores, head.leading,
            head.v, s.depth, 0, out, s.depth);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t d = 0; d < s.depth; ++d)
        out[r * s.depth + d] *= inverse[r];
  }
}

static float dot(const float *a, const float *b, int64_t count) {
  Floats sum = {};
  int64_t i = 0;
  for (; i + vectorLanes <= count; i += vectorLanes)
    sum += loadFloats(a + i) * loadFloats(b + i);
  float rest = 0;
  for (; i < count; ++i)
    rest += a[i] * b[i];
  return sumLanes(sum) + rest;
}

/// Turns a row of scores into (dropped) probabilities and a row of their
/// gradients into the gradients of the scores.
static void differentiateRow(const Head &head, int64_t index, int64_t visible,
                             float *score, float *gradient, float lse,
                             float mean) {
  const bool drops = head.shape.dropoutRate > 0;
  if (drops)
    rowFactors(head, index, visible);
  const float scale = head.shape.scale;
  for (int64_t c = 0; c < visible; c += vectorLanes) {
    const Floats p = exponential(loadFloats(score + c) - lse);
    Floats dp = loadFloats(gradient + c);
    if (drops) {
      const Floats factor = loadFloats(head.factors + c);
      dp *= factor;
      storeFloats(score + c, p * factor);
    } else {
      storeFloats(score + c, p);
    }
    storeFloats(gradient + c, p * (dp - mean) * scale);
  }
}

static void backwardHead(const Head &head, const float *dO, const float *o,
                         const float *lse, float *dq, float *dk, float *dv) {
  const AttentionShape &s = head.shape;
  const int64_t keyBytes =
      head.columns * s.depth * static_cast<int64_t>(sizeof(float));
  std::memset(dk, 0, keyBytes);
  std::memset(dv, 0, keyBytes);
  for (int64_t first = 0; first < s.rows; first += blockRows) {
    const int64_t rows = std::min(blockRows, s.rows - first);
    const int64_t visible =
        s.causal ? std::min(head.columns, first + rows) : head.columns;
    const int64_t padded =
        (visible + vectorLanes - 1) / vectorLanes * vectorLanes;
    const float *dOut = dO + first * s.depth;
    computeScores(head, first, rows, visible);
    product('N', 'T', rows, visible, s.depth, 1, dOut, s.depth, head.v, s.depth,
            0, head.gradients, head.leading);
    for (int64_t r = 0; r < rows; ++r) {
      float *gradient = head.gradients + r * head.leading;
      for (int64_t c = visible; c < padded; ++c)
        gradient[c] = 0;
      const int64_t row = first + r;
      const float mean = dot(dO + row * s.depth, o + row * s.depth, s.depth);
      differentiateRow(head, row, visible, head.scores + r * head.leading,
                       gradient, lse[row], mean);
    }
    product('T', 'N', visible, s.depth, rows, 1, head.scores, head.leading,
            dOut, s.depth, 1, dv, s.depth);
    product('N', 'N', rows, s.depth, visible, 1, head.gradients, head.leading,
            head.k, s.depth, 0, dq + first * s.depth, s.depth);
    product('T', 'N', visible, s.depth, rows, 1, head.gradients, head.leading,
            head.q + first * s.depth, s.depth, 1, dk, s.depth);
  }
}

void pipewright::runtime::prepareAttention(Rank &rank,
                                           const AttentionShape &shape) {
  rank.library<AttentionScratch>().blocks(rank, floatsPerThread(shape));
}

/// Calls body(head, operands, row offset, key offset) for every head; the
/// offsets are where the head's rows begin in q-like and k-like tensors.
template <class Body>
static void forHeads(Rank &rank, const AttentionShape &s, int64_t microBatch,
                     Buffer q, Buffer k, Buffer v, Buffer mask,
                     const Body &body) {
  const char *qData = rank.data<char>(q);
  const char *kData = rank.data<char>(k);
  const char *vData = rank.data<char>(v);
  const float *maskData = rank.data<float>(mask);
  const int64_t columns = columnsOf(s);
  const int64_t leading = leadingOf(s);
  const int64_t rowsSize = s.rows * s.depth, keysSize = columns * s.depth;
  const int64_t perThread = floatsPerThread(s);
  float *scratch = rank.library<AttentionScratch>().blocks(rank, perThread);
  const RandomStream random = {rank.seed(), static_cast<uint32_t>(s.dropoutId),
                               static_cast<uint32_t>(microBatch),
                               static_cast<uint32_t>(rank.step())};
  parallelFor(rank.threads(), s.batch * s.heads,
              [&](int64_t begin, int64_t end, int64_t thread) {
                float *blocks = scratch + thread * perThread;
                for (int64_t n = begin; n < end; ++n) {
                  const int64_t maskBatch = s.maskBatch == 1 ? 0 : n / s.heads;
                  const int64_t maskHead = s.maskHeads == 1 ? 0 : n % s.heads;
                  const int64_t maskAt = (maskBatch * s.maskHeads + maskHead) *
                                         s.maskRows * s.maskColumns;
                  const int64_t rowsAt = n * rowsSize;
                  const int64_t keysAt = n * keysSize;
                  HeadOperands operands(s, blocks + blockFloats(s));
                  const Head head = {s,
                                     columns,
                                     leading,
                                     random,
                                     n,
                                     operands.read(qData, rowsAt, rowsSize),
                                     operands.read(kData, keysAt, keysSize),
                                     operands.read(vData, keysAt, keysSize),
                                     maskData ? maskData + maskAt : nullptr,
                                     blocks,
                                     blocks + blockRows * leading,
                                     blocks + 2 * blockRows * leading};
                  body(head, operands, rowsAt, keysAt);
                }
              });
  rank.poll();
}

void pipewright::runtime::attention(Rank &rank, const AttentionShape &s,
                                    int64_t microBatch, Buffer q, Buffer k,
                                    Buffer v, Buffer mask, Buffer o,
                                    Buffer lse) {
  char *out = rank.data<char>(o);
  float *sums = rank.data<float>(lse);
  const int64_t size = s.rows * s.depth;
  forHeads(rank, s, microBatch, q, k, v, mask,
           [&](const Head &head, HeadOperands &operands, int64_t at, int64_t) {
             float *written = operands.write(out, at, size);
             forwardHead(head, written, sums + head.number * s.rows);
             operands.finish(written, out, at, size);
           });
}

void pipewright::runtime::attentionBackward(Rank &rank, const AttentionShape &s,
                                            int64_t microBatch, Buffer dO,
                                            Buffer q, Buffer k, Buffer v,
                                            Buffer o, Buffer lse, Buffer mask,
                                            Buffer dq, Buffer dk, Buffer dv) {
  const char *dOut = rank.data<char>(dO);
  const char *out = rank.data<char>(o);
  const float *sums = rank.data<float>(lse);
  char *dqData = rank.data<char>(dq);
  char *dkData = rank.data<char>(dk);
  char *dvData = rank.data<char>(dv);
  const int64_t rowsSize = s.rows * s.depth;
  const int64_t keysSize = columnsOf(s) * s.depth;
  forHeads(rank, s, microBatch, q, k, v, mask,
           [&](const Head &head, HeadOperands &operands, int64_t rowsAt,
               int64_t keysAt) {
             const float *dO = operands.read(dOut, rowsAt, rowsSize);
             const float *o = operands.read(out, rowsAt, rowsSize);
             float *dq = operands.write(dqData, rowsAt, rowsSize);
             float *dk = operands.write(dkData, keysAt, keysSize);
             float *dv = operands.write(dvData, keysAt, keysSize);
             backwardHead(head, dO, o, sums + head.number * s.rows, dq, dk, dv);
             operands.finish(dq, dqData, rowsAt, rowsSize);
             operands.finish(dk, dkData, keysAt, keysSize);
             operands.finish(dv, dvData, keysAt, keysSize);
           });
}
