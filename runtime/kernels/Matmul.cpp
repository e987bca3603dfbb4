//===- Matmul.cpp - Matrix products over row-major buffers ----------------===//
//
// f32: dnnl_sgemm everywhere; oneDNN's matmul primitive on plain layouts falls
// to less than half of its speed where a row is a multiple of 4 KiB. bf16: that
// primitive, which uses AMX or AVX-512 BF16 where there is any.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Matmul.h"
#include "runtime/core/Error.h"
#include "runtime/kernels/Parallel.h"

#include <cstdlib>
#include <dnnl.hpp>
#include <map>
#include <tuple>

using namespace pipewright::runtime;
using dnnl::memory;

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

static void multiply(const MatmulShape &s, const float *a, const float *b,
                     float *y) {
  const dnnl_status_t status =
      dnnl_sgemm(s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m, s.n,
                 s.k, s.alpha, a, s.transposeA ? s.m : s.k, b,
                 s.transposeB ? s.k : s.n, s.beta, y, s.n);
  if (status != dnnl_success)
    fail("dnnl_sgemm(", s.m, " x ", s.n, " x ", s.k, ") failed with status ",
         static_cast<int>(status));
}

static void multiplyFloats(Rank &rank, const MatmulShape &s, Buffer a, Buffer b,
                           Buffer y) {
  const float *aData = rank.data<float>(a);
  const float *bData = rank.data<float>(b);
  float *yData = rank.data<float>(y);
  if (s.batch == 1) {
    multiply(s, aData, bData, yData);
    return;
  }
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

/// A product of one shape.
struct Product {
  dnnl::matmul primitive;
  memory a, b, y, scratchpad;
};

/// All products of a rank, and the scratch that they share.
class Products : public LibraryState {
public:
  ~Products() override { std::free(scratch); }

  Product &find(Rank &rank, const MatmulShape &shape);

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  void *scratch = nullptr;

private:
  Product make(const MatmulShape &shape) const;
  void reserve(Rank &rank, size_t bytes);

  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool, bool,
                         float, float, ElementType>;
  std::map<Key, Product> known;
  size_t scratchBytes = 0;
};

} // namespace

Product Products::make(const MatmulShape &s) const {
  auto desc = [&](int64_t batch, int64_t rows, int64_t columns, bool transposed,
                  ElementType type) {
    return memory::desc({batch, rows, columns},
                        type == ElementType::BF16 ? memory::data_type::bf16
                                                  : memory::data_type::f32,
                        transposed ? memory::format_tag::acb
                                   : memory::format_tag::abc);
  };
  const auto a = desc(s.batch, s.m, s.k, s.transposeA, s.type);
  const auto b =
      desc(s.broadcastB ? 1 : s.batch, s.k, s.n, s.transposeB, s.type);
  const auto y = desc(s.batch, s.m, s.n, false, s.result);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.alpha != 1)
    attr.set_output_scales(0, {s.alpha});
  if (s.beta != 0) {
    dnnl::post_ops sum;
    sum.append_sum(s.beta);
    attr.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc primitive(dnnl::matmul::desc(a, b, y),
                                               attr, engine);
  return {dnnl::matmul(primitive), memory(a, engine, nullptr),
          memory(b, engine, nullptr), memory(y, engine, nullptr),
          memory(primitive.scratchpad_desc(), engine, nullptr)};
}

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

Product &Products::find(Rank &rank, const MatmulShape &s) {
  const Key key = {s.batch,      s.m,          s.n,     s.k,    s.transposeA,
                   s.transposeB, s.broadcastB, s.alpha, s.beta, s.result};
  const auto found = known.find(key);
  if (found != known.end())
    return found->second;
  try {
    Product product = make(s);
    reserve(rank, product.scratchpad.get_desc().get_size());
    return known.emplace(key, std::move(product)).first->second;
  } catch (const dnnl::error &error) {
    fail("this machine has no bf16 product of ", s.m, " x ", s.n, " x ", s.k,
         " (oneDNN: ", error.what(),
         "); bf16 needs AVX-512 on CPUs, else compile with --precision f32");
  }
}

static void multiplyShorts(Rank &rank, const MatmulShape &s, Buffer a, Buffer b,
                           Buffer y) {
  Products &products = rank.library<Products>();
  Product &product = products.find(rank, s);
  product.a.set_data_handle(rank.data<char>(a));
  product.b.set_data_handle(rank.data<char>(b));
  product.y.set_data_handle(rank.data<char>(y));
  product.scratchpad.set_data_handle(products.scratch);
  product.primitive.execute(products.stream,
                            {{DNNL_ARG_SRC, product.a},
                             {DNNL_ARG_WEIGHTS, product.b},
                             {DNNL_ARG_DST, product.y},
                             {DNNL_ARG_SCRATCHPAD, product.scratchpad}});
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

void pipewright::runtime::prepareMatmul(Rank &rank, const MatmulShape &shape) {
  if (shape.type == ElementType::BF16)
    rank.library<Products>().find(rank, joinRows(shape));
}

void pipewright::runtime::matmul(Rank &rank, const MatmulShape &shape, Buffer a,
                                 Buffer b, Buffer y) {
  const MatmulShape s = joinRows(shape);
  if (s.type == ElementType::BF16)
    multiplyShorts(rank, s, a, b, y);
  else
    multiplyFloats(rank, s, a, b, y);
  rank.poll();
}
