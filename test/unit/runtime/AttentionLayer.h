//===- AttentionLayer.h - Shapes of attention ------------------*- C++ -*-===//
//
// In few words: what calls of the runtime name side by side goes together here.
// Also the order of vectors that strides are for.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_RUNTIME_ATTENTIONLAYER_H
#define PIPEWRIGHT_TEST_UNIT_RUNTIME_ATTENTIONLAYER_H

#include "runtime/calls/Attention.h"

#include <array>
#include <vector>

namespace pipewright::runtime {

struct AttentionLayer {
  /// Samples, heads, rows, elements of a vector.
  std::array<int64_t, 4> vectors;
  int64_t columns = 0;
  float scale = 1;
  bool causal = false;
  float dropoutRate = 0;
  int64_t dropoutId = 0;
  /// Samples, heads, rows, columns.
  std::array<int64_t, 4> mask = {1, 1, 1, 1};
  ElementType type = ElementType::F32;
  int64_t inputStride = 0, outputStride = 0;
  /// Heads of k and v; 0 means as many.
  int64_t keyHeads = 0;
  float softcap = 0;
  bool maskGradient = false;

  bool isMasked() const { return mask != std::array<int64_t, 4>{1, 1, 1, 1}; }

  operator AttentionShape() const {
    const auto &[batch, heads, rows, depth] = vectors;
    return {batch,        heads,    rows,        columns,     depth,
            scale,        causal,   dropoutRate, dropoutId,   mask[0],
            mask[1],      mask[2],  mask[3],     type,        inputStride,
            outputStride, keyHeads, softcap,     maskGradient};
  }
};

/// Parts of [batch, heads, rows, depth] as [batch, rows, part, heads, depth].
inline std::vector<char>
interleaved(const AttentionShape &s, int64_t heads, int64_t rows,
            const std::vector<std::vector<char>> &parts) {
  const int64_t width = s.depth * byteWidth(s.type);
  const int64_t count = static_cast<int64_t>(parts.size());
  std::vector<char> result;
  for (int64_t row = 0; row < s.batch * rows; ++row)
    for (int64_t n = 0; n < count * heads; ++n) {
      const int64_t head = row / rows * heads + n % heads;
      const char *vector =
          &parts[n / heads][(head * rows + row % rows) * width];
      result.insert(result.end(), vector, vector + width);
    }
  return result;
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_UNIT_RUNTIME_ATTENTIONLAYER_H
