//===- Graph.cpp - Tensors and convolutions of cuDNN's double -------------===//

#include "test/doubles/cudnn/Graph.h"

#include <algorithm>

using namespace pipewright::doubles;

int64_t Tensor::bytes() const {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    last += (sizes[i] - 1) * strides[i];
  return (last + 1) * elementBytes();
}

[[noreturn]] static void refuse(cudnnStatus_t status,
                                const std::string &message) {
  throw Refusal(status, message);
}

template <size_t size>
static std::array<int64_t, size> integers(const Descriptor &descriptor,
                                          cudnnBackendAttributeName_t name) {
  const auto values = descriptor.all<int64_t>(name, CUDNN_TYPE_INT64);
  if (values.size() != size)
    refuse(CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) +
                                       " has " + std::to_string(values.size()) +
                                       " values, expected " +
                                       std::to_string(size));
  std::array<int64_t, size> result;
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

Tensor pipewright::doubles::tensorOf(const Descriptor &d) {
  Tensor t;
  t.id = d.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64);
  t.type =
      d.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
  if (t.type != CUDNN_DATA_FLOAT && t.type != CUDNN_DATA_BFLOAT16 &&
      t.type != CUDNN_DATA_INT32 && t.type != CUDNN_DATA_BOOLEAN)
    refuse(CUDNN_STATUS_NOT_SUPPORTED,
           "the double knows f32, bf16, int32 and truth values only");
  t.sizes = integers<4>(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
  t.strides = integers<4>(d, CUDNN_ATTR_TENSOR_STRIDES);
  t.alignment =
      d.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64);
  if (t.alignment < t.elementBytes() || t.alignment & (t.alignment - 1))
    refuse(CUDNN_STATUS_BAD_PARAM, "alignment of a tensor");
  for (size_t i = 0; i < 4; ++i)
    if (t.sizes[i] < 1 || t.strides[i] < 1)
      refuse(CUDNN_STATUS_BAD_PARAM, "a tensor needs positive sizes, strides");
  if (d.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
    t.isVirtual =
        d.one<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN) != 0;
  if (d.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
    t.isByValue =
        d.one<char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN) != 0;
  return t;
}

namespace {
/// Names of attributes of one kind of node.
struct Names {
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};
} // namespace

static Names namesOf(ConvolutionGraph::Kind kind) {
  switch (kind) {
  case ConvolutionGraph::Kind::Forward:
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  case ConvolutionGraph::Kind::Data:
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  case ConvolutionGraph::Kind::Weight:
    break;
  }
  return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

/// The sizes must be those of one convolution.
static void checkSizes(const ConvolutionGraph &g) {
  const int64_t perGroup = g.w.sizes[1];
  if (g.x.sizes[0] != g.y.sizes[0] || g.w.sizes[0] != g.y.sizes[1] ||
      g.x.sizes[1] % perGroup != 0 ||
      g.y.sizes[1] % (g.x.sizes[1] / perGroup) != 0)
    refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
           "samples or channels of a convolution do not fit");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = g.x.sizes[2 + i] + g.before[i] + g.after[i] -
                         g.dilation[i] * (g.w.sizes[2 + i] - 1) - 1;
    if (room < 0 || g.stride[i] < 1 || g.dilation[i] < 1 ||
        room / g.stride[i] + 1 != g.y.sizes[2 + i])
      refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
             "height or width of a convolution do not fit");
  }
}

static ConvolutionGraph convolutionOf(const Descriptor &node,
                                      ConvolutionGraph::Kind kind) {
  const Names names = namesOf(kind);
  ConvolutionGraph g;
  g.kind = kind;
  g.x = tensorOf(node.descriptor(names.x));
  g.w = tensorOf(node.descriptor(names.w));
  g.y = tensorOf(node.descriptor(names.y));
  const Descriptor &c = node.descriptor(names.convolution);
  if (c.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                             CUDNN_TYPE_DATA_TYPE) != CUDNN_DATA_FLOAT ||
      c.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                                    CUDNN_TYPE_CONVOLUTION_MODE) !=
          CUDNN_CROSS_CORRELATION ||
      c.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64) !=
          2)
    refuse(CUDNN_STATUS_NOT_SUPPORTED,
           "the double knows 2-D cross-correlations in f32 only");
  g.before = integers<2>(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  g.after = integers<2>(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  g.stride = integers<2>(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  g.dilation = integers<2>(c, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  g.alpha = node.one<float>(names.alpha, CUDNN_TYPE_FLOAT);
  g.beta = node.one<float>(names.beta, CUDNN_TYPE_FLOAT);
  for (const Tensor *tensor : {&g.x, &g.w, &g.y})
    if (tensor->type != CUDNN_DATA_FLOAT && tensor->type != CUDNN_DATA_BFLOAT16)
      refuse(CUDNN_STATUS_NOT_SUPPORTED,
             "the double knows convolutions of f32 and bf16 only");
  checkSizes(g);
  return g;
}

/// y = x + bias, where x is what the convolution before it gives.
static void addBias(ConvolutionGraph &g, const Descriptor &node) {
  const Descriptor &add =
      node.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  if (add.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE,
                                    CUDNN_TYPE_POINTWISE_MODE) !=
      CUDNN_POINTWISE_ADD)
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the double knows additions only");
  const Tensor x =
      tensorOf(node.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
  const Tensor y =
      tensorOf(node.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  g.bias = tensorOf(node.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
  const std::array<int64_t, 4> expected = {1, g.y.sizes[1], 1, 1};
  if (x.id != g.y.id || !x.isVirtual || y.sizes != g.y.sizes ||
      g.bias->sizes != expected)
    refuse(CUDNN_STATUS_BAD_PARAM, "an addition that is not of a bias");
  g.y = y;
}

static const std::vector<std::shared_ptr<Descriptor>> &
nodesOf(const Descriptor &graph) {
  const auto found = graph.attributes.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (found == graph.attributes.end() || found->second.descriptors.empty())
    refuse(CUDNN_STATUS_BAD_PARAM, "an operation graph without operations");
  return found->second.descriptors;
}

bool pipewright::doubles::isConvolution(const Descriptor &graph) {
  switch (nodesOf(graph)[0]->type) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    return true;
  default:
    return false;
  }
}

ConvolutionGraph
pipewright::doubles::convolutionGraphOf(const Descriptor &graph) {
  const auto &nodes = nodesOf(graph);
  ConvolutionGraph g;
  switch (nodes[0]->type) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    g = convolutionOf(*nodes[0], ConvolutionGraph::Kind::Forward);
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    g = convolutionOf(*nodes[0], ConvolutionGraph::Kind::Data);
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    g = convolutionOf(*nodes[0], ConvolutionGraph::Kind::Weight);
    break;
  default:
    refuse(CUDNN_STATUS_NOT_SUPPORTED, "the double knows convolutions only");
  }
  if (nodes.size() == 2 &&
      nodes[1]->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
      g.kind == ConvolutionGraph::Kind::Forward)
    addBias(g, *nodes[1]);
  else if (nodes.size() != 1)
    refuse(CUDNN_STATUS_NOT_SUPPORTED,
           "the double knows a convolution, perhaps with a bias");
  if (g.x.isVirtual || g.w.isVirtual || g.y.isVirtual)
    refuse(CUDNN_STATUS_BAD_PARAM, "a virtual tensor at the graph's border");
  return g;
}
