//===- DataFlow.cpp - Do the lists carry what the tasks need ----*- C++ -*-===//
//
// The part of the checker that knows both stages and messages. Pairing and
// deadlock are not its business, so it looks at one rank at a time.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Checker.h"

#include "passes/schedules/Dependences.h"
#include "passes/schedules/Pairs.h"
#include "passes/schedules/Refusal.h"

using namespace pipewright::schedules;

namespace {

class DataFlow {
public:
  DataFlow(const Schedule &schedule, const Dependences &dependences)
      : schedule(schedule), dependences(dependences),
        links(schedule, dependences.edges()),
        computed(2 * schedule.stages * schedule.microBatches),
        sent(2 * dependences.edges().size() * schedule.microBatches),
        received(sent.size()) {}

  llvm::Error checkRank(int32_t rank, llvm::ArrayRef<RankInstruction> list);

private:
  llvm::Error checkMessage(int32_t rank, const RankInstruction &instruction);
  llvm::Error checkNeeds(int32_t rank, const Task &task) const;
  llvm::Error checkAllSent(int32_t rank) const;
  void finish(const Task &task);

  std::string nameOf(const Transfer &transfer) const {
    return transferName(transfer, dependences.edges());
  }
  size_t slotOf(TransferKind kind, int64_t index, int32_t microBatch) const {
    return 2 * (index * schedule.microBatches + microBatch) +
           (kind == TransferKind::Gradient);
  }

  const Schedule &schedule;
  const Dependences &dependences;
  LinkIndex links;
  // The index counts stages (of what was sent or received, edges), then
  // micro-batches, then forward and gradient.
  std::vector<bool> computed, sent, received;
};

} // namespace

llvm::Error DataFlow::checkMessage(int32_t rank,
                                   const RankInstruction &instruction) {
  Transfer transfer = instruction.transfer;
  auto name = [&] { return nameOf(transfer); };
  bool isForward = transfer.kind == TransferKind::Forward;
  bool isInRange =
      transfer.edge >= 0 &&
      transfer.edge < static_cast<int32_t>(dependences.edges().size()) &&
      transfer.microBatch >= 0 && transfer.microBatch < schedule.microBatches;
  int32_t link = isInRange ? links.linkOf(transfer.kind, transfer.edge) : -1;
  if (link < 0)
    return refuse("rank {0} transfers {1}, which does not exist or stays on "
                  "its rank",
                  rank, name());
  bool isOut = instruction.kind == InstructionKind::PostSend ||
               instruction.kind == InstructionKind::WaitSend;
  LinkIndex::Link ends = links.links()[link];
  LinkIndex::Link actual = isOut ? LinkIndex::Link{rank, instruction.peer}
                                 : LinkIndex::Link{instruction.peer, rank};
  if (ends != actual)
    return refuse("{0} goes from rank {1} to rank {2}, but expects {3} to {4}",
                  name(), actual.from, actual.to, ends.from, ends.to);
  const StageEdge &edge = dependences.edges()[transfer.edge];
  if (instruction.bytes != edge.bytes)
    return refuse("{0} has {1} bytes on rank {2}, but expects {3}", name(),
                  instruction.bytes, rank, edge.bytes);

  size_t slot = slotOf(transfer.kind, transfer.edge, transfer.microBatch);
  if (instruction.kind == InstructionKind::WaitReceive)
    received[slot] = true;
  if (instruction.kind != InstructionKind::PostSend)
    return llvm::Error::success();
  int32_t producer = isForward ? edge.from : edge.to;
  if (!computed[slotOf(transfer.kind, producer, transfer.microBatch)])
    return refuse("rank {0} sends {1} before stage {2} computed it", rank,
                  name(), producer);
  if (sent[slot])
    return refuse("rank {0} sends {1} twice", rank, name());
  sent[slot] = true;
  return llvm::Error::success();
}

