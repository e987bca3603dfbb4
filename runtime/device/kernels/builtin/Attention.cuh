//===- Attention.cuh - Attention in tiles ----------------------*- C++ -*-===//
//
// With S = scale q k^T + mask and P = exp(S - lse), row by row:
//
//   forward   o = (P * drop) v         P in tiles; maximum and sum of a row
//                                      are corrected from tile to tile
//   backward  dP = (dO v^T) * drop     dS = P (dP - rowsum(dO o)) scale
//             dq = dS k    dk = dS^T q    dv = (P * drop)^T dO
//
// Nothing of size rows x columns exists outside of shared memory. A block of
// 64 threads owns one tile of rows (forward, dq) or of columns (dk and dv) of
// one head and runs through the tiles of the other side, in order: no atomics,
// one order of every sum.
//
// Threads stand as 8 x 8. In a tile of `size` x `size` scores, thread (y, x)
// has rows y + 8 i and columns x + 8 j; of a tile of vectors it has rows y + 8
// i and elements 4 x + 32 j ... 4 x + 32 j + 3. Rows of shared memory are four
// floats longer than their content, so that eight neighbours that read four
// floats each never meet in a bank.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/device/kernels/BuiltinParameters.h"
#include "runtime/device/kernels/builtin/Prelude.cuh"
#include "runtime/device/kernels/builtin/Random.cuh"

using pipewright::runtime::AttentionParameters;

constexpr int attentionThreads = 64;
constexpr float log2OfE = 1.44269504088896341f;
constexpr float lnOf2 = 0.693147180559945309f;

/// Rows and columns of a tile, for vectors of (at most) `depth` elements: as
/// many as shared memory holds.
template <int depth>
constexpr int tileSize = depth <= 64 ? 32 : 2048 / depth;

template <int depth>
struct Tiles {
  static constexpr int size = tileSize<depth>;
  /// Rows, and columns, of a tile of scores that one thread has.
  static constexpr int each = size / 8;
  /// Packs of four elements of a vector that one thread has.
  static constexpr int packs = depth / 32;

  /// `size` vectors.
  struct Vectors {
    alignas(16) float at[size][depth + 4];
  };
  /// One number for each pair of vectors.
  struct Scores {
    alignas(16) float at[size][size + 4];
  };
  /// A thread's part of a tile of scores.
  struct ScorePart {
    float at[each][each];
  };
  /// A thread's part of a tile of vectors.
  struct VectorPart {
    float at[each][packs * 4];
  };
};

__device__ inline int threadX() { return threadIndex() % 8; }
__device__ inline int threadY() { return threadIndex() / 8; }

/// Rows [first, first + size) of a matrix into shared memory; what does not
/// exist becomes zero.
template <int depth, class T>
__device__ void loadVectors(typename Tiles<depth>::Vectors &to, const T *from,
                            int32_t first, int32_t rows, int32_t realDepth) {
  constexpr int elements = tileSize<depth> * depth;
#pragma unroll 4
  for (int i = threadIndex(); i < elements; i += attentionThreads) {
    const int r = i / depth, d = i % depth;
    const bool exists = first + r < rows && d < realDepth;
    to.at[r][d] =
        exists ? toFloat(from[static_cast<int64_t>(first + r) * realDepth + d])
               : 0.0f;
  }
}

/// part[i][j] = a[y + 8 i] . b[x + 8 j]
template <int depth>
__device__ void dotProducts(const typename Tiles<depth>::Vectors &a,
                            const typename Tiles<depth>::Vectors &b,
                            typename Tiles<depth>::ScorePart &part) {
  constexpr int each = Tiles<depth>::each;
  const int x = threadX(), y = threadY();
  part = {};
#pragma unroll 1
  for (int d = 0; d < depth; d += 4) {
    Pack<float, 4> left[each], right[each];
    for (int i = 0; i < each; ++i) {
      left[i] = loadPack<float, 4>(&a.at[y + 8 * i][d]);
      right[i] = loadPack<float, 4>(&b.at[x + 8 * i][d]);
    }
    for (int e = 0; e < 4; ++e)
      for (int i = 0; i < each; ++i)
        for (int j = 0; j < each; ++j)
          part.at[i][j] =
              fusedMultiplyAdd(left[i].at[e], right[j].at[e], part.at[i][j]);
  }
}

