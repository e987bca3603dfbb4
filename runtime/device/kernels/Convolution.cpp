//===- Convolution.cpp - 2-D convolutions on the GPU by cuDNN -------------===//
//
// Each direction of a convolution is an operation graph of one node (two with
// a bias), for which cuDNN's heuristic proposes engines. The first one that is
// deterministic, rounds as the program allows and can be built becomes the
// plan. What cuDNN has no engine for is done beside it: a bias by a kernel of
// ours, a weight gradient in f32 of bf16 operands through workspace.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/kernels/Convolution.h"
#include "runtime/core/Error.h"
#include "runtime/device/Cudnn.h"
#include "runtime/device/DeviceProfile.h"
#include "runtime/device/kernels/Builtins.h"
#include "runtime/device/kernels/CallCosts.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

using namespace pipewright::runtime;

namespace {

/// Tensors of a graph, as variant packs name them. X is what a forward
/// convolution reads, Y what it writes.
enum Tensor : int64_t { X = 1, W, Y, Bias, Sum };

constexpr int64_t tensorAlignment = 16;
/// An engine that wants more workspace is passed over.
constexpr int64_t workspaceLimit = int64_t{1} << 30;

/// One direction of one convolution.
struct ConvolutionPlan {
  ConvolutionShape shape;
  CudnnDescriptor plan;
  int64_t workspaceBytes = 0;
  /// Forward: the bias is added by a kernel of its own.
  bool biasApart = false;
  /// Weight gradient: the type that cuDNN writes.
  ElementType result = ElementType::F32;
};

class Convolutions : public LibraryState {
public:
  explicit Convolutions() { PIPEWRIGHT_CUDNN(cudnnCreate(&handle)); }
  ~Convolutions() override {
    for (auto *plans : {&forward, &backwardData, &backwardWeight})
      plans->clear();
    cudnn().cudnnDestroy(handle);
  }

  cudnnHandle_t handle = nullptr;
  std::unordered_map<int64_t, ConvolutionPlan> forward, backwardData,
      backwardWeight;
};

} // namespace

static Convolutions &convolutionsOf(DeviceRank &rank) {
  Convolutions &state = rank.library<Convolutions>();
  PIPEWRIGHT_CUDNN(cudnnSetStream(state.handle, rank.computeStream()));
  return state;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

static cudnnDataType_t dataType(ElementType type) {
  return type == ElementType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/// A tensor of four dimensions without gaps.
static CudnnDescriptor makeTensor(Tensor id, ElementType type,
                                  const std::vector<int64_t> &sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i)
    strides[i - 1] = strides[i] * sizes[i];
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, dataType(type));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, int64_t{id});
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64,
             tensorAlignment);
  // What only lives between two nodes of a graph.
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, id == Sum);
  tensor.finalize();
  return tensor;
}

static CudnnDescriptor makeX(const ConvolutionShape &s) {
  return makeTensor(X, s.type, {s.n, s.c, s.h, s.w});
}
static CudnnDescriptor makeW(const ConvolutionShape &s, ElementType type) {
  return makeTensor(W, type, {s.o, s.c / s.groups, s.kh, s.kw});
}
static CudnnDescriptor makeY(const ConvolutionShape &s, Tensor id = Y,
                             std::optional<ElementType> type = {}) {
  return makeTensor(id, type.value_or(s.type),
                    {s.n, s.o, s.outputHeight(), s.outputWidth()});
}

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
  const char *text;
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};
} // namespace

