//===- BFloat16Product.cpp - One matrix product of bf16 -------------------===//

#include "runtime/cpu/BFloat16Product.h"
#include "runtime/core/Error.h"

using namespace pipewright::runtime;
using dnnl::memory;

static memory::desc describe(int64_t batch, int64_t rows, int64_t columns,
                             bool transposed, ElementType type) {
  return {{batch, rows, columns},
          type == ElementType::BF16 ? memory::data_type::bf16
                                    : memory::data_type::f32,
          transposed ? memory::format_tag::acb : memory::format_tag::abc};
}

static dnnl::primitive_attr attributesOf(const MatmulShape &s) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.alpha != 1)
    attr.set_output_scales(0, {s.alpha});
  if (s.beta != 0) {
    dnnl::post_ops sum;
    sum.append_sum(s.beta);
    attr.set_post_ops(sum);
  }
  return attr;
}

BFloat16Product::BFloat16Product(const dnnl::engine &engine,
                                 const MatmulShape &s) {
  const auto aDesc = describe(s.batch, s.m, s.k, s.transposeA, s.type);
  const auto bDesc =
      describe(s.broadcastB ? 1 : s.batch, s.k, s.n, s.transposeB, s.type);
  const auto yDesc = describe(s.batch, s.m, s.n, false, s.result);
  try {
    const dnnl::matmul::primitive_desc desc(
        dnnl::matmul::desc(aDesc, bDesc, yDesc), attributesOf(s), engine);
    primitive = dnnl::matmul(desc);
    a = memory(aDesc, engine, nullptr);
    b = memory(bDesc, engine, nullptr);
    y = memory(yDesc, engine, nullptr);
    scratch = memory(desc.scratchpad_desc(), engine, nullptr);
  } catch (const dnnl::error &error) {
    fail("oneDNN has no bf16 product of ", s.m, " x ", s.n, " x ", s.k,
         " on this CPU: ", error.what(), " (status ",
         static_cast<int>(error.status),
         "); compile with --precision f32 for it");
  }
}

BFloat16Product BFloat16Product::forThread() const {
  BFloat16Product copy;
  copy.primitive = primitive;
  const dnnl::engine engine = a.get_engine();
  copy.a = memory(a.get_desc(), engine, nullptr);
  copy.b = memory(b.get_desc(), engine, nullptr);
  copy.y = memory(y.get_desc(), engine, nullptr);
  copy.scratch = memory(scratch.get_desc(), engine, nullptr);
  return copy;
}

void BFloat16Product::run(const dnnl::stream &stream, const void *aData,
                          const void *bData, void *yData, void *scratchData) {
  a.set_data_handle(const_cast<void *>(aData));
  b.set_data_handle(const_cast<void *>(bData));
  y.set_data_handle(yData);
  scratch.set_data_handle(scratchData);
  primitive.execute(stream, {{DNNL_ARG_SRC, a},
                             {DNNL_ARG_WEIGHTS, b},
                             {DNNL_ARG_DST, y},
                             {DNNL_ARG_SCRATCHPAD, scratch}});
}
