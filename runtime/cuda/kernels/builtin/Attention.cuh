//===- Attention.cuh - Attention in tiles ----------------------*- C++ -*-===//
//
// With S = bound(scale q k^T) + mask and P = exp(S - max) / sum, row by row:
//
//   forward   o = (P * drop) v         P in tiles; maximum and sum of a row
//                                      are corrected from tile to tile
//   backward  dP = (dO v^T) * drop     dS = P (dP - rowsum(P dP))
//             dv = (P * drop)^T dO     dmask = sum of dS
//             dZ = dS * bound' * scale    dq = dZ k    dk = dZ^T q
//
// The row sum is taken of the dP that it is subtracted from, in a first run
// through the tiles, not as dO o: where one P of a row is 1, dS is exactly 0.
//
// Nothing of size rows x columns exists outside of shared memory. A block owns
// one tile of rows (forward, dq) or of columns (dk and dv) of one head and runs
// through the tiles of the other side, in order, and a block of columns through
// all heads of q that read them: no atomics, one order of every sum.
// AttentionTiles.cuh has the products.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/builtin/AttentionTiles.cuh"
#include "runtime/cuda/kernels/builtin/Random.cuh"

using pipewright::runtime::AttentionParameters;
using pipewright::runtime::VectorStrides;

constexpr float log2OfE = 1.44269504088896341f;

/// What forward keeps of a row: P = exp(S - max) * inverse. Both are 0 where a
/// row sees nothing but -inf.
struct alignas(8) RowStats {
  float max, inverse;
};

/// The head that a block works on and which of its tiles it owns.
struct OwnTile {
  int64_t head;
  int32_t tile;
};

__device__ inline OwnTile ownTile(const AttentionParameters &p) {
  const int32_t head = blockIndex() / p.tiles;
  return {head, static_cast<int32_t>(blockIndex() - head * p.tiles)};
}

/// Where a head's vectors begin, of `heads` that each sample has.
__device__ inline int64_t startOf(const VectorStrides &strides, int32_t heads,
                                  int64_t head) {
  const int32_t number = static_cast<int32_t>(head), sample = number / heads;
  return sample * strides.batch + (number - sample * heads) * strides.head;
}
/// Where the vectors of q or o of a head begin.
__device__ inline int64_t startOfRows(const VectorStrides &strides,
                                      const AttentionParameters &p,
                                      int64_t head) {
  return startOf(strides, p.heads, head);
}
/// Where those of k and v begin; `head` is one of theirs.
__device__ inline int64_t startOfColumns(const AttentionParameters &p,
                                         int64_t head) {
  return startOf(p.columnsAt, p.heads / p.group, head);
}

__device__ inline const float *maskOfHead(const AttentionParameters &p,
                                          const float *mask, int64_t head) {
  if (!mask)
    return nullptr;
  return mask + head / p.heads % p.maskSamples * p.maskBatch +
         head % p.heads * p.maskHead;
}

/// Within 3 units in the last place.
__device__ inline float hyperbolicTangent(float x) {
  const float size = x < 0 ? -x : x, square = x * x;
  float p = -5.70498872745e-3f;
  p = fusedMultiplyAdd(p, square, 2.06390887954e-2f);
  p = fusedMultiplyAdd(p, square, -5.37397155531e-2f);
  p = fusedMultiplyAdd(p, square, 1.33314422036e-1f);
  p = fusedMultiplyAdd(p, square, -3.33332819422e-1f);
  const float power = exponential2(size * (-2 * log2OfE));
  const float large = (1 - power) / (1 + power);
  return size < 0.625f ? fusedMultiplyAdd(p * square, x, x)
         : x < 0       ? -large
                       : large;
}

/// Bounds products q . k.
template <class Tile>
__device__ void bound(const AttentionParameters &p,
                      typename Tile::ScorePart &products) {
  if (p.bound == 0)
    return;
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i)
#pragma unroll
    for (int j = 0; j < Tile::columns; ++j)
      products.at[i][j] =
          p.bound * hyperbolicTangent(products.at[i][j] * p.inverseBound);
}

