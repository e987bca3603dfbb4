//===- Api.cpp - NCCL's functions, without GPUs ---------------------------===//
//
// A libnccl.so.2 for tests, over the double of the CUDA driver. Communicator.h
// says what it keeps of NCCL's semantics. PIPEWRIGHT_DOUBLE_NCCL_VERSION is the
// version that it claims to be.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/nccl/Communicator.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <unistd.h>

using namespace pipewright::doubles;

#define NCCL_DOUBLE_API extern "C" __attribute__((visibility("default")))

//===----------------------------------------------------------------------===//
// Handles and errors
//===----------------------------------------------------------------------===//

namespace {
/// Never destroyed: threads of streams may outlive main.
struct Registry {
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Communicator>> communicators;
  std::string lastError;
};
} // namespace

static Registry &registry() {
  static Registry *all = new Registry;
  return *all;
}

static ncclComm_t handleOf(Communicator *communicator) {
  return reinterpret_cast<ncclComm_t>(communicator);
}

/// Null for what is no communicator, or no longer.
static std::shared_ptr<Communicator> find(ncclComm_t handle) {
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.communicators.find(handle);
  return found == all.communicators.end() ? nullptr : found->second;
}

static std::shared_ptr<Communicator> take(ncclComm_t handle) {
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.communicators.find(handle);
  if (found == all.communicators.end())
    return nullptr;
  std::shared_ptr<Communicator> communicator = std::move(found->second);
  all.communicators.erase(found);
  return communicator;
}

void pipewright::doubles::setLastError(const std::string &text) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().lastError = text;
}

static ncclResult_t refuse(ncclResult_t result, const char *why) {
  setLastError(why);
  return result;
}

/// Whether a call may use the communicator now.
static ncclResult_t ready(const std::shared_ptr<Communicator> &communicator) {
  if (!communicator)
    return refuse(ncclInvalidArgument, "not a communicator");
  const ncclResult_t state = communicator->state();
  if (state == ncclInProgress)
    return refuse(ncclInvalidArgument,
                  "Attempt to use communicator before the previous operation "
                  "returned ncclSuccess");
  return state;
}

NCCL_DOUBLE_API const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInternalError:
    return "internal error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  default:
    return "unknown result code";
  }
}

NCCL_DOUBLE_API const char *ncclGetLastError(ncclComm_t) {
  static thread_local std::string copy;
  std::lock_guard<std::mutex> lock(registry().mutex);
  copy = registry().lastError;
  return copy.c_str();
}

NCCL_DOUBLE_API ncclResult_t ncclGetVersion(int *version) {
  const char *text = std::getenv("PIPEWRIGHT_DOUBLE_NCCL_VERSION");
  *version = text ? std::atoi(text) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
/// What the calling thread has between ncclGroupStart and ncclGroupEnd, by
/// communicator in the order of their first call.
struct OpenGroup {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::pair<std::shared_ptr<Communicator>, std::shared_ptr<Group>>>
      groups;
};
using Groups = decltype(OpenGroup::groups);
} // namespace

static thread_local OpenGroup open;

/// NCCL's host side: first uses of all communicators together, then launches in
/// order.
static void launchAll(const Groups &groups) {
  std::vector<Exchange> handshakes;
  for (const auto &[communicator, group] : groups)
    for (const Exchange &exchange : communicator->firstUses(*group))
      handshakes.push_back(exchange);
  const bool met = finishAll(std::move(handshakes), [&] {
    return std::any_of(groups.begin(), groups.end(), [](const auto &entry) {
      return entry.first->isAborted();
    });
  });
  for (const auto &[communicator, group] : groups) {
    if (!met) {
      communicator->setState(ncclRemoteError,
                             "a peer went away in the first use of a channel");
      continue;
    }
    communicator->markConnected(*group);
    cuCtxSetCurrent(communicator->gpuContext());
    communicator->setState(communicator->launch(group));
  }
}

/// Threads that launched something.
static std::atomic<int64_t> launchingThreads{0};

/// For tests: NCCL makes a thread for each group, or call outside of one, of
/// communicators that do not block.
NCCL_DOUBLE_API int64_t pipewrightNcclLaunchingThreads() {
  return launchingThreads;
}

static ncclResult_t endGroup(Groups groups) {
  bool blocking = true;
  for (const auto &[communicator, group] : groups) {
    blocking &= communicator->isBlocking();
    communicator->setState(ncclInProgress);
  }
  if (!blocking) {
    ++launchingThreads;
    std::thread(launchAll, std::move(groups)).detach();
    return ncclInProgress;
  }
  launchAll(groups);
  ncclResult_t worst = ncclSuccess;
  for (const auto &[communicator, group] : groups)
    worst = std::max(worst, communicator->state());
  return worst;
}

NCCL_DOUBLE_API ncclResult_t ncclGroupStart() {
  ++open.depth;
  return ncclSuccess;
}

