//===- Checker.cpp - Proves or refuses instruction lists --------*- C++ -*-===//
//
// Pairing is a comparison of queues. Deadlock is found by executing the lists
// with zero buffering: a wait for the n-th message of a link ends as soon as
// the other end has posted its n-th. No choice is ever made, so one execution
// stands for all.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Checker.h"

#include "passes/schedules/Dependences.h"
#include "passes/schedules/Story.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <utility>

using namespace pipewright::schedules;
using llvm::formatv;

llvm::Error
pipewright::schedules::checkSchedule(const Schedule &schedule,
                                     llvm::ArrayRef<StageEdge> edges) {
  llvm::Expected<Dependences> dependences = Dependences::build(schedule, edges);
  if (!dependences)
    return dependences.takeError();
  return dependences->run([](int32_t, int64_t) {});
}

std::string
pipewright::schedules::defaultTransferName(const Transfer &transfer) {
  const char *what = transfer.kind == TransferKind::Forward    ? "output"
                     : transfer.kind == TransferKind::Gradient ? "gradient"
                                                               : "extra";
  return formatv("{0} of edge {1}, micro-batch {2}", what, transfer.edge,
                 transfer.microBatch);
}

static bool isSend(InstructionKind kind) {
  return kind == InstructionKind::PostSend || kind == InstructionKind::WaitSend;
}

static bool isPost(InstructionKind kind) {
  return kind == InstructionKind::PostSend ||
         kind == InstructionKind::PostReceive;
}

namespace {

/// One end of a directed link.
struct LinkEnd {
  std::vector<const RankInstruction *> posts;
  size_t waited = 0;
  /// Of the execution.
  size_t executedPosts = 0;
  size_t executedWaits = 0;
};

struct DirectedLink {
  int32_t from, to;
  LinkEnd sends, receives;

  LinkEnd &end(bool ofSender) { return ofSender ? sends : receives; }
  std::pair<int32_t, int32_t> ranks() const { return {from, to}; }
};

class InstructionChecker {
public:
  InstructionChecker(const InstructionLists &lists, NameOfTransfer name)
      : lists(lists), name(name) {}

  llvm::Error check();

private:
  llvm::Error findLinks();
  llvm::Error collectPosts(int32_t rank);
  llvm::Error checkPairs(const DirectedLink &link) const;
  llvm::Error execute();
  std::string deadlockStory(llvm::ArrayRef<size_t> position);

  DirectedLink &linkOf(int32_t rank, const RankInstruction &instruction) {
    bool out = isSend(instruction.kind);
    std::pair<int32_t, int32_t> ends(out ? rank : instruction.peer,
                                     out ? instruction.peer : rank);
    return *llvm::lower_bound(links, ends,
                              [](const DirectedLink &link, const auto &ends) {
                                return link.ranks() < ends;
                              });
  }

  const InstructionLists &lists;
  NameOfTransfer name;
  std::vector<DirectedLink> links;
};

} // namespace

llvm::Error InstructionChecker::findLinks() {
  int32_t ranks = static_cast<int32_t>(lists.size());
  for (int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<uint8_t> seen(2 * ranks);
    for (const RankInstruction &instruction : lists[rank]) {
      if (instruction.kind == InstructionKind::Task)
        continue;
      int32_t peer = instruction.peer;
      bool out = isSend(instruction.kind);
      if (peer < 0 || peer >= ranks || peer == rank)
        return refuse("rank {0} {1} {2} {3} rank {4}, but expects another of "
                      "{5} ranks",
                      rank, out ? "sends" : "receives",
                      name(instruction.transfer), out ? "to" : "from", peer,
                      ranks);
      if (instruction.bytes < 0)
        return refuse("rank {0} {1} {2} with a size of {3} bytes", rank,
                      out ? "sends" : "receives", name(instruction.transfer),
                      instruction.bytes);
      if (!std::exchange(seen[2 * peer + out], 1))
        links.push_back({out ? rank : peer, out ? peer : rank, {}, {}});
    }
  }
  llvm::sort(links, [](const DirectedLink &a, const DirectedLink &b) {
    return a.ranks() < b.ranks();
  });
  links.erase(std::unique(links.begin(), links.end(),
                          [](const DirectedLink &a, const DirectedLink &b) {
                            return a.ranks() == b.ranks();
                          }),
              links.end());
  return llvm::Error::success();
}

/// Fills the queues of the links that `rank` uses, and checks that its waits
/// complete what was posted, each once.
llvm::Error InstructionChecker::collectPosts(int32_t rank) {
  for (const RankInstruction &instruction : lists[rank]) {
    if (instruction.kind == InstructionKind::Task)
      continue;
    bool out = isSend(instruction.kind);
    LinkEnd &end = linkOf(rank, instruction).end(out);
    if (isPost(instruction.kind)) {
      end.posts.push_back(&instruction);
      continue;
    }
    const char *action = out ? "send to" : "receive from";
    if (end.waited == end.posts.size())
      return refuse("rank {0} waits for {1}, but has no outstanding {2} rank "
                    "{3}",
                    rank, name(instruction.transfer), action, instruction.peer);
    const RankInstruction &oldest = *end.posts[end.waited++];
    if (oldest.transfer != instruction.transfer)
      return refuse("rank {0} waits for {1}, but its oldest outstanding {2} "
                    "rank {3} is {4}",
                    rank, name(instruction.transfer), action, instruction.peer,
                    name(oldest.transfer));
  }
  return llvm::Error::success();
}