/// Multiplies gradients of bounded products a . b by the slopes of the bound.
/// The products are computed again: registers are too few to keep them.
template <class Tile>
__device__ void applySlopes(const AttentionParameters &p,
                            const typename Tile::Vectors &a,
                            const typename Tile::Vectors &b,
                            typename Tile::ScorePart &gradients) {
  if (p.bound == 0)
    return;
  typename Tile::ScorePart products;
  Tile::dotProducts(a, b, products);
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i)
#pragma unroll
    for (int j = 0; j < Tile::columns; ++j) {
      // 1 - tanh(x)^2 = 4 e / (1 + e)^2, where e = exp(-2 |x|).
      const float x = products.at[i][j] * p.inverseBound;
      const float e = exponential2((x < 0 ? x : -x) * (2 * log2OfE));
      gradients.at[i][j] *= 4 * e / ((1 + e) * (1 + e));
    }
}

/// The score of a bounded product, scaled and masked; -inf where nothing is
/// seen.
__device__ inline float maskedScore(const AttentionParameters &p,
                                    const float *mask, float product,
                                    int32_t row, int32_t column) {
  if (column >= p.columns || row >= p.rows || (p.causal && column > row))
    return minusInfinity();
  const float score = product * p.scale;
  return mask ? score + mask[row * p.maskRow + column * p.maskColumn] : score;
}

/// Whether dropout keeps an element: 0 or 1.
__device__ inline float isKept(const DropoutParameters &p, uint32_t word) {
  return word < p.threshold ? 0.0f : 1.0f;
}
__device__ inline float isKept(const DropoutParameters &p,
                               const uint64_t *state, int64_t element) {
  const RandomWords words = randomWords(p, state, element / 4);
  const uint32_t low = element % 2 ? words.at[1] : words.at[0];
  const uint32_t high = element % 2 ? words.at[3] : words.at[2];
  return isKept(p, element % 4 < 2 ? low : high);
}

/// What dropout keeps of a tile into shared memory: [row][column], or the other
/// way round where `byColumn`. Nothing is written without dropout.
template <class Tile, bool byColumn>
__device__ void loadKept(typename Tile::Scores &to,
                         const AttentionParameters &p, const uint64_t *state,
                         int64_t head, int32_t firstRow, int32_t firstColumn) {
  if (p.dropout.threshold == 0)
    return;
  using Element = typename Tile::Element;
  constexpr int size = Tile::size;
#pragma unroll 1
  for (int i = 4 * threadIndex(); i < size * size; i += 4 * Tile::threads) {
    const int r = i / size, c = i % size;
    const int64_t element =
        (head * p.rows + firstRow + r) * p.columns + firstColumn + c;
    const RandomWords words = randomWords(p.dropout, state, element / 4);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      (byColumn ? to.at[c + e][r] : to.at[r][c + e]) =
          fromFloat<Element>(isKept(p.dropout, words.at[e]));
    // Rows of odd lengths: a counter's elements are not four neighbours here.
    if (element % 4 != 0)
#pragma unroll 1
      for (int e = 0; e < 4; ++e)
        (byColumn ? to.at[c + e][r] : to.at[r][c + e]) =
            fromFloat<Element>(isKept(p.dropout, state, element + e));
  }
}

/// How far the columns go that a tile of rows sees.
__device__ inline int32_t visibleColumns(const AttentionParameters &p,
                                         int32_t endOfRows) {
  return p.causal && endOfRows < p.columns ? endOfRows : p.columns;
}

/// What dropout multiplies a probability by; loadKept has written `kept`.
template <class Element>
__device__ float dropoutFactor(const AttentionParameters &p,
                               const Element &kept) {
  return p.dropout.threshold ? toFloat(kept) * p.dropout.kept : 1.0f;
}

