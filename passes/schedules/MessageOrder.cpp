//===- MessageOrder.cpp - Where posts and waits go --------------*- C++ -*-===//
//
// A send is posted right after the task that produces it and waited for after
// the rank's next task, so that the copy overlaps with that task. A receive is
// posted before the task that its rank runs, or is about to run, when the
// message is produced; later, the sender would wait; earlier, on a channel
// that keeps order, it could block what the sender needs first.
//
// Why this cannot deadlock: give each task its predicted end, and each post
// and wait the time of the message or of the task before it, whichever is
// later. Every instruction then waits only for earlier ones, as long as all
// tasks take time; so times of zero are raised to a little more than that.
//
// Messages take time too, if only a little: a receiver that is in step with its
// sender would start a task at the very moment of the production, and post the
// receive just before the task that consumes it, with nothing to overlap.
//
// On one link messages keep the order of their production, at both ends. A
// message that is consumed after a younger one of the same link is waited for
// early, together with it.
//
// Where sends and receives of a rank share a queue, all posts of a rank follow
// one total order of all messages: by production, then by link. They nearly do
// anyway, as a receive is posted before the task that runs at its production;
// messages made at the very same time are what is left to order.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/MessageOrder.h"

#include "passes/schedules/Dependences.h"
#include "passes/schedules/Pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

using namespace pipewright::schedules;

namespace {

/// One message of a link. Positions are indices into the order of the
/// sender's or the receiver's tasks; posts and waits go before that task.
struct Message {
  Transfer transfer;
  int64_t bytes;
  double produced;
  /// The position of the task that makes it, in the sender's order.
  int32_t producer;
  /// The positions in the receiver's order where it is posted and waited for.
  int32_t post;
  int32_t wait;
};

/// A post or wait, to be put before the task at `position`.
struct Placed {
  int32_t position;
  double produced;
  int32_t link;
  int32_t message;

  /// The total order of all messages.
  bool isBefore(const Placed &other) const {
    return std::tie(produced, link, message) <
           std::tie(other.produced, other.link, other.message);
  }
  bool operator<(const Placed &other) const {
    return position < other.position ||
           (position == other.position && isBefore(other));
  }
};

class MessageOrder {
public:
  MessageOrder(const Schedule &schedule, const Dependences &dependences,
               const Simulation &simulation, ChannelLayout layout)
      : schedule(schedule), dependences(dependences), simulation(simulation),
        keepsTotalOrder(layout != ChannelLayout::Link),
        links(schedule, dependences.edges()), messages(links.links().size()),
        linksFrom(schedule.ranks), linksTo(schedule.ranks) {
    for (auto [i, link] : llvm::enumerate(links.links())) {
      linksFrom[link.from].push_back(i);
      linksTo[link.to].push_back(i);
    }
  }

  InstructionLists build();

private:
  void findConsumers();
  void collectMessages(int32_t rank);
  void placeReceives(int32_t link);
  std::vector<RankInstruction> assemble(int32_t rank) const;

  const Schedule &schedule;
  const Dependences &dependences;
  const Simulation &simulation;
  /// Whether the sends and receives of a rank share queues.
  bool keepsTotalOrder;
  LinkIndex links;
  std::vector<std::vector<Message>> messages;
  std::vector<std::vector<int32_t>> linksFrom, linksTo;
  /// Positions of F and of B or I (of the first of their pair), by stage and
  /// micro-batch.
  std::vector<int32_t> forwardPosition, gradientPosition;
};

} // namespace

void MessageOrder::findConsumers() {
  forwardPosition.resize(schedule.stages * schedule.microBatches);
  gradientPosition.resize(forwardPosition.size());
  for (llvm::ArrayRef<Task> tasks : schedule.order)
    for (auto [position, task] : llvm::enumerate(tasks)) {
      int64_t pair = task.stage * schedule.microBatches + task.microBatch;
      // An overlapped pair starts with the needs of both.
      int32_t start = static_cast<int32_t>(beginOfPair(tasks, position));
      if (task.kind == TaskKind::Forward)
        forwardPosition[pair] = start;
      else if (task.producesGradient())
        gradientPosition[pair] = start;
    }
}

/// Appends what `rank` sends to its links, in order of production.
void MessageOrder::collectMessages(int32_t rank) {
  const EdgeIndex &index = dependences.edgeIndex();
  llvm::ArrayRef<Task> tasks = schedule.order[rank];
  for (auto [position, task] : llvm::enumerate(tasks)) {
    bool isForward = task.kind == TaskKind::Forward;
    if (!isForward && !task.producesGradient())
      continue;
    TransferKind kind =
        isForward ? TransferKind::Forward : TransferKind::Gradient;
    for (int32_t edge :
         isForward ? index.outOf(task.stage) : index.into(task.stage)) {
      int32_t link = links.linkOf(kind, edge);
      if (link < 0)
        continue;
      const StageEdge &ends = dependences.edges()[edge];
      int32_t consumer = isForward ? ends.to : ends.from;
      Message message;
      message.transfer = {kind, edge, task.microBatch};
      message.bytes = ends.bytes;
      message.produced = simulation.times[rank][position].end;
      // What a pair makes is there when both are done.
      message.producer = static_cast<int32_t>(endOfPair(tasks, position)) - 1;
      message.wait =
          (isForward ? forwardPosition
                     : gradientPosition)[consumer * schedule.microBatches +
                                         task.microBatch];
      message.post = message.wait;
      messages[link].push_back(message);
    }
  }
}

