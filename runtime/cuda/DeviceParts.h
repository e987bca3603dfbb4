//===- DeviceParts.h - What a rank's GPU work is made of -------*- C++ -*-===//
//
// The inside of DeviceRank, for the files that implement it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DEVICEPARTS_H
#define PIPEWRIGHT_RUNTIME_CUDA_DEVICEPARTS_H

#include "runtime/core/Error.h"
#include "runtime/cuda/Arrivals.h"
#include "runtime/cuda/Chaos.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceLinks.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/DeviceTrace.h"
#include "runtime/cuda/InputsAhead.h"
#include "runtime/cuda/Staging.h"
#include "runtime/cuda/TaskGraphs.h"
#include "runtime/cuda/Watchdog.h"
#include "runtime/cuda/WorkLog.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/net/Transport.h"

#include <set>
#include <unordered_map>

namespace pipewright::runtime {

/// An event of the program, as the running step has left it.
struct EventSlot {
  /// A transfer or collective that is only rehearsed is Recorded, too.
  enum class State { Unused, Recorded, Send, Receive, Collective };

  CUevent handle = nullptr;
  State state = State::Unused;
  /// The other end of a transfer, or the group of a collective, and whether
  /// streams may wait for it yet.
  int64_t peer = -1;
  bool settled = false;
  /// Of a collective.
  const char *kind = "";

  bool needsPeer() const {
    return state != State::Unused && state != State::Recorded;
  }
  Stream stream() const {
    return state == State::Send      ? sendTo(peer)
           : state == State::Receive ? receiveFrom(peer)
                                     : collective;
  }
  const char *verb() const {
    return state == State::Send      ? "send"
           : state == State::Receive ? "receive"
                                     : kind;
  }
};

/// What the GPU reads and writes at fixed places of pinned memory.
struct Mailbox {
  PinnedMemory memory;
  StepState *state = nullptr;
  /// What kernels have noted in the step that has ended.
  IndexFault *fault = nullptr;
  /// The optimizer's scalars for each update.
  float *hyper = nullptr;
  float *losses = nullptr;
  int64_t capacity = 0;

  explicit Mailbox(const Program &program)
      : memory(sizeof(StepState) + sizeof(IndexFault) +
               4 * (program.updates * count(program) + program.microBatches)),
        state(memory.data<StepState>()),
        fault(reinterpret_cast<IndexFault *>(state + 1)),
        hyper(reinterpret_cast<float *>(fault + 1)),
        losses(hyper + program.updates * count(program)),
        capacity(program.microBatches) {}

private:
  static int64_t count(const Program &program) {
    return program.optimizer.scalars.size();
  }
};

/// Watches the calling thread while it lives.
class Watched {
public:
  explicit Watched(Watchdog &watchdog) : watchdog(watchdog) {
    watchdog.begin();
  }
  ~Watched() { watchdog.end(); }

private:
  Watchdog &watchdog;
};

/// What waits for something else than the driver: a peer, a disk.
class Unwatched {
public:
  explicit Unwatched(Watchdog &watchdog)
      : watchdog(watchdog), was(watchdog.pause()) {}
  ~Unwatched() {
    if (was)
      watchdog.resume();
  }

private:
  Watchdog &watchdog;
  const bool was;
};

/// Destroyed from the last to the first: links and streams go before memory.
/// Sums of squares of a rank's gradients on their way to the host; nothing
/// where the program does not clip them.
struct GradientSquares {
  GradientSquares(Device &device, const Program &program, int64_t rank);

  DeviceMemory onDevice;
  PinnedMemory onHost;
};

struct DeviceRank::Parts {
  /// `number` is the rank's, `process` its number among those of all replicas.
  Parts(const Program &program, int64_t process, int64_t number,
        std::shared_ptr<Device> gpu, std::unique_ptr<DeviceLinks> connected,
        const DeviceSettings &settings);
  ~Parts();

  void reserveStaging(int64_t bytes);
  CUstream handle(Stream stream) const;
  EventSlot &slot(int64_t event);
  /// Calls of links: what they throw gets where the streams stand behind it.
  template <class Body>
  void withPosition(const Body &body) {
    try {
      body();
    } catch (const Aborted &) {
      throw;
    } catch (const Error &error) {
      fail(error.what(), position());
    }
  }
  std::string position();
  /// The same for the watchdog, whose thread it is.
  std::string inspectPosition();
  /// Waits of links have deadlines of their own.
  template <class Body>
  void waitForPeer(const Body &body) {
    const Unwatched unwatched(watchdog);
    withPosition(body);
  }
  /// For what a stream may wait for.
  void settle(EventSlot &slot);
  bool isIdle(CUstream stream);
  /// Waits until the streams have nothing left to do.
  void drain(const std::vector<CUstream> &which, Transport &transport);

  const DeviceSettings settings;
  std::shared_ptr<Device> device;
  DeviceMemory memory, stepState, workspace;
  Arena arena;
  /// Stashes that live on the host, and addresses there.
  PinnedMemory offloaded;
  Arena onHost;
  Mailbox mailbox;
  GradientSquares squares;
  /// Inputs of steps, which take turns, and of evaluations.
  Staging steps[2], evaluations;
  size_t turn = 0;
  /// What the running one takes from.
  Staging *staging = &steps[0];
  /// Of the next step.
  InputsAhead ahead;
  std::unordered_map<const DeviceKernel *, std::vector<CUfunction>> kernels;

  CUstream computing = nullptr;
  /// One stream for each peer; null where there is no link.
  std::vector<CUstream> sending, receiving;
  /// Null where the rank is in no group.
  CUstream collecting = nullptr;
  /// Null where no stash lives on the host.
  CUstream offloading = nullptr, fetching = nullptr;
  std::vector<CUstream> streams;
  std::vector<EventSlot> events;
  /// Whether the events keep times.
  bool timed = false;

  TaskGraphs graphs;
  /// Of a step that is compared.
  Arrivals arrivals;
  WorkLog log;
  /// Name of the task that was enqueued last, "" before the first.
  std::string lastTask;
  std::mutex lastTaskMutex;
  Chaos chaos;
  DeviceTrace trace;
  bool traced = false;
  DeviceProfile profile;
  bool profiled = false;
  /// Whether no step, and no evaluation, has run yet.
  bool isFirstRun[2] = {true, true};
  /// Nothing may be allocated any more.
  bool started = false;
  /// Transfers are left out.
  bool rehearsing = false;
  bool failed = false;

  /// The micro-batches whose losses the running step has copied to the host.
  std::set<int64_t> reported;
  /// Where gradients go at the first update, while they are asked for.
  PinnedMemory gradients;
  bool capturing = false, captured = false;

  std::unique_ptr<DeviceLinks> links;
  Watchdog watchdog;
};

inline CUdeviceptr addressOf(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICEPARTS_H
