//===- StripProduct.cpp - Products of matrices in the cache ---------------===//

#include "runtime/cpu/StripProduct.h"
#include "runtime/cpu/Sgemm.h"

#include <algorithm>
#include <array>
#include <utility>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

using namespace pipewright::runtime;

/// The first `lanes` numbers; zeros are in the place of others.
static Floats loadPart(const float *from, int64_t lanes) {
#ifdef __AVX512F__
  return (Floats)_mm512_maskz_loadu_ps((1u << lanes) - 1, from);
#else
  Floats v = {};
  std::memcpy(&v, from, lanes * sizeof(float));
  return v;
#endif
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

#ifdef __AVX512F__

static constexpr int64_t tileRows = 8;

/// Vectors of a row that are summed at a time; with the rows of a tile they
/// leave registers for the operands.
static constexpr int64_t tileVectors = 3;

namespace {

/// Some vectors of some rows of y. The last vector is whole, or has so many
/// lanes if it is ragged.
struct Tile {
  StripRows a;
  StripColumns b;
  float *y;
  int64_t stride, sums, lanes;
  float alpha;
  bool adds;
};

} // namespace

template <int64_t Rows, int64_t Vectors, bool Ragged>
static void multiplyTile(const Tile &tile) {
  const auto load = [&](const float *from, int64_t vector) {
    return Ragged && vector == Vectors - 1
               ? loadPart(from + vector * vectorLanes, tile.lanes)
               : loadFloats(from + vector * vectorLanes);
  };
  Floats sums[Rows][Vectors] = {};
  const float *a = tile.a.data, *b = tile.b.data;
#pragma GCC unroll 2
  for (int64_t k = 0; k < tile.sums; ++k) {
    Floats right[Vectors];
    for (int64_t v = 0; v < Vectors; ++v)
      right[v] = load(b, v);
    for (int64_t r = 0; r < Rows; ++r)
      for (int64_t v = 0; v < Vectors; ++v)
        sums[r][v] += a[r * tile.a.row] * right[v];
    a += tile.a.sum;
    b += tile.b.stride;
  }
  for (int64_t r = 0; r < Rows; ++r)
    for (int64_t v = 0; v < Vectors; ++v) {
      float *const to = tile.y + r * tile.stride;
      Floats sum = tile.alpha * sums[r][v];
      if (tile.adds)
        sum += load(to, v);
      if (Ragged && v == Vectors - 1)
        std::memcpy(to + v * vectorLanes, &sum, tile.lanes * sizeof(float));
      else
        storeFloats(to + v * vectorLanes, sum);
    }
}

using MultiplyTile = void (*)(const Tile &);

/// By rows less one, then by vectors less one.
template <bool Ragged, int64_t... I>
static constexpr std::array<MultiplyTile, sizeof...(I)>
tilesOf(std::integer_sequence<int64_t, I...>) {
  return {multiplyTile<I / tileVectors + 1, I % tileVectors + 1, Ragged>...};
}
using TileNumbers = std::make_integer_sequence<int64_t, tileRows * tileVectors>;
static constexpr auto wholeTiles = tilesOf<false>(TileNumbers());
static constexpr auto raggedTiles = tilesOf<true>(TileNumbers());

static void multiplyTiles(const StripProduct &p, StripRows a, StripColumns b,
                          float *y, int64_t stride) {
  for (int64_t column = 0; column < p.columns;) {
    const int64_t left = (p.columns - column + vectorLanes - 1) / vectorLanes;
    // Four are two and two rather than three and one.
    const int64_t tilesLeft = (left + tileVectors - 1) / tileVectors;
    const int64_t vectors = (left + tilesLeft - 1) / tilesLeft;
    const int64_t columns = std::min(vectors * vectorLanes, p.columns - column);
    const int64_t lanes = columns - (vectors - 1) * vectorLanes;
    const auto &tiles = lanes == vectorLanes ? wholeTiles : raggedTiles;
    tiles[(p.rows - 1) * tileVectors + vectors - 1](
        {a,
         {b.data + column, b.stride},
         y + column,
         stride,
         p.sums,
         lanes,
         p.alpha,
         p.adds});
    column += columns;
  }
}

#endif

/// 256 KiB each of keys and of values.
[[maybe_unused]] static constexpr int64_t mostCached = 65536;

int64_t pipewright::runtime::stripRowsFor([[maybe_unused]] int64_t elements) {
#ifdef __AVX512F__
  if (elements <= mostCached)
    return tileRows;
#endif
  return 64;
}

void pipewright::runtime::multiplyStrip(const StripProduct &p, StripRows a,
                                        StripColumns b, float *y,
                                        int64_t stride) {
#ifdef __AVX512F__
  if (p.rows <= tileRows)
    return multiplyTiles(p, a, b, y, stride);
#endif
  MatmulShape shape = {.m = p.rows, .n = p.columns, .k = p.sums};
  shape.transposeA = a.row == 1 && a.sum >= p.rows;
  shape.alpha = p.alpha;
  shape.beta = p.adds ? 1 : 0;
  sgemm(shape, {a.data, shape.transposeA ? a.sum : a.row}, {b.data, b.stride},
        y, stride);
}

//===----------------------------------------------------------------------===//
// Transposition
//===----------------------------------------------------------------------===//

static Floats lowHalves(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                 6, 22, 7, 23);
}
static Floats highHalves(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                 29, 14, 30, 15, 31);
}

/// Riffles the first half of all numbers with the second. Four times make the
/// transposed matrix, as each takes a bit of a number's place to its front.
static void riffle(Floats (&v)[vectorLanes]) {
  Floats result[vectorLanes];
  for (int64_t i = 0; i < vectorLanes / 2; ++i) {
    result[2 * i] = lowHalves(v[i], v[i + vectorLanes / 2]);
    result[2 * i + 1] = highHalves(v[i], v[i + vectorLanes / 2]);
  }
  std::copy(result, result + vectorLanes, v);
}

void pipewright::runtime::transposeRows(StripColumns from, int64_t rows,
                                        int64_t columns, float *to,
                                        int64_t stride) {
  for (int64_t i = 0; i < rows; i += vectorLanes)
    for (int64_t j = 0; j < columns; j += vectorLanes) {
      const int64_t height = std::min(vectorLanes, rows - i);
      const int64_t width = std::min(vectorLanes, columns - j);
      Floats block[vectorLanes];
      for (int64_t r = 0; r < vectorLanes; ++r)
        block[r] = r < height
                       ? loadPart(from.data + (i + r) * from.stride + j, width)
                       : Floats{};
      for (int64_t bits = vectorLanes; bits > 1; bits /= 2)
        riffle(block);
      for (int64_t c = 0; c < width; ++c)
        storeFloats(to + (j + c) * stride + i, block[c]);
    }
}
