//===- BFloat16Product.h - One matrix product of bf16 ----------*- C++ -*-===//
//
// A primitive of oneDNN for dense operands, which uses AMX or AVX-512 BF16
// where there is any. Sums are f32.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_BFLOAT16PRODUCT_H
#define PIPEWRIGHT_RUNTIME_CPU_BFLOAT16PRODUCT_H

#include "runtime/calls/Matmul.h"

#include <dnnl.hpp>

namespace pipewright::runtime {

class BFloat16Product {
public:
  /// Throws an error that says what this machine lacks.
  BFloat16Product(const dnnl::engine &engine, const MatmulShape &shape);
  /// For another thread: the same primitive, operands of its own.
  BFloat16Product forThread() const;

  size_t scratchBytes() const { return scratch.get_desc().get_size(); }
  /// Runs on the calling thread's stream.
  void run(const dnnl::stream &stream, const void *aData, const void *bData,
           void *yData, void *scratchData);

private:
  BFloat16Product() = default;

  dnnl::matmul primitive;
  dnnl::memory a, b, y, scratch;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_BFLOAT16PRODUCT_H
