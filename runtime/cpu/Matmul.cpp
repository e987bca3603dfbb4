//===- Matmul.cpp - Matrix products over row-major buffers ----------------===//
//
// f32: dnnl_sgemm, but for few rows by a transposed matrix and where long rows
// are better copied; oneDNN's matmul primitive on plain layouts falls to less
// than half of its speed where a row is a multiple of 4 KiB. bf16: that
// primitive, which uses AMX or AVX-512 BF16 where there is any.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Matmul.h"
#include "runtime/core/Error.h"
#include "runtime/cpu/BFloat16Product.h"
#include "runtime/cpu/FewRows.h"
#include "runtime/cpu/PaddedProduct.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Rank.h"
#include "runtime/cpu/Sgemm.h"

#include <cstdlib>
#include <dnnl.hpp>
#include <map>
#include <tuple>

using namespace pipewright::runtime;

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

static void multiply(const MatmulShape &s, const float *a, const float *b,
                     float *y) {
  sgemm(s, {a, s.transposeA ? s.m : s.k}, {b, s.transposeB ? s.k : s.n}, y,
        s.n);
}

static void multiplyFloats(Rank &rank, const MatmulShape &s, Buffer a, Buffer b,
                           Buffer y) {
  const float *aData = rank.data<float>(a);
  const float *bData = rank.data<float>(b);
  float *yData = rank.data<float>(y);
  if (hasFewRows(s))
    return multiplyFewRows(s, aData, bData, yData,
                           threadsFor(rank.threads(), s.n * s.k));
  if (isFasterPadded(s))
    return multiplyPadded(rank, s, aData, bData, yData);
  if (s.batch == 1)
    return multiply(s, aData, bData, yData);
  const int64_t bStride = s.broadcastB ? 0 : s.k * s.n;
  // Many small products: one thread each. A few large ones: each by all.
  const int64_t threads = s.batch >= rank.threads() ? rank.threads() : 1;
  parallelFor(threads, s.batch, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i)
      multiply(s, aData + i * s.m * s.k, bData + i * bStride,
               yData + i * s.m * s.n);
  });
}

//===----------------------------------------------------------------------===//
// bf16
//===----------------------------------------------------------------------===//

namespace {

/// All products of a rank, and the scratch that they share.
class Products : public LibraryState {
public:
  ~Products() override { std::free(scratch); }

  BFloat16Product &find(Rank &rank, const MatmulShape &shape);

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  void *scratch = nullptr;

private:
  void reserve(Rank &rank, size_t bytes);

  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool, bool,
                         float, float, ElementType>;
  std::map<Key, BFloat16Product> known;
  size_t scratchBytes = 0;
};

} // namespace

void Products::reserve(Rank &rank, size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (bytes <= scratchBytes)
    return;
  std::free(scratch);
  scratch = std::aligned_alloc(64, bytes);
  if (!scratch)
    fail("cannot allocate ", bytes, " bytes for matrix products");
  rank.countScratch(bytes - scratchBytes);
  scratchBytes = bytes;
}

BFloat16Product &Products::find(Rank &rank, const MatmulShape &s) {
  const Key key = {s.batch,      s.m,          s.n,     s.k,    s.transposeA,
                   s.transposeB, s.broadcastB, s.alpha, s.beta, s.result};
  const auto found = known.find(key);
  if (found != known.end())
    return found->second;
  BFloat16Product product(engine, s);
  reserve(rank, product.scratchBytes());
  return known.emplace(key, std::move(product)).first->second;
}

static void multiplyShorts(Rank &rank, const MatmulShape &s, Buffer a, Buffer b,
                           Buffer y) {
  Products &products = rank.library<Products>();
  products.find(rank, s).run(products.stream, rank.data<char>(a),
                             rank.data<char>(b), rank.data<char>(y),
                             products.scratch);
  products.stream.wait();
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

/// One b for all rows: a batch of products is one taller product.
static MatmulShape joinRows(MatmulShape s) {
  if (s.broadcastB && !s.transposeA) {
    s.m *= s.batch;
    s.batch = 1;
  }
  if (s.batch == 1)
    s.broadcastB = false;
  return s;
}

template <>
void pipewright::runtime::prepareMatmul(Rank &rank, const MatmulShape &shape) {
  if (shape.type == ElementType::BF16)
    rank.library<Products>().find(rank, joinRows(shape));
}

template <>
void pipewright::runtime::matmul(Rank &rank, const MatmulShape &shape, Buffer a,
                                 Buffer b, Buffer y) {
  const MatmulShape s = joinRows(shape);
  if (s.type == ElementType::BF16)
    multiplyShorts(rank, s, a, b, y);
  else
    multiplyFloats(rank, s, a, b, y);
  rank.poll();
}