template <class Tile, class T>
__device__ void attentionForward(const AttentionParameters &p,
                                 const uint64_t *state, const T *q, const T *k,
                                 const T *v, const float *mask, T *o,
                                 RowStats *stats) {
  __shared__ typename Tile::Vectors queries, keys, values;
  __shared__ typename Tile::Scores kept;
  const auto [head, tile] = ownTile(p);
  const int32_t first = tile * Tile::size;
  q += startOfRows(p.rowsAt, p, head);
  const int64_t keysStart = startOfColumns(p, head / p.group);
  k += keysStart;
  v += keysStart;
  mask = maskOfHead(p, mask, head);

  typename Tile::VectorPart sum = {};
  float best[Tile::rows], total[Tile::rows];
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
    best[i] = minusInfinity();
    total[i] = 0;
  }
  loadVectors<Tile>(queries, q, p.rowsAt.row, first, p.rows, p.depth);
  const int32_t visible = visibleColumns(p, first + Tile::size);
  for (int32_t column = 0; column < visible; column += Tile::size) {
    syncBlock();
    loadVectors<Tile>(keys, k, p.columnsAt.row, column, p.columns, p.depth);
    loadVectors<Tile>(values, v, p.columnsAt.row, column, p.columns, p.depth);
    loadKept<Tile, false>(kept, p, state, head, first, column);
    syncBlock();
    typename Tile::ScorePart scores;
    Tile::dotProducts(queries, keys, scores);
    bound<Tile>(p, scores);
#pragma unroll
    for (int i = 0; i < Tile::rows; ++i) {
      const int32_t row = first + Tile::row(i);
      float top = best[i];
#pragma unroll
      for (int j = 0; j < Tile::columns; ++j) {
        scores.at[i][j] = maskedScore(p, mask, scores.at[i][j], row,
                                      column + Tile::column(j));
        top = larger(top, scores.at[i][j]);
      }
      top = largestOfRow<Tile>(top);
      // While a row has seen nothing but -inf, there is nothing to correct.
      const float base = top == minusInfinity() ? 0.0f : top;
      const float correction = exponential2((best[i] - base) * log2OfE);
      best[i] = top;
      total[i] *= correction;
#pragma unroll
      for (int d = 0; d < Tile::elements; ++d)
        sum.at[i][d] *= correction;
#pragma unroll
      for (int j = 0; j < Tile::columns; ++j) {
        const float weight = exponential2((scores.at[i][j] - base) * log2OfE);
        total[i] += weight;
        scores.at[i][j] =
            weight * dropoutFactor(p, kept.at[Tile::row(i)][Tile::column(j)]);
      }
    }
    Tile::addWeighted(kept, scores, values, sum);
  }
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
    const int32_t row = first + Tile::row(i);
    const float whole = sumOfRow<Tile>(total[i]);
    const float inverse = whole > 0 ? 1 / whole : whole;
#pragma unroll
    for (int d = 0; d < Tile::elements; ++d)
      sum.at[i][d] *= inverse;
    if (Tile::column(0) == 0 && row < p.rows)
      stats[head * p.rows + row] = {best[i] == minusInfinity() ? 0.0f : best[i],
                                    inverse};
  }
  storeVectors<Tile>(sum, o + startOfRows(p.outputsAt, p, head),
                     p.outputsAt.row, first, p.rows, p.depth);
}

/// The probability of a pair, before dropout.
__device__ inline float probabilityOf(const AttentionParameters &p,
                                      const float *mask, const RowStats &stats,
                                      int32_t row, int32_t column,
                                      float product) {
  const float score = maskedScore(p, mask, product, row, column);
  // A row that sees nothing has no sum either.
  return score == minusInfinity()
             ? 0.0f
             : exponential2((score - stats.max) * log2OfE) * stats.inverse;
}

/// What forward and the first kernel of backward have left of a row; `mean` is
/// the sum of P dP.
struct RowNumbers {
  RowStats stats;
  float mean;
};

/// Also writes the rows' sums of P dP to `means`.
template <class Tile, class T>
__device__ void attentionGradientQ(const AttentionParameters &p,
                                   const uint64_t *state, const T *dO,
                                   const T *q, const T *k, const T *v,
                                   const float *mask, const RowStats *stats,
                                   float *means, T *dq) {
  __shared__ typename Tile::Vectors queries, outputs, keys, values;
  __shared__ typename Tile::Scores kept;
  const auto [head, tile] = ownTile(p);
  const int32_t first = tile * Tile::size;
  q += startOfRows(p.rowsAt, p, head);
  dO += startOfRows(p.outputsAt, p, head);
  const int64_t keysStart = startOfColumns(p, head / p.group);
  k += keysStart;
  v += keysStart;
  mask = maskOfHead(p, mask, head);
  stats += head * p.rows;
  means += head * p.rows;

  loadVectors<Tile>(queries, q, p.rowsAt.row, first, p.rows, p.depth);
  loadVectors<Tile>(outputs, dO, p.outputsAt.row, first, p.rows, p.depth);
  RowNumbers numbers[Tile::rows];
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
    const int32_t row = first + Tile::row(i);
    numbers[i] = {row < p.rows ? stats[row] : RowStats{0, 0}, 0};
  }
  const int32_t visible = visibleColumns(p, first + Tile::size);
  typename Tile::VectorPart sum = {};
  // First the rows' sums of P dP, then what they are subtracted from.