/// part[i] += sum over c of scores[y + 8 i][c] * vectors[c]
template <int depth>
__device__ void addWeighted(const typename Tiles<depth>::Scores &scores,
                            const typename Tiles<depth>::Vectors &vectors,
                            typename Tiles<depth>::VectorPart &part) {
  using T = Tiles<depth>;
  const int x = threadX(), y = threadY();
#pragma unroll 1
  for (int c = 0; c < T::size; c += 4) {
    Pack<float, 4> weights[T::each];
    for (int i = 0; i < T::each; ++i)
      weights[i] = loadPack<float, 4>(&scores.at[y + 8 * i][c]);
    for (int e = 0; e < 4; ++e)
      for (int k = 0; k < T::packs; ++k) {
        const auto pack =
            loadPack<float, 4>(&vectors.at[c + e][4 * x + 32 * k]);
        for (int i = 0; i < T::each; ++i)
          for (int d = 0; d < 4; ++d)
            part.at[i][4 * k + d] = fusedMultiplyAdd(
                weights[i].at[e], pack.at[d], part.at[i][4 * k + d]);
      }
  }
}

/// The part's vectors, those that exist, to memory.
template <int depth, class T>
__device__ void storeVectors(const typename Tiles<depth>::VectorPart &part,
                             T *to, int32_t first, int32_t rows,
                             int32_t realDepth) {
  const int x = threadX(), y = threadY();
  for (int i = 0; i < Tiles<depth>::each; ++i) {
    const int32_t row = first + y + 8 * i;
    if (row >= rows)
      continue;
    for (int k = 0; k < Tiles<depth>::packs; ++k)
      for (int e = 0; e < 4; ++e) {
        const int d = 4 * x + 32 * k + e;
        if (d < realDepth)
          to[static_cast<int64_t>(row) * realDepth + d] =
              fromFloat<T>(part.at[i][4 * k + e]);
      }
  }
}

/// The head that a block works on and which of its tiles it owns.
struct OwnTile {
  int64_t head;
  int32_t tile;
};

__device__ inline OwnTile ownTile(const AttentionParameters &p) {
  const int32_t head = blockIndex() / p.tiles;
  return {head, static_cast<int32_t>(blockIndex() - head * p.tiles)};
}

__device__ inline const float *maskOfHead(const AttentionParameters &p,
                                          const float *mask, int64_t head) {
  return mask
             ? mask + head / p.heads * p.maskBatch + head % p.heads * p.maskHead
             : nullptr;
}

/// A score, scaled and masked; -inf where nothing is seen.
__device__ inline float maskedScore(const AttentionParameters &p,
                                    const float *mask, float product,
                                    int32_t row, int32_t column) {
  if (column >= p.columns || row >= p.rows || (p.causal && column > row))
    return minusInfinity();
  const float score = product * p.scale;
  return mask ? score + mask[row * p.maskRow + column * p.maskColumn] : score;
}

/// What dropout multiplies the probability of one pair by.
__device__ inline float attentionFactor(const AttentionParameters &p,
                                        const uint64_t *state,
                                        int64_t element) {
  const RandomWords words = randomWords(p.dropout, state, element / 4);
  const uint32_t low = element % 2 ? words.at[1] : words.at[0];
  const uint32_t high = element % 2 ? words.at[3] : words.at[2];
  return dropoutFactor(p.dropout, element % 4 < 2 ? low : high);
}

/// The factors of a tile into shared memory: [row][column], or the other way
/// round where `byColumn`. Nothing is written without dropout.
template <int depth, bool byColumn>
__device__ void loadFactors(typename Tiles<depth>::Scores &to,
                            const AttentionParameters &p, const uint64_t *state,
                            int64_t head, int32_t firstRow,
                            int32_t firstColumn) {
  if (p.dropout.threshold == 0)
    return;
  constexpr int size = Tiles<depth>::size;
#pragma unroll 1
  for (int i = 4 * threadIndex(); i < size * size; i += 4 * attentionThreads) {
    const int r = i / size, c = i % size;
    const int64_t element =
        (head * p.rows + firstRow + r) * p.columns + firstColumn + c;
    const RandomWords words = randomWords(p.dropout, state, element / 4);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      (byColumn ? to.at[c + e][r] : to.at[r][c + e]) =
          dropoutFactor(p.dropout, words.at[e]);
    // Rows of odd lengths: a counter's elements are not four neighbours here.
    if (element % 4 != 0)
#pragma unroll 1
      for (int e = 0; e < 4; ++e)
        (byColumn ? to.at[c + e][r] : to.at[r][c + e]) =
            attentionFactor(p, state, element + e);
  }
}

