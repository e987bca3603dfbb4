//===- CudnnGraph.cpp - Operation graphs of cuDNN -------------------------===//

#include "runtime/cuda/CudnnGraph.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>
#include <iterator>

using namespace pipewright::runtime;

CudnnSizes pipewright::runtime::denseStrides(const CudnnSizes &sizes) {
  CudnnSizes strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i)
    strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

CudnnSizes pipewright::runtime::transposed(CudnnSizes ofMatrices) {
  std::swap(ofMatrices[ofMatrices.size() - 2], ofMatrices.back());
  return ofMatrices;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

CudnnGraph::Value CudnnGraph::add(int64_t id, cudnnDataType_t type,
                                  const CudnnSizes &sizes,
                                  const CudnnSizes &strides, bool isVirtual,
                                  bool isByValue) {
  CudnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64,
           isByValue ? int64_t{sizeof(float)} : alignment);
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isVirtual);
  made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, isByValue);
  made.finalize();
  tensors.push_back({std::move(made), type, sizes});
  return &tensors.back();
}

CudnnGraph::Value CudnnGraph::inMemory(int64_t id, cudnnDataType_t type,
                                       const CudnnSizes &sizes,
                                       const CudnnSizes &strides) {
  return add(id, type, sizes, strides, /*isVirtual=*/false,
             /*isByValue=*/false);
}

CudnnGraph::Value CudnnGraph::number(int64_t id) {
  const CudnnSizes one(4, 1);
  return add(id, CUDNN_DATA_FLOAT, one, one, /*isVirtual=*/false,
             /*isByValue=*/true);
}

CudnnGraph::Value CudnnGraph::between(cudnnDataType_t type,
                                      const CudnnSizes &sizes) {
  return between(type, sizes, denseStrides(sizes));
}

CudnnGraph::Value CudnnGraph::between(cudnnDataType_t type,
                                      const CudnnSizes &sizes,
                                      const CudnnSizes &strides) {
  return add(nextId++, type, sizes, strides, /*isVirtual=*/true,
             /*isByValue=*/false);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

CudnnGraph::Value CudnnGraph::add(CudnnDescriptor &&node, Value to) {
  node.finalize();
  nodes.push_back(std::move(node));
  return to;
}

static CudnnDescriptor pointwiseOperator(cudnnPointwiseMode_t mode,
                                         cudnnDataType_t precision,
                                         int64_t axis = -1) {
  CudnnDescriptor made(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  made.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, precision);
  if (axis >= 0)
    made.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  made.finalize();
  return made;
}

CudnnGraph::Value CudnnGraph::pointwise(cudnnPointwiseMode_t mode,
                                        std::initializer_list<Value> operands,
                                        Value to, cudnnDataType_t precision) {
  static constexpr cudnnBackendAttributeName_t names[] = {
      CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  CudnnDescriptor node(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  node.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
           pointwiseOperator(mode, precision));
  const auto *name = std::begin(names);
  for (const Value operand : operands)
    node.refer(*name++, operand->descriptor);
  node.refer(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to->descriptor);
  return add(std::move(node), to);
}

CudnnGraph::Value CudnnGraph::index(Value like, int64_t axis) {
  const Value to = between(CUDNN_DATA_INT32, like->sizes);
  CudnnDescriptor node(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  node.set(
      CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
      pointwiseOperator(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis));
  node.refer(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, like->descriptor);
  node.refer(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to->descriptor);
  return add(std::move(node), to);
}

CudnnGraph::Value CudnnGraph::matmul(Value a, Value b, Value to) {
  CudnnDescriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
              CUDNN_DATA_FLOAT);
  product.finalize();
  CudnnDescriptor node(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  node.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, std::move(product));
  node.refer(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a->descriptor);
  node.refer(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b->descriptor);
  node.refer(CUDNN_ATTR_OPERATION_MATMUL_CDESC, to->descriptor);
  return add(std::move(node), to);
}

CudnnGraph::Value CudnnGraph::reduce(cudnnReduceTensorOp_t operation, Value x,
                                     Value to) {
  CudnnDescriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR,
                CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operation);
  reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                CUDNN_DATA_FLOAT);
  reduction.finalize();
  CudnnDescriptor node(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  node.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, std::move(reduction));
  node.refer(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x->descriptor);
  node.refer(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to->descriptor);
  return add(std::move(node), to);
}