static constexpr DirectionNames forwardNames = {
    "forward",
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
static constexpr DirectionNames dataNames = {
    "data gradient",
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
static constexpr DirectionNames weightNames = {
    "weight gradient",
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

/// The node of a convolution; its result is overwritten.
static CudnnDescriptor makeNode(const DirectionNames &names,
                                const ConvolutionShape &s, CudnnDescriptor &&x,
                                CudnnDescriptor &&w, CudnnDescriptor &&y) {
  CudnnDescriptor node(names.type);
  node.set(names.convolution, makeConvolution(s));
  node.set(names.x, std::move(x));
  node.set(names.w, std::move(w));
  node.set(names.y, std::move(y));
  node.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
  node.set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  node.finalize();
  return node;
}

/// The node y = sum + bias.
static CudnnDescriptor makeBiasNode(const ConvolutionShape &s,
                                    const CudnnDescriptor &sum) {
  CudnnDescriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
          CUDNN_POINTWISE_ADD);
  add.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
          CUDNN_DATA_FLOAT);
  add.finalize();
  CudnnDescriptor node(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  node.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, std::move(add));
  node.refer(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sum);
  node.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
           makeTensor(Bias, s.type, {1, s.o, 1, 1}));
  node.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, makeY(s));
  node.finalize();
  return node;
}

static CudnnDescriptor makeGraph(cudnnHandle_t handle,
                                 std::vector<CudnnDescriptor> nodes) {
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const CudnnDescriptor &node : nodes)
    pointers.push_back(node.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(pointers.size()), pointers.data());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  for (CudnnDescriptor &node : nodes)
    graph.keep(std::move(node));
  graph.finalize();
  return graph;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Whether the engine gives the same bits on every run, and rounds f32 only
/// where the program allows it.
static bool isWelcome(const CudnnDescriptor &configuration, bool mayRound) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t pointer = engine.get();
  int64_t count = 0;
  PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
      configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &pointer));
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
      engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
  return std::none_of(notes, notes + count, [&](auto note) {
    if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
        note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)
      return !mayRound;
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  });
}

/// What the heuristic proposes, best first.
static std::vector<CudnnDescriptor> proposals(const CudnnDescriptor &graph,
                                              cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.refer(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (heuristic.tryFinalize() != CUDNN_STATUS_SUCCESS)
    return {};
  int64_t count = 0;
  PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
      heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<CudnnDescriptor> results;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (int64_t i = 0; i < count; ++i) {
    results.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    pointers.push_back(results.back().get());
  }
  PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
      heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, pointers.data()));
  results.resize(count);
  return results;
}

/// The plan of the first proposal that will do; none if cuDNN has none.
static std::optional<ConvolutionPlan> makePlan(cudnnHandle_t handle,
                                               CudnnDescriptor &&graph,
                                               const ConvolutionShape &s,
                                               bool mayRound) {
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (CudnnDescriptor &configuration : proposals(graph, mode)) {
      if (!isWelcome(configuration, mayRound))
        continue;
      ConvolutionPlan made;
      made.shape = s;
      made.plan = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                    handle);
      made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                    std::move(configuration));
      if (made.plan.tryFinalize() != CUDNN_STATUS_SUCCESS)
        continue;
      int64_t count = 0;
      PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
          made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
          CUDNN_TYPE_INT64, 1, &count, &made.workspaceBytes));
      if (made.workspaceBytes > workspaceLimit)
        continue;
      made.plan.keep(std::move(graph));
      return made;
    }
  return std::nullopt;
}

static bool mayRound(DeviceRank &rank, const ConvolutionShape &s) {
  const DeviceProgram *program = rank.wholeProgram().device;
  return s.type == ElementType::BF16 ||
         (program && program->float32 == Float32Mode::Tf32);
}

