//===- Labels.cpp - Labels that a loss may have, on the GPU ---------------===//

#include "runtime/calls/Labels.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/Builtins.h"

using namespace pipewright::runtime;

template <>
void pipewright::runtime::checkLabels(DeviceRank &rank, const LabelShape &shape,
                                      Buffer labels) {
  const MeasuredCall measured(rank, [&] {
    return CallCost{"checkLabels", static_cast<double>(labels.bytes)};
  });
  launchBuiltinThreads(rank, "check_labels", shape.count,
                       rank.device<const int64_t>(labels), shape.count,
                       shape.classes, shape.ignored, rank.indexFault());
}
