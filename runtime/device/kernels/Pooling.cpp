//===- Pooling.cpp - Max and average pooling on the GPU -------------------===//

#include "runtime/device/kernels/Pooling.h"
#include "runtime/device/kernels/BuiltinParameters.h"
#include "runtime/device/kernels/Builtins.h"

#include <algorithm>

using namespace pipewright::runtime;

/// Launches one thread for each of the `elements` of every plane.
template <class... Buffers>
static void launchPlanes(DeviceRank &rank, const char *kernel,
                         const PoolingShape &s, int64_t elements,
                         Buffers... buffers) {
  kernelSize(s.h * s.w, "a plane of pooling");
  kernelSize(s.oh * s.ow, "a plane of pooling");
  auto narrow = [](int64_t size) { return static_cast<int32_t>(size); };
  // Whole warps, and no more than a small plane needs.
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
                                        .blocksPerPlane = narrow(blocks)};
  if (s.n * s.c * blocks > 0)
    launchBuiltin(rank, std::string(kernel) + typeSuffix(s.type),
                  s.n * s.c * blocks, threads, parameters,
                  rank.device<char>(buffers)...);
}

void pipewright::runtime::maxPool(DeviceRank &rank, const PoolingShape &s,
                                  Buffer x, Buffer y, Buffer window) {
  launchPlanes(rank, "max_pool", s, s.oh * s.ow, x, y, window);
}

void pipewright::runtime::maxPoolBackward(DeviceRank &rank,
                                          const PoolingShape &s, Buffer dy,
                                          Buffer window, Buffer dx) {
  launchPlanes(rank, "max_pool_backward", s, s.h * s.w, dy, window, dx);
}

void pipewright::runtime::averagePool(DeviceRank &rank, const PoolingShape &s,
                                      Buffer x, Buffer y) {
  launchPlanes(rank, "average_pool", s, s.oh * s.ow, x, y);
}

void pipewright::runtime::averagePoolBackward(DeviceRank &rank,
                                              const PoolingShape &s, Buffer dy,
                                              Buffer dx) {
  launchPlanes(rank, "average_pool_backward", s, s.h * s.w, dy, dx);
}