#pragma unroll 1
  for (int run = 0; run < 2; ++run) {
#pragma unroll 1
    for (int32_t column = 0; column < visible; column += Tile::size) {
      syncBlock();
      loadVectors<Tile>(keys, k, p.columnsAt.row, column, p.columns, p.depth);
      loadVectors<Tile>(values, v, p.columnsAt.row, column, p.columns, p.depth);
      loadKept<Tile, false>(kept, p, state, head, first, column);
      syncBlock();
      typename Tile::ScorePart scores, products;
      Tile::dotProducts(queries, keys, scores);
      bound<Tile>(p, scores);
      Tile::dotProducts(outputs, values, products);
#pragma unroll
      for (int i = 0; i < Tile::rows; ++i)
#pragma unroll
        for (int j = 0; j < Tile::columns; ++j) {
          const float probability =
              probabilityOf(p, mask, numbers[i].stats, first + Tile::row(i),
                            column + Tile::column(j), scores.at[i][j]);
          const float gradient =
              products.at[i][j] *
              dropoutFactor(p, kept.at[Tile::row(i)][Tile::column(j)]);
          if (run == 0)
            numbers[i].mean =
                fusedMultiplyAdd(probability, gradient, numbers[i].mean);
          scores.at[i][j] =
              probability * (gradient - numbers[i].mean) * p.scale;
        }
      if (run == 1) {
        applySlopes<Tile>(p, queries, keys, scores);
        Tile::addWeighted(kept, scores, keys, sum);
      }
    }
    if (run == 1)
      break;
#pragma unroll
    for (int i = 0; i < Tile::rows; ++i) {
      const int32_t row = first + Tile::row(i);
      numbers[i].mean = sumOfRow<Tile>(numbers[i].mean);
      if (Tile::column(0) == 0 && row < p.rows)
        means[row] = numbers[i].mean;
    }
  }
  storeVectors<Tile>(sum, dq + startOfRows(p.rowsAt, p, head), p.rowsAt.row,
                     first, p.rows, p.depth);
}

