//===- DeviceProfile.cpp - What calls took on a GPU -----------------------===//

#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceParts.h"

using namespace pipewright::runtime;

DeviceProfile::~DeviceProfile() {
  for (CUevent event : marks)
    cudaDriver().cuEventDestroy(event);
}

void DeviceProfile::begin() {
  spans.clear();
  depth = 0;
}

void DeviceProfile::open(CUstream newStream, CallCost cost) {
  if (depth++ > 0)
    return;
  const size_t mark = 2 * spans.size();
  while (marks.size() < mark + 2) {
    marks.emplace_back();
    PIPEWRIGHT_CUDA(cuEventCreate(&marks.back(), CU_EVENT_DEFAULT));
  }
  stream = newStream;
  PIPEWRIGHT_CUDA(cuEventRecord(marks[mark], stream));
  spans.push_back({std::move(cost), mark});
}

/// Called by destructors: an error that matters comes again with the next call.
void DeviceProfile::close() noexcept {
  if (--depth == 0 && !spans.empty())
    cudaDriver().cuEventRecord(marks[spans.back().mark + 1], stream);
}

void DeviceProfile::finish(Profile &profile) {
  for (const Span &span : spans) {
    float milliseconds = 0;
    PIPEWRIGHT_CUDA(cuEventElapsedTime(&milliseconds, marks[span.mark],
                                       marks[span.mark + 1]));
    profile.add(span.cost, milliseconds / 1e3);
  }
}

DeviceProfile *DeviceRank::profile() {
  return parts->profiled ? &parts->profile : nullptr;
}
