//===- Convolution.cpp - 2-D convolutions on the GPU by cuDNN -------------===//
//
// The plan of each convolution and direction is chosen in setUp by the
// library's heuristic among deterministic engines, never by timing. Tensor
// cores want the channels last.
//
// What the plan leaves to be done is done beside it: a bias by a kernel of
// ours, a weight gradient in f32 of bf16 operands through workspace. That of a
// filter of one pixel is a matrix product, which cuBLASLt adds to dw itself.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Convolution.h"
#include "runtime/calls/CallCosts.h"
#include "runtime/calls/Matmul.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/Builtins.h"
#include "runtime/cuda/kernels/ConvolutionPlan.h"

#include <map>
#include <utility>

using namespace pipewright::runtime;

namespace {

class Convolutions : public LibraryState {
public:
  explicit Convolutions() { PIPEWRIGHT_CUDNN(cudnnCreate(&handle)); }
  ~Convolutions() override {
    plans.clear();
    cudnn().cudnnDestroy(handle);
  }

  cudnnHandle_t handle = nullptr;
  std::map<std::pair<ConvolutionDirection, int64_t>, ConvolutionPlan> plans;
  /// Weight gradients that are products: by convolution.
  std::map<int64_t, MatmulShape> products;
};

} // namespace

static Convolutions &convolutionsOf(DeviceRank &rank) {
  Convolutions &state = rank.library<Convolutions>();
  PIPEWRIGHT_CUDNN(cudnnSetStream(state.handle, rank.computeStream()));
  return state;
}