template <class Tile, class T>
__device__ void attentionGradientKV(const AttentionParameters &p,
                                    const uint64_t *state, const T *dO,
                                    const T *q, const T *k, const T *v,
                                    const float *mask, const RowStats *stats,
                                    const float *means, T *dk, T *dv) {
  __shared__ typename Tile::Vectors queries, outputs, keys, values;
  __shared__ typename Tile::Scores kept;
  __shared__ typename Tile::Exchange exchange;
  __shared__ RowNumbers numbers[Tile::size];
  const auto [keyHead, tile] = ownTile(p);
  const int32_t first = tile * Tile::size;
  const int64_t start = startOfColumns(p, keyHead);
  // The first head of q that reads these columns; the others follow.
  int64_t head = keyHead * p.group;
  q += startOfRows(p.rowsAt, p, head);
  dO += startOfRows(p.outputsAt, p, head);
  mask = maskOfHead(p, mask, head);
  stats += head * p.rows;
  means += head * p.rows;

  typename Tile::VectorPart sumK = {}, sumV = {};
  loadVectors<Tile>(keys, k + start, p.columnsAt.row, first, p.columns,
                    p.depth);
  loadVectors<Tile>(values, v + start, p.columnsAt.row, first, p.columns,
                    p.depth);
#pragma unroll 1
  for (const int64_t behind = head + p.group; head < behind; ++head) {
    // Rows above the diagonal see nothing of these columns.
    for (int32_t row = p.causal ? first : 0; row < p.rows; row += Tile::size) {
      syncBlock();
      loadVectors<Tile>(queries, q, p.rowsAt.row, row, p.rows, p.depth);
      loadVectors<Tile>(outputs, dO, p.outputsAt.row, row, p.rows, p.depth);
      loadKept<Tile, true>(kept, p, state, head, row, first);
      const int32_t ownRow = row + threadIndex();
      if (threadIndex() < Tile::size)
        numbers[threadIndex()] = ownRow < p.rows
                                     ? RowNumbers{stats[ownRow], means[ownRow]}
                                     : RowNumbers{{0, 0}, 0};
      syncBlock();
      typename Tile::ScorePart scores, products;
      Tile::dotProducts(keys, queries, scores);
      bound<Tile>(p, scores);
      Tile::dotProducts(values, outputs, products);
#pragma unroll
      for (int j = 0; j < Tile::columns; ++j) {
        const RowNumbers own = numbers[Tile::column(j)];
#pragma unroll
        for (int i = 0; i < Tile::rows; ++i) {
          const float factor =
              dropoutFactor(p, kept.at[Tile::row(i)][Tile::column(j)]);
          const float probability =
              probabilityOf(p, mask, own.stats, row + Tile::column(j),
                            first + Tile::row(i), scores.at[i][j]);
          scores.at[i][j] = probability * factor;
          products.at[i][j] =
              probability * (products.at[i][j] * factor - own.mean) * p.scale;
        }
      }
      Tile::addWeighted(kept, scores, outputs, sumV);
      applySlopes<Tile>(p, keys, queries, products);
      Tile::addWeighted(exchange, products, queries, sumK);
    }
    q += p.rowsAt.head;
    dO += p.outputsAt.head;
    // Which is 0 without a mask.
    mask += p.maskHead;
    stats += p.rows;
    means += p.rows;
  }
  storeVectors<Tile>(sumK, dk + start, p.columnsAt.row, first, p.columns,
                     p.depth);
  storeVectors<Tile>(sumV, dv + start, p.columnsAt.row, first, p.columns,
                     p.depth);
}

/// A block owns one tile of one head's mask, and runs through the samples and
/// heads that it is the mask of, in order. `p.tiles` is that of rows.
template <class Tile, class T>
__device__ void attentionGradientMask(const AttentionParameters &p,
                                      const uint64_t *state, const T *dO,
                                      const T *q, const T *k, const T *v,
                                      const float *mask, const RowStats *stats,
                                      const float *means, float *dMask) {
  __shared__ typename Tile::Vectors queries, outputs, keys, values;
  __shared__ typename Tile::Scores kept;
  const int32_t columnTiles = (p.columns + Tile::size - 1) / Tile::size;
  const int32_t block = blockIndex();
  const int32_t firstColumn = block % columnTiles * Tile::size;
  const int32_t firstRow = block / columnTiles % p.tiles * Tile::size;
  const int32_t slice = block / columnTiles / p.tiles;
  // Masks that are stretched have no stride.
  const int32_t maskHeads = p.maskHead ? p.heads : 1;
  const int32_t samples = p.batch / p.maskSamples;
  const int32_t heads = p.heads / maskHeads;
  const int32_t firstSample = slice / maskHeads;
  const int32_t firstHead = slice % maskHeads;

  typename Tile::ScorePart sum = {};
#pragma unroll 1
  for (int32_t n = 0; n < samples * heads; ++n) {
    const int64_t sample = firstSample + n / heads * p.maskSamples;
    const int64_t head = sample * p.heads + firstHead + n % heads;
    const int64_t keysStart = startOfColumns(p, head / p.group);
    syncBlock();
    loadVectors<Tile>(queries, q + startOfRows(p.rowsAt, p, head), p.rowsAt.row,
                      firstRow, p.rows, p.depth);
    loadVectors<Tile>(outputs, dO + startOfRows(p.outputsAt, p, head),
                      p.outputsAt.row, firstRow, p.rows, p.depth);
    loadVectors<Tile>(keys, k + keysStart, p.columnsAt.row, firstColumn,
                      p.columns, p.depth);
    loadVectors<Tile>(values, v + keysStart, p.columnsAt.row, firstColumn,
                      p.columns, p.depth);
    loadKept<Tile, false>(kept, p, state, head, firstRow, firstColumn);
    syncBlock();
    typename Tile::ScorePart scores, products;
    Tile::dotProducts(queries, keys, scores);
    bound<Tile>(p, scores);
    Tile::dotProducts(outputs, values, products);
    const float *headMask = maskOfHead(p, mask, head);
#pragma unroll
    for (int i = 0; i < Tile::rows; ++i) {
      const int32_t row = firstRow + Tile::row(i);
      const bool exists = row < p.rows;
      const int64_t at = head * p.rows + row;
      const RowStats own = exists ? stats[at] : RowStats{0, 0};
      const float mean = exists ? means[at] : 0.0f;
#pragma unroll
      for (int j = 0; j < Tile::columns; ++j) {
        const float probability =
            probabilityOf(p, headMask, own, row, firstColumn + Tile::column(j),
                          scores.at[i][j]);
        const float gradient =
            products.at[i][j] *
            dropoutFactor(p, kept.at[Tile::row(i)][Tile::column(j)]);
        sum.at[i][j] += probability * (gradient - mean);
      }
    }
  }
  dMask += static_cast<int64_t>(slice) * p.rows * p.columns;
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i)
#pragma unroll
    for (int j = 0; j < Tile::columns; ++j) {
      const int32_t row = firstRow + Tile::row(i);
      const int32_t column = firstColumn + Tile::column(j);
      if (row < p.rows && column < p.columns)
        dMask[static_cast<int64_t>(row) * p.columns + column] = sum.at[i][j];
    }
}

