//===- Pooling.cpp - Max and average pooling on the GPU -------------------===//

#include "runtime/calls/Pooling.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"

#include <algorithm>

using namespace pipewright::runtime;

/// How many neighbouring channels a thread has: 16 bytes, or one.
template <class... Pointers>
static int64_t channelsOfThread(const PoolingShape &s,
                                const Pointers *...pointers) {
  const int64_t count = 16 / byteWidth(s.type);
  return s.channelsLast && s.c % count == 0 && alignedTo(16, pointers...)
             ? count
             : 1;
}

/// Launches a thread for some channels of each of the `pixels` of every image.
template <class... Buffers>
static void launchImages(DeviceRank &rank, const char *kernel,
                         const PoolingShape &s, int64_t pixels,
                         Buffers... buffers) {
  // With channels first, each plane is an image of its own.
  const int64_t images = s.channelsLast ? s.n : s.n * s.c;
  const int64_t channels = s.channelsLast ? s.c : 1;
  kernelSize(s.h * s.w * channels, "an image of pooling");
  kernelSize(s.oh * s.ow * channels, "an image of pooling");
  const int64_t count = channelsOfThread(s, rank.device<char>(buffers)...);
  const int64_t elements = pixels * channels / count;
  auto narrow = [](int64_t size) { return static_cast<int32_t>(size); };
  // Whole warps, and no more than a small image needs.
  const int64_t threads = std::min<int64_t>(256, (elements + 31) / 32 * 32);
  const int64_t blocks = (elements + threads - 1) / threads;
  const PoolingParameters parameters = {.h = narrow(s.h),
                                        .w = narrow(s.w),
                                        .oh = narrow(s.oh),
                                        .ow = narrow(s.ow),
                                        .kh = narrow(s.kh),
                                        .kw = narrow(s.kw),
                                        .strideH = narrow(s.strideH),
                                        .strideW = narrow(s.strideW),
                                        .padTop = narrow(s.padTop),
                                        .padLeft = narrow(s.padLeft),
                                        .dilationH = narrow(s.dilationH),
                                        .dilationW = narrow(s.dilationW),
                                        .countIncludePad = s.countIncludePad,
                                        .channels = narrow(channels),
                                        .blocksPerImage = narrow(blocks)};
  if (images * blocks > 0)
    launchBuiltin(
        rank,
        std::string(kernel) + typeSuffix(s.type) + (count > 1 ? "_packed" : ""),
        images * blocks, threads, parameters, rank.device<char>(buffers)...);
}

template <>
void pipewright::runtime::maxPool(DeviceRank &rank, const PoolingShape &s,
                                  Buffer x, Buffer y, Buffer window) {
  launchImages(rank, "max_pool", s, s.oh * s.ow, x, y, window);
}

template <>
void pipewright::runtime::maxPoolBackward(DeviceRank &rank,
                                          const PoolingShape &s, Buffer dy,
                                          Buffer window, Buffer dx) {
  launchImages(rank, "max_pool_backward", s, s.h * s.w, dy, window, dx);
}

template <>
void pipewright::runtime::averagePool(DeviceRank &rank, const PoolingShape &s,
                                      Buffer x, Buffer y) {
  launchImages(rank, "average_pool", s, s.oh * s.ow, x, y);
}

template <>
void pipewright::runtime::averagePoolBackward(DeviceRank &rank,
                                              const PoolingShape &s, Buffer dy,
                                              Buffer dx) {
  launchImages(rank, "average_pool_backward", s, s.h * s.w, dy, dx);
}
