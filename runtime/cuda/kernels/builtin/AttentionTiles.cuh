//===- AttentionTiles.cuh - Products of tiles in shared memory -*- C++ -*-===//
//
// Two ways to share the work on a tile among the threads of a block. Both say
// which rows, columns and elements a thread has (`row(i)`, `column(j)`,
// `element(k)`), and multiply tiles:
//
//   dotProducts   scores[r][c]  = a[r] . b[c]
//   addWeighted   vectors[r]   += sum over c of scores[r][c] * b[c]
//
// Scores are in registers: each thread has its part. What they need to become
// an operand is an Exchange in shared memory.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/cuda/kernels/builtin/Prelude.cuh"

/// In float, for operands of any type. 64 threads stand as 8 x 8: thread (y, x)
/// has rows y + 8 i, columns x + 8 j, and elements 4 x + 32 k ... + 3. Rows of
/// shared memory are four floats longer than their content, so that eight
/// neighbours that read four floats each never meet in a bank.
template <int vectorLength>
struct FloatTiles {
  static constexpr int depth = vectorLength;
  static constexpr int threads = 64;
  /// Rows and columns of a tile: as many as shared memory holds.
  static constexpr int size = depth <= 64 ? 32 : 2048 / depth;
  /// How many of each a thread has.
  static constexpr int rows = size / 8, columns = size / 8;
  static constexpr int elements = depth / 8;
  /// Neighbours that have the same rows.
  static constexpr int sharing = 8;

  using Element = float;
  struct Vectors {
    alignas(16) float at[size][depth + 4];
  };
  struct Scores {
    alignas(16) float at[size][size + 4];
  };
  using Exchange = Scores;
  struct ScorePart {
    float at[rows][columns];
  };
  struct VectorPart {
    float at[rows][elements];
  };

  __device__ static int x() { return threadIndex() % 8; }
  __device__ static int y() { return threadIndex() / 8; }
  __device__ static int row(int i) { return y() + 8 * i; }
  __device__ static int column(int j) { return x() + 8 * j; }
  __device__ static int element(int k) {
    return 4 * x() + 32 * (k / 4) + k % 4;
  }

  __device__ static void dotProducts(const Vectors &a, const Vectors &b,
                                     ScorePart &part) {
    part = {};
#pragma unroll 1
    for (int d = 0; d < depth; d += 4) {
      Pack<float, 4> left[rows], right[columns];
      for (int i = 0; i < rows; ++i)
        left[i] = loadPack<float, 4>(&a.at[row(i)][d]);
      for (int j = 0; j < columns; ++j)
        right[j] = loadPack<float, 4>(&b.at[column(j)][d]);
      for (int e = 0; e < 4; ++e)
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < columns; ++j)
            part.at[i][j] =
                fusedMultiplyAdd(left[i].at[e], right[j].at[e], part.at[i][j]);
    }
  }

  __device__ static void addWeighted(Exchange &scores, const ScorePart &own,
                                     const Vectors &b, VectorPart &part) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        scores.at[row(i)][column(j)] = own.at[i][j];
    syncBlock();
#pragma unroll 1
    for (int c = 0; c < size; c += 4) {
      Pack<float, 4> weights[rows];
      for (int i = 0; i < rows; ++i)
        weights[i] = loadPack<float, 4>(&scores.at[row(i)][c]);
      for (int e = 0; e < 4; ++e)
        for (int k = 0; k < elements; k += 4) {
          const auto pack = loadPack<float, 4>(&b.at[c + e][element(k)]);
          for (int i = 0; i < rows; ++i)
            for (int d = 0; d < 4; ++d)
              part.at[i][k + d] = fusedMultiplyAdd(weights[i].at[e], pack.at[d],
                                                   part.at[i][k + d]);
        }
    }
  }
};

/// By tensor cores, for bf16: products of 16 x 16 by 16 x 8 elements, summed in
/// float. Each warp has 16 rows; a lane has rows g and g + 8 of them, and of
/// every eight columns or elements the pair 2 t, 2 t + 1, where lane = 4 g + t
/// (PTX ISA, mma.m16n8k16). Scores are rounded to bf16 before they weight
/// vectors; two pairs of them are what a lane needs of the left operand, so
/// they never leave its registers. Rows of shared memory are eight elements
/// longer than their content, so that eight rows that ldmatrix reads never meet
/// in a bank.
template <int vectorLength>
struct TensorTiles {
  static constexpr int depth = vectorLength;
  /// Rows and columns of a tile: as many as shared memory holds.
  static constexpr int size = depth <= 64 ? 64 : 32;
  static constexpr int threads = 2 * size;
  static constexpr int rows = 2, columns = size / 4, elements = depth / 4;
  static constexpr int sharing = 4;

  using Element = Bf16;
  struct Vectors {
    alignas(16) Bf16 at[size][depth + 8];
  };
  struct Scores {
    alignas(16) Bf16 at[size][size + 8];
  };
  struct Exchange {};
  struct ScorePart {
    float at[rows][columns];
  };
  struct VectorPart {
    float at[rows][elements];
  };

  __device__ static int lane() { return threadIndex() % 32; }
  __device__ static int warpRow() { return threadIndex() / 32 * 16; }
  __device__ static int row(int i) { return warpRow() + lane() / 4 + 8 * i; }
  __device__ static int column(int j) {
    return j / 2 * 8 + 2 * (lane() % 4) + j % 2;
  }
  __device__ static int element(int k) { return column(k); }