/// The largest, or the sum, over the eight threads that share rows.
__device__ inline float largestOfRow(float value) {
  for (int mask = 4; mask; mask /= 2)
    value = larger(value, shuffleXor(value, mask));
  return value;
}
__device__ inline float sumOfRow(float value) {
  for (int mask = 4; mask; mask /= 2)
    value += shuffleXor(value, mask);
  return value;
}

/// How far the columns go that a tile of rows sees.
__device__ inline int32_t visibleColumns(const AttentionParameters &p,
                                         int32_t endOfRows) {
  return p.causal && endOfRows < p.columns ? endOfRows : p.columns;
}

template <int depth, class T>
__device__ void attentionForward(const AttentionParameters &p,
                                 const uint64_t *state, const T *q, const T *k,
                                 const T *v, const float *mask, T *o,
                                 float *lse) {
  using Tile = Tiles<depth>;
  __shared__ typename Tile::Vectors queries, keys, values;
  __shared__ typename Tile::Scores weights;
  const auto [head, tile] = ownTile(p);
  const int x = threadX(), y = threadY();
  const int32_t first = tile * Tile::size;
  q += head * p.rows * p.depth;
  k += head * p.columns * p.depth;
  v += head * p.columns * p.depth;
  mask = maskOfHead(p, mask, head);

  typename Tile::VectorPart sum = {};
  float best[Tile::each], total[Tile::each];
  for (int i = 0; i < Tile::each; ++i) {
    best[i] = minusInfinity();
    total[i] = 0;
  }
  loadVectors<depth>(queries, q, first, p.rows, p.depth);
  const int32_t visible = visibleColumns(p, first + Tile::size);
  for (int32_t column = 0; column < visible; column += Tile::size) {
    syncBlock();
    loadVectors<depth>(keys, k, column, p.columns, p.depth);
    loadVectors<depth>(values, v, column, p.columns, p.depth);
    loadFactors<depth, false>(weights, p, state, head, first, column);
    syncBlock();
    typename Tile::ScorePart scores;
    dotProducts<depth>(queries, keys, scores);
#pragma unroll
    for (int i = 0; i < Tile::each; ++i) {
      const int32_t row = first + y + 8 * i;
      float top = best[i];
      for (int j = 0; j < Tile::each; ++j) {
        scores.at[i][j] =
            maskedScore(p, mask, scores.at[i][j], row, column + x + 8 * j);
        top = larger(top, scores.at[i][j]);
      }
      top = largestOfRow(top);
      // While a row has seen nothing but -inf, there is nothing to correct.
      const float base = top == minusInfinity() ? 0.0f : top;
      const float correction = exponential2((best[i] - base) * log2OfE);
      best[i] = top;
      total[i] *= correction;
#pragma unroll
      for (int d = 0; d < Tile::packs * 4; ++d)
        sum.at[i][d] *= correction;
      for (int j = 0; j < Tile::each; ++j) {
        const float weight = exponential2((scores.at[i][j] - base) * log2OfE);
        total[i] += weight;
        float &kept = weights.at[y + 8 * i][x + 8 * j];
        kept = p.dropout.threshold ? weight * kept : weight;
      }
    }
    syncBlock();
    addWeighted<depth>(weights, values, sum);
  }
#pragma unroll
  for (int i = 0; i < Tile::each; ++i) {
    const int32_t row = first + y + 8 * i;
    const float whole = sumOfRow(total[i]);
    const float inverse = 1 / whole;
#pragma unroll
    for (int d = 0; d < Tile::packs * 4; ++d)
      sum.at[i][d] *= inverse;
    if (x == 0 && row < p.rows)
      lse[head * p.rows + row] = best[i] + logarithm2(whole) * lnOf2;
  }
  storeVectors<depth>(sum, o + head * p.rows * p.depth, first, p.rows, p.depth);
}

