//===- Matmul.h - Matrix products over row-major buffers -------*- C++ -*-===//
//
// y = alpha * op(a) * op(b) + beta * y, for one matrix or a batch of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_MATMUL_H
#define PIPEWRIGHT_RUNTIME_CPU_MATMUL_H

#include "runtime/calls/Matmul.h"
#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

/// Called in setUp, once per bf16 shape used in a step: its primitive.
void prepareMatmul(Rank &rank, const MatmulShape &shape);

void matmul(Rank &rank, const MatmulShape &shape, Buffer a, Buffer b, Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_MATMUL_H