  /// Operands of four matrices of 8 x 8.
  struct Matrices {
    uint32_t at[4];
  };
  /// Lane 8 i + r names row r of matrix i.
  __device__ static Matrices load(const Bf16 *rowOfLane) {
    Matrices m;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, "
                 "[%4];"
                 : "=r"(m.at[0]), "=r"(m.at[1]), "=r"(m.at[2]), "=r"(m.at[3])
                 : "r"(sharedAddress(rowOfLane))
                 : "memory");
    return m;
  }
  __device__ static Matrices loadTransposed(const Bf16 *rowOfLane) {
    Matrices m;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(m.at[0]), "=r"(m.at[1]), "=r"(m.at[2]), "=r"(m.at[3])
                 : "r"(sharedAddress(rowOfLane))
                 : "memory");
    return m;
  }

  /// Adds left * right to two rows of two columns.
  __device__ static void multiply(const Matrices &left, uint32_t right0,
                                  uint32_t right1, float *upper, float *lower) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
        : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]),
          "r"(right0), "r"(right1));
  }

  /// Two neighbours of a row as an operand.
  __device__ static uint32_t pair(float first, float second) {
    return fromFloat<Bf16>(first).bits |
           static_cast<uint32_t>(fromFloat<Bf16>(second).bits) << 16;
  }

  __device__ static void dotProducts(const Vectors &a, const Vectors &b,
                                     ScorePart &part) {
    part = {};
    const Bf16 *left = &a.at[warpRow() + lane() % 16][lane() / 16 * 8];
    const Bf16 *right = &b.at[lane() / 16 * 8 + lane() % 8][lane() / 8 % 2 * 8];
#pragma unroll 2
    for (int d = 0; d < depth; d += 16) {
      const Matrices own = load(left + d);
#pragma unroll
      for (int j = 0; j < columns; j += 4) {
        const Matrices other = load(right + j * 4 * (depth + 8) + d);
        multiply(own, other.at[0], other.at[1], &part.at[0][j], &part.at[1][j]);
        multiply(own, other.at[2], other.at[3], &part.at[0][j + 2],
                 &part.at[1][j + 2]);
      }
    }
  }

  template <class Unused>
  __device__ static void addWeighted(Unused &, const ScorePart &own,
                                     const Vectors &b, VectorPart &part) {
    const Bf16 *right = &b.at[lane() % 16][lane() / 16 * 8];
#pragma unroll
    for (int j = 0; j < columns; j += 4) {
      const Matrices weights = {{pair(own.at[0][j], own.at[0][j + 1]),
                                 pair(own.at[1][j], own.at[1][j + 1]),
                                 pair(own.at[0][j + 2], own.at[0][j + 3]),
                                 pair(own.at[1][j + 2], own.at[1][j + 3])}};
#pragma unroll
      for (int k = 0; k < elements; k += 4) {
        const Matrices other =
            loadTransposed(right + j * 4 * (depth + 8) + k * 4);
        multiply(weights, other.at[0], other.at[1], &part.at[0][k],
                 &part.at[1][k]);
        multiply(weights, other.at[2], other.at[3], &part.at[0][k + 2],
                 &part.at[1][k + 2]);
      }
    }
  }
};

/// `size` vectors of a matrix, from row `first` on, into shared memory; what
/// does not exist becomes zero. Rows are `stride` elements apart.
template <class Tile, class T>
__device__ void loadVectors(typename Tile::Vectors &to, const T *from,
                            int32_t stride, int32_t first, int32_t rows,
                            int32_t depth) {
  constexpr int width = 16 / sizeof(T);
  constexpr int elements = Tile::size * Tile::depth;
  const bool packed = depth % width == 0 && stride % width == 0 &&
                      reinterpret_cast<uint64_t>(from) % 16 == 0;
  from += static_cast<int64_t>(first) * stride;
  if (packed) {
#pragma unroll 4
    for (int i = width * threadIndex(); i < elements;
         i += width * Tile::threads) {
      const int r = i / Tile::depth, d = i % Tile::depth;
      Pack<T, width> values = {};
      if (first + r < rows && d < depth)
        values = loadPack<T, width>(from + r * stride + d);
      if constexpr (sizeof(T) == sizeof(typename Tile::Element)) {
        storePack<T, width>(&to.at[r][d], values);
        continue;
      }
#pragma unroll
      for (int e = 0; e < width; ++e)
        to.at[r][d + e] =
            fromFloat<typename Tile::Element>(toFloat(values.at[e]));
    }
    return;
  }
#pragma unroll 1
  for (int i = threadIndex(); i < elements; i += Tile::threads) {
    const int r = i / Tile::depth, d = i % Tile::depth;
    const bool exists = first + r < rows && d < depth;
    to.at[r][d] = fromFloat<typename Tile::Element>(
        exists ? toFloat(from[r * stride + d]) : 0.0f);
  }
}

/// The part's vectors, those that exist, to memory.
template <class Tile, class T>
__device__ void storeVectors(const typename Tile::VectorPart &part, T *to,
                             int32_t stride, int32_t first, int32_t rows,
                             int32_t depth) {
#pragma unroll
  for (int i = 0; i < Tile::rows; ++i) {
    const int32_t row = first + Tile::row(i);
    if (row >= rows)
      continue;
#pragma unroll
    for (int k = 0; k < Tile::elements; ++k)
      if (Tile::element(k) < depth)
        to[static_cast<int64_t>(row) * stride + Tile::element(k)] =
            fromFloat<T>(part.at[i][k]);
  }
}

/// The largest, or the sum, over the threads that share rows.
template <class Tile>
__device__ float largestOfRow(float value) {
  for (int mask = Tile::sharing / 2; mask; mask /= 2)
    value = larger(value, shuffleXor(value, mask));
  return value;
}
template <class Tile>
__device__ float sumOfRow(float value) {
  for (int mask = Tile::sharing / 2; mask; mask /= 2)
    value += shuffleXor(value, mask);
  return value;
}
