//===- Dropout.cpp - Dropout by counter-based random numbers --------------===//

#include "runtime/calls/Dropout.h"
#include "runtime/core/BFloat16.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/RandomFactors.h"
#include "runtime/cpu/Rank.h"

using namespace pipewright::runtime;

static void store(float value, float &to) { to = value; }
static void store(float value, BFloat16 &to) { to = narrow(value); }

template <class Element>
static void dropElements(Rank &rank, const DropoutShape &shape,
                         int64_t microBatch, const Element *from, Element *to) {
  const RandomStream stream = {
      rank.seed(), static_cast<uint32_t>(shape.id),
      static_cast<uint32_t>(rank.numberInBatch(microBatch)),
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
                    store(widen(from[first + i]) * factors[i], to[first + i]);
                }
              });
}

template <>
void pipewright::runtime::dropout(Rank &rank, const DropoutShape &shape,
                                  int64_t microBatch, Buffer x, Buffer y) {
  if (shape.type == ElementType::BF16)
    dropElements(rank, shape, microBatch, rank.data<const BFloat16>(x),
                 rank.data<BFloat16>(y));
  else
    dropElements(rank, shape, microBatch, rank.data<const float>(x),
                 rank.data<float>(y));
  rank.poll();
}
