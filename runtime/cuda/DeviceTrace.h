//===- DeviceTrace.h - What a GPU did when ---------------------*- C++ -*-===//
//
// Events with times between the work of a traced step, turned into the
// host's time afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DEVICETRACE_H
#define PIPEWRIGHT_RUNTIME_CUDA_DEVICETRACE_H

#include "runtime/cuda/Device.h"
#include "runtime/trace/Trace.h"

#include <vector>

namespace pipewright::runtime {

class DeviceTrace {
public:
  /// A traced step begins: no stream has any work yet.
  void begin(CUstream stream);
  /// An event behind what the stream has got.
  CUevent mark(CUstream stream);
  /// Work between two events. Those of transfers were made with times.
  void add(const Trace::Label &what, CUevent begin, CUevent end) {
    spans.push_back({what, begin, end});
  }
  /// The task that was added last goes on to this event.
  void extendTask(CUevent end);
  /// All work is done: tells what it was.
  void finish(Trace &trace);

private:
  struct Span {
    Trace::Label what;
    CUevent begin, end;
  };

  EventPool marks{CU_EVENT_DEFAULT};
  std::vector<Span> spans;
  CUevent reference = nullptr;
  Trace::Clock::time_point referenceTime;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICETRACE_H