NCCL_DOUBLE_API ncclResult_t ncclGroupEnd() {
  if (open.depth == 0)
    return refuse(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
  if (--open.depth)
    return ncclSuccess;
  OpenGroup ended = std::exchange(open, {});
  if (ended.error != ncclSuccess)
    return ended.error;
  for (const auto &[communicator, group] : ended.groups)
    if (!communicator->matchesItself(*group))
      return refuse(ncclInvalidUsage,
                    "Trying to send to self without a matching recv");
  return ended.groups.empty() ? ncclSuccess : endGroup(std::move(ended.groups));
}

static size_t widthOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
  case ncclFloat8e4m3:
  case ncclFloat8e5m2:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 0;
  }
}

/// What the calling thread has of that communicator, with the stream in it.
static Group &groupOf(const std::shared_ptr<Communicator> &communicator,
                      CUstream stream) {
  auto &groups = open.groups;
  auto found =
      std::find_if(groups.begin(), groups.end(), [&](const auto &entry) {
        return entry.first == communicator;
      });
  if (found == groups.end())
    found = groups.insert(found, {communicator, std::make_shared<Group>()});
  Group &group = *found->second;
  if (std::find(group.streams.begin(), group.streams.end(), stream) ==
      group.streams.end())
    group.streams.push_back(stream);
  return group;
}

static ncclResult_t addCall(ncclComm_t handle, Call call, size_t count) {
  const std::shared_ptr<Communicator> communicator = find(handle);
  if (ncclResult_t result = ready(communicator))
    return result;
  if (call.peer < 0 || call.peer >= communicator->size())
    return refuse(ncclInvalidArgument, "no such peer");
  call.bytes = count * widthOf(call.type);
  if (!call.data || !call.bytes)
    return refuse(ncclInvalidArgument, "no data, or an unknown type");
  groupOf(communicator, call.stream).calls.push_back(call);
  return ncclSuccess;
}

/// In a group of its own, if none is open.
template <class Add>
static ncclResult_t inGroup(const Add &add) {
  ncclGroupStart();
  const ncclResult_t result = add();
  if (result != ncclSuccess)
    open.error = result;
  const ncclResult_t end = ncclGroupEnd();
  return result != ncclSuccess ? result : end;
}

NCCL_DOUBLE_API ncclResult_t ncclSend(const void *data, size_t count,
                                      ncclDataType_t type, int peer,
                                      ncclComm_t comm, cudaStream_t stream) {
  return inGroup([&] {
    return addCall(
        comm, {true, const_cast<void *>(data), 0, type, peer, stream}, count);
  });
}

NCCL_DOUBLE_API ncclResult_t ncclRecv(void *data, size_t count,
                                      ncclDataType_t type, int peer,
                                      ncclComm_t comm, cudaStream_t stream) {
  return inGroup([&] {
    return addCall(comm, {false, data, 0, type, peer, stream}, count);
  });
}

static ncclResult_t addCollective(ncclComm_t handle, CollectiveCall call) {
  const std::shared_ptr<Communicator> communicator = find(handle);
  if (ncclResult_t result = ready(communicator))
    return result;
  if (call.root < 0 || call.root >= communicator->size())
    return refuse(ncclInvalidArgument, "no such root");
  if (call.type != ncclFloat32 && call.type != ncclBfloat16)
    return refuse(ncclInvalidArgument,
                  "the double has collectives of f32 and bf16 alone");
  if (call.count == 0)
    return ncclSuccess;
  call.width = widthOf(call.type);
  const int rank = communicator->number(), ranks = communicator->size();
  if ((!call.send && call.sendBytes(rank, ranks)) ||
      (!call.receive && call.receiveBytes(rank, ranks)))
    return refuse(ncclInvalidArgument, "no data");
  if (call.overlapsWrongly(rank, ranks))
    return refuse(ncclInvalidUsage,
                  "buffers overlap, but not as in-place collectives do");
  groupOf(communicator, call.stream).collectives.push_back(call);
  return ncclSuccess;
}

static ncclResult_t postCollective(CollectiveCall::Kind kind, const void *send,
                                   void *receive, size_t count,
                                   ncclDataType_t type, ncclRedOp_t operation,
                                   int root, ncclComm_t comm,
                                   cudaStream_t stream) {
  return inGroup([&] {
    return operation != ncclSum
               ? refuse(ncclInvalidArgument, "the double adds, and no more")
               : addCollective(
                     comm, {kind, send, receive, count, type, root, stream, 0});
  });
}

NCCL_DOUBLE_API ncclResult_t ncclAllReduce(const void *send, void *receive,
                                           size_t count, ncclDataType_t type,
                                           ncclRedOp_t operation,
                                           ncclComm_t comm,
                                           cudaStream_t stream) {
  return postCollective(CollectiveCall::AllReduce, send, receive, count, type,
                        operation, 0, comm, stream);
}

NCCL_DOUBLE_API ncclResult_t ncclReduce(const void *send, void *receive,
                                        size_t count, ncclDataType_t type,
                                        ncclRedOp_t operation, int root,
                                        ncclComm_t comm, cudaStream_t stream) {
  return postCollective(CollectiveCall::Reduce, send, receive, count, type,
                        operation, root, comm, stream);
}

