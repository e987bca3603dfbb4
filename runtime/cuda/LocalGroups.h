//===- LocalGroups.h - Collectives between threads with GPUs ---*- C++ -*-===//
//
// As transfers of `cuda-local` (LocalLinks.h): whoever comes last enqueues all
// of the collective on its own stream, behind what the others' streams had got
// when they came. A kernel reads the members' numbers where they lie and adds
// them in the order of the members, in f32, rounding once: the same bits as on
// CPUs. All GPUs reach each other's memory, or are one.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_LOCALGROUPS_H
#define PIPEWRIGHT_RUNTIME_CUDA_LOCALGROUPS_H

#include "runtime/cuda/Device.h"
#include "runtime/net/Collectives.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace pipewright::runtime {

/// One collective, as its members come to it.
struct LocalMeeting {
  struct Part {
    bool isThere = false;
    Collective what;
    CUdeviceptr data = 0;
    /// Recorded when this member came, unless it was the last.
    CUevent ready = nullptr;
    CUevent done = nullptr;
    CUstream stream = nullptr;
  };
  /// By member.
  std::vector<Part> parts;
  int64_t come = 0;
  /// All have come: it is enqueued, or it never will be.
  std::shared_ptr<std::atomic<bool>> met =
      std::make_shared<std::atomic<bool>>(false);
  /// Why not.
  std::string error;
};

/// A group, as its members share it.
struct LocalGroup {
  explicit LocalGroup(std::vector<int64_t> given)
      : members(std::move(given)), begun(members.size()), ends(members.size()) {
  }

  struct End {
    CUcontext context = nullptr;
    /// Behind the last collective that this member enqueued.
    CUevent enqueued = nullptr;
    /// Where `done` of this member is recorded by one on another GPU.
    CUstream completion = nullptr;
  };

  const std::vector<int64_t> members;
  std::mutex mutex;
  std::condition_variable changed;
  /// Those that not all have come to.
  std::deque<std::shared_ptr<LocalMeeting>> meetings;
  /// How many collectives have met, and each member has begun.
  int64_t ended = 0;
  std::vector<int64_t> begun;
  std::vector<End> ends;
  /// Who enqueued the last; -1: nobody has.
  int64_t last = -1;
};

/// All groups of a process.
struct LocalGroupList {
  std::mutex mutex;
  std::deque<LocalGroup> groups;
  std::atomic<bool> aborted{false};

  void abort();
};

/// One rank's view of them.
class LocalGroups {
public:
  LocalGroups(LocalGroupList &world, Transport &control);
  ~LocalGroups();

  void connect(const std::vector<std::vector<int64_t>> &all);
  /// See DeviceLinks.
  void collect(int64_t group, const Collective &what, void *data,
               CUstream stream, CUevent done);
  std::shared_ptr<const std::atomic<bool>> recorded(CUevent done) const;
  void settle(CUevent done, double deadline);
  void settleAll(double deadline);
  bool isSettled() const { return given.empty(); }

private:
  struct Given {
    std::shared_ptr<LocalMeeting> meeting;
    LocalGroup *group;
    int64_t member;
    /// Counts what this rank has given.
    int64_t number;
  };

  void open(LocalGroup &group, int64_t member);
  void enqueue(LocalGroup &group, LocalMeeting &meeting, int64_t member);
  void enqueueSum(const LocalMeeting &meeting, const Collective &what,
                  int64_t part, CUstream stream);
  void copyPart(const LocalGroup &group, const LocalMeeting &meeting,
                int64_t from, int64_t begin, int64_t end, CUstream stream);
  void tellOthers(LocalGroup &group, LocalMeeting &meeting, int64_t member);
  [[noreturn]] void failAborted() const;
  CUevent takeEvent();

  LocalGroupList &world;
  Transport &control;
  CUcontext context = nullptr;
  std::shared_ptr<Device> device;
  /// By number; null: this rank is no member.
  std::vector<LocalGroup *> groups;
  std::unordered_map<CUevent, Given> given;
  int64_t numberGiven = 0;
  /// Streams that do not have their collectives in them, until settleAll.
  std::vector<std::pair<CUstream, CUevent>> ahead;
  std::vector<CUevent> spare;
  std::vector<LocalGroup::End *> ends;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_LOCALGROUPS_H
