//===- DeviceProfile.cpp - What calls took on a GPU -----------------------===//

#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceParts.h"

using namespace pipewright::runtime;

void DeviceProfile::begin() {
  marks.giveBackAll();
  spans.clear();
  depth = 0;
}

void DeviceProfile::open(CUstream newStream, CallCost cost) {
  if (depth++ > 0)
    return;
  Span span = {std::move(cost), marks.take(), marks.take()};
  stream = newStream;
  PIPEWRIGHT_CUDA(cuEventRecord(span.begin, stream));
  spans.push_back(std::move(span));
}

/// Called by destructors: an error that matters comes again with the next call.
void DeviceProfile::close() noexcept {
  if (--depth == 0 && !spans.empty())
    cudaDriver().cuEventRecord(spans.back().end, stream);
}

void DeviceProfile::finish(Profile &profile) {
  for (const Span &span : spans) {
    float milliseconds = 0;
    PIPEWRIGHT_CUDA(cuEventElapsedTime(&milliseconds, span.begin, span.end));
    profile.add(span.cost, milliseconds / 1e3);
  }
}

DeviceProfile *DeviceRank::profile() {
  return parts->profiled ? &parts->profile : nullptr;
}
