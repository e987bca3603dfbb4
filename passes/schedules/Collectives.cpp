//===- Collectives.cpp - What groups of ranks do together -------*- C++ -*-===//
//
// See Collectives.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Collectives.h"

#include "passes/schedules/Refusal.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace pipewright;
using namespace pipewright::schedules;

std::string pipewright::schedules::listOfRanks(const RankGroup &group) {
  std::string text = group.size() == 1 ? "rank " : "ranks ";
  for (auto [i, rank] : llvm::enumerate(group)) {
    bool isLast = i + 1 == group.size();
    text += (i == 0 ? "" : isLast ? " and " : ", ") + std::to_string(rank);
  }
  return text;
}

std::string
pipewright::schedules::nameOfCollective(const RankInstruction &instruction,
                                        llvm::ArrayRef<RankGroup> groups,
                                        NameOfTransfer nameOfTransfer) {
  return llvm::formatv("{0} of {1} over {2}",
                       runtime::factsOf(instruction.collective).text,
                       nameOfTransfer(instruction.transfer),
                       listOfRanks(groups[instruction.group]));
}

namespace {

class CollectiveChecker {
public:
  CollectiveChecker(const InstructionLists &lists,
                    llvm::ArrayRef<RankGroup> groups, NameOfTransfer name)
      : lists(lists), groups(groups), name(name) {}

  llvm::Error check() const;

private:
  using Posts = std::vector<const RankInstruction *>;

  llvm::Error checkGroups() const;
  llvm::Error checkPost(int32_t rank, const RankInstruction &post) const;
  llvm::Error checkRank(int32_t rank) const;
  llvm::Error compare(int32_t group) const;
  Posts postsOf(int32_t rank, int32_t group) const;
  std::string nameOf(const RankInstruction &instruction) const {
    return nameOfCollective(instruction, groups, name);
  }

  const InstructionLists &lists;
  llvm::ArrayRef<RankGroup> groups;
  NameOfTransfer name;
};

} // namespace

/// Members are ranks, each once.
llvm::Error CollectiveChecker::checkGroups() const {
  int64_t ranks = static_cast<int64_t>(lists.size());
  for (auto [number, group] : llvm::enumerate(groups)) {
    bool isGroup = llvm::all_of(group, [&](int32_t rank) {
      return rank >= 0 && rank < ranks && llvm::count(group, rank) == 1;
    });
    if (group.empty() || !isGroup)
      return refuse("expects group {0} to have some of {1} ranks, each once, "
                    "but got {2}",
                    number, ranks, group.empty() ? "none" : listOfRanks(group));
  }
  return llvm::Error::success();
}

/// (M1) Nobody posts a collective of others, or one that is none.
llvm::Error CollectiveChecker::checkPost(int32_t rank,
                                         const RankInstruction &post) const {
  if (post.group < 0 || post.group >= static_cast<int32_t>(groups.size()))
    return refuse("rank {0} has a collective of group {1}, but there are {2} "
                  "groups",
                  rank, post.group, groups.size());
  const RankGroup &group = groups[post.group];
  if (!llvm::is_contained(group, rank))
    return refuse("rank {0} takes part in the {1}, of which it is no member",
                  rank, nameOf(post));
  bool hasRoot = runtime::factsOf(post.collective).rooted;
  if (hasRoot ? !llvm::is_contained(group, post.peer) : post.peer != -1)
    return refuse("rank {0} names rank {1} as the root of the {2}, but expects "
                  "{3}",
                  rank, post.peer, nameOf(post),
                  hasRoot ? "one of its members" : "none (-1)");
  if (post.bytes < 0)
    return refuse("rank {0} takes part in the {1} with a size of {2} bytes",
                  rank, nameOf(post), post.bytes);
  return llvm::Error::success();
}

/// (M2) Waits of a rank complete its collectives in the order of the posts.
llvm::Error CollectiveChecker::checkRank(int32_t rank) const {
  Posts posts;
  size_t waited = 0;
  for (const RankInstruction &instruction : lists[rank]) {
    if (!instruction.isCollective())
      continue;
    if (llvm::Error error = checkPost(rank, instruction))
      return error;
    if (instruction.kind == InstructionKind::PostCollective) {
      posts.push_back(&instruction);
      continue;
    }
    if (waited == posts.size())
      return refuse("rank {0} waits for the {1}, but has no outstanding "
                    "collective",
                    rank, nameOf(instruction));
    const RankInstruction &oldest = *posts[waited++];
    if (oldest.transfer != instruction.transfer ||
        oldest.collective != instruction.collective ||
        oldest.group != instruction.group)
      return refuse("rank {0} waits for the {1}, but its oldest outstanding "
                    "collective is the {2}",
                    rank, nameOf(instruction), nameOf(oldest));
  }
  if (waited < posts.size())
    return refuse("rank {0} never waits for the {1}", rank,
                  nameOf(*posts[waited]));
  return llvm::Error::success();
}

