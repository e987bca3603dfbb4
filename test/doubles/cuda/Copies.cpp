//===- Copies.cpp - Copies and fills of the driver double -----------------===//

#include "test/doubles/cuda/Internal.h"

using namespace pipewright::doubles;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {
/// One side of a copy. Host memory that is not pinned is not in the table.
struct Side {
  uint64_t address = 0;
  std::shared_ptr<Allocation> allocation;
  bool pageable() const { return !allocation; }
};
} // namespace

static CUresult findSide(uint64_t address, uint64_t bytes, bool mustBeKnown,
                         Side &side) {
  side = {address, findAllocation(address)};
  if (!side.allocation)
    return mustBeKnown || (address & deviceBit) || !address
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
  return bytes <= side.allocation->end() - address ? CUDA_SUCCESS
                                                   : CUDA_ERROR_INVALID_VALUE;
}

static char *pointerTo(const Side &side) {
  if (side.pageable())
    return reinterpret_cast<char *>(side.address);
  return side.allocation->host + (side.address - side.allocation->begin);
}

static std::string nameOf(const char *call, uint64_t bytes) {
  return std::string(call) + " of " + std::to_string(bytes) + " bytes";
}

/// Copies are checked when they are enqueued, as the driver does. Memory that
/// is not pinned is read at once, and written before the call returns.
static CUresult copyAsync(const char *call, uint64_t to, uint64_t from,
                          uint64_t bytes, CUstream handle, bool toKnown,
                          bool fromKnown) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  if (bytes == 0)
    return CUDA_SUCCESS;
  Side target, source;
  if (CUresult result = findSide(to, bytes, toKnown, target))
    return result;
  if (CUresult result = findSide(from, bytes, fromKnown, source))
    return result;
  Operation operation;
  operation.name = nameOf(call, bytes);
  operation.accesses = {{reinterpret_cast<const void *>(from), bytes, false},
                        {reinterpret_cast<const void *>(to), bytes, true}};
  if (source.pageable()) {
    auto staged = std::make_shared<std::vector<char>>(
        pointerTo(source), pointerTo(source) + bytes);
    operation.run = [target, staged, bytes] {
      std::memcpy(pointerTo(target), staged->data(), bytes);
    };
  } else {
    operation.run = [target, source, bytes] {
      std::memmove(pointerTo(target), pointerTo(source), bytes);
    };
  }
  if (CUresult result =
          submit(stream, std::move(operation), CU_GRAPH_NODE_TYPE_MEMCPY))
    return result;
  if (!target.pageable() || stream->capture)
    return CUDA_SUCCESS;
  waitFor(stream);
  return static_cast<CUresult>(context->error.load());
}

static CUresult copy(const char *call, uint64_t to, uint64_t from,
                     uint64_t bytes, bool toKnown, bool fromKnown) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  if (CUresult result =
          copyAsync(call, to, from, bytes, nullptr, toKnown, fromKnown))
    return result;
  waitFor(context->nullStream);
  return static_cast<CUresult>(context->error.load());
}

static uint64_t asAddress(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy("cuMemcpy", to, from, bytes, false, false);
}
CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                               CUstream stream) {
  return copyAsync("cuMemcpyAsync", to, from, bytes, stream, false, false);
}
CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  return copy("cuMemcpyHtoD", to, asAddress(from), bytes, true, false);
}
CUresult CUDAAPI cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  return copy("cuMemcpyDtoH", asAddress(to), from, bytes, false, true);
}
CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy("cuMemcpyDtoD", to, from, bytes, true, true);
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void *from,
                                   size_t bytes, CUstream stream) {
  return copyAsync("cuMemcpyHtoDAsync", to, asAddress(from), bytes, stream,
                   true, false);
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                                   CUstream stream) {
  return copyAsync("cuMemcpyDtoHAsync", asAddress(to), from, bytes, stream,
                   false, true);
}
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from,
                                   size_t bytes, CUstream stream) {
  return copyAsync("cuMemcpyDtoDAsync", to, from, bytes, stream, true, true);
}

static CUresult checkPeers(CUcontext to, CUcontext from) {
  if (CUresult result = enterWithoutContext())
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  return isLive(reinterpret_cast<Context *>(to)) &&
                 isLive(reinterpret_cast<Context *>(from))
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext,
                                   CUdeviceptr from, CUcontext fromContext,
                                   size_t bytes, CUstream stream) {
  if (CUresult result = checkPeers(toContext, fromContext))
    return result;
  return copyAsync("cuMemcpyPeerAsync", to, from, bytes, stream, true, true);
}
CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext toContext,
                              CUdeviceptr from, CUcontext fromContext,
                              size_t bytes) {
  if (CUresult result = checkPeers(toContext, fromContext))
    return result;
  return copy("cuMemcpyPeer", to, from, bytes, true, true);
}

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

template <class T>
static CUresult fillAsync(const char *call, CUdeviceptr address, T value,
                          size_t count, CUstream handle) {
  Context *context = nullptr;
  Stream *stream = nullptr;
  if (CUresult result = enterWith(handle, context, stream))
    return result;
  if (count == 0)
    return CUDA_SUCCESS;
  const uint64_t bytes = count * sizeof(T);
  Side target;
  if (CUresult result = findSide(address, bytes, true, target))
    return result;
  if (address % sizeof(T))
    return CUDA_ERROR_INVALID_VALUE;
  auto fill = [target, value, count] {
    std::fill_n(reinterpret_cast<T *>(pointerTo(target)), count, value);
  };
  return submit(stream,
                {nameOf(call, bytes),
                 fill,
                 {{reinterpret_cast<const void *>(address), bytes, true}}},
                CU_GRAPH_NODE_TYPE_MEMSET);
}

template <class T>
static CUresult fill(const char *call, CUdeviceptr address, T value,
                     size_t count) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  if (CUresult result = fillAsync<T>(call, address, value, count, nullptr))
    return result;
  waitFor(context->nullStream);
  return static_cast<CUresult>(context->error.load());
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr address, unsigned char value,
                                 size_t count, CUstream stream) {
  return fillAsync("cuMemsetD8Async", address, value, count, stream);
}
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr address, unsigned short value,
                                  size_t count, CUstream stream) {
  return fillAsync("cuMemsetD16Async", address, value, count, stream);
}
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr address, unsigned value,
                                  size_t count, CUstream stream) {
  return fillAsync("cuMemsetD32Async", address, value, count, stream);
}
CUresult CUDAAPI cuMemsetD8(CUdeviceptr address, unsigned char value,
                            size_t count) {
  return fill("cuMemsetD8", address, value, count);
}
CUresult CUDAAPI cuMemsetD16(CUdeviceptr address, unsigned short value,
                             size_t count) {
  return fill("cuMemsetD16", address, value, count);
}
CUresult CUDAAPI cuMemsetD32(CUdeviceptr address, unsigned value,
                             size_t count) {
  return fill("cuMemsetD32", address, value, count);
}
