//===- Api.cpp - cuDNN's functions, without GPUs --------------------------===//
//
// A libcudnn.so.9 for tests, over the double of the CUDA driver. It knows the
// backend descriptors of convolutions and of graphs of products, sums and
// functions, and refuses all else by an error with a message. What runs on a
// stream is checked as cuDNN's kernels would find out: addresses, alignment,
// workspace.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/cuda/Device.h"
#include "test/doubles/cudnn/Engine.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

using namespace pipewright::doubles;

#define CUDNN_DOUBLE_API extern "C" PIPEWRIGHT_DOUBLE_API

namespace {
struct Handle {
  cudaStream_t stream = nullptr;
};

/// Never destroyed: threads of streams may outlive main.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void *, std::shared_ptr<Descriptor>> descriptors;
  std::unordered_map<const void *, std::unique_ptr<Handle>> handles;
  std::string lastError;
};
} // namespace

static Registry &registry() {
  static Registry *all = new Registry;
  return *all;
}

std::shared_ptr<Descriptor>
pipewright::doubles::descriptorOf(cudnnBackendDescriptor_t handle) {
  Registry &all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.descriptors.find(handle);
  if (found == all.descriptors.end())
    throw Refusal(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  return found->second;
}

static Handle handleOf(cudnnHandle_t handle) {
  Registry &all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.handles.find(handle);
  if (found == all.handles.end())
    throw Refusal(CUDNN_STATUS_BAD_PARAM, "not a handle of cuDNN");
  return *found->second;
}

/// Runs a call; what it refuses becomes its status and the last error.
template <class Body>
static cudnnStatus_t call(const Body &body) {
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refusal &refusal) {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    registry().lastError = refusal.what();
    return refusal.status;
  }
}

/// Whatever headers it is built with: its engines are like those of 9.19.
CUDNN_DOUBLE_API size_t cudnnGetVersion() { return 91900; }

CUDNN_DOUBLE_API const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH:
    return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return "CUDNN_STATUS_UNKNOWN";
  }
}

CUDNN_DOUBLE_API void cudnnGetLastErrorString(char *message, size_t size) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  if (!size)
    return;
  std::strncpy(message, registry().lastError.c_str(), size - 1);
  message[size - 1] = '\0';
}

CUDNN_DOUBLE_API cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  return call([&] {
    CUcontext context = nullptr;
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
      throw Refusal(CUDNN_STATUS_NOT_INITIALIZED,
                    "no CUDA context is current to the thread");
    auto made = std::make_unique<Handle>();
    *handle = reinterpret_cast<cudnnHandle_t>(made.get());
    Registry &all = registry();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.handles[*handle] = std::move(made);
  });
}

CUDNN_DOUBLE_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return call([&] {
    handleOf(handle);
    Registry &all = registry();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.handles.erase(handle);
  });
}

CUDNN_DOUBLE_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle,
                                              cudaStream_t stream) {
  return call([&] {
    handleOf(handle);
    Registry &all = registry();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.handles[handle]->stream = stream;
  });
}

CUDNN_DOUBLE_API cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  return call([&] {
    auto made = std::make_shared<Descriptor>();
    made->type = type;
    *descriptor = made.get();
    Registry &all = registry();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.descriptors[*descriptor] = std::move(made);
  });
}

CUDNN_DOUBLE_API cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return call([&] {
    // Freed behind the lock: what it refers to may go as well.
    const auto kept = descriptorOf(descriptor);
    Registry &all = registry();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.descriptors.erase(descriptor);
  });
}

CUDNN_DOUBLE_API cudnnStatus_t cudnnBackendSetAttribute(
    cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  return call(
      [&] { descriptorOf(descriptor)->set(name, type, count, values); });
}

CUDNN_DOUBLE_API cudnnStatus_t cudnnBackendGetAttribute(
    cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
    void *values) {
  return call(
      [&] { descriptorOf(descriptor)->get(name, type, room, count, values); });
}

CUDNN_DOUBLE_API cudnnStatus_t
cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return call([&] { descriptorOf(descriptor)->finalize(); });
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

namespace {
/// Addresses of a variant pack by tensor.
struct Addresses {
  std::unordered_map<int64_t, void *> tensors;
  void *workspace = nullptr;

  void *find(const Tensor &tensor) const {
    const auto found = tensors.find(tensor.id);
    if (found == tensors.end() || !found->second)
      throw Refusal(CUDNN_STATUS_BAD_PARAM,
                    "no address for tensor " + std::to_string(tensor.id));
    if (reinterpret_cast<uintptr_t>(found->second) % tensor.alignment)
      throw Refusal(CUDNN_STATUS_BAD_PARAM, "address of tensor " +
                                                std::to_string(tensor.id) +
                                                " is not aligned as it says");
    return found->second;
  }
};
} // namespace

static Addresses addressesOf(const Descriptor &pack) {
  if (pack.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !pack.finalized)
    throw Refusal(CUDNN_STATUS_BAD_PARAM, "not a finalized variant pack");
  const auto ids =
      pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64);
  const auto pointers = pack.all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                         CUDNN_TYPE_VOID_PTR);
  Addresses addresses;
  for (size_t i = 0; i < ids.size(); ++i)
    addresses.tensors[ids[i]] = pointers[i];
  if (pack.has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE))
    addresses.workspace = pack.one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                           CUDNN_TYPE_VOID_PTR);
  return addresses;
}