/// means[row] = dO[row] . o[row], one warp for each row.
template <class T>
__device__ void rowProducts(const T *dO, const T *o, float *means, int64_t rows,
                            int32_t depth) {
  const int64_t row = globalIndex() / 32;
  if (row >= rows)
    return;
  float sum = 0;
  for (int32_t d = threadIndex() % 32; d < depth; d += 32)
    sum = fusedMultiplyAdd(toFloat(dO[row * depth + d]),
                           toFloat(o[row * depth + d]), sum);
  for (int mask = 16; mask; mask /= 2)
    sum += shuffleXor(sum, mask);
  if (threadIndex() % 32 == 0)
    means[row] = sum;
}

/// What both backward kernels compute of one pair: the probability with
/// dropout, and the gradient of the score.
struct PairGradient {
  float probability, score;
};

/// `dropped` is the factor of dropout, if there is any.
__device__ inline PairGradient pairGradient(const AttentionParameters &p,
                                            const float *mask, const float *lse,
                                            const float *means, int32_t row,
                                            int32_t column, float product,
                                            float gradient, float dropped) {
  const float score = maskedScore(p, mask, product, row, column);
  // Nothing is seen; also keeps reads inside of lse.
  if (score == minusInfinity())
    return {0, 0};
  const float probability = exponential2((score - lse[row]) * log2OfE);
  const float factor = p.dropout.threshold ? dropped : 1.0f;
  return {probability * factor,
          probability * (gradient * factor - means[row]) * p.scale};
}

template <int depth, class T>
__device__ void attentionGradientQ(const AttentionParameters &p,
                                   const uint64_t *state, const T *dO,
                                   const T *q, const T *k, const T *v,
                                   const float *mask, const float *lse,
                                   const float *means, T *dq) {
  using Tile = Tiles<depth>;
  __shared__ typename Tile::Vectors queries, outputs, keys, values;
  __shared__ typename Tile::Scores gradients;
  const auto [head, tile] = ownTile(p);
  const int x = threadX(), y = threadY();
  const int32_t first = tile * Tile::size;
  const int64_t rowsAt = head * p.rows * p.depth;
  const int64_t columnsAt = head * p.columns * p.depth;
  mask = maskOfHead(p, mask, head);
  lse += head * p.rows;
  means += head * p.rows;

  typename Tile::VectorPart sum = {};
  loadVectors<depth>(queries, q + rowsAt, first, p.rows, p.depth);
  loadVectors<depth>(outputs, dO + rowsAt, first, p.rows, p.depth);
  const int32_t visible = visibleColumns(p, first + Tile::size);
  for (int32_t column = 0; column < visible; column += Tile::size) {
    syncBlock();
    loadVectors<depth>(keys, k + columnsAt, column, p.columns, p.depth);
    loadVectors<depth>(values, v + columnsAt, column, p.columns, p.depth);
    loadFactors<depth, false>(gradients, p, state, head, first, column);
    syncBlock();
    typename Tile::ScorePart scores, products;
    dotProducts<depth>(queries, keys, scores);
    dotProducts<depth>(outputs, values, products);
    for (int i = 0; i < Tile::each; ++i)
      for (int j = 0; j < Tile::each; ++j) {
        float &gradient = gradients.at[y + 8 * i][x + 8 * j];
        gradient = pairGradient(p, mask, lse, means, first + y + 8 * i,
                                column + x + 8 * j, scores.at[i][j],
                                products.at[i][j], gradient)
                       .score;
      }
    syncBlock();
    addWeighted<depth>(gradients, keys, sum);
  }
  storeVectors<depth>(sum, dq + rowsAt, first, p.rows, p.depth);
}

