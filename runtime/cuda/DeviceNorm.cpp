//===- DeviceNorm.cpp - The norm of gradients on a GPU --------------------===//
//
// The GPU adds squares in parts of a fixed size, the host the parts and what
// other ranks have (rank/GradientNorm.cpp).
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/cuda/DeviceParts.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"

#include <algorithm>
#include <numeric>

using namespace pipewright::runtime;

static constexpr const char *kernel = "sum_squares";

static int64_t elementsOf(const TensorInfo &gradient) {
  return gradient.buffer.bytes / static_cast<int64_t>(sizeof(float));
}

static int64_t partsOf(const TensorInfo &gradient) {
  return (elementsOf(gradient) + squaresChunk - 1) / squaresChunk;
}

GradientSquares::GradientSquares(Device &device, const Program &program,
                                 int64_t rank) {
  if (program.optimizer.clipNorm == 0)
    return;
  int64_t parts = 0;
  for (const TensorInfo &tensor : program.ranks[rank].tensors)
    if (tensor.isWholeGradient())
      parts += partsOf(tensor);
  if (parts == 0)
    return;
  const auto bytes = parts * static_cast<int64_t>(sizeof(double));
  onDevice = DeviceMemory(device, bytes, "norm of the gradients");
  onHost = PinnedMemory(bytes);
  findBuiltin(device, kernel);
}

/// Waits for what `compute` has been given.
void DeviceRank::addSquares() {
  GradientSquares &squares = parts->squares;
  CUdeviceptr to = squares.onDevice.address();
  for (const TensorInfo &tensor : program().tensors) {
    if (!tensor.isWholeGradient())
      continue;
    launchBuiltin(*this, kernel, partsOf(tensor), 256,
                  device<float>(tensor.buffer), to, elementsOf(tensor));
    to += partsOf(tensor) * sizeof(double);
  }
  if (squares.onHost.bytes())
    PIPEWRIGHT_CUDA(
        cuMemcpyDtoHAsync(squares.onHost.data(), squares.onDevice.address(),
                          squares.onHost.bytes(), parts->computing));
  parts->drain({parts->computing}, transport());
}

std::vector<double>
DeviceRank::squaresOf(const std::vector<const TensorInfo *> &gradients) {
  std::vector<double> sums(gradients.size());
  const double *part = parts->squares.onHost.data<double>();
  for (const TensorInfo &tensor : program().tensors) {
    if (!tensor.isWholeGradient())
      continue;
    const auto place = std::find(gradients.begin(), gradients.end(), &tensor);
    sums.at(place - gradients.begin()) =
        std::accumulate(part, part + partsOf(tensor), 0.0);
    part += partsOf(tensor);
  }
  return sums;
}

void DeviceRank::clipGradients() {
  // In a rehearsal no other rank comes to meet this one.
  if (parts->rehearsing)
    return;
  // What members of groups tell each other goes over the transport as well,
  // whose messages end in the order in which they began.
  parts->waitForPeer([&] { parts->links->settleGroups(); });
  addSquares();
  parts->waitForPeer([&] { scaleToNorm(); });
  mailScalars();
}
