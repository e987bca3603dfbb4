//===- Checker.cpp - Proves or refuses instruction lists --------*- C++ -*-===//
//
// Pairing is a comparison of the two ends of each channel. Deadlock is found by
// executing the lists (ChannelExecution.h says why once is enough).
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Checker.h"

#include "passes/schedules/ChannelExecution.h"
#include "passes/schedules/Collectives.h"
#include "passes/schedules/Dependences.h"
#include "passes/schedules/Pairs.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/StashMeter.h"

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
  if (transfer.kind == TransferKind::Work)
    return formatv("work {0}", transfer.edge);
  const char *what =
      transfer.kind == TransferKind::Forward ? "output" : "gradient";
  return formatv("{0} of edge {1}, micro-batch {2}", what, transfer.edge,
                 transfer.microBatch);
}

std::string
pipewright::schedules::transferName(const Transfer &transfer,
                                    llvm::ArrayRef<StageEdge> edges) {
  if (transfer.kind == TransferKind::Work || transfer.edge < 0 ||
      static_cast<size_t>(transfer.edge) >= edges.size())
    return defaultTransferName(transfer);
  const StageEdge &edge = edges[transfer.edge];
  return formatv(transfer.kind == TransferKind::Forward
                     ? "the output of stage {0} for stage {1}, micro-batch {2}"
                     : "the gradient of stage {1} for stage {0}, micro-batch "
                       "{2}",
                 edge.from, edge.to, transfer.microBatch);
}

namespace {

/// The posts of one end of a channel, in order, and how many were waited for.
struct Posts {
  std::vector<const RankInstruction *> all;
  size_t waited = 0;
};

class InstructionChecker {
public:
  InstructionChecker(const InstructionLists &lists, NameOfTransfer name,
                     const Channels &channels)
      : lists(lists), name(name), channels(channels),
        index(lists, channels.layout, channels.groups), posts(index.numEnds()) {
  }

  llvm::Error check();

private:
  using Execution = ChannelExecution<>;

  /// Where the search for a cycle stands: a rank cannot pass the head of one
  /// of its queues. It waits for it itself, or (`stuck` >= 0) has posted the
  /// next message of that end behind it.
  struct Blockage {
    int32_t queue;
    int32_t stuck;
  };

  llvm::Error collectPosts(int32_t rank);
  llvm::Error checkPairs(int32_t channel) const;
  std::string describeDeadlock(const Execution &execution) const;
  Blockage nextBlockage(const Execution &execution,
                        const Blockage &blockage) const;
  std::string tell(const Execution &execution, const Blockage &blockage) const;

  std::string nameOfPost(int32_t end, int64_t message) const;
  int32_t rankAcross(int32_t end) const { return index.rankOf(end ^ 1); }
  int32_t blockerOf(const Execution &execution, int32_t head) const;
  bool hasNotPosted(const Execution &execution, int32_t end) const {
    return execution.end(end).posts == execution.end(end).moved;
  }

  const InstructionLists &lists;
  NameOfTransfer name;
  Channels channels;
  ChannelIndex index;
  std::vector<Posts> posts;
};

} // namespace

/// Nothing stands between the tasks of a pair, or between the posts of a group.
static llvm::Error checkNeighbours(int32_t rank,
                                   llvm::ArrayRef<RankInstruction> list,
                                   size_t at, NameOfTransfer name) {
  const RankInstruction &instruction = list[at];
  bool isLast = at + 1 == list.size();
  if (instruction.kind == InstructionKind::Task) {
    bool isChain = isSecondOfPair(list, at) && instruction.task.overlapsNext;
    if (!instruction.task.overlapsNext || (isFirstOfPair(list, at) && !isChain))
      return llvm::Error::success();
    return refuse("rank {0} overlaps {1} with {2}, but expects pairs of tasks "
                  "with nothing between them",
                  rank, instruction.task.name(),
                  isChain  ? "a chain of tasks"
                  : isLast ? "nothing"
                           : "a task that other instructions stand before");
  }
  auto isTransferPost = [](const RankInstruction &each) {
    return isPost(each.kind) && each.isMessage();
  };
  if (instruction.groupedWithNext &&
      (isLast || !isTransferPost(instruction) || !isTransferPost(list[at + 1])))
    return refuse("rank {0} groups {1} with what follows, but expects sends "
                  "and receives with nothing between them",
                  rank, name(instruction.transfer));
  return llvm::Error::success();
}

