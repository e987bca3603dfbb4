//===- Dropout.cpp - Dropout on the GPU -----------------------------------===//
//
// The same factors as on the CPU. Seed and step are read from device memory
// (DeviceRank::randomState), so a graph draws new numbers in every step.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Dropout.h"
#include "runtime/core/Philox.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"

using namespace pipewright::runtime;

template <>
void pipewright::runtime::dropout(DeviceRank &rank, const DropoutShape &shape,
                                  int64_t microBatch, Buffer x, Buffer y) {
  const MeasuredCall measured(rank, [&] {
    return CallCost{"dropout", static_cast<double>(x.bytes + y.bytes)};
  });
  const DropoutParameters parameters = {
      static_cast<uint32_t>(shape.id),
      static_cast<uint32_t>(rank.numberInBatch(microBatch)),
      dropThreshold(shape.rate), 1 / (1 - shape.rate)};
  const char *from = rank.device<char>(x);
  char *to = rank.device<char>(y);
  // A thread has the four elements that come from one counter.
  const bool packed = alignedTo(4 * byteWidth(shape.type), from, to);
  launchBuiltinThreads(rank,
                       std::string(packed ? "dropout_packed" : "dropout") +
                           typeSuffix(shape.type),
                       (shape.elements + 3) / 4, parameters, rank.randomState(),
                       from, to, shape.elements);
}