[[noreturn]] static void failWithoutEngine(const DirectionNames &names,
                                           const ConvolutionShape &s) {
  fail("cuDNN ", cudnn().cudnnGetVersion(), " has no deterministic engine for ",
       "the ", names.text, " of a convolution of ", s.n, "x", s.c, "x", s.h,
       "x", s.w, " with ", s.o, "x", s.c / s.groups, "x", s.kh, "x", s.kw,
       " (stride ", s.strideH, "x", s.strideW, ", padding ", s.padTop, ",",
       s.padLeft, ",", s.padBottom, ",", s.padRight, ", dilation ", s.dilationH,
       "x", s.dilationW, ", groups ", s.groups, ", ",
       s.type == ElementType::BF16 ? "bf16" : "f32", ")");
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// What a weight gradient takes before it is added to dw, and what is left
/// for cuDNN behind it.
static int64_t resultBytes(const ConvolutionPlan &plan) {
  const ConvolutionShape &s = plan.shape;
  const int64_t bytes =
      s.o * (s.c / s.groups) * s.kh * s.kw * byteWidth(plan.result);
  return (bytes + 255) / 256 * 256;
}

void pipewright::runtime::prepareConvolutionForward(DeviceRank &rank,
                                                    int64_t number,
                                                    const ConvolutionShape &s,
                                                    bool hasBias) {
  Convolutions &state = convolutionsOf(rank);
  std::optional<ConvolutionPlan> plan;
  if (hasBias) {
    CudnnDescriptor sum = makeY(s, Sum, ElementType::F32);
    std::vector<CudnnDescriptor> nodes;
    nodes.push_back(makeBiasNode(s, sum));
    nodes.push_back(
        makeNode(forwardNames, s, makeX(s), makeW(s, s.type), std::move(sum)));
    std::swap(nodes[0], nodes[1]);
    plan = makePlan(state.handle, makeGraph(state.handle, std::move(nodes)), s,
                    mayRound(rank, s));
  }
  if (!plan) {
    std::vector<CudnnDescriptor> nodes;
    nodes.push_back(
        makeNode(forwardNames, s, makeX(s), makeW(s, s.type), makeY(s)));
    plan = makePlan(state.handle, makeGraph(state.handle, std::move(nodes)), s,
                    mayRound(rank, s));
    if (!plan)
      failWithoutEngine(forwardNames, s);
    plan->biasApart = hasBias;
    if (hasBias)
      prepareBuiltin(rank, "add_channels_f32");
  }
  rank.reserveWorkspace(plan->workspaceBytes);
  state.forward.insert_or_assign(number, std::move(*plan));
}

void pipewright::runtime::prepareConvolutionBackwardData(
    DeviceRank &rank, int64_t number, const ConvolutionShape &s) {
  Convolutions &state = convolutionsOf(rank);
  std::vector<CudnnDescriptor> nodes;
  nodes.push_back(makeNode(dataNames, s, makeX(s), makeW(s, s.type), makeY(s)));
  auto plan = makePlan(state.handle, makeGraph(state.handle, std::move(nodes)),
                       s, mayRound(rank, s));
  if (!plan)
    failWithoutEngine(dataNames, s);
  rank.reserveWorkspace(plan->workspaceBytes);
  state.backwardData.insert_or_assign(number, std::move(*plan));
}

void pipewright::runtime::prepareConvolutionBackwardWeight(
    DeviceRank &rank, int64_t number, const ConvolutionShape &s) {
  Convolutions &state = convolutionsOf(rank);
  std::optional<ConvolutionPlan> plan;
  // Sums are f32 inside either way; better if they are not rounded to bf16
  // before they are added up over micro-batches.
  for (const ElementType result : {ElementType::F32, s.type}) {
    std::vector<CudnnDescriptor> nodes;
    nodes.push_back(
        makeNode(weightNames, s, makeX(s), makeW(s, result), makeY(s)));
    plan = makePlan(state.handle, makeGraph(state.handle, std::move(nodes)), s,
                    mayRound(rank, s));
    if (plan) {
      plan->result = result;
      break;
    }
  }
  if (!plan)
    failWithoutEngine(weightNames, s);
  prepareBuiltin(rank, "accumulate");
  rank.reserveWorkspace(resultBytes(*plan) + plan->workspaceBytes);
  state.backwardWeight.insert_or_assign(number, std::move(*plan));
}

static ConvolutionPlan &
find(std::unordered_map<int64_t, ConvolutionPlan> &plans, int64_t number,
     const DirectionNames &names) {
  const auto found = plans.find(number);
  if (found == plans.end())
    fail("the ", names.text, " of convolution ", number, " was not set up");
  return found->second;
}

/// Runs the plan on the tensors that are there.
static void execute(DeviceRank &rank, const ConvolutionPlan &plan,
                    const DirectionNames &names,
                    std::vector<std::pair<Tensor, const void *>> tensors,
                    void *workspace) {
  const MeasuredCall measured(rank,
                              [&] { return costOf(plan.shape, names.text); });
  std::vector<int64_t> ids;
  std::vector<const void *> pointers;
  for (const auto &[id, pointer] : tensors) {
    if (!pointer)
      continue;
    if (!alignedTo(tensorAlignment, pointer))
      fail("the ", names.text,
           " of a convolution has an operand that does not "
           "begin at a multiple of ",
           tensorAlignment, " bytes");
    ids.push_back(id);
    pointers.push_back(pointer);
  }
  const int64_t count = static_cast<int64_t>(ids.size());
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
           pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  PIPEWRIGHT_CUDNN(cudnnBackendExecute(convolutionsOf(rank).handle,
                                       plan.plan.get(), pack.get()));
}

void pipewright::runtime::convolutionForward(DeviceRank &rank, int64_t number,
                                             Buffer x, Buffer w, Buffer bias,
                                             Buffer y) {
  const ConvolutionPlan &plan =
      find(convolutionsOf(rank).forward, number, forwardNames);
  const char *added = rank.device<char>(bias);
  char *out = rank.device<char>(y);
  execute(rank, plan, forwardNames,
          {{X, rank.device<char>(x)},
           {W, rank.device<char>(w)},
           {Bias, plan.biasApart ? nullptr : added},
           {Y, out}},
          rank.workspace(plan.workspaceBytes));
  if (!plan.biasApart)
    return;
  const ConvolutionShape &s = plan.shape;
  const int64_t pixels = s.outputHeight() * s.outputWidth();
  launchBuiltinThreads(rank, std::string("add_channels") + typeSuffix(s.type),
                       s.n * s.o * pixels, added, out, s.n * s.o * pixels,
                       kernelSize(s.o, "a convolution's result"),
                       kernelSize(pixels, "a convolution's result"));
}

void pipewright::runtime::convolutionBackwardData(DeviceRank &rank,
                                                  int64_t number, Buffer dy,
                                                  Buffer w, Buffer dx) {
  const ConvolutionPlan &plan =
      find(convolutionsOf(rank).backwardData, number, dataNames);
  execute(rank, plan, dataNames,
          {{Y, rank.device<char>(dy)},
           {W, rank.device<char>(w)},
           {X, rank.device<char>(dx)}},
          rank.workspace(plan.workspaceBytes));
}

void pipewright::runtime::convolutionBackwardWeight(DeviceRank &rank,
                                                    int64_t number, Buffer dy,
                                                    Buffer x, Buffer dw,
                                                    bool accumulate) {
  const ConvolutionPlan &plan =
      find(convolutionsOf(rank).backwardWeight, number, weightNames);
  const bool direct = !accumulate && plan.result == ElementType::F32;
  const int64_t apart = direct ? 0 : resultBytes(plan);
  char *workspace =
      static_cast<char *>(rank.workspace(apart + plan.workspaceBytes));
  float *to = rank.device<float>(dw);
  execute(rank, plan, weightNames,
          {{Y, rank.device<char>(dy)},
           {X, rank.device<char>(x)},
           {W, direct ? static_cast<void *>(to) : workspace}},
          workspace + apart);
  if (direct)
    return;
  const int64_t elements = dw.bytes / 4;
  const bool packed = alignedTo(16, to) && plan.result == ElementType::F32;
  launchBuiltinThreads(rank,
                       plan.result == ElementType::BF16
                           ? (accumulate ? "accumulate_bf16" : "convert_bf16")
                           : (packed ? "accumulate_packed" : "accumulate"),
                       packed ? (elements + 3) / 4 : elements,
                       static_cast<const char *>(workspace), to, elements);
}