static bool mayRound(DeviceRank &rank, const ConvolutionShape &s) {
  const DeviceProgram *program = rank.wholeProgram().device;
  return s.type == ElementType::BF16 ||
         (program && program->float32 == Float32Mode::Tf32);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// What a weight gradient takes before it is added to dw, and what is left
/// for cuDNN behind it.
static int64_t resultBytes(const ConvolutionPlan &plan) {
  const ConvolutionShape &s = plan.shape;
  const int64_t bytes =
      s.o * (s.c / s.groups) * s.kh * s.kw * byteWidth(s.type);
  return (bytes + 255) / 256 * 256;
}

/// dw[o, c] = dy[pixels, o]^T x[pixels, c].
static std::optional<MatmulShape> productOf(const ConvolutionShape &s) {
  const bool isPointwise = s.kh == 1 && s.kw == 1 && s.strideH == 1 &&
                           s.strideW == 1 && s.padTop == 0 && s.padLeft == 0 &&
                           s.padBottom == 0 && s.padRight == 0;
  if (!isPointwise || s.groups != 1 || !s.channelsLast)
    return std::nullopt;
  return MatmulShape{.m = s.o,
                     .n = s.c,
                     .k = s.n * s.h * s.w,
                     .transposeA = true,
                     .type = s.type};
}

static const ConvolutionPlan &
makePlan(DeviceRank &rank, ConvolutionDirection direction, int64_t number,
         const ConvolutionShape &s, bool hasBias) {
  Convolutions &state = convolutionsOf(rank);
  return state.plans
      .insert_or_assign({direction, number},
                        planConvolution({state.handle}, direction, s, hasBias,
                                        mayRound(rank, s)))
      .first->second;
}

template <>
void pipewright::runtime::prepareConvolutionForward(DeviceRank &rank,
                                                    int64_t number,
                                                    const ConvolutionShape &s,
                                                    bool hasBias) {
  const ConvolutionPlan &plan =
      makePlan(rank, ConvolutionDirection::Forward, number, s, hasBias);
  if (plan.biasApart)
    prepareBuiltin(rank, "add_channels_f32");
  rank.reserveWorkspace(plan.cudnn.workspaceBytes);
}

template <>
void pipewright::runtime::prepareConvolutionBackwardData(
    DeviceRank &rank, int64_t number, const ConvolutionShape &s) {
  const ConvolutionPlan &plan =
      makePlan(rank, ConvolutionDirection::BackwardData, number, s, false);
  rank.reserveWorkspace(plan.cudnn.workspaceBytes);
}

template <>
void pipewright::runtime::prepareConvolutionBackwardWeight(
    DeviceRank &rank, int64_t number, const ConvolutionShape &s) {
  if (std::optional<MatmulShape> product = productOf(s)) {
    convolutionsOf(rank).products[number] = *product;
    for (const float beta : {0.0f, 1.0f}) {
      product->beta = beta;
      prepareMatmul(rank, *product);
    }
    return;
  }
  const ConvolutionPlan &plan =
      makePlan(rank, ConvolutionDirection::BackwardWeight, number, s, false);
  prepareBuiltin(rank, "accumulate");
  rank.reserveWorkspace(resultBytes(plan) + plan.cudnn.workspaceBytes);
}

static const ConvolutionPlan &
find(DeviceRank &rank, ConvolutionDirection direction, int64_t number) {
  const auto &plans = convolutionsOf(rank).plans;
  const auto found = plans.find({direction, number});
  if (found == plans.end())
    fail("the ", textOf(direction), " of convolution ", number,
         " was not set up");
  return found->second;
}

/// Runs the plan on the tensors that are there.
static void
execute(DeviceRank &rank, const ConvolutionPlan &plan,
        std::vector<std::pair<ConvolutionTensor, const void *>> tensors,
        void *workspace) {
  const MeasuredCall measured(
      rank, [&] { return costOf(plan.shape, plan.direction); });
  std::vector<int64_t> ids;
  std::vector<const void *> pointers;
  for (const auto &[id, pointer] : tensors) {
    if (!pointer)
      continue;
    if (!alignedTo(CudnnGraph::alignment, pointer))
      fail("the ", textOf(plan.direction),
           " of a convolution has an operand that does not "
           "begin at a multiple of ",
           CudnnGraph::alignment, " bytes");
    ids.push_back(static_cast<int64_t>(id));
    pointers.push_back(pointer);
  }
  plan.cudnn.run(convolutionsOf(rank).handle, ids, pointers, workspace);
}

template <>
void pipewright::runtime::convolutionForward(DeviceRank &rank, int64_t number,
                                             Buffer x, Buffer w, Buffer bias,
                                             Buffer y) {
  const ConvolutionPlan &plan =
      find(rank, ConvolutionDirection::Forward, number);
  const char *added = rank.device<char>(bias);
  char *out = rank.device<char>(y);
  execute(rank, plan,
          {{ConvolutionTensor::X, rank.device<char>(x)},
           {ConvolutionTensor::W, rank.device<char>(w)},
           {ConvolutionTensor::Bias, plan.biasApart ? nullptr : added},
           {ConvolutionTensor::Y, out}},
          rank.workspace(plan.cudnn.workspaceBytes));
  if (!plan.biasApart)
    return;
  const ConvolutionShape &s = plan.shape;
  const int64_t pixels = s.outputHeight() * s.outputWidth();
  // Neighbours that get the same element of the bias.
  const int64_t neighbours = s.channelsLast ? 1 : pixels;
  launchBuiltinThreads(rank, std::string("add_channels") + typeSuffix(s.type),
                       s.n * s.o * pixels, added, out, s.n * s.o * pixels,
                       kernelSize(s.o, "a convolution's result"),
                       kernelSize(neighbours, "a convolution's result"));
}

template <>
void pipewright::runtime::convolutionBackwardData(DeviceRank &rank,
                                                  int64_t number, Buffer dy,
                                                  Buffer w, Buffer dx) {
  const ConvolutionPlan &plan =
      find(rank, ConvolutionDirection::BackwardData, number);
  execute(rank, plan,
          {{ConvolutionTensor::Y, rank.device<char>(dy)},
           {ConvolutionTensor::W, rank.device<char>(w)},
           {ConvolutionTensor::X, rank.device<char>(dx)}},
          rank.workspace(plan.cudnn.workspaceBytes));
}

template <>
void pipewright::runtime::convolutionBackwardWeight(DeviceRank &rank,
                                                    int64_t number, Buffer dy,
                                                    Buffer x, Buffer dw,
                                                    bool accumulate) {
  const auto &products = convolutionsOf(rank).products;
  if (const auto found = products.find(number); found != products.end()) {
    MatmulShape product = found->second;
    product.beta = accumulate ? 1 : 0;
    matmul(rank, product, dy, x, dw);
    return;
  }
  const ConvolutionPlan &plan =
      find(rank, ConvolutionDirection::BackwardWeight, number);
  const bool isFloat = plan.shape.type == ElementType::F32;
  const bool direct = !accumulate && isFloat;
  const int64_t apart = direct ? 0 : resultBytes(plan);
  char *workspace =
      static_cast<char *>(rank.workspace(apart + plan.cudnn.workspaceBytes));
  float *to = rank.device<float>(dw);
  execute(
      rank, plan,
      {{ConvolutionTensor::Y, rank.device<char>(dy)},
       {ConvolutionTensor::X, rank.device<char>(x)},
       {ConvolutionTensor::W, direct ? static_cast<void *>(to) : workspace}},
      workspace + apart);
  if (direct)
    return;
  const int64_t elements = dw.bytes / 4;
  const bool packed = alignedTo(16, to) && isFloat;
  launchBuiltinThreads(rank,
                       isFloat
                           ? (packed ? "accumulate_packed" : "accumulate")
                           : (accumulate ? "accumulate_bf16" : "convert_bf16"),
                       packed ? (elements + 3) / 4 : elements,
                       static_cast<const char *>(workspace), to, elements);
}
