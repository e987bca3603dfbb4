//===- Transport.h - How ranks reach each other ----------------*- C++ -*-===//
//
// One interface over threads, MPI and TCP. A directed link (from, to) has a few
// lanes (Line.h), and each is one FIFO: the n-th send meets the n-th receive,
// and their sizes must agree. Nothing is buffered: a send completes only once
// its receive was posted. A Transport belongs to one rank and is used by its
// thread alone, except for `abort`.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TRANSPORT_H
#define PIPEWRIGHT_RUNTIME_NET_TRANSPORT_H

#include "runtime/core/Error.h"
#include "runtime/net/Line.h"
#include "runtime/net/Liveness.h"
#include "runtime/trace/FlightRecorder.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

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

/// What both ends of a link say when their sizes differ.
std::string sizesText(int64_t from, int64_t to, int64_t sent, int64_t expected);
[[noreturn]] void failSizes(int64_t from, int64_t to, int64_t sent,
                            int64_t expected);

class Collectives;

/// Something that other ranks need, and that takes no wait of this one.
class Errand {
public:
  /// Goes on as far as it can without a wait; whether others may go on behind
  /// it.
  virtual bool advance() = 0;

protected:
  ~Errand() = default;
};

class Transport {
public:
  virtual ~Transport() = default;
  Transport(const Transport &) = delete;
  Transport &operator=(const Transport &) = delete;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  /// Never block. The memory must stay as it is until the matching wait.
  virtual void postSend(Line to, const void *data, int64_t bytes) = 0;
  virtual void postReceive(Line from, void *data, int64_t bytes) = 0;
  /// Complete the oldest outstanding one of the line. Throw an Error when the
  /// sizes differ, or when the deadline passes.
  virtual void waitSend(Line to) = 0;
  virtual void waitReceive(Line from) = 0;
  /// Whether the wait for the oldest outstanding one of the line would return,
  /// or throw, at once.
  virtual bool isOver(Line line, bool isSend) = 0;
  /// Lets transfers and errands make progress; returns at once.
  virtual void poll() = 0;

  /// Waits and polls advance it beside what they do, on the rank's thread, from
  /// now on until it is removed. One that cannot go on keeps those that were
  /// added behind it.
  void addErrand(Errand &errand);
  /// Waits of the caller advance no errands while this is there.
  class ErrandsRest {
  public:
    explicit ErrandsRest(Transport &transport);
    ~ErrandsRest();
    ErrandsRest(const ErrandsRest &) = delete;
    ErrandsRest &operator=(const ErrandsRest &) = delete;

  private:
    bool &rests;
    const bool before;
  };
  void removeErrand(Errand &errand);

  /// Every rank must call these; they wait for each other. Transfers that are
  /// outstanding do not matter to them.
  void barrier();
  /// Sums in the order of the ranks: the same bits on any transport.
  void sumToAll(double *values, int64_t count);

  /// Collectives of these ranks, of which this is one, in memory that all of
  /// them reach; null where ranks are processes. Members open their groups in
  /// one order.
  virtual std::unique_ptr<Collectives>
  openShared(const std::vector<int64_t> &members);

  /// Wakes or ends all other ranks; the first message wins.
  virtual void abort(const std::string &message) = 0;

  /// What errors call a rank: its number among all of the run.
  virtual int64_t nameOf(int64_t rank) const { return rank; }

  /// Seconds after which a wait gives up, though all ranks live; at first a
  /// wait may take for ever.
  void setDeadline(double seconds) { common->deadlineSeconds = seconds; }
  double deadline() const { return common->deadlineSeconds; }
  /// Seconds after which a rank that says nothing counts as lost. If no wait
  /// has a deadline, a program of which all ranks wait for so long is stuck.
  void setSilence(double seconds) { common->silenceSeconds = seconds; }

  /// What the rank does; its own thread writes.
  FlightRecorder &recorder() { return common->flight; }

protected:
  Transport() : common(std::make_shared<Common>()) {}
  /// One that reaches some of the ranks of another, and waits as that does.
  struct PartOf {
    Transport &whole;
  };
  explicit Transport(PartOf part) : common(part.whole.common) {}

  /// For waits that last, and polls.
  void advanceErrands();

  double silence() const { return common->silenceSeconds; }
  /// Throws what a wait says when it gives up: who waits for whom, for what.
  /// A peer of -1 is not known.
  [[noreturn]] void failDeadline(int64_t peer, const std::string &what) const {
    pipewright::runtime::failDeadline(rank(), peer, what, deadline());
  }

  /// This rank's own, of a wait or of none.
  Sign makeSign(Sign::WaitReason what, int64_t peer, int64_t bytes,
                int64_t progress) const;
  bool hasDeadline() const { return std::isfinite(deadline()); }

private:
  void exchangeWithAll(const double *own, double *all, int64_t count);

  /// What all transports of a rank have in common.
  struct Common {
    std::atomic<double> deadlineSeconds{
        std::numeric_limits<double>::infinity()};
    std::atomic<double> silenceSeconds{8};
    FlightRecorder flight;
    /// What ranks give to sums. It lives on when a sum fails: others may still
    /// write to it.
    std::vector<double> parts;
    /// In the order in which they were added.
    std::vector<Errand *> errands;
    bool errandsRest = false;
  };
  std::shared_ptr<Common> common;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_TRANSPORT_H