/// Messages go to other ranks and have a size; pairs and groups stand together.
static llvm::Error checkMessages(const InstructionLists &lists,
                                 NameOfTransfer name) {
  int32_t ranks = static_cast<int32_t>(lists.size());
  for (int32_t rank = 0; rank < ranks; ++rank)
    for (auto [at, instruction] : llvm::enumerate(lists[rank])) {
      if (llvm::Error error = checkNeighbours(rank, lists[rank], at, name))
        return error;
      if (!instruction.isMessage())
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
    }
  return llvm::Error::success();
}

/// Copies between a rank and its host begin once, and are waited for once.
static llvm::Error checkCopies(const InstructionLists &lists,
                               NameOfTransfer name) {
  for (auto [rank, list] : llvm::enumerate(lists)) {
    std::vector<Transfer> underWay, over;
    for (const RankInstruction &instruction : list) {
      if (!instruction.isCopy())
        continue;
      const Transfer &transfer = instruction.transfer;
      auto begun = llvm::find(underWay, transfer);
      if (instruction.kind == InstructionKind::PostCopy) {
        if (begun != underWay.end() || llvm::is_contained(over, transfer))
          return refuse("rank {0} copies {1} twice", rank, name(transfer));
        underWay.push_back(transfer);
        continue;
      }
      if (begun == underWay.end())
        return refuse("rank {0} waits for a copy of {1} that has not begun",
                      rank, name(transfer));
      underWay.erase(begun);
      over.push_back(transfer);
    }
    if (!underWay.empty())
      return refuse("rank {0} never waits for its copy of {1}", rank,
                    name(underWay.front()));
  }
  return llvm::Error::success();
}

/// Fills in the posts of `rank`, and checks that its waits complete what was
/// posted, each once.
llvm::Error InstructionChecker::collectPosts(int32_t rank) {
  for (const RankInstruction &instruction : lists[rank]) {
    if (instruction.kind == InstructionKind::Task || instruction.isCopy())
      continue;
    Posts &end = posts[index.endOf(rank, instruction)];
    if (isPost(instruction.kind)) {
      end.all.push_back(&instruction);
      continue;
    }
    if (instruction.isCollective())
      continue; // (M2) is checked beforehand.
    const char *action = isSend(instruction.kind) ? "send to" : "receive from";
    if (end.waited == end.all.size())
      return refuse("rank {0} waits for {1}, but has no outstanding {2} rank "
                    "{3}",
                    rank, name(instruction.transfer), action, instruction.peer);
    const RankInstruction &oldest = *end.all[end.waited++];
    if (oldest.transfer != instruction.transfer)
      return refuse("rank {0} waits for {1}, but its oldest outstanding {2} "
                    "rank {3} is {4}",
                    rank, name(instruction.transfer), action, instruction.peer,
                    name(oldest.transfer));
  }
  return llvm::Error::success();
}

llvm::Error InstructionChecker::checkPairs(int32_t channel) const {
  auto [from, to, part] = index.channels()[channel];
  const Posts &sent = posts[2 * channel], &received = posts[2 * channel + 1];
  for (const Posts *end : {&sent, &received}) {
    bool out = end == &sent;
    if (end->waited < end->all.size())
      return refuse("rank {0} never waits for its {1} rank {2} of {3}",
                    out ? from : to, out ? "send to" : "receive from",
                    out ? to : from, name(end->all[end->waited]->transfer));
  }
  size_t sends = sent.all.size(), receives = received.all.size();
  for (size_t i = 0; i < std::min(sends, receives); ++i) {
    const RankInstruction &send = *sent.all[i];
    const RankInstruction &receive = *received.all[i];
    if (send.transfer != receive.transfer)
      return refuse("message {0} from rank {1} to rank {2} is sent as {3}, but "
                    "received as {4}, which no buffering mends",
                    i, from, to, name(send.transfer), name(receive.transfer));
    if (send.bytes != receive.bytes)
      return refuse("rank {0} sends {1} bytes of {2}, but rank {3} expects {4} "
                    "bytes",
                    from, send.bytes, name(send.transfer), to, receive.bytes);
  }
  if (sends > receives)
    return refuse("rank {0} sends {1} to rank {2}, which never receives it",
                  from, name(sent.all[receives]->transfer), to);
  if (receives > sends)
    return refuse("rank {0} receives {1} from rank {2}, which never sends it",
                  to, name(received.all[sends]->transfer), from);
  return llvm::Error::success();
}

