//===- DeviceTrace.cpp - What a GPU did when ------------------------------===//

#include "runtime/cuda/DeviceTrace.h"

#include <optional>

using namespace pipewright::runtime;

using Clock = Trace::Clock;

void DeviceTrace::begin(CUstream stream) {
  marks.giveBackAll();
  spans.clear();
  reference = mark(stream);
  PIPEWRIGHT_CUDA(cuEventSynchronize(reference));
  referenceTime = Clock::now();
}

CUevent DeviceTrace::mark(CUstream stream) {
  CUevent event = marks.take();
  PIPEWRIGHT_CUDA(cuEventRecord(event, stream));
  return event;
}

void DeviceTrace::extendTask(CUevent end) {
  for (auto span = spans.rbegin(); span != spans.rend(); ++span)
    if (span->what.category == Trace::Category::Task) {
      span->end = end;
      return;
    }
}

void DeviceTrace::finish(Trace &trace) {
  auto timeOf = [&](CUevent event) -> std::optional<Clock::time_point> {
    float milliseconds = 0;
    // An event that another GPU has recorded has no time on this one.
    if (cudaDriver().cuEventElapsedTime(&milliseconds, reference, event) !=
        CUDA_SUCCESS)
      return std::nullopt;
    return referenceTime +
           std::chrono::duration_cast<Clock::duration>(
               std::chrono::duration<double, std::milli>(milliseconds));
  };
  for (const Span &span : spans) {
    const auto begin = timeOf(span.begin), end = timeOf(span.end);
    if (begin && end)
      trace.add(span.what, *begin, std::max(*begin, *end));
  }
}
