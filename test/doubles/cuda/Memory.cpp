//===- Memory.cpp - Memory of the driver double ---------------------------===//

#include "test/doubles/cuda/Ipc.h"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>

using namespace pipewright::doubles;

static constexpr uint64_t pageBytes = 4096;

static uint64_t roundUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

/// Pages with unmapped ones around them.
static char *reserve(uint64_t bytes) {
  const uint64_t whole = roundUp(bytes, pageBytes) + 2 * pageBytes;
  void *pages = mmap(nullptr, whole, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return nullptr;
  char *begin = static_cast<char *>(pages) + pageBytes;
  if (mprotect(begin, roundUp(bytes, pageBytes), PROT_READ | PROT_WRITE)) {
    munmap(pages, whole);
    return nullptr;
  }
  return begin;
}

static std::shared_ptr<Allocation> makeAllocation(uint64_t bytes, int device) {
  char *host = reserve(bytes);
  if (!host)
    return nullptr;
  auto free = [](Allocation *allocation) {
    munmap(allocation->host - pageBytes,
           roundUp(allocation->bytes, pageBytes) + 2 * pageBytes);
    if (allocation->place >= 0)
      dropShared(allocation->place, allocation->bytes);
    delete allocation;
  };
  std::shared_ptr<Allocation> allocation(new Allocation, free);
  allocation->host = host;
  allocation->bytes = bytes;
  allocation->device = device;
  allocation->begin =
      reinterpret_cast<uint64_t>(host) | (device < 0 ? 0 : deviceBit);
  if (device >= 0) {
    allocation->place = addShared(SharedKind::Memory, bytes, device);
    if (allocation->place >= 0 && !mapShared(allocation->place, bytes, host))
      return nullptr;
  }
  return allocation;
}

/// Nothing may count on zeros: all bits set is NaN for every float type.
static void fillWithGarbage(Allocation &allocation) {
  std::memset(allocation.host, 0xFF, allocation.bytes);
}

static std::shared_ptr<Allocation> findLocked(uint64_t address) {
  auto &all = state().allocations;
  auto after = all.upper_bound(address);
  if (after == all.begin())
    return nullptr;
  const std::shared_ptr<Allocation> &found = std::prev(after)->second;
  return address < found->end() ? found : nullptr;
}

std::shared_ptr<Allocation>
pipewright::doubles::findAllocation(uint64_t address) {
  std::shared_lock<std::shared_mutex> lock(state().memoryMutex);
  return findLocked(address);
}

bool pipewright::doubles::mayUse(const Context *context,
                                 const Allocation &allocation) {
  return allocation.device < 0 ||
         allocation.device == context->device->ordinal ||
         context->peers.contains(allocation.device);
}

static std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

std::string pipewright::doubles::describeAddress(uint64_t address) {
  std::shared_lock<std::shared_mutex> lock(state().memoryMutex);
  const auto &all = state().allocations;
  for (const std::shared_ptr<Allocation> &freed : state().quarantine)
    if (address >= freed->begin && address < freed->end())
      return "it is in " + std::to_string(freed->bytes) +
             " bytes that were freed";
  auto after = all.upper_bound(address);
  if (after == all.begin())
    return "no allocation lies below it";
  const Allocation &below = *std::prev(after)->second;
  if (address < below.end())
    return "byte " + std::to_string(address - below.begin) + " of " +
           std::to_string(below.bytes) + " allocated" +
           (below.device < 0 ? " on the host"
                             : " on GPU " + std::to_string(below.device));
  return std::to_string(address - below.end()) + " bytes behind the end of " +
         std::to_string(below.bytes) + " allocated at " + hex(below.begin);
}

char *pipewright::doubles::translate(const Context *context, uint64_t address,
                                     uint64_t bytes, const char *what) {
  const std::shared_ptr<Allocation> found = findAllocation(address);
  const bool inside = found && bytes <= found->end() - address;
  if (inside && mayUse(context, *found))
    return found->host + (address - found->begin);
  throw DeviceFault(CUDA_ERROR_ILLEGAL_ADDRESS,
                    std::string(what) + ": " + std::to_string(bytes) +
                        " bytes at " + hex(address) + " are not " +
                        (inside ? "memory that this GPU may use: "
                                : "within one allocation: ") +
                        describeAddress(address));
}

void *pipewright::doubles::map(const void *address, size_t bytes,
                               const char *what) {
  if (!operationContext())
    throw DeviceFault(CUDA_ERROR_INVALID_CONTEXT,
                      std::string(what) + ": not within an operation");
  return translate(operationContext(), reinterpret_cast<uint64_t>(address),
                   bytes, what);
}

void pipewright::doubles::insert(
    const std::shared_ptr<Allocation> &allocation) {
  if (state().settings.races && allocation->device >= 0 && !allocation->opened)
    allocation->shadow = std::make_unique<Shadow>(allocation->bytes);
  std::unique_lock<std::shared_mutex> lock(state().memoryMutex);
  state().allocations[allocation->begin] = allocation;
}

/// Takes it out of the table at once, so that later uses are errors; its bytes
/// stay until no operation is pending that may read them.
static bool release(uint64_t begin, bool onDevice) {
  State &all = state();
  std::unique_lock<std::shared_mutex> lock(all.memoryMutex);
  auto found = all.allocations.find(begin);
  if (found == all.allocations.end() || found->second->registered ||
      found->second->opened || (found->second->device >= 0) != onDevice)
    return false;
  if (onDevice)
    all.devices[found->second->device]->usedBytes -= found->second->bytes;
  if (found->second->place >= 0)
    endShared(found->second->place);
  if (all.pendingWork > 0)
    all.quarantine.push_back(found->second);
  all.allocations.erase(found);
  return true;
}

CUresult CUDAAPI cuMemGetInfo(size_t *free, size_t *total) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::shared_lock<std::shared_mutex> lock(state().memoryMutex);
  *total = context->device->totalBytes;
  *free = context->device->totalBytes - context->device->usedBytes;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  mayWaitForGpu(context);
  if (bytes == 0 || !address)
    return CUDA_ERROR_INVALID_VALUE;
  {
    std::unique_lock<std::shared_mutex> lock(state().memoryMutex);
    Device &device = *context->device;
    if (bytes > device.totalBytes - device.usedBytes)
      return CUDA_ERROR_OUT_OF_MEMORY;
    device.usedBytes += bytes;
  }
  auto allocation = makeAllocation(bytes, context->device->ordinal);
  if (!allocation)
    return CUDA_ERROR_OUT_OF_MEMORY;
  fillWithGarbage(*allocation);
  insert(allocation);
  *address = allocation->begin;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  mayWaitForGpu(context);
  if (address == 0)
    return CUDA_SUCCESS;
  return release(address, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  mayWaitForGpu(nullptr);
  if (bytes == 0 || !pointer)
    return CUDA_ERROR_INVALID_VALUE;
  auto allocation = makeAllocation(bytes, -1);
  if (!allocation)
    return CUDA_ERROR_OUT_OF_MEMORY;
  insert(allocation);
  *pointer = allocation->host;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocHost(void **pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult CUDAAPI cuMemFreeHost(void *pointer) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  mayWaitForGpu(nullptr);
  return release(reinterpret_cast<uint64_t>(pointer), false)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemHostRegister(void *pointer, size_t bytes, unsigned) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  if (!pointer || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto address = reinterpret_cast<uint64_t>(pointer);
  std::unique_lock<std::shared_mutex> lock(state().memoryMutex);
  if (findLocked(address) || findLocked(address + bytes - 1))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  auto allocation = std::make_shared<Allocation>();
  allocation->begin = address;
  allocation->bytes = bytes;
  allocation->host = static_cast<char *>(pointer);
  allocation->registered = true;
  state().allocations[address] = allocation;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostUnregister(void *pointer) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  std::unique_lock<std::shared_mutex> lock(state().memoryMutex);
  auto found = state().allocations.find(reinterpret_cast<uint64_t>(pointer));
  if (found == state().allocations.end() || !found->second->registered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  state().allocations.erase(found);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr *address, void *pointer,
                                           unsigned) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  *address = reinterpret_cast<uint64_t>(pointer);
  return findAllocation(*address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr *begin, size_t *bytes,
                                      CUdeviceptr address) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  const std::shared_ptr<Allocation> found = findAllocation(address);
  if (!found)
    return CUDA_ERROR_NOT_FOUND;
  if (begin)
    *begin = found->begin;
  if (bytes)
    *bytes = found->bytes;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void *value,
                                       CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  const std::shared_ptr<Allocation> found = findAllocation(address);
  if (!found)
    return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *static_cast<CUmemorytype *>(value) =
        found->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *static_cast<CUdeviceptr *>(value) = address;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (found->device >= 0)
      return CUDA_ERROR_INVALID_VALUE;
    *static_cast<CUdeviceptr *>(value) = address;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *static_cast<int *>(value) = found->device < 0 ? -2 : found->device;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
}