llvm::Error InstructionChecker::checkPairs(const DirectedLink &link) const {
  for (bool out : {true, false}) {
    const LinkEnd &end = out ? link.sends : link.receives;
    if (end.waited < end.posts.size())
      return refuse("rank {0} never waits for its {1} rank {2} of {3}",
                    out ? link.from : link.to, out ? "send to" : "receive from",
                    out ? link.to : link.from,
                    name(end.posts[end.waited]->transfer));
  }
  size_t sends = link.sends.posts.size(), receives = link.receives.posts.size();
  for (size_t i = 0; i < std::min(sends, receives); ++i) {
    const RankInstruction &sent = *link.sends.posts[i];
    const RankInstruction &received = *link.receives.posts[i];
    if (sent.transfer != received.transfer)
      return refuse("message {0} from rank {1} to rank {2} is sent as {3}, but "
                    "received as {4}",
                    i, link.from, link.to, name(sent.transfer),
                    name(received.transfer));
    if (sent.bytes != received.bytes)
      return refuse("rank {0} sends {1} bytes of {2}, but rank {3} expects {4} "
                    "bytes",
                    link.from, sent.bytes, name(sent.transfer), link.to,
                    received.bytes);
  }
  if (sends > receives)
    return refuse("rank {0} sends {1} to rank {2}, which never receives it",
                  link.from, name(link.sends.posts[receives]->transfer),
                  link.to);
  if (receives > sends)
    return refuse("rank {0} receives {1} from rank {2}, which never sends it",
                  link.to, name(link.receives.posts[sends]->transfer),
                  link.from);
  return llvm::Error::success();
}

llvm::Error InstructionChecker::execute() {
  int32_t ranks = static_cast<int32_t>(lists.size());
  std::vector<size_t> position(ranks);
  std::vector<int32_t> ready;
  // A blocked rank is always woken by one known peer, so it is enough to
  // remember which ranks wait for which.
  std::vector<int32_t> waitsFor(ranks, -1);
  for (int32_t rank = ranks - 1; rank >= 0; --rank)
    ready.push_back(rank);

  int32_t finished = 0;
  while (!ready.empty()) {
    int32_t rank = ready.back();
    ready.pop_back();
    size_t &at = position[rank];
    for (; at < lists[rank].size(); ++at) {
      const RankInstruction &instruction = lists[rank][at];
      if (instruction.kind == InstructionKind::Task)
        continue;
      DirectedLink &link = linkOf(rank, instruction);
      bool out = isSend(instruction.kind);
      LinkEnd &own = link.end(out);
      if (isPost(instruction.kind)) {
        ++own.executedPosts;
        if (waitsFor[instruction.peer] == rank) {
          waitsFor[instruction.peer] = -1;
          ready.push_back(instruction.peer);
        }
      } else if (link.end(!out).executedPosts > own.executedWaits) {
        ++own.executedWaits;
      } else {
        waitsFor[rank] = instruction.peer;
        break;
      }
    }
    finished += at == lists[rank].size();
  }
  if (finished == ranks)
    return llvm::Error::success();
  return llvm::createStringError(deadlockStory(position));
}

std::string InstructionChecker::deadlockStory(llvm::ArrayRef<size_t> position) {
  int32_t ranks = static_cast<int32_t>(lists.size());
  std::vector<int32_t> waitsFor(ranks, -1);
  for (int32_t rank = 0; rank < ranks; ++rank)
    if (position[rank] < lists[rank].size())
      waitsFor[rank] = lists[rank][position[rank]].peer;
  std::vector<int32_t> cycle = findWaitCycle(waitsFor);

  auto placeOf = [&](int32_t rank) -> std::string {
    for (size_t i = position[rank]; i-- > 0;)
      if (lists[rank][i].kind == InstructionKind::Task)
        return "after " + lists[rank][i].task.name();
    return "at its start";
  };
  auto tell = [&](size_t i) -> std::string {
    int32_t rank = cycle[i];
    const RankInstruction &wait = lists[rank][position[rank]];
    bool out = isSend(wait.kind);
    return formatv("rank {0} waits {1} for its {2} rank {3} of {4}, whose {5} "
                   "rank {3} posts later",
                   rank, placeOf(rank), out ? "send to" : "receive from",
                   wait.peer, name(wait.transfer), out ? "receive" : "send");
  };
  return "deadlock without buffering: " + joinStory(cycle.size(), "; ", tell);
}

llvm::Error InstructionChecker::check() {
  if (llvm::Error error = findLinks())
    return error;
  for (int32_t rank = 0; rank < static_cast<int32_t>(lists.size()); ++rank)
    if (llvm::Error error = collectPosts(rank))
      return error;
  for (const DirectedLink &link : links)
    if (llvm::Error error = checkPairs(link))
      return error;
  return execute();
}

llvm::Error
pipewright::schedules::checkInstructions(const InstructionLists &lists,
                                         NameOfTransfer nameOfTransfer) {
  return InstructionChecker(lists, nameOfTransfer).check();
}

llvm::Error
pipewright::schedules::checkInstructions(const InstructionLists &lists) {
  return checkInstructions(lists, defaultTransferName);
}
