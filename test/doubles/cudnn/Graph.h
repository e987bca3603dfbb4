//===- Graph.h - Tensors and convolutions of cuDNN's double ----*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDNN_GRAPH_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDNN_GRAPH_H

#include "test/doubles/cudnn/Descriptor.h"

#include <array>
#include <optional>

namespace pipewright::doubles {

struct Tensor {
  int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> sizes = {}, strides = {};
  int64_t alignment = 1;
  bool isVirtual = false;
  /// A number that variant packs point to on the host.
  bool isByValue = false;

  bool operator==(const Tensor &) const = default;

  int64_t elements() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  int64_t elementBytes() const {
    return type == CUDNN_DATA_BOOLEAN ? 1 : type == CUDNN_DATA_BFLOAT16 ? 2 : 4;
  }
  /// The bytes from the first element to behind the last.
  int64_t bytes() const;
};

/// One convolution, and perhaps the addition of a bias behind it.
struct ConvolutionGraph {
  enum class Kind { Forward, Data, Weight } kind = Kind::Forward;
  /// x and y as a forward convolution has them, whatever is computed; y is
  /// what is written, behind the bias.
  Tensor x, w, y;
  std::optional<Tensor> bias;
  std::array<int64_t, 2> before = {}, after = {}, stride = {}, dilation = {};
  float alpha = 1, beta = 0;

  const Tensor &result() const {
    return kind == Kind::Forward ? y : kind == Kind::Data ? x : w;
  }
  bool isFloat() const { return x.type == CUDNN_DATA_FLOAT; }
};

/// Checks a finalized tensor descriptor's attributes.
Tensor tensorOf(const Descriptor &descriptor);

/// Whether a graph's first node is a convolution.
bool isConvolution(const Descriptor &graph);
/// Understands the nodes of such a graph; a Refusal where cuDNN would refuse,
/// or where the double knows no better.
ConvolutionGraph convolutionGraphOf(const Descriptor &graph);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDNN_GRAPH_H
