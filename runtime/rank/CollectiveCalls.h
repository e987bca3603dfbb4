//===- CollectiveCalls.h - What programs ask groups for --------*- C++ -*-===//
//
// The names of the calls stand in calls/CollectiveKinds.h as well, for the
// compiler, which writes them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RANK_COLLECTIVECALLS_H
#define PIPEWRIGHT_RUNTIME_RANK_COLLECTIVECALLS_H

#include "runtime/calls/CollectiveKinds.h"
#include "runtime/core/Arena.h"
#include "runtime/core/ElementType.h"

#include <cstdint>

namespace pipewright::runtime {

struct GroupRequest {
  CollectiveKind kind;
  /// Its number in Program::groups.
  int64_t group;
  ElementType type;
  /// What each member has, at a place of its own.
  Buffer range;
  /// Where others' numbers go before they are added.
  Buffer scratch = {};
  /// A rank of the group, or the number of a replica.
  int64_t root = -1;
  /// Recorded when it is over, on a GPU.
  int64_t event = -1;
};

/// The calls of a program, one for each kind of collective: what the members of
/// a group, which may be ranks or replicas, do together with a range that each
/// of them has. They never block. All members give the same, in the same order.
class CollectiveCalls {
public:
  void allReduce(int64_t group, ElementType type, Buffer range, Buffer scratch,
                 int64_t event = -1) {
    postCollective(
        {CollectiveKind::AllReduce, group, type, range, scratch, -1, event});
  }
  void reduceScatter(int64_t group, ElementType type, Buffer range,
                     Buffer scratch, int64_t event = -1) {
    postCollective({CollectiveKind::ReduceScatter, group, type, range, scratch,
                    -1, event});
  }
  void allGather(int64_t group, ElementType type, Buffer range,
                 int64_t event = -1) {
    postCollective(
        {CollectiveKind::AllGather, group, type, range, {}, -1, event});
  }
  void broadcast(int64_t group, ElementType type, Buffer range, int64_t root,
                 int64_t event = -1) {
    postCollective(
        {CollectiveKind::Broadcast, group, type, range, {}, root, event});
  }
  void reduce(int64_t group, ElementType type, Buffer range, Buffer scratch,
              int64_t root, int64_t event = -1) {
    postCollective(
        {CollectiveKind::Reduce, group, type, range, scratch, root, event});
  }

protected:
  ~CollectiveCalls() = default;
  virtual void postCollective(const GroupRequest &request) = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_RANK_COLLECTIVECALLS_H
