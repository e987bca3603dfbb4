//===- NcclGroups.h - Collectives between GPUs by NCCL ---------*- C++ -*-===//
//
// Each group has a communicator of its own, split from one of all ranks; groups
// that share no rank are split by one call. All ranks make the same splits in
// the same order, and give no work to the communicator that is split. A group
// of one has none.
//
// NCCL compares nothing: members whose collectives differ hang. So, in the
// first run of each function, members tell each other over the control plane
// what they give.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_NCCLGROUPS_H
#define PIPEWRIGHT_RUNTIME_CUDA_NCCLGROUPS_H

#include "runtime/cuda/NcclCalls.h"
#include "runtime/net/Collectives.h"
#include "runtime/net/GroupTransport.h"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class NcclGroups {
public:
  NcclGroups(Transport &control, NcclCalls &calls)
      : control(control), calls(calls) {}

  void connect(const std::vector<std::vector<int64_t>> &all, double deadline);
  /// See DeviceLinks. `comparing`: members compare what they give.
  void collect(int64_t group, const Collective &what, void *data,
               CUstream stream, CUevent done, bool comparing, double deadline);
  void settle(CUevent done);
  void settleAll();

private:
  /// What a member gives, as others are told.
  struct Notice {
    int64_t kind, type, count, root, bounds;

    friend bool operator==(const Notice &, const Notice &) = default;
  };
  /// A collective that the others have not confirmed.
  struct Unconfirmed {
    CUevent done;
    Collective what;
    std::vector<Notice> notices;
  };
  /// A group that this rank is in.
  struct Group {
    Group(Transport &control, const std::vector<int64_t> &members);

    const std::vector<int64_t> members;
    NcclCommunicator *communicator = nullptr;
    GroupTransport transport;
    const Collective notices;
    /// Stays where it is, as its exchange is under way.
    std::deque<Unconfirmed> told;
    /// Goes first: others use what was told until then.
    std::unique_ptr<Collectives> exchange;
  };

  void makeWhole(double deadline);
  void split(const std::vector<std::pair<int64_t, std::vector<int64_t>>> &layer,
             double deadline);
  void warmUp(double deadline);
  void runFirst(Group &group, const NcclWarmUp &space, size_t place,
                double deadline);
  void launch(const Group &group, const Collective &what, void *data,
              CUstream stream, bool isFirst, double deadline);
  void tell(Group &group, const Collective &what, CUevent done);
  void confirmOldest(Group &group);

  Transport &control;
  NcclCalls &calls;
  NcclCommunicator *whole = nullptr;
  /// By number; null: this rank is no member.
  std::vector<std::unique_ptr<Group>> groups;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_NCCLGROUPS_H
