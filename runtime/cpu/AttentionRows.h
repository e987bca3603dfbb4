//===- AttentionRows.h - Softmax over rows of scores -----------*- C++ -*-===//
//
// What attention does between its matrix products, one row at a time and in
// f32 whatever the operands are: mask, softmax, dropout, and their gradients.
// Rows are whole vectors: what lies behind the last visible column, up to the
// end of the vector, is written too.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_ATTENTIONROWS_H
#define PIPEWRIGHT_RUNTIME_CPU_ATTENTIONROWS_H

#include "runtime/calls/AttentionStrides.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/RandomFactors.h"
#include "runtime/cpu/Rank.h"
#include "runtime/cpu/VectorMath.h"

namespace pipewright::runtime {

/// Query rows of one block: small enough for the cache, large enough for the
/// matrix products.
constexpr int64_t attentionBlockRows = 64;

inline int64_t wholeVectors(int64_t count) {
  return (count + vectorLanes - 1) / vectorLanes * vectorLanes;
}

/// Where head `number`, counted over all samples, begins in q, in k and v, and
/// in o, and in their gradients: elements.
struct HeadStart {
  HeadStart(const AttentionShape &shape, int64_t number);

  int64_t rows, keys, outputs;
};

/// What forward keeps of a row: its softmax is exp(score - max) * inverse. Both
/// are 0 where it sees nothing but -inf.
struct RowStats {
  float max, inverse;
};

/// The rows of scores of one head.
class AttentionRows {
public:
  /// `mask` and `dMask` are those of all heads, or null; there is `room` for
  /// two rows of whole vectors.
  AttentionRows(const Rank &rank, const AttentionShape &shape,
                int64_t microBatch, int64_t head, const float *mask,
                float *dMask, float *room);

  /// Bounds the scores of a row, adds the mask and puts -inf behind what it
  /// sees. Until the next row, `differentiate` knows the slopes of the bound.
  void mask(float *row, int64_t index, int64_t visible) const;
  /// Turns scores into exp(score - max), with dropout applied; `inverse` is 1 /
  /// their sum before dropout.
  RowStats exponentiate(float *row, int64_t index, int64_t visible) const;
  /// Turns a row of scores into (dropped) probabilities P and a row of their
  /// gradients dP into the gradients of the products under the scores, scale *
  /// slope * P (dP - sum P dP); without scale and slope these are added to the
  /// mask's gradient. `mask` has been called for the row just before. The sum
  /// is taken of these very dP, not as the dot product of the result's row and
  /// its gradient: where one P is 1, the difference is then exactly 0.
  void differentiate(float *scores, float *gradients, int64_t index,
                     int64_t visible, RowStats stats) const;

private:
  void bound(float *row, int64_t visible) const;
  void loadFactors(int64_t index, int64_t visible) const;

  const AttentionShape &shape;
  const RandomStream random;
  const int64_t head;
  const float *headMask = nullptr;
  float *headGradient = nullptr;
  /// A row each: what dropout multiplies by, and slopes of the bound.
  float *factors, *slopes;
};

/// So many samples, at equal distances, and heads of q of each, whose gradients
/// add to the same numbers: one thread takes them, in order.
struct AttentionTurn {
  int64_t samples, heads;
};
inline AttentionTurn backwardTurn(const AttentionShape &s) {
  return {s.maskGradient ? s.batch / s.maskBatch : 1,
          s.maskGradient && s.maskHeads == 1 ? s.heads : s.group()};
}

/// Where it is wanted, zeros to add to.
inline void clearMaskGradient(Rank &rank, const AttentionShape &s,
                              Buffer dMask) {
  if (s.maskGradient)
    std::memset(rank.data<float>(dMask), 0, dMask.bytes);
}

/// Calls body(head, thread) for every head of q, counted over all samples.
template <class Body>
void forAttentionHeads(int64_t threads, const AttentionShape &s,
                       AttentionTurn turn, const Body &body) {
  const int64_t turnsOfSample = s.heads / turn.heads;
  const int64_t distance = s.batch / turn.samples;
  parallelFor(threads, distance * turnsOfSample,
              [&](int64_t begin, int64_t end, int64_t thread) {
                for (int64_t n = begin; n < end; ++n)
                  for (int64_t i = 0; i < turn.samples * turn.heads; ++i) {
                    const int64_t sample =
                        n / turnsOfSample + i / turn.heads * distance;
                    body(sample * s.heads + n % turnsOfSample * turn.heads +
                             i % turn.heads,
                         thread);
                  }
              });
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_ATTENTIONROWS_H
