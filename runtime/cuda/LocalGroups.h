//===- LocalGroups.h - Collectives between threads with GPUs ---*- C++ -*-===//
//
// As transfers of `cuda-local` (LocalLinks.h): whoever comes last enqueues all
// of the collective on its own stream, behind what the others' streams had got
// when they came. A kernel reads the members' numbers where they lie and adds
// them as a binary tree, in f32, rounding once: the same bits as on CPUs. All
// GPUs reach each other's memory, or are one.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_LOCALGROUPS_H
#define PIPEWRIGHT_RUNTIME_CUDA_LOCALGROUPS_H

#include "runtime/core/Program.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/LocalMeetings.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// Whether no group of the program has more members than a kernel adds.
bool fitsLocalGroups(const Program &program);

class LocalGroups : public LocalMeetings {
public:
  LocalGroups(LocalPlaces &world, Transport &control);

  /// See DeviceLinks.
  void connect(const std::vector<std::vector<int64_t>> &all);
  /// One after those of other groups waits until all their members have come,
  /// at most so many seconds.
  void collect(int64_t group, const Collective &what, void *data,
               CUstream stream, CUevent done, double deadline);

protected:
  std::string findDifference(const RendezvousPoint &group,
                             const LocalMeeting &meeting) const override;
  void enqueue(const RendezvousPoint &group, const LocalMeeting &meeting,
               int64_t member) override;
  std::string textOf(const LocalMeeting &meeting,
                     int64_t member) const override;

private:
  void enqueueSum(const LocalMeeting &meeting, const Collective &what,
                  int64_t owner, CUstream stream);
  void copyPart(const RendezvousPoint &group, const LocalMeeting &meeting,
                int64_t from, int64_t begin, int64_t end, CUstream stream);

  std::shared_ptr<Device> device;
  /// By number; null: this rank is no member.
  std::vector<RendezvousPoint *> groups;
  /// The one that this rank's last collective was of; -1: there was none.
  int64_t lastGroup = -1;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_LOCALGROUPS_H