template <int depth, class T>
__device__ void attentionGradientKV(const AttentionParameters &p,
                                    const uint64_t *state, const T *dO,
                                    const T *q, const T *k, const T *v,
                                    const float *mask, const float *lse,
                                    const float *means, T *dk, T *dv) {
  using Tile = Tiles<depth>;
  __shared__ typename Tile::Vectors queries, outputs, keys, values;
  __shared__ typename Tile::Scores probabilities, gradients;
  const auto [head, tile] = ownTile(p);
  const int x = threadX(), y = threadY();
  const int32_t first = tile * Tile::size;
  const int64_t rowsAt = head * p.rows * p.depth;
  const int64_t columnsAt = head * p.columns * p.depth;
  mask = maskOfHead(p, mask, head);
  lse += head * p.rows;
  means += head * p.rows;

  typename Tile::VectorPart sumK = {}, sumV = {};
  loadVectors<depth>(keys, k + columnsAt, first, p.columns, p.depth);
  loadVectors<depth>(values, v + columnsAt, first, p.columns, p.depth);
  // Rows above the diagonal see nothing of these columns.
  for (int32_t row = p.causal ? first : 0; row < p.rows; row += Tile::size) {
    syncBlock();
    loadVectors<depth>(queries, q + rowsAt, row, p.rows, p.depth);
    loadVectors<depth>(outputs, dO + rowsAt, row, p.rows, p.depth);
    loadFactors<depth, true>(probabilities, p, state, head, row, first);
    syncBlock();
    typename Tile::ScorePart scores, products;
    dotProducts<depth>(keys, queries, scores);
    dotProducts<depth>(values, outputs, products);
    for (int i = 0; i < Tile::each; ++i)
      for (int j = 0; j < Tile::each; ++j) {
        float &probability = probabilities.at[y + 8 * i][x + 8 * j];
        const PairGradient pair = pairGradient(
            p, mask, lse, means, row + x + 8 * j, first + y + 8 * i,
            scores.at[i][j], products.at[i][j], probability);
        probability = pair.probability;
        gradients.at[y + 8 * i][x + 8 * j] = pair.score;
      }
    syncBlock();
    addWeighted<depth>(probabilities, outputs, sumV);
    addWeighted<depth>(gradients, queries, sumK);
  }
  storeVectors<depth>(sumK, dk + columnsAt, first, p.columns, p.depth);
  storeVectors<depth>(sumV, dv + columnsAt, first, p.columns, p.depth);
}

extern "C" __global__ void attention_means_f32(const float *dO, const float *o,
                                               float *means, int64_t rows,
                                               int32_t depth) {
  rowProducts(dO, o, means, rows, depth);
}
extern "C" __global__ void attention_means_bf16(const Bf16 *dO, const Bf16 *o,
                                                float *means, int64_t rows,
                                                int32_t depth) {
  rowProducts(dO, o, means, rows, depth);
}

/// One set of kernels for vectors of at most `depth` elements of type T.
#define PIPEWRIGHT_ATTENTION_KERNELS(depth, T, suffix)                         \
  extern "C" __global__ void __launch_bounds__(attentionThreads)               \
      attention_##depth##suffix(const __grid_constant__ AttentionParameters p, \
                                const uint64_t *state, const T *q, const T *k, \
                                const T *v, const float *mask, T *o,           \
                                float *lse) {                                  \
    attentionForward<depth>(p, state, q, k, v, mask, o, lse);                  \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(attentionThreads)               \
      attention_dq_##depth##suffix(                                            \
          const __grid_constant__ AttentionParameters p,                       \
          const uint64_t *state, const T *dO, const T *q, const T *k,          \
          const T *v, const float *mask, const float *lse, const float *means, \
          T *dq) {                                                             \
    attentionGradientQ<depth>(p, state, dO, q, k, v, mask, lse, means, dq);    \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(attentionThreads)               \
      attention_dkv_##depth##suffix(                                           \
          const __grid_constant__ AttentionParameters p,                       \
          const uint64_t *state, const T *dO, const T *q, const T *k,          \
          const T *v, const float *mask, const float *lse, const float *means, \
          T *dk, T *dv) {                                                      \
    attentionGradientKV<depth>(p, state, dO, q, k, v, mask, lse, means, dk,    \
                               dv);                                            \
  }

PIPEWRIGHT_ATTENTION_KERNELS(32, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(64, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(128, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(256, float, _f32)
PIPEWRIGHT_ATTENTION_KERNELS(32, Bf16, _bf16)
PIPEWRIGHT_ATTENTION_KERNELS(64, Bf16, _bf16)
PIPEWRIGHT_ATTENTION_KERNELS(128, Bf16, _bf16)
PIPEWRIGHT_ATTENTION_KERNELS(256, Bf16, _bf16)
