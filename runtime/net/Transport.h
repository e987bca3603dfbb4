//===- Transport.h - How ranks reach each other ----------------*- C++ -*-===//
//
// One interface over threads, MPI and TCP. A directed link (from, to) is one
// FIFO: the n-th send meets the n-th receive, and their sizes must agree.
// Nothing is buffered: a send completes only once its receive was posted. A
// Transport belongs to one rank and is used by its thread alone, except for
// `abort`.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TRANSPORT_H
#define PIPEWRIGHT_RUNTIME_NET_TRANSPORT_H

#include "runtime/core/Error.h"
#include "runtime/net/Liveness.h"
#include "runtime/trace/FlightRecorder.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace pipewright::runtime {

/// Thrown by waits that give up because the deadline has passed.
class DeadlinePassed : public Error {
public:
  using Error::Error;
};

/// Throws what a wait says when it gives up: who waits for whom, for what. A
/// peer of -1 is not known.
[[noreturn]] void failDeadline(int64_t self, int64_t peer,
                               const std::string &what, double seconds);

/// Throws what both ends of a link say when their sizes differ.
[[noreturn]] void failSizes(int64_t from, int64_t to, int64_t sent,
                            int64_t expected);

class Transport {
public:
  virtual ~Transport() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  /// Never block. The memory must stay as it is until the matching wait.
  virtual void postSend(int64_t peer, const void *data, int64_t bytes) = 0;
  virtual void postReceive(int64_t peer, void *data, int64_t bytes) = 0;
  /// Complete the oldest outstanding one of the directed link. Throw an Error
  /// when the sizes differ, or when the deadline passes.
  virtual void waitSend(int64_t peer) = 0;
  virtual void waitReceive(int64_t peer) = 0;
  /// Lets transfers make progress; returns at once.
  virtual void poll() = 0;

  /// Every rank must call these; they wait for each other.
  virtual void barrier() = 0;
  /// Sums in the order of the ranks: the same bits on any transport.
  virtual void sumToAll(double *values, int64_t count) = 0;

  /// Wakes or ends all other ranks; the first message wins.
  virtual void abort(const std::string &message) = 0;

  /// Seconds after which a wait gives up, though all ranks live; at first a
  /// wait may take for ever.
  void setDeadline(double seconds) { deadlineSeconds = seconds; }
  double deadline() const { return deadlineSeconds; }
  /// Seconds after which a rank that says nothing counts as lost. If no wait
  /// has a deadline, a program of which all ranks wait for so long is stuck.
  void setSilence(double seconds) { silenceSeconds = seconds; }

  /// What the rank does; its own thread writes.
  FlightRecorder &recorder() { return flight; }

protected:
  /// Throws what a wait says when it gives up: who waits for whom, for what.
  /// A peer of -1 is not known.
  [[noreturn]] void failDeadline(int64_t peer, const std::string &what) const {
    pipewright::runtime::failDeadline(rank(), peer, what, deadlineSeconds);
  }

  /// This rank's own, of a wait or of none.
  Sign makeSign(Sign::What what, int64_t peer, int64_t bytes,
                int64_t progress) const;
  bool hasDeadline() const { return std::isfinite(deadlineSeconds.load()); }

  std::atomic<double> deadlineSeconds{std::numeric_limits<double>::infinity()};
  std::atomic<double> silenceSeconds{8};

private:
  FlightRecorder flight;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_TRANSPORT_H
