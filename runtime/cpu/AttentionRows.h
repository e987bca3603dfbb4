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

#include "runtime/calls/Attention.h"
#include "runtime/cpu/RandomFactors.h"
#include "runtime/cpu/VectorMath.h"
#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

/// Query rows of one block: small enough for the cache, large enough for the
/// matrix products.
constexpr int64_t attentionBlockRows = 64;

inline int64_t columnsOf(const AttentionShape &shape) {
  return shape.columns ? shape.columns : shape.rows;
}
inline int64_t wholeVectors(int64_t count) {
  return (count + vectorLanes - 1) / vectorLanes * vectorLanes;
}

/// What forward keeps of a row: its softmax is exp(score - max) * inverse. Both
/// are 0 where it sees nothing but -inf.
struct RowStats {
  float max, inverse;
};

/// The rows of scores of one head.
class AttentionRows {
public:
  /// `mask` is that of all heads, or null; `factors` has room for one row.
  AttentionRows(const Rank &rank, const AttentionShape &shape,
                int64_t microBatch, int64_t head, const float *mask,
                float *factors);

  /// Adds the mask to a row and puts -inf behind what it sees.
  void mask(float *row, int64_t index, int64_t visible) const;
  /// Turns scores into exp(score - max), with dropout applied; `inverse` is 1 /
  /// their sum before dropout.
  RowStats exponentiate(float *row, int64_t index, int64_t visible) const;
  /// Turns a row of scores into (dropped) probabilities P and a row of their
  /// gradients dP into the gradients of the scores, P (dP - sum P dP). The sum
  /// is taken of these very dP, not as the dot product of the result's row and
  /// its gradient: where one P is 1, the difference is then exactly 0.
  void differentiate(float *scores, float *gradients, int64_t index,
                     int64_t visible, RowStats stats) const;

private:
  void loadFactors(int64_t index, int64_t visible) const;

  const AttentionShape &shape;
  const RandomStream random;
  const int64_t head;
  const float *headMask;
  float *factors;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_ATTENTIONROWS_H
