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
#include "passes/schedules/Collectives.h"
#include "passes/schedules/Pairs.h"
#include "passes/schedules/Refusal.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class ChannelTimeline : public ChannelListener {
public:
  ChannelTimeline(const InstructionLists &lists, const TaskCosts &costs,
                  const ChannelIndex &index, const Channels &channels);

  void task(int32_t rank, size_t position);
  void post(int32_t rank, int32_t end) {
    ends[end].posted.push_back(now[rank]);
  }
  void transfer(int32_t channel, int64_t message);
  void send(int32_t channel, int64_t message);
  void receive(int32_t channel, int64_t message);
  void collective(int32_t group, int64_t number);
  void leave(int32_t queue, llvm::ArrayRef<QueuedPost> posts);
  void waited(int32_t rank, int32_t end, int64_t message);

  ChannelSimulation finish();

private:
  /// The head of a queue: when it came to be that, and the last end of its
  /// messages.
  struct Head {
    double begin = 0, end = 0;
  };
  struct End {
    /// When each message was posted, had moved, and had left the queue.
    std::vector<double> posted, moved, left;
    Head &head;
  };
  struct Wire {
    LinkCosts costs;
    double free = 0;
    /// The first message in its buffers, and the bytes there.
    int64_t firstHeld = 0, heldBytes = 0;
    /// Indexed by message.
    std::vector<TransferTime> transfers;
    std::vector<int64_t> bytes;
  };

  void collectTransfers();

  const InstructionLists &lists;
  const TaskCosts &costs;
  const ChannelIndex &index;
  llvm::ArrayRef<RankGroup> groups;
  Buffering buffering;
  std::vector<double> now;
  std::vector<Head> heads;
  std::vector<End> ends;
  std::vector<Wire> wires;
  /// By group: its collectives, as its first member posts them.
  std::vector<std::vector<const RankInstruction *>> together;
  std::vector<std::vector<CollectiveTime>> collectives;
  ChannelSimulation result;
};

} // namespace

ChannelTimeline::ChannelTimeline(const InstructionLists &lists,
                                 const TaskCosts &costs,
                                 const ChannelIndex &index,
                                 const Channels &channels)
    : lists(lists), costs(costs), index(index), groups(channels.groups),
      buffering(channels.buffering), now(lists.size()),
      heads(index.numQueues()) {
  for (int32_t end = 0; end < index.numEnds(); ++end)
    ends.push_back({{}, {}, {}, heads[index.queueOf(end)]});
  for (const ChannelIndex::Channel &channel : index.channels())
    wires.emplace_back().costs = costs.linkBetween(channel.from, channel.to);
  result.times.resize(lists.size());
  result.sendWaits.resize(lists.size());
  result.receiveWaits.resize(lists.size());
  result.collectiveWaits.resize(lists.size());
  collectTransfers();
}

void ChannelTimeline::collectTransfers() {
  together.resize(groups.size());
  collectives.resize(groups.size());
  for (auto [number, group] : llvm::enumerate(groups))
    for (const RankInstruction &instruction : lists[group.front()])
      if (instruction.kind == InstructionKind::PostCollective &&
          instruction.group == static_cast<int32_t>(number))
        together[number].push_back(&instruction);
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
  llvm::ArrayRef<RankInstruction> list = lists[rank];
  const Task &task = list[position].task;
  std::vector<TaskTime> &times = result.times[rank];
  if (isSecondOfPair(list, position)) {
    times.push_back(times.back());
    return;
  }
  double seconds = costs.secondsOf(task);
  if (isFirstOfPair(list, position))
    seconds =
        (seconds + costs.secondsOf(list[position + 1].task)) * costs.pairFactor;
  double start = now[rank];
  now[rank] += seconds;
  times.push_back({start, now[rank]});
}

void ChannelTimeline::transfer(int32_t channel, int64_t message) {
  End &from = ends[2 * channel], &to = ends[2 * channel + 1];
  Wire &wire = wires[channel];
  double start = std::max({from.posted[message], to.posted[message],
                           from.head.begin, to.head.begin, wire.free});
  double end =
      start + wire.bytes[message] / wire.costs.bandwidth + wire.costs.latency;
  wire.free = end;
  for (End *each : {&from, &to}) {
    each->head.end = std::max(each->head.end, end);
    each->moved.push_back(end);
  }
  wire.firstHeld = message + 1;
  wire.heldBytes = 0;
  wire.transfers[message].start = start;
  wire.transfers[message].end = end;
}

void ChannelTimeline::send(int32_t channel, int64_t message) {
  End &from = ends[2 * channel], &to = ends[2 * channel + 1];
  Wire &wire = wires[channel];
  double start = std::max({from.posted[message], from.head.begin, wire.free});
  int64_t size = wire.bytes[message];
  while (message - wire.firstHeld >= buffering.messages ||
         wire.heldBytes > buffering.bytes - size) {
    start = std::max(start, to.moved[wire.firstHeld]);
    wire.heldBytes -= wire.bytes[wire.firstHeld++];
  }
  wire.heldBytes += size;
  double left = start + size / wire.costs.bandwidth;
  wire.free = left;
  from.head.end = std::max(from.head.end, left);
  from.moved.push_back(left);
  wire.transfers[message].start = start;
  // In its buffer; later if the receiver takes it later.
  wire.transfers[message].end = left + wire.costs.latency;
}

void ChannelTimeline::receive(int32_t channel, int64_t message) {
  End &to = ends[2 * channel + 1];
  double &end = wires[channel].transfers[message].end;
  end = std::max({end, to.posted[message], to.head.begin});
  to.head.end = std::max(to.head.end, end);
  to.moved.push_back(end);
}

void ChannelTimeline::collective(int32_t group, int64_t number) {
  const RankInstruction &post = *together[group][number];
  double start = 0;
  for (int32_t end : index.endsOfGroup(group))
    start = std::max({start, ends[end].posted[number], ends[end].head.begin});
  double done = start + secondsOfCollective(post.collective, post.bytes,
                                            groups[group], costs);
  for (int32_t end : index.endsOfGroup(group)) {
    ends[end].moved.push_back(done);
    ends[end].head.end = std::max(ends[end].head.end, done);
  }
  collectives[group].push_back(
      {post.collective, post.transfer, group, start, done});
}

void ChannelTimeline::leave(int32_t queue, llvm::ArrayRef<QueuedPost> posts) {
  Head &head = heads[queue];
  head.begin = head.end;
  for (const QueuedPost &post : posts)
    ends[post.end].left.push_back(head.end);
}

void ChannelTimeline::waited(int32_t rank, int32_t end, int64_t message) {
  double until = ends[end].left[message];
  if (until <= now[rank])
    return;
  std::vector<double> &waits = index.isMember(end) ? result.collectiveWaits
                               : end % 2 == 0      ? result.sendWaits
                                                   : result.receiveWaits;
  waits[rank] += until - now[rank];
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
  for (const std::vector<CollectiveTime> &times : collectives)
    llvm::append_range(result.collectives, times);
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
  ChannelIndex index(lists, channels.layout, channels.groups);
  ChannelTimeline timeline(lists, costs, index, channels);
  ChannelExecution execution(lists, index, channels.buffering, timeline);
  execution.run();
  return timeline.finish();
}