namespace {
struct Place {
  void *address = nullptr;
  size_t bytes = 0;
};
} // namespace

/// The workspace of an operation, which overwrites it.
static Place workspaceOf(const Work &work, int engine,
                         const Addresses &addresses, Operation &operation) {
  const Place place = {addresses.workspace,
                       static_cast<size_t>(workspaceBytes(work, engine))};
  if (!place.address)
    throw Refusal(CUDNN_STATUS_BAD_PARAM, "no workspace, but the plan needs " +
                                              std::to_string(place.bytes) +
                                              " bytes");
  operation.accesses.push_back({place.address, place.bytes, true});
  return place;
}

/// Numbers that spoil whatever else lies there.
static void spoil(const Place &workspace) {
  std::memset(map(workspace.address, workspace.bytes, "workspace of cuDNN"),
              0xFF, workspace.bytes);
}

static Operation operationOf(const std::shared_ptr<const Work> &work,
                             const NodeGraph &graph, int engine,
                             const Addresses &addresses) {
  Operation operation;
  operation.name =
      "graph of " + std::to_string(graph.nodes.size()) + " nodes by cuDNN";
  std::map<int64_t, Place> places;
  // What lies on the host is read now.
  std::map<int64_t, float> numbers;
  for (const auto &[id, tensor] : graph.tensors) {
    if (tensor.isVirtual)
      continue;
    void *address = addresses.find(tensor);
    if (tensor.isByValue) {
      numbers[id] = *static_cast<const float *>(address);
      continue;
    }
    const Place place = {address, static_cast<size_t>(tensor.bytes())};
    operation.accesses.push_back(
        {place.address, place.bytes, graph.isResult(id)});
    places[id] = place;
  }
  const Place workspace = workspaceOf(*work, engine, addresses, operation);
  operation.run = [work, &graph, engine, places, numbers, workspace] {
    spoil(workspace);
    std::map<int64_t, float> own = numbers;
    std::map<int64_t, void *> mapped;
    for (auto &[id, number] : own)
      mapped[id] = &number;
    for (const auto &[id, place] : places)
      mapped[id] = map(place.address, place.bytes, "a tensor of cuDNN");
    computeNodes(graph, addsBackwards(engine), mapped);
  };
  return operation;
}

static Operation operationOf(const std::shared_ptr<const Work> &work,
                             const ConvolutionGraph &convolution, int engine,
                             const Addresses &addresses) {
  const ConvolutionGraph *graph = &convolution;
  using Kind = ConvolutionGraph::Kind;
  Operation operation;
  operation.name = graph->kind == Kind::Forward ? "convolution forward"
                   : graph->kind == Kind::Data  ? "convolution data gradient"
                                                : "convolution weight gradient";
  auto place = [&](const Tensor &tensor, bool write) {
    const Place at = {addresses.find(tensor),
                      static_cast<size_t>(tensor.bytes())};
    const bool reads = !write || graph->beta != 0;
    if (reads)
      operation.accesses.push_back({at.address, at.bytes, false});
    if (write)
      operation.accesses.push_back({at.address, at.bytes, true});
    return at;
  };
  const Place x = place(graph->x, graph->kind == Kind::Data);
  const Place w = place(graph->w, graph->kind == Kind::Weight);
  const Place y = place(graph->y, graph->kind == Kind::Forward);
  const Place bias = graph->bias ? place(*graph->bias, false) : Place();
  const Place workspace = workspaceOf(*work, engine, addresses, operation);

  operation.run = [work, graph, engine, x, w, y, bias, workspace] {
    auto mapped = [](const Place &place, const char *what) {
      return place.address ? map(place.address, place.bytes, what) : nullptr;
    };
    spoil(workspace);
    Operands operands;
    operands.x = mapped(x, "x of a convolution");
    operands.w = mapped(w, "w of a convolution");
    operands.y = mapped(y, "y of a convolution");
    operands.bias = mapped(bias, "bias of a convolution");
    operands.result =
        const_cast<void *>(graph->kind == Kind::Forward ? operands.y
                           : graph->kind == Kind::Data  ? operands.x
                                                        : operands.w);
    computeConvolution(*graph, engine, operands);
  };
  return operation;
}

CUDNN_DOUBLE_API cudnnStatus_t
cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                    cudnnBackendDescriptor_t pack) {
  return call([&] {
    const Handle state = handleOf(handle);
    const auto planned = descriptorOf(plan);
    if (planned->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        !planned->finalized)
      throw Refusal(CUDNN_STATUS_BAD_PARAM, "not a finalized execution plan");
    const Addresses addresses = addressesOf(*descriptorOf(pack));
    const CUresult result = enqueue(
        state.stream, std::visit(
                          [&](const auto &graph) {
                            return operationOf(planned->work, graph,
                                               planned->engine, addresses);
                          },
                          planned->work->graph));
    if (result != CUDA_SUCCESS)
      throw Refusal(CUDNN_STATUS_EXECUTION_FAILED,
                    "the stream takes no work: error " +
                        std::to_string(result));
  });
}
