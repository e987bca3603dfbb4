//===- ChannelSimulator.cpp - When each message moves -----------*- C++ -*-===//
//
// Listens to the execution of the lists and computes times as it goes. Each
// time follows from times of what came before in the same rank, queue or
// channel, so the order in which the execution happens to go does not matter,
// and no event queue is needed.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/ChannelSimulator.h"

#include "passes/schedules/ChannelExecution.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/Story.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class ChannelTimeline : public ChannelListener {
public:
  ChannelTimeline(const InstructionLists &lists, const TaskCosts &costs,
                  const ChannelIndex &index, Buffering buffering);

  void task(int32_t rank, size_t position);
  void post(int32_t rank, int32_t end) {
    ends[end].posted.push_back(now[rank]);
  }
  void transfer(int32_t channel, int64_t message);
  void send(int32_t channel, int64_t message);
  void receive(int32_t channel, int64_t message);
  void waited(int32_t rank, int32_t end, int64_t message);

  ChannelSimulation finish();

private:
  struct End {
    /// Of each message: when it was posted, and when it had left the queue.
    std::vector<double> posted, moved;
    double &queueFree;
  };
  struct Wire {
    LinkCosts costs;
    /// Of each message.
    std::vector<TransferTime> transfers;
    std::vector<int64_t> bytes;
  };

  void collectTransfers();

  const InstructionLists &lists;
  const TaskCosts &costs;
  const ChannelIndex &index;
  int64_t buffers;
  std::vector<double> now, queueFree;
  std::vector<End> ends;
  std::vector<Wire> wires;
  ChannelSimulation result;
};

} // namespace

ChannelTimeline::ChannelTimeline(const InstructionLists &lists,
                                 const TaskCosts &costs,
                                 const ChannelIndex &index, Buffering buffering)
    : lists(lists), costs(costs), index(index), buffers(buffering.messages),
      now(lists.size()), queueFree(index.numQueues()) {
  for (int32_t end = 0; end < index.numEnds(); ++end)
    ends.push_back({{}, {}, queueFree[index.queueOf(end)]});
  for (const ChannelIndex::Channel &channel : index.channels())
    wires.push_back({costs.linkBetween(channel.from, channel.to), {}, {}});
  result.times.resize(lists.size());
  result.sendWaits.resize(lists.size());
  result.receiveWaits.resize(lists.size());
  collectTransfers();
}

void ChannelTimeline::collectTransfers() {
  for (int32_t rank = 0; rank < static_cast<int32_t>(lists.size()); ++rank)
    for (const RankInstruction &instruction : lists[rank])
      if (instruction.kind == InstructionKind::PostSend) {
        Wire &wire = wires[index.endOf(rank, instruction) / 2];
        wire.transfers.push_back(
            {instruction.transfer, rank, instruction.peer, 0, 0});
        wire.bytes.push_back(instruction.bytes);
      }
}

void ChannelTimeline::task(int32_t rank, size_t position) {
  const std::vector<RankInstruction> &list = lists[rank];
  const Task &task = list[position].task;
  std::vector<TaskTime> &times = result.times[rank];
  auto isPairAt = [&](size_t first) {
    return list[first].kind == InstructionKind::Task &&
           list[first].task.overlapsNext && first + 1 < list.size() &&
           list[first + 1].kind == InstructionKind::Task;
  };
  // The second of a pair ran with the first; pairs do not chain.
  if (!task.overlapsNext && position > 0 && isPairAt(position - 1)) {
    times.push_back(times.back());
    return;
  }
  double seconds = costs.secondsOf(task);
  if (isPairAt(position))
    seconds =
        (seconds + costs.secondsOf(list[position + 1].task)) * costs.pairFactor;
  double start = now[rank];
  now[rank] += seconds;
  times.push_back({start, now[rank]});
}

void ChannelTimeline::transfer(int32_t channel, int64_t message) {
  End &from = ends[2 * channel], &to = ends[2 * channel + 1];
  Wire &wire = wires[channel];
  double start = std::max(
      {from.posted[message], to.posted[message], from.queueFree, to.queueFree});
  double end =
      start + wire.bytes[message] / wire.costs.bandwidth + wire.costs.latency;
  from.queueFree = to.queueFree = end;
  from.moved.push_back(end);
  to.moved.push_back(end);
  wire.transfers[message].start = start;
  wire.transfers[message].end = end;
}

void ChannelTimeline::send(int32_t channel, int64_t message) {
  End &from = ends[2 * channel], &to = ends[2 * channel + 1];
  Wire &wire = wires[channel];
  double start = std::max(from.posted[message], from.queueFree);
  if (message >= buffers)
    start = std::max(start, to.moved[message - buffers]);
  double left = start + wire.bytes[message] / wire.costs.bandwidth;
  from.queueFree = left;
  from.moved.push_back(left);
  wire.transfers[message].start = start;
  // In its buffer; later if the receiver takes it later.
  wire.transfers[message].end = left + wire.costs.latency;
}

void ChannelTimeline::receive(int32_t channel, int64_t message) {
  End &to = ends[2 * channel + 1];
  double &end = wires[channel].transfers[message].end;
  end = std::max({end, to.posted[message], to.queueFree});
  to.queueFree = end;
  to.moved.push_back(end);
}

void ChannelTimeline::waited(int32_t rank, int32_t end, int64_t message) {
  double until = ends[end].moved[message];
  if (until <= now[rank])
    return;
  (end % 2 == 0 ? result.sendWaits : result.receiveWaits)[rank] +=
      until - now[rank];
  now[rank] = until;
}

ChannelSimulation ChannelTimeline::finish() {
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (const std::vector<TaskTime> &times : result.times)
    if (!times.empty()) {
      first = std::min(first, times.front().start);
      last = std::max(last, times.back().end);
      result.spanStepTime =
          std::max(result.spanStepTime, times.back().end - times.front().start);
    }
  result.globalStepTime = std::max(last - first, 0.0);
  for (Wire &wire : wires)
    llvm::append_range(result.transfers, wire.transfers);
  return std::move(result);
}

static llvm::Error checkTasks(const InstructionLists &lists,
                              const TaskCosts &costs) {
  int32_t stages = static_cast<int32_t>(costs.stages.size());
  for (auto [rank, list] : llvm::enumerate(lists))
    for (const RankInstruction &instruction : list)
      if (instruction.kind == InstructionKind::Task &&
          (instruction.task.stage < 0 || instruction.task.stage >= stages))
        return refuse("rank {0} runs {1}, but there are costs of {2} stages",
                      rank, instruction.task.name(), stages);
  return llvm::Error::success();
}

llvm::Expected<ChannelSimulation>
pipewright::schedules::simulateInstructions(const InstructionLists &lists,
                                            const TaskCosts &costs,
                                            const Channels &channels) {
  if (llvm::Error error = checkTasks(lists, costs))
    return error;
  Schedule shape;
  shape.stages = static_cast<int64_t>(costs.stages.size());
  if (llvm::Error error = checkCosts(shape, costs))
    return error;
  if (llvm::Error error = checkInstructions(lists, channels))
    return error;
  ChannelIndex index(lists, channels.layout);
  ChannelTimeline timeline(lists, costs, index, channels.buffering);
  ChannelExecution execution(lists, index, channels.buffering, timeline);
  execution.run();
  return timeline.finish();
}
