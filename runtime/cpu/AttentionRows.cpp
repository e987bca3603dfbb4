//===- AttentionRows.cpp - Softmax over rows of scores --------------------===//

#include "runtime/cpu/AttentionRows.h"

#include <algorithm>
#include <limits>

using namespace pipewright::runtime;

static constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

AttentionRows::AttentionRows(const Rank &rank, const AttentionShape &s,
                             int64_t microBatch, int64_t head,
                             const float *mask, float *factors)
    : shape(s), random{rank.seed(), static_cast<uint32_t>(s.dropoutId),
                       static_cast<uint32_t>(rank.numberInBatch(microBatch)),
                       static_cast<uint32_t>(rank.step())},
      head(head), headMask(nullptr), factors(factors) {
  if (!mask)
    return;
  const int64_t maskBatch = s.maskBatch == 1 ? 0 : head / s.heads;
  const int64_t maskHead = s.maskHeads == 1 ? 0 : head % s.heads;
  headMask =
      mask + (maskBatch * s.maskHeads + maskHead) * s.maskRows * s.maskColumns;
}

void AttentionRows::mask(float *row, int64_t index, int64_t visible) const {
  if (headMask) {
    const int64_t maskRow = shape.maskRows == 1 ? 0 : index;
    const float *mask = headMask + maskRow * shape.maskColumns;
    if (shape.maskColumns == 1)
      for (int64_t c = 0; c < visible; ++c)
        row[c] += mask[0];
    else
      for (int64_t c = 0; c < visible; ++c)
        row[c] += mask[c];
  }
  const int64_t seen = shape.causal ? std::min(visible, index + 1) : visible;
  const int64_t end = wholeVectors(visible);
  for (int64_t c = seen; c < end; ++c)
    row[c] = minusInfinity;
}

void AttentionRows::loadFactors(int64_t index, int64_t visible) const {
  const int64_t element = (head * shape.rows + index) * columnsOf(shape);
  randomFactors(random, shape.dropoutRate, element, visible, factors);
}

RowStats AttentionRows::exponentiate(float *row, int64_t index,
                                     int64_t visible) const {
  Floats best = loadFloats(row);
  for (int64_t c = vectorLanes; c < visible; c += vectorLanes) {
    const Floats v = loadFloats(row + c);
    best = v > best ? v : best;
  }
  // Taking -inf off -inf would make NaN; the powers of -inf are 0 anyway.
  const float top = maxLanes(best);
  const float max = top == minusInfinity ? 0 : top;
  Floats sum = {};
  for (int64_t c = 0; c < visible; c += vectorLanes) {
    const Floats e = exponential(loadFloats(row + c) - max);
    sum += e;
    storeFloats(row + c, e);
  }
  if (shape.dropoutRate > 0) {
    loadFactors(index, visible);
    for (int64_t c = 0; c < visible; ++c)
      row[c] *= factors[c];
  }
  const float total = sumLanes(sum);
  return {max, total > 0 ? 1 / total : total};
}

void AttentionRows::differentiate(float *scores, float *gradients,
                                  int64_t index, int64_t visible,
                                  RowStats stats) const {
  const bool drops = shape.dropoutRate > 0;
  if (drops)
    loadFactors(index, visible);
  Floats sum = {};
  for (int64_t c = 0; c < visible; c += vectorLanes) {
    const Floats p =
        exponential(loadFloats(scores + c) - stats.max) * stats.inverse;
    Floats dp = loadFloats(gradients + c);
    if (drops)
      storeFloats(gradients + c, dp *= loadFloats(factors + c));
    sum += p * dp;
    storeFloats(scores + c, p);
  }
  const float mean = sumLanes(sum), scale = shape.scale;
  for (int64_t c = 0; c < visible; c += vectorLanes) {
    const Floats p = loadFloats(scores + c);
    storeFloats(gradients + c, p * (loadFloats(gradients + c) - mean) * scale);
    if (drops)
      storeFloats(scores + c, p * loadFloats(factors + c));
  }
}
