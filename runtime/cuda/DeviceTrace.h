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
  void task(const char *kind, int64_t stage, int64_t microBatch, CUevent begin,
            CUevent end);
  void wait(const char *verb, int64_t peer, CUevent begin, CUevent end);
  void transfer(const char *verb, int64_t peer, CUevent begin, CUevent end);
  void collective(const char *kind, int64_t group, CUevent begin, CUevent end);
  void collectiveWait(const char *kind, int64_t group, CUevent begin,
                      CUevent end);
  /// All work is done: tells what it was.
  void finish(Trace &trace);

private:
  using AddPeer = void (Trace::*)(const char *, int64_t,
                                  Trace::Clock::time_point,
                                  Trace::Clock::time_point);
  struct Span {
    /// Null: a task.
    AddPeer add;
    const char *kind;
    int64_t first, microBatch;
    CUevent begin, end;
  };

  EventPool marks{CU_EVENT_DEFAULT};
  std::vector<Span> spans;
  CUevent reference = nullptr;
  Trace::Clock::time_point referenceTime;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICETRACE_H
