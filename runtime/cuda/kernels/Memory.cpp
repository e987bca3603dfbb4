//===- Memory.cpp - Filling, copying and adding GPU buffers ---------------===//
//
// The driver's own fills and copies run at the speed of memory, and are nodes
// of a CUDA graph like any kernel.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Memory.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace pipewright::runtime;

/// `times` is how often each of the bytes is read or written.
static auto costOf(const char *name, Buffer buffer, double times) {
  return [=] { return CallCost{name, times * buffer.bytes}; };
}

static CUdeviceptr address(DeviceRank &rank, Buffer buffer) {
  return reinterpret_cast<CUdeviceptr>(rank.device<char>(buffer));
}

template <>
void pipewright::runtime::zero(DeviceRank &rank, Buffer buffer) {
  if (!buffer)
    return;
  const MeasuredCall measured(rank, costOf("zero", buffer, 1));
  const CUdeviceptr to = address(rank, buffer);
  if (to % 4 == 0 && buffer.bytes % 4 == 0)
    PIPEWRIGHT_CUDA(
        cuMemsetD32Async(to, 0, buffer.bytes / 4, rank.computeStream()));
  else
    PIPEWRIGHT_CUDA(cuMemsetD8Async(to, 0, buffer.bytes, rank.computeStream()));
}

template <>
void pipewright::runtime::copy(DeviceRank &rank, Buffer source,
                               Buffer destination) {
  if (!source)
    return;
  const MeasuredCall measured(rank, costOf("copy", source, 2));
  const CUdeviceptr from = address(rank, source);
  const CUdeviceptr to = address(rank, destination.at(0, source.bytes));
  if (from != to)
    PIPEWRIGHT_CUDA(
        cuMemcpyDtoDAsync(to, from, source.bytes, rank.computeStream()));
}

template <>
void pipewright::runtime::setValues(DeviceRank &rank, const void *values,
                                    Buffer destination) {
  constexpr int64_t chunkBytes = sizeof(ValueChunk);
  const char *from = static_cast<const char *>(values);
  for (int64_t at = 0; at < destination.bytes; at += chunkBytes) {
    const int64_t bytes = std::min(chunkBytes, destination.bytes - at);
    ValueChunk chunk = {};
    std::memcpy(&chunk, from + at, bytes);
    launchBuiltin(rank, "set_values", 1, ValueChunk::words, chunk,
                  rank.device<uint8_t>(destination.at(at, bytes)),
                  static_cast<int32_t>(bytes));
  }
}

template <>
void pipewright::runtime::accumulate(DeviceRank &rank, Buffer source,
                                     Buffer destination) {
  const MeasuredCall measured(rank, costOf("accumulate", source, 3));
  const int64_t elements = source.bytes / 4;
  const float *from = rank.device<float>(source);
  float *to = rank.device<float>(destination);
  if (alignedTo(16, from, to))
    launchBuiltinThreads(rank, "accumulate_packed", (elements + 3) / 4, from,
                         to, elements);
  else
    launchBuiltinThreads(rank, "accumulate", elements, from, to, elements);
}

template <>
void pipewright::runtime::fill(DeviceRank &rank, float value, Buffer buffer) {
  if (!buffer)
    return;
  const MeasuredCall measured(rank, costOf("fill", buffer, 1));
  PIPEWRIGHT_CUDA(cuMemsetD32Async(address(rank, buffer),
                                   std::bit_cast<uint32_t>(value),
                                   buffer.bytes / 4, rank.computeStream()));
}
