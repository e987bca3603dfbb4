//===- LocalMeetings.h - Threads with GPUs that meet -----------*- C++ -*-===//
//
// What transfers and collectives of `cuda-local` have in common (LocalLinks.h
// says why): members come to a place, a link or a group, in one order; whoever
// comes last enqueues the work of all on its own stream, behind what the
// others' streams had got when they came.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_LOCALMEETINGS_H
#define PIPEWRIGHT_RUNTIME_CUDA_LOCALMEETINGS_H

#include "runtime/cuda/Device.h"
#include "runtime/net/Collectives.h"
#include "runtime/net/Transport.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// One transfer or collective, as its members come to it.
struct LocalMeeting {
  explicit LocalMeeting(size_t members) : parts(members) {}

  struct Part {
    CUdeviceptr data = 0;
    CUstream stream = nullptr;
    CUevent done = nullptr;
    /// Of a transfer.
    int64_t bytes = 0;
    /// Of a collective.
    Collective what = {};
    bool arrived = false;
    /// Recorded when this member came, unless it was the last.
    CUevent ready = nullptr;
  };
  /// By member.
  std::vector<Part> parts;
  size_t arrivals = 0;
  /// All have come: it is enqueued, or it never will be.
  std::atomic<bool> met{false};
  /// Why not.
  std::string error;
};

/// A directed link, from its first member to its second, or a group.
struct RendezvousPoint {
  explicit RendezvousPoint(std::vector<int64_t> ranks)
      : members(std::move(ranks)), begun(members.size()), ends(members.size()) {
  }

  /// What a member has given to it once and for all.
  struct End {
    CUcontext context = nullptr;
    /// Recorded behind the last work that this member enqueued.
    CUevent enqueued = nullptr;
    /// Where `done` of this member is recorded by one on another GPU, which
    /// cannot record it on a stream of its own. Nothing else is on it, so that
    /// no later work of the place can stand in front.
    CUstream completion = nullptr;
  };

  /// Their ranks.
  const std::vector<int64_t> members;
  std::mutex mutex;
  std::condition_variable changed;
  /// Those that not all have come to.
  std::deque<std::shared_ptr<LocalMeeting>> meetings;
  /// How many meetings have ended, and each member has begun.
  int64_t ended = 0;
  std::vector<int64_t> begun;
  std::vector<End> ends;
  /// Who enqueued the last; -1: nobody has.
  int64_t last = -1;
};

/// All places of a process.
struct LocalPlaces {
  explicit LocalPlaces(int64_t ranks);

  RendezvousPoint &link(int64_t from, int64_t to) {
    return links[from * ranks + to];
  }
  void abort();

  const int64_t ranks;
  std::deque<RendezvousPoint> links;
  std::atomic<bool> aborted{false};
  /// Guards the list of groups.
  std::mutex mutex;
  std::deque<RendezvousPoint> groups;
};

/// What one rank gives to places of a kind, until its peers have come.
class LocalMeetings {
public:
  LocalMeetings(LocalPlaces &world, Transport &control);
  /// `world` is aborted if any was not settled.
  virtual ~LocalMeetings();

  /// See DeviceLinks.
  std::shared_ptr<const std::atomic<bool>> recorded(CUevent done) const;
  void settle(CUevent done, double deadline);
  void settleAll(double deadline);
  bool isSettled() const { return given.empty(); }

protected:
  /// This rank is `member` there.
  void open(RendezvousPoint &place, int64_t member);
  /// Comes to the place's next meeting. Returns what is wrong with it, as far
  /// as that is known, or "".
  std::string arrive(RendezvousPoint &place, int64_t member,
                     LocalMeeting::Part part);

  /// What members give that differs; "" if nothing does.
  virtual std::string findDifference(const RendezvousPoint &place,
                                     const LocalMeeting &meeting) const = 0;
  /// Enqueues the work of all on the stream of `member`, which came last.
  virtual void enqueue(const RendezvousPoint &place,
                       const LocalMeeting &meeting, int64_t member) = 0;
  /// What `member` waits for, in messages.
  virtual std::string textOf(const LocalMeeting &meeting,
                             int64_t member) const = 0;

  /// A copy between GPUs of two members, or on one.
  void copy(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here,
            int64_t bytes, CUstream stream) const;

  LocalPlaces &world;
  Transport &control;
  CUcontext context = nullptr;
  /// For `ready`, until no meeting needs it any more.
  EventPool events{CU_EVENT_DISABLE_TIMING};

private:
  struct Contribution {
    RendezvousPoint *place;
    std::shared_ptr<LocalMeeting> meeting;
    int64_t member;
    /// Counts what this rank has given.
    int64_t number;
  };

  void enqueueForAll(RendezvousPoint &place, const LocalMeeting &meeting,
                     int64_t member);
  void waitFor(const Contribution &wanted, double deadline);

  std::unordered_map<CUevent, Contribution> given;
  int64_t numberGiven = 0;
  /// Streams that do not have their work in them, with the event behind it;
  /// until settleAll.
  std::vector<std::pair<CUstream, CUevent>> ahead;
  std::vector<RendezvousPoint::End *> ends;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_LOCALMEETINGS_H