NCCL_DOUBLE_API ncclResult_t ncclReduceScatter(
    const void *send, void *receive, size_t count, ncclDataType_t type,
    ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return postCollective(CollectiveCall::ReduceScatter, send, receive, count,
                        type, operation, 0, comm, stream);
}

NCCL_DOUBLE_API ncclResult_t ncclAllGather(const void *send, void *receive,
                                           size_t count, ncclDataType_t type,
                                           ncclComm_t comm,
                                           cudaStream_t stream) {
  return postCollective(CollectiveCall::AllGather, send, receive, count, type,
                        ncclSum, 0, comm, stream);
}

NCCL_DOUBLE_API ncclResult_t ncclBroadcast(const void *send, void *receive,
                                           size_t count, ncclDataType_t type,
                                           int root, ncclComm_t comm,
                                           cudaStream_t stream) {
  return postCollective(CollectiveCall::Broadcast, send, receive, count, type,
                        ncclSum, root, comm, stream);
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

/// The environment goes before what a program says.
static bool blocks(bool asked) {
  const char *text = std::getenv("NCCL_COMM_BLOCKING");
  return text ? std::atoi(text) != 0 : asked;
}

NCCL_DOUBLE_API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static std::atomic<int> count{0};
  std::random_device random;
  const std::string name = "pipewright-nccl-" + std::to_string(getpid()) + "-" +
                           std::to_string(++count) + "-" +
                           std::to_string(random());
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

NCCL_DOUBLE_API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size,
                                                    ncclUniqueId id, int rank,
                                                    ncclConfig_t *config) {
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
    return refuse(ncclUnhandledCudaError, "no GPU is current");
  if (!comm || size < 1 || rank < 0 || rank >= size ||
      (config && config->magic != 0xcafebeef))
    return refuse(ncclInvalidArgument, "ncclCommInitRankConfig");
  if (open.depth)
    return refuse(ncclInvalidUsage,
                  "the double makes no communicators in groups");
  const bool blocking = blocks(!config || config->blocking != 0);
  auto communicator =
      std::make_shared<Communicator>(id.internal, rank, size, blocking);
  *comm = handleOf(communicator.get());
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().communicators[*comm] = communicator;
  }
  if (!blocking) {
    std::thread([communicator] { communicator->meet(); }).detach();
    return ncclInProgress;
  }
  communicator->meet();
  return communicator->state();
}

NCCL_DOUBLE_API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size,
                                              ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}

/// The new communicator is filled in before the old one is ready again, and
/// meets its other ranks then.
static void finishSplit(const std::shared_ptr<Communicator> &parent, int color,
                        int key, bool blocking, ncclComm_t *comm) {
  cuCtxSetCurrent(parent->gpuContext());
  const std::shared_ptr<Communicator> child =
      parent->split(color, key, blocking);
  *comm = child ? handleOf(child.get()) : nullptr;
  if (child) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().communicators[*comm] = child;
  }
  parent->setState(ncclSuccess);
  if (child)
    child->meet();
}

NCCL_DOUBLE_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                                           ncclComm_t *newComm,
                                           ncclConfig_t *config) {
  const std::shared_ptr<Communicator> parent = find(comm);
  if (ncclResult_t result = ready(parent))
    return result;
  if (!newComm || color < NCCL_SPLIT_NOCOLOR ||
      (config && config->magic != 0xcafebeef))
    return refuse(ncclInvalidArgument, "ncclCommSplit");
  if (open.depth)
    return refuse(ncclInvalidUsage, "the double splits nothing in groups");
  if (!parent->isIdle())
    return refuse(ncclInvalidUsage,
                  "a split of a communicator that has work outstanding");
  const bool blocking =
      blocks(config ? config->blocking != 0 : parent->isBlocking());
  parent->setState(ncclInProgress);
  if (!parent->isBlocking()) {
    std::thread(finishSplit, parent, color, key, blocking, newComm).detach();
    return ncclInProgress;
  }
  finishSplit(parent, color, key, blocking, newComm);
  return parent->state();
}

NCCL_DOUBLE_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm,
                                                   ncclResult_t *state) {
  const std::shared_ptr<Communicator> communicator = find(comm);
  if (!communicator || !state)
    return refuse(ncclInvalidArgument, "not a communicator");
  *state = communicator->state();
  return ncclSuccess;
}

NCCL_DOUBLE_API ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::shared_ptr<Communicator> communicator = find(comm);
  if (ncclResult_t result = ready(communicator))
    return result;
  communicator->setState(ncclInProgress);
  if (!communicator->isBlocking()) {
    std::thread([communicator] { communicator->finalize(); }).detach();
    return ncclInProgress;
  }
  communicator->finalize();
  return communicator->state();
}

/// What has not been finalized ends as if by abort: peers that still wait see
/// an error.
NCCL_DOUBLE_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::shared_ptr<Communicator> communicator = take(comm);
  if (!communicator)
    return refuse(ncclInvalidArgument, "not a communicator");
  communicator->abort();
  return ncclSuccess;
}

NCCL_DOUBLE_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  while (neverAborts())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return ncclCommDestroy(comm);
}
