//===- Elements.h - Tensors of cuDNN's double in float ---------*- C++ -*-===//
//
// Engines compute on dense f32, whatever the type and strides in memory.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDNN_ELEMENTS_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDNN_ELEMENTS_H

#include "test/doubles/cudnn/Graph.h"

#include <bit>
#include <vector>

namespace pipewright::doubles {

inline float fromBFloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t toBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// To ten bits of mantissa, as tensor cores read f32.
inline float toTensorFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu);
}

/// Calls body(dense index, offset in elements) for each element of a tensor.
template <class Body>
void forElements(const Tensor &t, const Body &body) {
  int64_t dense = 0;
  for (int64_t a = 0; a < t.sizes[0]; ++a)
    for (int64_t b = 0; b < t.sizes[1]; ++b)
      for (int64_t c = 0; c < t.sizes[2]; ++c)
        for (int64_t d = 0; d < t.sizes[3]; ++d)
          body(dense++, a * t.strides[0] + b * t.strides[1] + c * t.strides[2] +
                            d * t.strides[3]);
}

/// Reads f32 or bf16; `rounds` as tensor cores do.
std::vector<float> load(const Tensor &tensor, const void *data, bool rounds);
/// Writes values + beta * what is there.
void store(const Tensor &tensor, const std::vector<float> &values, float beta,
           void *data);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDNN_ELEMENTS_H
