//===- ConvolutionPlan.cpp - Convolutions as cuDNN's graphs ---------------===//
//
// Each direction of a convolution is an operation graph of one node, two with
// a bias. The first engine that is deterministic, rounds as the program allows
// and can be built becomes the plan. A bias that cuDNN has no engine for is
// left to the caller. Weight gradients of bf16 operands are bf16: cuDNN
// proposes nothing for f32, and the engine that it falls back to takes 20 times
// as long (9.19 on an H200).
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/kernels/ConvolutionPlan.h"
#include "runtime/core/Error.h"

#include <array>

using namespace pipewright::runtime;

/// An engine that wants more workspace is passed over.
static constexpr int64_t workspaceLimit = int64_t{1} << 30;

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

static CudnnDescriptor makeConvolution(const ConvolutionShape &s) {
  CudnnDescriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                  int64_t{2});
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                  CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                  CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {s.padTop, s.padLeft});
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                  {s.padBottom, s.padRight});
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                  {s.strideH, s.strideW});
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {s.dilationH, s.dilationW});
  convolution.finalize();
  return convolution;
}

/// How one direction's node names its attributes.
namespace {
struct DirectionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};
} // namespace

static constexpr DirectionNames forwardNames = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
static constexpr DirectionNames dataNames = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
static constexpr DirectionNames weightNames = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

static const DirectionNames &namesOf(ConvolutionDirection direction) {
  switch (direction) {
  case ConvolutionDirection::Forward:
    return forwardNames;
  case ConvolutionDirection::BackwardData:
    return dataNames;
  case ConvolutionDirection::BackwardWeight:
    break;
  }
  return weightNames;
}

namespace {

class ConvolutionGraph : public CudnnGraph {
public:
  explicit ConvolutionGraph(const ConvolutionShape &shape)
      : s(shape), type(cudnnType(shape.type)) {}

  /// One node.
  void build(ConvolutionDirection direction) {
    convolve(namesOf(direction), images(), filters(), outputs());
  }
  /// y = sum + bias.
  void buildWithBias() {
    const Value sum =
        between(CUDNN_DATA_FLOAT, outputSizes(), stridesOf(outputSizes()));
    convolve(forwardNames, images(), filters(), sum);
    pointwise(CUDNN_POINTWISE_ADD,
              {sum, tensor(ConvolutionTensor::Bias, type, {1, s.o, 1, 1})},
              outputs());
  }

private:
  /// Sizes are n, c, h, w, in this order for cuDNN. In memory the channel lies
  /// second or last.
  CudnnSizes stridesOf(const CudnnSizes &sizes) const {
    const int64_t n = 0, c = 1, h = 2, w = 3;
    CudnnSizes strides(sizes.size());
    int64_t stride = 1;
    for (const int64_t dim :
         s.channelsLast ? std::array{c, w, h, n} : std::array{w, h, c, n}) {
      strides[dim] = stride;
      stride *= sizes[dim];
    }
    return strides;
  }
  Value tensor(ConvolutionTensor id, cudnnDataType_t of,
               const CudnnSizes &sizes) {
    return inMemory(static_cast<int64_t>(id), of, sizes, stridesOf(sizes));
  }
  Value images() {
    return tensor(ConvolutionTensor::X, type, {s.n, s.c, s.h, s.w});
  }
  Value filters() {
    return tensor(ConvolutionTensor::W, type,
                  {s.o, s.c / s.groups, s.kh, s.kw});
  }
  CudnnSizes outputSizes() const {
    return {s.n, s.o, s.outputHeight(), s.outputWidth()};
  }
  Value outputs() { return tensor(ConvolutionTensor::Y, type, outputSizes()); }

  /// The node of a convolution; its result is overwritten.
  void convolve(const DirectionNames &names, Value x, Value w, Value y) {
    CudnnDescriptor made(names.type);
    made.set(names.convolution, makeConvolution(s));
    made.refer(names.x, x->descriptor);
    made.refer(names.w, w->descriptor);
    made.refer(names.y, y->descriptor);
    made.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    made.set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
    add(std::move(made), y);
  }

  const ConvolutionShape s;
  const cudnnDataType_t type;
};

} // namespace

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// What rules an engine out, beside other bits from run to run.
static std::vector<cudnnBackendNumericalNote_t> unwantedNotes(bool mayRound) {
  if (mayRound)
    return {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
  return {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
          CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
          CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
}

[[noreturn]] static void failWithoutEngine(ConvolutionDirection direction,
                                           const ConvolutionShape &s,
                                           const std::string &reason) {
  fail("cuDNN ", cudnn().cudnnGetVersion(), " has no deterministic engine for ",
       "the ", textOf(direction), " of a convolution of ", s.n, "x", s.c, "x",
       s.h, "x", s.w, " with ", s.o, "x", s.c / s.groups, "x", s.kh, "x", s.kw,
       " (stride ", s.strideH, "x", s.strideW, ", padding ", s.padTop, ",",
       s.padLeft, ",", s.padBottom, ",", s.padRight, ", dilation ", s.dilationH,
       "x", s.dilationW, ", groups ", s.groups, ", ", typeText(s.type),
       s.channelsLast ? ", channels last" : "", "): ", reason);
}

ConvolutionPlan pipewright::runtime::planConvolution(
    const CudnnTarget &target, ConvolutionDirection direction,
    const ConvolutionShape &shape, bool hasBias, bool mayRound) {
  CudnnChoice choice;
  const auto choose = [&](bool withBias) {
    ConvolutionGraph graph(shape);
    if (withBias)
      graph.buildWithBias();
    else
      graph.build(direction);
    choice = choosePlan(target, graph.finish(target), workspaceLimit,
                        unwantedNotes(mayRound));
    return choice.plan.has_value();
  };
  ConvolutionPlan made;
  made.direction = direction;
  made.shape = shape;
  if (!hasBias || !choose(true)) {
    made.biasApart = hasBias;
    choose(false);
  }
  if (!choice.plan)
    failWithoutEngine(direction, shape, choice.reason);
  made.cudnn = std::move(*choice.plan);
  return made;
}