CudnnGraph::Value CudnnGraph::reshape(Value x, Value to) {
  CudnnDescriptor node(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  node.refer(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x->descriptor);
  node.refer(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to->descriptor);
  return add(std::move(node), to);
}

CudnnDescriptor CudnnGraph::finish(const CudnnTarget &target) {
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const CudnnDescriptor &node : nodes)
    pointers.push_back(node.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(pointers.size()), pointers.data());
  if (target.handle)
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
              target.handle);
  graph.finalize();
  for (CudnnDescriptor &node : nodes)
    graph.keep(std::move(node));
  for (Tensor &tensor : tensors)
    graph.keep(std::move(tensor.descriptor));
  return graph;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

void CudnnPlan::run(cudnnHandle_t handle, const std::vector<int64_t> &ids,
                    const std::vector<const void *> &addresses,
                    void *workspace) const {
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(addresses.size()), addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  PIPEWRIGHT_CUDNN(cudnnBackendExecute(handle, plan.get(), pack.get()));
}

namespace {
struct Engine {
  int64_t number = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;

  bool has(cudnnBackendNumericalNote_t note) const {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  }
};
} // namespace

static Engine engineOf(const CudnnDescriptor &configuration) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t pointer = engine.get();
  int64_t count = 0;
  PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
      configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &pointer));
  Engine result;
  PIPEWRIGHT_CUDNN(
      cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                               CUDNN_TYPE_INT64, 1, &count, &result.number));
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
      engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
  result.notes.assign(notes, notes + count);
  return result;
}

/// ": " and the first line of what the library said last.
static std::string lastErrorText() {
  char text[512] = "";
  cudnn().cudnnGetLastErrorString(text, sizeof text);
  const std::string line(text, std::strcspn(text, "\n"));
  return line.empty() ? "" : ": " + line;
}

/// What the heuristic proposes, best first.
static std::vector<CudnnDescriptor> proposals(const CudnnTarget &target,
                                              const CudnnDescriptor &graph,
                                              cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.refer(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
#if CUDNN_VERSION >= 90800
  if (target.device)
    heuristic.refer(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device);
#endif
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
  if (count > 0)
    PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
        heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
        CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, pointers.data()));
  results.resize(count);
  return results;
}

/// Nothing where the engine cannot be built after all.
static std::optional<CudnnPlan> buildPlan(const CudnnTarget &target,
                                          CudnnDescriptor &&configuration) {
  CudnnPlan made;
  made.plan = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle)
    made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                  target.handle);
#if CUDNN_VERSION >= 90800
  if (target.device)
    made.plan.refer(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device);
#endif
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                std::move(configuration));
  if (made.plan.tryFinalize() != CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  int64_t count = 0;
  PIPEWRIGHT_CUDNN(cudnnBackendGetAttribute(
      made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
      CUDNN_TYPE_INT64, 1, &count, &made.workspaceBytes));
  return made;
}

CudnnChoice pipewright::runtime::choosePlan(
    const CudnnTarget &target, CudnnDescriptor &&graph, int64_t limit,
    const std::vector<cudnnBackendNumericalNote_t> &unwanted) {
  CudnnChoice choice;
  choice.reason = "no engine knows it";
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (CudnnDescriptor &configuration : proposals(target, graph, mode)) {
      Engine engine = engineOf(configuration);
      if (engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) {
        choice.reason = "no engine for it is deterministic";
        continue;
      }
      if (std::any_of(unwanted.begin(), unwanted.end(),
                      [&](auto note) { return engine.has(note); })) {
        choice.reason = "no deterministic engine for it is precise enough";
        continue;
      }
      auto made = buildPlan(target, std::move(configuration));
      if (!made) {
        choice.reason = "engine " + std::to_string(engine.number) +
                        " cannot be built" + lastErrorText();
        continue;
      }
      if (made->workspaceBytes > limit) {
        choice.reason = "engine " + std::to_string(engine.number) + " wants " +
                        std::to_string(made->workspaceBytes) +
                        " bytes of workspace, more than " +
                        std::to_string(limit);
        choice.isTooLarge = true;
        continue;
      }
      made->engine = engine.number;
      made->notes = std::move(engine.notes);
      made->plan.keep(std::move(graph));
      choice.plan = std::move(made);
      return choice;
    }
  return choice;
}
