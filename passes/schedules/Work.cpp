//===- Work.cpp - What ranks do beside their tasks --------------*- C++ -*-===//
//
// See Work.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Work.h"

#include "passes/schedules/Collectives.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <map>

using namespace pipewright::schedules;

const Work::Member *Work::takerOn(int32_t rank) const {
  llvm::ArrayRef<Member> takers(members);
  if (on == Resource::Link)
    takers = takers.drop_front();
  auto taker = llvm::find_if(
      takers, [&](const Member &member) { return member.rank == rank; });
  return taker == takers.end() ? nullptr : taker;
}

const Work::Member *Work::giver() const {
  return on == Resource::Link || on == Resource::ToHost ? &members.front()
                                                        : nullptr;
}

const Work::Member *Work::receiver() const {
  return on == Resource::Link || on == Resource::FromHost ? &members.back()
                                                          : nullptr;
}

RankGroup Work::ranks() const {
  RankGroup ranks;
  for (const Member &member : members)
    ranks.push_back(member.rank);
  return ranks;
}

llvm::StringRef Work::kindText() const {
  for (const ResourceWord &known : resourceWords)
    if (known.on == on)
      return known.word;
  return pipewright::runtime::factsOf(kind).text;
}

std::string Work::text() const { return kindText().str() + " of " + name; }

std::string Work::over() const {
  std::string list = listOfRanks(ranks());
  return replicas == 1 ? list
                       : std::to_string(replicas) + " replicas of " + list;
}

std::vector<Work> pipewright::schedules::inQueues(llvm::ArrayRef<Work> works) {
  std::vector<Work> queued = works.vec();
  // By rank.
  std::map<int32_t, int32_t> newest;
  for (auto [index, work] : llvm::enumerate(queued)) {
    if (work.on != Resource::Group)
      continue;
    auto number = static_cast<int32_t>(index);
    for (const Work::Member &member : work.members) {
      auto [last, isFirst] = newest.insert({member.rank, number});
      // A file may name a rank twice.
      if (!isFirst && last->second != number)
        work.needs.push_back(std::exchange(last->second, number));
    }
    llvm::sort(work.needs);
    work.needs.erase(llvm::unique(work.needs), work.needs.end());
  }
  return queued;
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

WorkProgress::WorkProgress(int64_t ranks, llvm::ArrayRef<Work> works)
    : all(works), unmet(works.size()), neededBy(works.size()), posts(ranks),
      waits(ranks) {
  for (auto [number, work] : llvm::enumerate(works)) {
    auto at = static_cast<int32_t>(number);
    unmet[at] = static_cast<int64_t>(work.members.size() + work.needs.size());
    for (int32_t need : work.needs)
      neededBy[need].push_back(at);
    for (const Work::Member &member : work.members) {
      posts[member.rank].push_back({member.posted, at});
      waits[member.rank].push_back({member.waited, at});
    }
  }
  for (std::vector<Places> *places : {&posts, &waits})
    for (Places &ofRank : *places)
      llvm::sort(ofRank, std::greater<>());
}

void WorkProgress::advance(int32_t rank, int64_t tasks,
                           llvm::function_ref<void(int32_t work)> begins) {
  Places &next = posts[rank];
  std::vector<int32_t> ready;
  auto meetOneOf = [&](int32_t work) {
    if (--unmet[work] == 0)
      ready.push_back(work);
  };
  while (!next.empty() && next.back().first <= tasks) {
    meetOneOf(next.back().second);
    next.pop_back();
  }
  while (!ready.empty()) {
    int32_t work = ready.back();
    ready.pop_back();
    begins(work);
    for (int32_t other : neededBy[work])
      meetOneOf(other);
  }
}

int32_t WorkProgress::heldBy(int32_t rank, int64_t position) {
  Places &next = waits[rank];
  while (!next.empty() && next.back().first <= position) {
    if (unmet[next.back().second] > 0)
      return next.back().second;
    next.pop_back();
  }
  return -1;
}

std::pair<int32_t, int32_t> WorkProgress::missingFor(int32_t work) const {
  for (size_t tried = 0; tried < all.size(); ++tried) {
    for (const Work::Member &member : all[work].members)
      if (llvm::is_contained(posts[member.rank],
                             std::pair(member.posted, work)))
        return {work, member.rank};
    auto need = llvm::find_if(all[work].needs,
                              [&](int32_t other) { return unmet[other] > 0; });
    if (need == all[work].needs.end())
      break;
    work = *need;
  }
  llvm_unreachable("a work that has not begun waits for some member");
}
