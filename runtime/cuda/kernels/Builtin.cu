//===- Builtin.cu - Kernels that are the same for every program -----------===//
//
// Gather, scatter, dropout, pooling: with indices or windows or
// random numbers that do not fit the row fusion of compiled kernels. Sizes are
// run-time parameters. No atomics on floats, so results have one order.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/kernels/builtin/Dropout.cuh"
#include "runtime/cuda/kernels/builtin/Embedding.cuh"
#include "runtime/cuda/kernels/builtin/Indices.cuh"
#include "runtime/cuda/kernels/builtin/Memory.cuh"
#include "runtime/cuda/kernels/builtin/Pooling.cuh"
