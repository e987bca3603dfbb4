//===- Dropout.cpp - Dropout by counter-based random numbers --------------===//

#include "runtime/kernels/Dropout.h"
#include "runtime/kernels/Parallel.h"
#include "runtime/kernels/RandomFactors.h"

using namespace pipewright::runtime;

void pipewright::runtime::dropout(Rank &rank, const DropoutShape &shape,
                                  int64_t microBatch, Buffer x, Buffer y) {
  const float *from = rank.data<float>(x);
  float *to = rank.data<float>(y);
  const RandomStream stream = {rank.seed(), static_cast<uint32_t>(shape.id),
                               static_cast<uint32_t>(microBatch),
                               static_cast<uint32_t>(rank.step())};
  constexpr int64_t chunk = 1024;
  const int64_t chunks = (shape.elements + chunk - 1) / chunk;
  parallelFor(threadsFor(rank.threads(), shape.elements), chunks,
              [&](int64_t begin, int64_t end, int64_t) {
                float factors[chunk];
                for (int64_t c = begin; c < end; ++c) {
                  const int64_t first = c * chunk;
                  const int64_t count = std::min(chunk, shape.elements - first);
                  randomFactors(stream, shape.rate, first, count, factors);
                  for (int64_t i = 0; i < count; ++i)
                    to[first + i] = from[first + i] * factors[i];
                }
              });
  rank.poll();
}