/// One set of kernels for vectors of at most `depth` elements of type T. For
/// three blocks and more on a multiprocessor some would spill registers.
#define PIPEWRIGHT_ATTENTION_KERNELS(Tile, depth, T, suffix)                   \
  extern "C" __global__ void __launch_bounds__(Tile<depth>::threads, 2)        \
      attention_##depth##suffix(const __grid_constant__ AttentionParameters p, \
                                const uint64_t *state, const T *q, const T *k, \
                                const T *v, const float *mask, T *o,           \
                                RowStats *stats) {                             \
    attentionForward<Tile<depth>>(p, state, q, k, v, mask, o, stats);          \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(Tile<depth>::threads, 2)        \
      attention_dq_##depth##suffix(                                            \
          const __grid_constant__ AttentionParameters p,                       \
          const uint64_t *state, const T *dO, const T *q, const T *k,          \
          const T *v, const float *mask, const RowStats *stats, float *means,  \
          T *dq) {                                                             \
    attentionGradientQ<Tile<depth>>(p, state, dO, q, k, v, mask, stats, means, \
                                    dq);                                       \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(Tile<depth>::threads, 2)        \
      attention_dkv_##depth##suffix(                                           \
          const __grid_constant__ AttentionParameters p,                       \
          const uint64_t *state, const T *dO, const T *q, const T *k,          \
          const T *v, const float *mask, const RowStats *stats,                \
          const float *means, T *dk, T *dv) {                                  \
    attentionGradientKV<Tile<depth>>(p, state, dO, q, k, v, mask, stats,       \
                                     means, dk, dv);                           \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(Tile<depth>::threads, 2)        \
      attention_dmask_##depth##suffix(                                         \
          const __grid_constant__ AttentionParameters p,                       \
          const uint64_t *state, const T *dO, const T *q, const T *k,          \
          const T *v, const float *mask, const RowStats *stats,                \
          const float *means, float *dMask) {                                  \
    attentionGradientMask<Tile<depth>>(p, state, dO, q, k, v, mask, stats,     \
                                       means, dMask);                          \
  }

PIPEWRIGHT_ATTENTION_KERNELS(FloatTiles, 32, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(FloatTiles, 64, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(FloatTiles, 128, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(FloatTiles, 256, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(TensorTiles, 32, Bf16, _bf16)
PIPEWRIGHT_ATTENTION_KERNELS(TensorTiles, 64, Bf16, _bf16)
PIPEWRIGHT_ATTENTION_KERNELS(TensorTiles, 128, Bf16, _bf16)
PIPEWRIGHT_ATTENTION_KERNELS(FloatTiles, 256, Bf16, _bf16)
