//===- DeviceProfile.h - What calls took on a GPU --------------*- C++ -*-===//
//
// A pair of events around each call that a profiled step enqueues on `compute`.
// A call that is shorter than what the host takes to enqueue it (some
// microseconds) seems as long as that.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DEVICEPROFILE_H
#define PIPEWRIGHT_RUNTIME_CUDA_DEVICEPROFILE_H

#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/trace/Profile.h"

#include <vector>

namespace pipewright::runtime {

class DeviceProfile {
public:
  /// A profiled step begins: no stream has any work yet.
  void begin();
  /// What is enqueued until `close` is one call. A call within a call is a part
  /// of it.
  void open(CUstream stream, CallCost cost);
  void close() noexcept;
  /// All work is done: tells what it took.
  void finish(Profile &profile);

private:
  struct Span {
    CallCost cost;
    CUevent begin, end;
  };

  EventPool marks{CU_EVENT_DEFAULT};
  std::vector<Span> spans;
  CUstream stream = nullptr;
  int64_t depth = 0;
};

/// Measures what is enqueued on `compute` while it lives, in profiled steps.
class MeasuredCall {
public:
  /// `describe` gives the CallCost.
  template <class Describe>
  MeasuredCall(DeviceRank &rank, const Describe &describe)
      : profile(rank.profile()) {
    if (profile)
      profile->open(rank.computeStream(), describe());
  }
  ~MeasuredCall() {
    if (profile)
      profile->close();
  }
  MeasuredCall(const MeasuredCall &) = delete;
  MeasuredCall &operator=(const MeasuredCall &) = delete;

private:
  DeviceProfile *profile;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICEPROFILE_H