/// `send to rank 1 of x0`, `all-reduce of x1 over ranks 0 and 1`
std::string InstructionChecker::nameOfPost(int32_t end, int64_t message) const {
  if (index.isMember(end))
    return nameOfCollective(*posts[end].all[message], channels.groups, name);
  return formatv("{0} rank {1} of {2}",
                 end % 2 == 0 ? "send to" : "receive from", rankAcross(end),
                 name(posts[end].all[message]->transfer));
}

/// The end at which the partner of a head is missing: the other end of its
/// channel, or (M3) that of the first member who has not posted it or has it
/// behind other collectives.
int32_t InstructionChecker::blockerOf(const Execution &execution,
                                      int32_t head) const {
  if (!index.isMember(head))
    return head ^ 1;
  for (int32_t end : index.endsOfGroup(index.groupOf(head)))
    if (!execution.queue(index.queueOf(end)).awaits(end))
      return end;
  llvm_unreachable("a collective that all members have at the head moves");
}

/// What keeps the head of a queue from moving: at the other end, its partner is
/// not posted, or stuck in a queue.
InstructionChecker::Blockage
InstructionChecker::nextBlockage(const Execution &execution,
                                 const Blockage &blockage) const {
  int32_t other = blockerOf(execution, execution.queue(blockage.queue).front());
  if (!hasNotPosted(execution, other))
    return {index.queueOf(other), other};
  return {index.queueOf(execution.waitOf(index.rankOf(other))), -1};
}

std::string InstructionChecker::tell(const Execution &execution,
                                     const Blockage &blockage) const {
  int32_t head = execution.queue(blockage.queue).front();
  int32_t other = blockerOf(execution, head), rank = index.rankOf(head);
  const EndState &state = execution.end(head), &across = execution.end(other);
  std::string headName = nameOfPost(head, state.moved);
  std::string text;
  if (blockage.stuck >= 0) {
    text =
        formatv("rank {0} has its {1} queued behind its {2}", rank,
                nameOfPost(blockage.stuck, execution.end(blockage.stuck).moved),
                headName);
  } else {
    int32_t wait = execution.waitOf(rank);
    int64_t awaited = execution.end(wait).waits;
    std::string when = "at its start";
    for (size_t i = execution.positionOf(rank); i-- > 0;)
      if (lists[rank][i].kind == InstructionKind::Task) {
        when = "after " + lists[rank][i].task.name();
        break;
      }
    text = formatv("rank {0} waits {1} for its {2}", rank, when,
                   nameOfPost(wait, awaited));
    bool isGrouped =
        llvm::any_of(execution.queue(blockage.queue).head(),
                     [&](const QueuedPost &post) { return post.end == wait; });
    if (wait != head || awaited != state.moved)
      text += (isGrouped ? ", grouped with its " : ", queued behind its ") +
              headName;
  }
  // A buffered send waits for an older message to be received.
  bool isFull =
      !index.isMember(head) && head % 2 == 0 && execution.isBuffered(head / 2);
  if (isFull)
    text += ", which finds no free buffer";
  if (!hasNotPosted(execution, other))
    return text;
  if (index.isMember(head))
    return text +
           formatv(", in which rank {0} takes part later", index.rankOf(other))
               .str();
  if (!isFull)
    return text + formatv(", whose {0} rank {1} posts later",
                          other % 2 == 0 ? "send" : "receive",
                          index.rankOf(other))
                      .str();
  return text + formatv(" as rank {0} posts its {1} later", index.rankOf(other),
                        nameOfPost(other, across.moved))
                    .str();
}

