//===- AttentionRows.cpp - Softmax over rows of scores --------------------===//

#include "runtime/cpu/AttentionRows.h"

#include <algorithm>
#include <limits>

using namespace pipewright::runtime;

static constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

HeadStart::HeadStart(const AttentionShape &s, int64_t number) {
  const int64_t sample = number / s.heads, head = number % s.heads;
  auto at = [&](const AttentionStrides &strides, int64_t ofSample) {
    return sample * strides.sample + ofSample * strides.head;
  };
  rows = at(rowStrides(s), head);
  keys = at(keyStrides(s), head / s.group());
  outputs = at(outputStrides(s), head);
}

AttentionRows::AttentionRows(const Rank &rank, const AttentionShape &s,
                             int64_t microBatch, int64_t head,
                             const float *mask, float *dMask, float *room)
    : shape(s), random{rank.seed(), static_cast<uint32_t>(s.dropoutId),
                       static_cast<uint32_t>(rank.numberInBatch(microBatch)),
                       static_cast<uint32_t>(rank.step())},
      head(head), factors(room), slopes(room + wholeVectors(keysOf(s))) {
  const int64_t maskBatch = head / s.heads % s.maskBatch;
  const int64_t maskHead = s.maskHeads == 1 ? 0 : head % s.heads;
  const int64_t start =
      (maskBatch * s.maskHeads + maskHead) * s.maskRows * s.maskColumns;
  if (mask)
    headMask = mask + start;
  if (s.maskGradient)
    headGradient = dMask + start;
}

void AttentionRows::bound(float *row, int64_t visible) const {
  for (int64_t c = 0; c < visible; c += vectorLanes) {
    const Floats t =
        hyperbolicTangent(loadFloats(row + c) * (1 / shape.softcap));
    storeFloats(row + c, t * shape.softcap);
    storeFloats(slopes + c, 1.0f - t * t);
  }
}

void AttentionRows::mask(float *row, int64_t index, int64_t visible) const {
  if (shape.softcap > 0)
    bound(row, visible);
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
  const int64_t element = (head * shape.rows + index) * keysOf(shape);
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
  float *maskRow =
      headGradient ? headGradient + index * shape.maskColumns : nullptr;
  for (int64_t c = 0; c < visible; c += vectorLanes) {
    const Floats p = loadFloats(scores + c);
    Floats gradient = p * (loadFloats(gradients + c) - mean);
    if (maskRow)
      for (int64_t i = 0; i < std::min(vectorLanes, visible - c); ++i)
        maskRow[c + i] += gradient[i];
    gradient *= scale;
    if (shape.softcap > 0)
      gradient *= loadFloats(slopes + c);
    storeFloats(gradients + c, gradient);
    if (drops)
      storeFloats(scores + c, p * loadFloats(factors + c));
  }
}