CollectiveChecker::Posts CollectiveChecker::postsOf(int32_t rank,
                                                    int32_t group) const {
  Posts posts;
  for (const RankInstruction &instruction : lists[rank])
    if (instruction.kind == InstructionKind::PostCollective &&
        instruction.group == group)
      posts.push_back(&instruction);
  return posts;
}

/// (M1) All members post what the first one posts.
llvm::Error CollectiveChecker::compare(int32_t number) const {
  const RankGroup &group = groups[number];
  int32_t first = group.front();
  Posts expected = postsOf(first, number);
  for (int32_t rank : llvm::drop_begin(group)) {
    Posts posts = postsOf(rank, number);
    for (size_t i = 0; i < std::min(posts.size(), expected.size()); ++i) {
      const RankInstruction &mine = *expected[i], &theirs = *posts[i];
      if (mine.collective != theirs.collective ||
          mine.transfer != theirs.transfer)
        return refuse("collective {0} of {1} is the {2} on rank {3}, but the "
                      "{4} on rank {5}, and each waits for the other",
                      i, listOfRanks(group), nameOf(mine), first,
                      nameOf(theirs), rank);
      if (mine.bytes != theirs.bytes)
        return refuse("rank {0} has {1} bytes in the {2}, but rank {3} has {4} "
                      "bytes",
                      first, mine.bytes, nameOf(mine), rank, theirs.bytes);
      if (mine.peer != theirs.peer)
        return refuse("rank {0} takes rank {1} for the root of the {2}, but "
                      "rank {3} takes rank {4}",
                      first, mine.peer, nameOf(mine), rank, theirs.peer);
    }
    bool isMissing = posts.size() < expected.size();
    if (posts.size() != expected.size())
      return refuse(
          "rank {0} never takes part in the {1}, for which rank {2} "
          "waits",
          isMissing ? rank : first,
          nameOf(isMissing ? *expected[posts.size()] : *posts[expected.size()]),
          isMissing ? first : rank);
  }
  return llvm::Error::success();
}

llvm::Error CollectiveChecker::check() const {
  if (llvm::Error error = checkGroups())
    return error;
  for (int32_t rank = 0; rank < static_cast<int32_t>(lists.size()); ++rank)
    if (llvm::Error error = checkRank(rank))
      return error;
  for (int32_t group = 0; group < static_cast<int32_t>(groups.size()); ++group)
    if (llvm::Error error = compare(group))
      return error;
  return llvm::Error::success();
}

llvm::Error
pipewright::schedules::checkCollectives(const InstructionLists &lists,
                                        llvm::ArrayRef<RankGroup> groups,
                                        NameOfTransfer nameOfTransfer) {
  return CollectiveChecker(lists, groups, nameOfTransfer).check();
}

/// `slowest` is of the links between the members.
static double secondsAmong(CollectiveKind kind, int64_t bytes, double members,
                           const LinkCosts &slowest) {
  // What one member sends: a part to each of the others, or the whole.
  double whole = static_cast<double>(bytes) * (members - 1);
  const runtime::CollectiveFacts &facts = runtime::factsOf(kind);
  double sent = facts.rooted ? whole : whole / members;
  double exchange = sent / slowest.bandwidth + slowest.latency;
  return (facts.reduces + facts.replicates) * exchange;
}

double pipewright::schedules::secondsOfCollective(CollectiveKind kind,
                                                  int64_t bytes,
                                                  const RankGroup &group,
                                                  const TaskCosts &costs) {
  if (group.size() < 2)
    return 0;
  LinkCosts slowest;
  for (int32_t from : group)
    for (int32_t to : group)
      if (from != to) {
        LinkCosts link = costs.linkBetween(from, to);
        slowest.latency = std::max(slowest.latency, link.latency);
        slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth);
      }
  return secondsAmong(kind, bytes, static_cast<double>(group.size()), slowest);
}

double pipewright::schedules::secondsOfCollective(const Work &work,
                                                  const TaskCosts &costs) {
  if (work.replicas == 1)
    return secondsOfCollective(work.kind, work.bytes, work.ranks(), costs);
  return secondsAmong(work.kind, work.bytes, static_cast<double>(work.replicas),
                      costs.linkBetweenReplicas());
}
