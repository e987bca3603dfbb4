//===- NcclCalls.h - Communicators, and calls that do not hang -*- C++ -*-===//
//
// NCCL has no time-outs: every wait for another rank is a loop of ours with a
// deadline. Communicators block, because those that do not make a thread for
// each call. What waits for another rank gets a thread of ours: making them,
// their first use, their end. A transfer or collective of later steps waits for
// nobody, but for room in the queues of the driver; see Watchdog.h.
//
// All communicators of a rank are kept in one list, so that they end together.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_NCCLCALLS_H
#define PIPEWRIGHT_RUNTIME_CUDA_NCCLCALLS_H

#include "runtime/cuda/Driver.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/Patience.h"
#include "runtime/net/Transport.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

struct NcclCommunicator {
  /// What errors call it: "link 0 -> 1", "group of ranks 0, 2".
  std::string text;
  /// Whom this rank waits for; -1: several.
  int64_t peer = -1;
  ncclComm_t handle = nullptr;
};

/// In progress: goes on in a thread of NCCL.
inline bool isFine(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

class NcclCalls {
public:
  /// Opens NCCL, or throws an Error.
  explicit NcclCalls(Transport &control);

  /// A communicator that is not made yet; it stays where it is.
  NcclCommunicator &add(std::string text, int64_t peer) {
    return communicators.emplace_back(
        NcclCommunicator{std::move(text), peer, nullptr});
  }

  /// An NCCL call on a communicator: nobody aborts it meanwhile. Throws an
  /// Error that names the communicator when NCCL reports one.
  void call(const NcclCommunicator &communicator,
            const std::function<ncclResult_t()> &body);
  /// The same for what may wait for other ranks, on a thread of its own; this
  /// one waits for `what` it is. If that fails, the other thread goes on as
  /// long as the process: `body` keeps what it needs.
  void callAside(const NcclCommunicator &communicator, const std::string &what,
                 double deadline, const std::function<ncclResult_t()> &body);
  /// Makes a communicator so.
  void make(NcclCommunicator &communicator, const std::string &what,
            double deadline,
            const std::function<ncclResult_t(ncclComm_t *)> &body);
  /// Success, or in progress.
  ncclResult_t stateOf(const NcclCommunicator &communicator);
  void waitUntilReady(const NcclCommunicator &communicator,
                      const std::string &what, double deadline);
  /// The first exchange of a communicator was enqueued on the stream: waits
  /// until it is over.
  void waitUntilExchanged(const NcclCommunicator &communicator, CUstream stream,
                          double deadline);
  /// Throws an Error if any of them has failed.
  void check();

  /// Ends all communicators at once. Any thread may call it. Does nothing while
  /// a thread is inside of NCCL, which forbids it: the process ends then.
  void abort(double deadline);
  /// Ends them together with the other ranks if all of them are well, and
  /// aborts them otherwise.
  void end(double deadline);

private:
  [[noreturn]] void failCall(const NcclCommunicator &communicator,
                             ncclResult_t result);
  void finalize(double deadline);

  Transport &control;
  /// In the one order that all ranks have: those that this rank is in.
  std::deque<NcclCommunicator> communicators;
  /// Guards the communicators against abort, which comes from any thread.
  std::timed_mutex mutex;
  bool aborted = false;
  /// A thread is inside of callAside's body.
  bool occupied = false;
};

/// Memory and streams for a first exchange over each of several communicators;
/// given back at once.
class NcclWarmUp {
public:
  explicit NcclWarmUp(size_t places);
  ~NcclWarmUp();
  CUdeviceptr at(size_t place) const { return memory + place * spacing; }
  CUstream stream(size_t place) const { return streams[place]; }
  /// What is written at the same time does not share a cache line.
  static constexpr size_t spacing = 128;

private:
  CUdeviceptr memory = 0;
  std::vector<CUstream> streams;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_NCCLCALLS_H
