//===- RankGroups.h - The collectives of one rank --------------*- C++ -*-===//
//
// All groups that a rank is a member of, over one transport: its pipeline, some
// ranks of that, its replicas. And what it has begun in them: a rank finishes
// its collectives in the order in which it began them, of whatever group.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RANK_RANKGROUPS_H
#define PIPEWRIGHT_RUNTIME_RANK_RANKGROUPS_H

#include "runtime/core/Program.h"
#include "runtime/net/Collectives.h"
#include "runtime/net/GroupTransport.h"
#include "runtime/rank/CollectiveCalls.h"

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

namespace pipewright::runtime {

/// The range is cut into even parts.
Collective collectiveOf(const Program &program, const GroupRequest &request);

class RankGroups {
public:
  using Clock = std::chrono::steady_clock;

  /// A collective that was begun.
  struct Begun {
    int64_t group;
    Collective what;
    Clock::time_point since;
  };

  /// `processes` has those of all replicas.
  RankGroups(const Program &program, Transport &processes);

  /// The ranks of this replica, which generated code sends to.
  Transport &pipeline() { return ranks; }

  /// Never blocks. Throws an Error where the rank is no member of the group, or
  /// the scratch memory is too small for what the others send.
  void begin(int64_t group, Collective what, void *data, Buffer scratch,
             void *scratchData);
  /// The oldest one; throws an Error where there is none.
  const Begun &oldest() const;
  /// Blocks until it is over.
  void finishOldest();
  /// What this rank has sent to others since the last call, in its pipeline and
  /// its groups.
  Traffic takeSent();
  /// Whether none is under way.
  bool isIdle() const { return begun.empty(); }

private:
  struct Group {
    Group(Transport &transport, const std::vector<int64_t> &members,
          bool isOfRanks)
        : transport(transport, members),
          collectives(Collectives::open(this->transport)),
          isOfRanks(isOfRanks) {}

    GroupTransport transport;
    std::unique_ptr<Collectives> collectives;
    const bool isOfRanks;
  };

  GroupTransport ranks;
  /// By number; null: this rank is no member.
  std::vector<std::unique_ptr<Group>> groups;
  /// They stay where they are while they are under way.
  std::deque<Begun> begun;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_RANK_RANKGROUPS_H
