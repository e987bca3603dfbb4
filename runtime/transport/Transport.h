//===- Transport.h - How ranks reach each other ----------------*- C++ -*-===//
//
// One interface over threads, MPI and TCP. A directed link (from, to) is one
// FIFO: the n-th send meets the n-th receive, and their sizes must agree.
// Nothing is buffered: a send completes only once its receive was posted. A
// Transport belongs to one rank and is used by its thread alone, except for
// `abort`.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRANSPORT_TRANSPORT_H
#define PIPEWRIGHT_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/core/Error.h"

#include <cstdint>
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

  /// Seconds after which a wait gives up.
  void setDeadline(double seconds) { deadlineSeconds = seconds; }
  double deadline() const { return deadlineSeconds; }

protected:
  /// Throws what a wait says when it gives up: who waits for whom, for what.
  /// A peer of -1 is not known.
  [[noreturn]] void failDeadline(int64_t peer, const std::string &what) const {
    pipewright::runtime::failDeadline(rank(), peer, what, deadlineSeconds);
  }

  double deadlineSeconds = 60;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRANSPORT_TRANSPORT_H
