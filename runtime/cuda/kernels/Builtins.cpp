//===- Builtins.cpp - Launches of the builtin kernels ---------------------===//

#include "runtime/cuda/kernels/Builtins.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/Driver.h"

#include <limits>
#include <vector>

using namespace pipewright::runtime;

extern "C" {
extern const char pipewrightBuiltinPtx[], pipewrightBuiltinPtxEnd[];
extern const char pipewrightAttentionPtx[], pipewrightAttentionPtxEnd[];
}

/// One architecture for all GPUs: the driver compiles it for the one at hand.
static const std::vector<DeviceImage> &imagesOf(BuiltinImage image) {
  static const std::vector<DeviceImage> general = {
      {80, pipewrightBuiltinPtx, pipewrightBuiltinPtxEnd}};
  static const std::vector<DeviceImage> attention = {
      {80, pipewrightAttentionPtx, pipewrightAttentionPtxEnd}};
  return image == BuiltinImage::Attention ? attention : general;
}

CUfunction pipewright::runtime::findBuiltin(Device &device,
                                            const BuiltinKernel &kernel) {
  return device.find(imagesOf(kernel.image), kernel.entry.c_str());
}

void pipewright::runtime::prepareBuiltin(DeviceRank &rank,
                                         const BuiltinKernel &kernel) {
  findBuiltin(rank.gpu(), kernel);
}

void pipewright::runtime::launchBuiltin(DeviceRank &rank,
                                        const BuiltinKernel &kernel,
                                        int64_t blocks, int64_t threads,
                                        void **parameters) {
  if (blocks > std::numeric_limits<int32_t>::max())
    fail("kernel ", kernel.entry, " would need ", blocks,
         " blocks, more than a GPU can launch; use smaller micro-batches");
  const MeasuredCall measured(rank, [&] { return CallCost{kernel.entry}; });
  const CUfunction function = findBuiltin(rank.gpu(), kernel);
  PIPEWRIGHT_CUDA(cuLaunchKernel(function, static_cast<unsigned>(blocks), 1, 1,
                                 static_cast<unsigned>(threads), 1, 1, 0,
                                 rank.computeStream(), parameters, nullptr));
}

const char *pipewright::runtime::typeSuffix(ElementType type) {
  return type == ElementType::BF16 ? "_bf16" : "_f32";
}

int32_t pipewright::runtime::kernelSize(int64_t size, const char *what) {
  if (size > std::numeric_limits<int32_t>::max())
    fail(what, " has ", size, " elements, but kernels count to ",
         std::numeric_limits<int32_t>::max(), "; use smaller micro-batches");
  return static_cast<int32_t>(size);
}
