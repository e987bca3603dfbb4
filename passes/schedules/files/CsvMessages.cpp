//===- CsvMessages.cpp - Messages and waits of a CSV file -------*- C++ -*-===//
//
// Lists of instructions from cells, with the waits that PyTorch's runtime adds.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/CsvActions.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::csv;

namespace {

/// The list of one rank: its cells, with the waits that PyTorch's runtime does
/// without a cell.
class ListBuilder {
public:
  ListBuilder(const Schedule &schedule, int32_t rank)
      : schedule(schedule), rank(rank) {}

  void addMessage(const Action &action);
  /// The receives that a task needs.
  void addWaits(const Task &task);
  void addTask(const Task &task) {
    list.push_back(RankInstruction::compute(task));
  }
  std::vector<RankInstruction> finish();

private:
  struct Message {
    Transfer transfer;
    int32_t peer;
  };
  /// Posted and not yet waited for, by peer, oldest first.
  using Queues = std::map<int32_t, std::deque<Transfer>>;

  /// The message between a stage and the next, at the end of either.
  Message messageOf(TransferKind kind, int32_t edge, int32_t microBatch) const {
    int32_t lower = schedule.rankOfStage[edge];
    int32_t upper = schedule.rankOfStage[edge + 1];
    return {{kind, edge, microBatch}, lower == rank ? upper : lower};
  }
  void emit(InstructionKind kind, const Message &message) {
    list.push_back(
        RankInstruction::message(kind, message.transfer, message.peer, 0));
  }
  /// Waits for `message` and for what is before it in its queue; does nothing
  /// if it is not outstanding.
  void waitUpTo(InstructionKind kind, Queues &queues, const Message &message) {
    std::deque<Transfer> &queue = queues[message.peer];
    if (!isOutstanding.count(keyOf(kind, message.transfer)))
      return;
    for (bool isLast = false; !isLast; queue.pop_front()) {
      isLast = queue.front() == message.transfer;
      isOutstanding.erase(keyOf(kind, queue.front()));
      emit(kind, {queue.front(), message.peer});
    }
  }
  void post(InstructionKind kind, InstructionKind wait, Queues &queues,
            const Message &message) {
    emit(kind, message);
    queues[message.peer].push_back(message.transfer);
    isOutstanding.insert(keyOf(wait, message.transfer));
  }

  using Key = std::tuple<InstructionKind, TransferKind, int32_t, int32_t>;
  static Key keyOf(InstructionKind wait, const Transfer &transfer) {
    return {wait, transfer.kind, transfer.edge, transfer.microBatch};
  }

  const Schedule &schedule;
  int32_t rank;
  std::vector<RankInstruction> list;
  Queues sends, receives;
  std::set<Key> isOutstanding;
};

} // namespace

void ListBuilder::addMessage(const Action &action) {
  bool isForward = action.kind == ActionKind::SendForward ||
                   action.kind == ActionKind::ReceiveForward ||
                   action.kind == ActionKind::WaitSendForward;
  // Towards the next stage: what leaves forwards, what comes in backwards.
  bool toNext = isForward != action.isReceive();
  Message message =
      messageOf(isForward ? TransferKind::Forward : TransferKind::Gradient,
                toNext ? action.stage : action.stage - 1, action.microBatch);
  if (action.isWait())
    waitUpTo(InstructionKind::WaitSend, sends, message);
  else if (action.isSend())
    post(InstructionKind::PostSend, InstructionKind::WaitSend, sends, message);
  else
    post(InstructionKind::PostReceive, InstructionKind::WaitReceive, receives,
         message);
  if (action.groupedWithNext)
    list.back().groupedWithNext = true;
}

void ListBuilder::addWaits(const Task &task) {
  if (task.kind == TaskKind::Forward && task.stage > 0)
    waitUpTo(InstructionKind::WaitReceive, receives,
             messageOf(TransferKind::Forward, task.stage - 1, task.microBatch));
  if (task.producesGradient() && task.stage + 1 < schedule.stages)
    waitUpTo(InstructionKind::WaitReceive, receives,
             messageOf(TransferKind::Gradient, task.stage, task.microBatch));
}

std::vector<RankInstruction> ListBuilder::finish() {
  for (auto &[peer, queue] : receives)
    for (const Transfer &transfer : queue)
      emit(InstructionKind::WaitReceive, {transfer, peer});
  for (auto &[peer, queue] : sends)
    for (const Transfer &transfer : queue)
      emit(InstructionKind::WaitSend, {transfer, peer});
  return std::move(list);
}

std::vector<RankInstruction> pipewright::schedules::csv::instructionsOf(
    const Schedule &schedule, int32_t rank, llvm::ArrayRef<Action> actions) {
  llvm::ArrayRef<Task> order = schedule.order[rank];
  ListBuilder builder(schedule, rank);
  size_t next = 0;
  for (const Action &action : actions) {
    if (!action.isTask()) {
      builder.addMessage(action);
      continue;
    }
    // A pair starts with the needs of both.
    builder.addWaits(order[next]);
    if (order[next].overlapsNext)
      builder.addWaits(order[next + 1]);
    builder.addTask(order[next++]);
  }
  std::vector<RankInstruction> list = builder.finish();
  for (const Task &update : order.drop_front(next))
    list.push_back(RankInstruction::compute(update));
  return list;
}
