//===- Contexts.cpp - Contexts of the driver double -----------------------===//

#include "test/doubles/cuda/Ipc.h"

using namespace pipewright::doubles;

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *handle, CUdevice ordinal) {
  if (CUresult result = enterWithoutContext())
    return result;
  State &all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  Device *device = findDevice(ordinal);
  if (!device)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!device->primary) {
    device->primary = new Context;
    device->primary->device = device;
    device->primary->nullStream = makeStream(device->primary, 0, 0);
    all.handles.insert(device->primary);
  }
  ++device->primaryUses;
  *handle = reinterpret_cast<CUcontext>(device->primary);
  return CUDA_SUCCESS;
}

/// Waits for the streams and frees the memory. The context itself stays, so
/// that calls on it are errors and not crashes.
static void endContext(Device *device) {
  State &all = state();
  Context *context = nullptr;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    context = device->primary;
    device->primary = nullptr;
    device->primaryUses = 0;
  }
  if (!context)
    return;
  drain(context);
  int none = CUDA_SUCCESS;
  context->error.compare_exchange_strong(none, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  std::lock_guard<std::mutex> lock(all.mutex);
  all.handles.erase(context);
  std::unique_lock<std::shared_mutex> memory(all.memoryMutex);
  std::erase_if(all.allocations, [&](const auto &entry) {
    const Allocation &allocation = *entry.second;
    if (allocation.device != device->ordinal)
      return false;
    if (allocation.place >= 0)
      endShared(allocation.place);
    return true;
  });
  device->usedBytes = 0;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  if (CUresult result = enterWithoutContext())
    return result;
  Device *device = findDevice(ordinal);
  if (!device)
    return CUDA_ERROR_INVALID_DEVICE;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (device->primaryUses == 0)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primaryUses)
      return CUDA_SUCCESS;
  }
  endContext(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice ordinal) {
  if (CUresult result = enterWithoutContext())
    return result;
  Device *device = findDevice(ordinal);
  if (!device)
    return CUDA_ERROR_INVALID_DEVICE;
  endContext(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags,
                                            int *active) {
  if (CUresult result = enterWithoutContext())
    return result;
  const Device *device = findDevice(ordinal);
  if (!device)
    return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = device->primary != nullptr;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned) {
  if (CUresult result = enterWithoutContext())
    return result;
  return findDevice(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  auto *context = reinterpret_cast<Context *>(handle);
  if (context && !isLive(context))
    return CUDA_ERROR_INVALID_CONTEXT;
  currentContext() = context;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  *handle = reinterpret_cast<CUcontext>(currentContext());
  return CUDA_SUCCESS;
}

static std::vector<Context *> &contextStack() {
  static thread_local std::vector<Context *> stack;
  return stack;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  Context *before = currentContext();
  if (CUresult result = cuCtxSetCurrent(handle))
    return result;
  contextStack().push_back(before);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *handle) {
  if (CUresult result = enterWithoutContext())
    return result;
  if (contextStack().empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (handle)
    *handle = reinterpret_cast<CUcontext>(currentContext());
  currentContext() = contextStack().back();
  contextStack().pop_back();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  *device = context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext, unsigned *version) {
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to) {
  if (CUresult result = enterWithoutContext())
    return result;
  if (!findDevice(from) || !findDevice(to))
    return CUDA_ERROR_INVALID_DEVICE;
  *can = from != to && state().settings.peers;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  auto *peer = reinterpret_cast<Context *>(handle);
  if (!isLive(peer) || peer == context || flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (!state().settings.peers)
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (!context->peers.insert(peer->device->ordinal).second)
    return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext handle) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  auto *peer = reinterpret_cast<Context *>(handle);
  if (!isLive(peer) || !context->peers.erase(peer->device->ordinal))
    return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize() {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  drain(context);
  return static_cast<CUresult>(context->error.load());
}