void MessageOrder::placeReceives(int32_t link) {
  std::vector<Message> &queue = messages[link];
  const std::vector<TaskTime> &times = simulation.times[links.links()[link].to];
  // Production times ascend along the link, so one sweep finds the tasks that
  // the receiver runs at those times.
  int32_t running = 0;
  for (Message &message : queue) {
    while (running < message.wait && times[running].end <= message.produced)
      ++running;
    message.post = std::min(message.post, running);
  }
  // What is behind in the queue cannot be posted or waited for before what is
  // in front.
  for (size_t i = queue.size(); i-- > 1;) {
    queue[i - 1].wait = std::min(queue[i - 1].wait, queue[i].wait);
    queue[i - 1].post =
        std::min({queue[i - 1].post, queue[i - 1].wait, queue[i].post});
  }
}

/// The rank's tasks with everything between them. Before each task: sends of
/// the task before it, receives, then waits; nothing that can be posted is
/// held up by a wait.
std::vector<RankInstruction> MessageOrder::assemble(int32_t rank) const {
  llvm::ArrayRef<Task> tasks = schedule.order[rank];
  int32_t numTasks = static_cast<int32_t>(tasks.size());
  std::vector<Placed> sends, posts, waits;
  for (int32_t link : linksFrom[rank])
    for (auto [i, message] : llvm::enumerate(messages[link]))
      sends.push_back({message.producer + 1, message.produced, link,
                       static_cast<int32_t>(i)});
  for (int32_t link : linksTo[rank])
    for (auto [i, message] : llvm::enumerate(messages[link])) {
      int32_t at = static_cast<int32_t>(i);
      posts.push_back({message.post, message.produced, link, at});
      waits.push_back({message.wait, message.produced, link, at});
    }
  llvm::sort(sends);
  llvm::sort(posts);
  llvm::sort(waits);

  std::vector<RankInstruction> list;
  list.reserve(numTasks + 2 * (sends.size() + posts.size()));
  auto emit = [&](InstructionKind kind, const Placed &placed) {
    const Message &message = messages[placed.link][placed.message];
    const LinkIndex::Link &link = links.links()[placed.link];
    list.push_back(RankInstruction::message(
        kind, message.transfer, link.from == rank ? link.to : link.from,
        message.bytes));
  };
  size_t sent = 0, sendWaited = 0, posted = 0, waited = 0;
  for (int32_t position = 0; position <= numTasks; ++position) {
    auto isDue = [&](const std::vector<Placed> &placed, size_t next) {
      return next < placed.size() && placed[next].position == position;
    };
    while (isDue(sends, sent) || isDue(posts, posted)) {
      bool isSend =
          isDue(sends, sent) && !(keepsTotalOrder && isDue(posts, posted) &&
                                  posts[posted].isBefore(sends[sent]));
      if (isSend)
        emit(InstructionKind::PostSend, sends[sent++]);
      else
        emit(InstructionKind::PostReceive, posts[posted++]);
    }
    bool isEnd = position == numTasks;
    bool isInPair = !isEnd && isSecondOfPair(tasks, position);
    for (; !isInPair && sendWaited < sent &&
           (isEnd || sends[sendWaited].position < position);
         ++sendWaited)
      emit(InstructionKind::WaitSend, sends[sendWaited]);
    for (; waited < waits.size() && waits[waited].position == position;
         ++waited)
      emit(InstructionKind::WaitReceive, waits[waited]);
    if (!isEnd)
      list.push_back(RankInstruction::compute(tasks[position]));
  }
  return list;
}

InstructionLists MessageOrder::build() {
  findConsumers();
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    collectMessages(rank);
  for (int32_t link = 0; link < static_cast<int32_t>(messages.size()); ++link)
    placeReceives(link);
  InstructionLists lists(schedule.ranks);
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    lists[rank] = assemble(rank);
  return lists;
}

/// The same costs with no task and no message that takes no time at all.
static TaskCosts withPositiveTimes(TaskCosts costs) {
  double longest = 0;
  auto times = [](StageCosts &stage) {
    return std::array{&stage.forward,       &stage.backward,
                      &stage.inputGradient, &stage.weightGradient,
                      &stage.recompute,     &stage.update};
  };
  for (StageCosts &stage : costs.stages)
    for (double *time : times(stage))
      if (std::isfinite(*time))
        longest = std::max(longest, *time);
  // Small beside real tasks, large beside the rounding of a step's length.
  double floor = longest > 0 ? 1e-6 * longest : 1;
  auto raise = [&](double &time) {
    if (time >= 0 && time < floor)
      time = floor;
  };
  for (StageCosts &stage : costs.stages)
    for (double *time : times(stage))
      raise(*time);
  raise(costs.linkLatency);
  for (auto &[ends, link] : costs.links)
    raise(link.latency);
  if (costs.pairFactor >= 0)
    costs.pairFactor = std::max(costs.pairFactor, 0.01);
  return costs;
}

llvm::Expected<InstructionLists> pipewright::schedules::orderMessages(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, ChannelLayout layout) {
  // This refuses wrong costs and schedules too.
  llvm::Expected<Simulation> simulation =
      simulate(schedule, withPositiveTimes(costs), edges);
  if (!simulation)
    return simulation.takeError();
  llvm::Expected<Dependences> dependences = Dependences::build(schedule, edges);
  if (!dependences)
    return dependences.takeError();
  return MessageOrder(schedule, *dependences, *simulation, layout).build();
}
