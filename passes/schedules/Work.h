//===- Work.h - What ranks do beside their tasks ----------------*- C++ -*-===//
//
// A step is tasks, the transfers that follow from its edges, and works: what
// ranks do together beside their tasks. A work begins when all its members have
// come to it, and is over for all of them at once. It runs on a resource that
// is not the one of the tasks; works on one resource of a rank run one after
// the other.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_WORK_H
#define PIPEWRIGHT_PASSES_SCHEDULES_WORK_H

#include "passes/schedules/Instruction.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::schedules {

enum class Resource : uint8_t {
  /// Collectives of all groups of a rank.
  Group,
  /// Messages from one rank to another, in the order in which they are made.
  Link,
  /// Copies of one rank from its GPU to its host's memory, and back: a GPU has
  /// an engine for each direction.
  ToHost,
  FromHost,
};

/// Replicas of a rank run alike, so one of them stands for all.
struct Work {
  struct Member {
    int32_t rank = 0;
    /// How many tasks of the rank come before its post, and before its wait. Of
    /// a work that is not yet ordered: the least and the most.
    int64_t posted = 0;
    int64_t waited = 0;
    /// The share of the last task before its post that runs behind it: of one
    /// that is run in parts.
    double left = 0;
  };

  /// Of a work on groups.
  CollectiveKind kind = CollectiveKind::AllReduce;
  /// What it is about: `gradients of wte`.
  std::string name;
  int64_t bytes = 0;
  /// On a link: the sender, then the receiver; of a copy the one rank.
  std::vector<Member> members;
  /// Where it is more than one, the one member does it with its replicas.
  int64_t replicas = 1;
  Resource on = Resource::Group;
  /// The forward whose stash it moves: who gives it keeps that until its wait,
  /// who gets it from its post on. None of others.
  std::optional<Task> stash = std::nullopt;
  /// Numbers of the works that have to be over before this one begins: their
  /// results are on the ranks of some members, or of the sender, which wait for
  /// them before their posts; or the receiver of a stash has sent another one,
  /// whose bytes it takes. No circle of them.
  std::vector<int32_t> needs = {};

  /// The member on a rank that has the result in the end: any of a group, the
  /// receiver of a link; null if there is none.
  const Member *takerOn(int32_t rank) const;
  Member *takerOn(int32_t rank) {
    return const_cast<Member *>(std::as_const(*this).takerOn(rank));
  }
  /// Who has its bytes on its GPU until the wait, and from the post on; null
  /// where that is a host, and of a group.
  const Member *giver() const;
  const Member *receiver() const;
  bool isCopy() const {
    return on == Resource::ToHost || on == Resource::FromHost;
  }
  RankGroup ranks() const;
  /// `all-reduce`, `transfer`, `copy to host`
  llvm::StringRef kindText() const;
  /// `all-reduce of gradients of 'wte'`
  std::string text() const;
  /// `ranks 0 and 3`, `2 replicas of rank 0`
  std::string over() const;
};

/// The same works. Those on groups also need the one before them on each of
/// their ranks: they begin in the order of the list.
std::vector<Work> inQueues(llvm::ArrayRef<Work> works);

/// Of works that are not on groups, in place of the name of a collective.
struct ResourceWord {
  Resource on;
  llvm::StringLiteral word;
};
inline constexpr ResourceWord resourceWords[] = {
    {Resource::Link, "transfer"},
    {Resource::ToHost, "copy to host"},
    {Resource::FromHost, "copy from host"}};

/// Which works have begun, while somebody goes through the tasks of all ranks.
class WorkProgress {
public:
  WorkProgress(int64_t ranks, llvm::ArrayRef<Work> works);

  /// A rank has done so many of its tasks. Calls `begins` for each work that
  /// has all it needs now, behind those that it needs.
  void advance(int32_t rank, int64_t tasks,
               llvm::function_ref<void(int32_t work)> begins);
  /// A work that has not begun and that `rank` waits for before the task at
  /// `position`; -1: none.
  int32_t heldBy(int32_t rank, int64_t position);
  /// Why a work has not begun: the first member that has not come to it, or to
  /// a work that it needs; that work, and the member's rank.
  std::pair<int32_t, int32_t> missingFor(int32_t work) const;

  llvm::ArrayRef<Work> works() const { return all; }

private:
  llvm::ArrayRef<Work> all;
  /// By work: members that have not come and needs that have not begun.
  std::vector<int64_t> unmet;
  std::vector<std::vector<int32_t>> neededBy;
  /// By rank: its posts and waits, the next one last.
  using Places = std::vector<std::pair<int64_t, int32_t>>;
  std::vector<Places> posts, waits;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_WORK_H