llvm::Error DataFlow::checkNeeds(int32_t rank, const Task &task) const {
  llvm::Error result = llvm::Error::success();
  dependences.forEachNeed(task, [&](const Dependences::Need &need) {
    if (need.edge < 0)
      return true;
    TransferKind kind = need.kind == TaskKind::Forward ? TransferKind::Forward
                                                       : TransferKind::Gradient;
    if (links.linkOf(kind, need.edge) < 0 ||
        received[slotOf(kind, need.edge, need.microBatch)])
      return true;
    Transfer missing{kind, need.edge, need.microBatch};
    result =
        llvm::joinErrors(std::move(result),
                         refuse("rank {0} runs {1} before it has received {2}",
                                rank, task.name(), nameOf(missing)));
    return false;
  });
  return result;
}

llvm::Error DataFlow::checkAllSent(int32_t rank) const {
  for (auto [i, edge] : llvm::enumerate(dependences.edges()))
    for (TransferKind kind : {TransferKind::Forward, TransferKind::Gradient}) {
      int32_t link = links.linkOf(kind, i);
      bool isMade = kind == TransferKind::Forward || !schedule.forwardOnly;
      if (link < 0 || links.links()[link].from != rank || !isMade)
        continue;
      for (int32_t m = 0; m < schedule.microBatches; ++m)
        if (!sent[slotOf(kind, i, m)] && schedule.runs(edge.from, m))
          return refuse("rank {0} never sends {1}", rank,
                        nameOf({kind, static_cast<int32_t>(i), m}));
    }
  return llvm::Error::success();
}

void DataFlow::finish(const Task &task) {
  if (task.kind == TaskKind::Forward)
    computed[slotOf(TransferKind::Forward, task.stage, task.microBatch)] = true;
  else if (task.producesGradient())
    computed[slotOf(TransferKind::Gradient, task.stage, task.microBatch)] =
        true;
}

llvm::Error DataFlow::checkRank(int32_t rank,
                                llvm::ArrayRef<RankInstruction> list) {
  llvm::ArrayRef<Task> expected = schedule.order[rank];
  size_t next = 0;
  for (const RankInstruction &instruction : list) {
    if (instruction.kind != InstructionKind::Task) {
      if (instruction.isMessage() &&
          instruction.transfer.kind != TransferKind::Work)
        if (llvm::Error error = checkMessage(rank, instruction))
          return error;
      continue;
    }
    const Task &task = instruction.task;
    if (next == expected.size() || !(expected[next] == task))
      return refuse("rank {0} runs {1} as task {2}, but its schedule says {3}",
                    rank, task.name(), next,
                    next == expected.size() ? "that it ends there"
                                            : expected[next].name());
    if (llvm::Error error = checkNeeds(rank, task))
      return error;
    size_t at = next++;
    bool overlaps = isFirstOfPair(expected, at);
    if (task.overlapsNext != overlaps)
      return refuse("rank {0} runs {1} {2}, but its schedule says {3}", rank,
                    task.name(), overlaps ? "alone" : "together with the next",
                    overlaps ? "together with " + expected[next].name()
                             : std::string("alone"));
    // The first of a pair does not start without what the second needs, and
    // its result is there when both end.
    if (overlaps) {
      if (llvm::Error error = checkNeeds(rank, expected[next]))
        return error;
      continue;
    }
    for (size_t done = beginOfPair(expected, at); done < next; ++done)
      finish(expected[done]);
  }
  if (next < expected.size())
    return refuse("rank {0} never runs {1}", rank, expected[next].name());
  return checkAllSent(rank);
}

llvm::Error
pipewright::schedules::checkDataFlow(const Schedule &schedule,
                                     const InstructionLists &lists,
                                     llvm::ArrayRef<StageEdge> edges) {
  llvm::Expected<Dependences> dependences = Dependences::build(schedule, edges);
  if (!dependences)
    return dependences.takeError();
  if (static_cast<int64_t>(lists.size()) != schedule.ranks)
    return refuse("expects a list for each of {0} ranks, but got {1}",
                  schedule.ranks, lists.size());
  DataFlow flow(schedule, *dependences);
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    if (llvm::Error error = flow.checkRank(rank, lists[rank]))
      return error;
  return llvm::Error::success();
}
