//===- Elements.cpp - Tensors of cuDNN's double in float ------------------===//

#include "test/doubles/cudnn/Elements.h"

#include <cstring>

using namespace pipewright::doubles;

std::vector<float> pipewright::doubles::load(const Tensor &t, const void *data,
                                             bool rounds) {
  std::vector<float> values(t.sizes[0] * t.sizes[1] * t.sizes[2] * t.sizes[3]);
  forElements(t, [&](int64_t to, int64_t from) {
    if (t.type == CUDNN_DATA_FLOAT)
      std::memcpy(&values[to], static_cast<const float *>(data) + from, 4);
    else
      values[to] = fromBFloat16(static_cast<const uint16_t *>(data)[from]);
    if (rounds)
      values[to] = toTensorFloat(values[to]);
  });
  return values;
}

void pipewright::doubles::store(const Tensor &t,
                                const std::vector<float> &values, float beta,
                                void *data) {
  forElements(t, [&](int64_t from, int64_t to) {
    if (t.type == CUDNN_DATA_FLOAT) {
      float &out = static_cast<float *>(data)[to];
      out = values[from] + (beta != 0 ? beta * out : 0);
    } else {
      uint16_t &out = static_cast<uint16_t *>(data)[to];
      out =
          toBFloat16(values[from] + (beta != 0 ? beta * fromBFloat16(out) : 0));
    }
  });
}