std::string
InstructionChecker::describeDeadlock(const Execution &execution) const {
  // From the first rank that waits, along whatever holds it up, until a queue
  // is seen again; from there once around.
  int32_t rank = 0;
  while (execution.waitOf(rank) < 0)
    ++rank;
  Blockage blockage{index.queueOf(execution.waitOf(rank)), -1};
  std::vector<bool> seen(index.numQueues());
  while (!seen[blockage.queue]) {
    seen[blockage.queue] = true;
    blockage = nextBlockage(execution, blockage);
  }
  std::vector<Blockage> cycle;
  for (int32_t first = blockage.queue;
       cycle.empty() || blockage.queue != first;) {
    cycle.push_back(blockage);
    blockage = nextBlockage(execution, blockage);
  }
  // Waits are easier to begin with than queues; of those, the lowest rank.
  auto key = [&](const Blockage &blockage) {
    int32_t rank = index.rankOf(execution.queue(blockage.queue).front());
    return std::pair(blockage.stuck >= 0, rank);
  };
  auto begin = std::min_element(
      cycle.begin(), cycle.end(),
      [&](const Blockage &a, const Blockage &b) { return key(a) < key(b); });
  std::rotate(cycle.begin(), begin, cycle.end());
  return "deadlock " + describe(channels) + ": " +
         joinCycle(cycle.size(), "; ",
                   [&](size_t i) { return tell(execution, cycle[i]); });
}

llvm::Error InstructionChecker::check() {
  for (int32_t rank = 0; rank < static_cast<int32_t>(lists.size()); ++rank)
    if (llvm::Error error = collectPosts(rank))
      return error;
  int32_t numChannels = static_cast<int32_t>(index.channels().size());
  for (int32_t channel = 0; channel < numChannels; ++channel)
    if (llvm::Error error = checkPairs(channel))
      return error;
  ChannelListener nobody;
  Execution execution(lists, index, channels.buffering, nobody);
  if (execution.run())
    return llvm::Error::success();
  return llvm::createStringError(describeDeadlock(execution));
}

llvm::Error
pipewright::schedules::checkInstructions(const InstructionLists &lists,
                                         NameOfTransfer nameOfTransfer,
                                         const Channels &channels) {
  const Buffering &buffering = channels.buffering;
  if (buffering.messages < 0 || buffering.bytes < 0)
    return refuse("expects buffers for at least 0 {0}, but got {1}",
                  buffering.messages < 0 ? "messages" : "bytes",
                  std::min(buffering.messages, buffering.bytes));
  if (llvm::Error error = checkMessages(lists, nameOfTransfer))
    return error;
  if (llvm::Error error =
          checkCollectives(lists, channels.groups, nameOfTransfer))
    return error;
  if (llvm::Error error = checkCopies(lists, nameOfTransfer))
    return error;
  return InstructionChecker(lists, nameOfTransfer, channels).check();
}

llvm::Error
pipewright::schedules::checkInstructions(const InstructionLists &lists,
                                         const Channels &channels) {
  return checkInstructions(lists, defaultTransferName, channels);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

llvm::Error pipewright::schedules::checkMemory(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<int64_t> limitBytes, llvm::ArrayRef<StageEdge> edges,
    llvm::ArrayRef<Work> works) {
  if (limitBytes.size() != 1 &&
      static_cast<int64_t>(limitBytes.size()) != schedule.ranks)
    return refuse("expects one memory limit, or one for each of {0} ranks, but "
                  "got {1}",
                  schedule.ranks, limitBytes.size());
  if (llvm::Error error = checkSchedule(schedule, edges))
    return error;
  if (llvm::Error error = checkCosts(schedule, costs))
    return error;
  for (int32_t rank = 0; rank < schedule.ranks; ++rank) {
    int64_t limit = limitBytes[limitBytes.size() == 1 ? 0 : rank];
    StashMeter meter(schedule, costs);
    meter.addTransfers(works, rank);
    llvm::ArrayRef<Task> tasks = schedule.order[rank];
    for (size_t i = 0; i < tasks.size(); ++i) {
      meter.runAt(tasks, i);
      if (meter.peakBytes() > limit)
        return refuse("rank {0} keeps {1} bytes of stashes at {2}, but its "
                      "limit is {3} bytes",
                      rank, meter.peakBytes(), tasks[i].name(), limit);
    }
  }
  return llvm::Error::success();
}
