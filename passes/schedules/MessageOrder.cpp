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

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

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
  /// The positions in the sender's order where it is posted, and by which it
  /// must be waited for.
  int32_t send;
  int32_t sendWait;
  /// The positions in the receiver's order where it is posted and waited for.
  int32_t post;
  int32_t wait;
  /// Where it may be posted: its bytes are taken before.
  int32_t leastPost = 0;
  bool isStash = false;
};

/// A post or wait, to be put before the task at `position`.
struct Placed {
  int32_t position;
  double produced;
  /// -1: a rank's part in a work on no link, whose number `message` is.
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

/// Of one kind, in order, some of which have been put into the list.
class Queue {
public:
  void add(const Placed &placed) { all.push_back(placed); }
  void sort() { llvm::sort(all); }
  bool isDue(int32_t position) const {
    return next < all.size() && all[next].position == position;
  }
  const Placed &front() const { return all[next]; }
  const Placed &take() { return all[next++]; }
  llvm::ArrayRef<Placed> taken() const {
    return llvm::ArrayRef(all).take_front(next);
  }
  llvm::ArrayRef<Placed> left() const {
    return llvm::ArrayRef(all).drop_front(next);
  }
  size_t size() const { return all.size(); }

private:
  std::vector<Placed> all;
  size_t next = 0;
};

class MessageOrder {
public:
  MessageOrder(const Schedule &schedule, const Dependences &dependences,
               const Simulation &simulation, llvm::ArrayRef<Work> works,
               llvm::ArrayRef<int32_t> groupOfWork, ChannelLayout layout)
      : schedule(schedule), dependences(dependences), simulation(simulation),
        works(works), groupOfWork(groupOfWork),
        keepsTotalOrder(layout != ChannelLayout::Link),
        links(schedule, dependences.edges(), works),
        messages(links.links().size()), linksFrom(schedule.ranks),
        linksTo(schedule.ranks), parts(schedule.ranks) {
    for (auto [i, link] : llvm::enumerate(links.links())) {
      linksFrom[link.from].push_back(i);
      linksTo[link.to].push_back(i);
    }
    for (auto [number, work] : llvm::enumerate(works))
      if (work.on != Resource::Link)
        for (const Work::Member &member : work.members)
          parts[member.rank].push_back({static_cast<int32_t>(number), member});
  }

  InstructionLists build();

private:
  friend class RankList;

  void findConsumers();
  void collectMessages(int32_t rank);
  void collectWorks();
  void placeReceives(int32_t link);

  const Schedule &schedule;
  const Dependences &dependences;
  const Simulation &simulation;
  llvm::ArrayRef<Work> works;
  llvm::ArrayRef<int32_t> groupOfWork;
  /// Whether the sends and receives of a rank share queues.
  bool keepsTotalOrder;
  LinkIndex links;
  std::vector<std::vector<Message>> messages;
  std::vector<std::vector<int32_t>> linksFrom, linksTo;
  /// By rank: its parts in works on no links, by their numbers.
  std::vector<std::vector<std::pair<int32_t, Work::Member>>> parts;
  /// Positions of F and of B or I (of the first of their pair), by stage and
  /// micro-batch.
  std::vector<int32_t> forwardPosition, gradientPosition;
};

/// A rank's tasks with everything between them.
class RankList {
public:
  RankList(const MessageOrder &order, int32_t rank);

  std::vector<RankInstruction> build();

private:
  const Message &messageOf(const Placed &placed) const {
    return order.messages[placed.link][placed.message];
  }
  llvm::ArrayRef<int32_t> needsOf(const Placed &post) const;
  const Placed *nextWithNeeds(int32_t position) const;
  void post(int32_t position);
  void postBefore(int32_t position, const Placed *limit);
  void waitForNeeds(int32_t position, const Placed &post);
  void waitForSendsBefore(const Placed &receive);
  void waitForSends(int32_t position);
  void waitForSendsThat(llvm::function_ref<bool(const Placed &)> mustBeOver);
  void emit(InstructionKind kind, const Placed &placed);
  void emitPart(const Placed &part);
  void waitForPart(const Placed &part);
  void waitForFreed(int32_t position);
  bool isCopy(const Placed &part) const {
    return order.works[part.message].isCopy();
  }

  const MessageOrder &order;
  int32_t rank;
  llvm::ArrayRef<Task> tasks;
  /// Posts and waits of messages, and of the rank's parts in other works; waits
  /// that end the life of what was copied to the host.
  Queue sends, receives, receiveWaits, parts, partWaits, freed;
  /// Of the sends that are posted: how many were looked at, and those of them
  /// that are not over.
  size_t sendsSeen = 0;
  std::vector<Placed> underWay;
  /// Works on no links that the rank has posted, and works for whose results it
  /// has waited.
  llvm::DenseSet<int32_t> begun, over;
  std::vector<RankInstruction> list;
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
      message.send = static_cast<int32_t>(endOfPair(tasks, position));
      message.sendWait = static_cast<int32_t>(tasks.size());
      message.wait =
          (isForward ? forwardPosition
                     : gradientPosition)[consumer * schedule.microBatches +
                                         task.microBatch];
      message.post = message.wait;
      messages[link].push_back(message);
    }
  }
}

/// Puts works on links between the messages of edges, by production.
void MessageOrder::collectWorks() {
  for (auto [index, work] : llvm::enumerate(works)) {
    auto number = static_cast<int32_t>(index);
    int32_t link = links.linkOfWork(number);
    if (link < 0)
      continue;
    const Work::Member &from = work.members[0], &to = work.members[1];
    Message message;
    message.transfer = Transfer::ofWork(number);
    message.bytes = work.bytes;
    message.produced = simulation.works[number].time.start;
    message.send = static_cast<int32_t>(from.posted);
    message.sendWait = static_cast<int32_t>(from.waited);
    message.post = message.wait = static_cast<int32_t>(to.waited);
    message.isStash = work.stash.has_value();
    message.leastPost = static_cast<int32_t>(to.posted);
    messages[link].push_back(message);
  }
  for (std::vector<Message> &queue : messages)
    llvm::stable_sort(queue, [](const Message &a, const Message &b) {
      return std::tie(a.produced, a.send) < std::tie(b.produced, b.send);
    });
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
    message.post = std::min(message.post, std::max(message.leastPost, running));
  }
  // Messages are sent in the order in which they are received.
  for (size_t i = 1; i < queue.size(); ++i)
    queue[i].send = std::max(queue[i].send, queue[i - 1].send);
  // What is behind in the queue cannot be posted or waited for before what is
  // in front.
  for (size_t i = queue.size(); i-- > 1;) {
    queue[i - 1].wait = std::min(queue[i - 1].wait, queue[i].wait);
    queue[i - 1].post =
        std::min({queue[i - 1].post, queue[i - 1].wait, queue[i].post});
  }
}

//===----------------------------------------------------------------------===//
// The list of a rank
//===----------------------------------------------------------------------===//

RankList::RankList(const MessageOrder &order, int32_t rank)
    : order(order), rank(rank), tasks(order.schedule.order[rank]) {
  for (int32_t link : order.linksFrom[rank])
    for (auto [i, message] : llvm::enumerate(order.messages[link]))
      sends.add(
          {message.send, message.produced, link, static_cast<int32_t>(i)});
  for (int32_t link : order.linksTo[rank])
    for (auto [i, message] : llvm::enumerate(order.messages[link])) {
      int32_t at = static_cast<int32_t>(i);
      receives.add({message.post, message.produced, link, at});
      receiveWaits.add({message.wait, message.produced, link, at});
    }
  for (const auto &[number, member] : order.parts[rank]) {
    double start = order.simulation.works[number].time.start;
    parts.add({static_cast<int32_t>(member.posted), start, -1, number});
    const bool frees = order.works[number].on == Resource::ToHost;
    (frees ? freed : partWaits)
        .add({static_cast<int32_t>(member.waited), start, -1, number});
  }
  for (Queue *queue :
       {&sends, &receives, &receiveWaits, &parts, &partWaits, &freed})
    queue->sort();
}

void RankList::emit(InstructionKind kind, const Placed &placed) {
  if (placed.link < 0) {
    const Work &work = order.works[placed.message];
    const Transfer transfer = Transfer::ofWork(placed.message);
    list.push_back(work.isCopy()
                       ? RankInstruction::copy(kind, transfer, work.bytes)
                       : RankInstruction::together(
                             kind, work.kind, transfer,
                             order.groupOfWork[placed.message], work.bytes));
  } else {
    const Message &message = messageOf(placed);
    const LinkIndex::Link &link = order.links.links()[placed.link];
    list.push_back(RankInstruction::message(
        kind, message.transfer, link.from == rank ? link.to : link.from,
        message.bytes));
  }
  const Transfer &transfer = list.back().transfer;
  if (transfer.kind == TransferKind::Work &&
      (kind == InstructionKind::WaitReceive ||
       kind == InstructionKind::WaitCollective ||
       kind == InstructionKind::WaitCopy))
    over.insert(transfer.edge);
}

/// For copies to the host that have begun.
void RankList::waitForFreed(int32_t position) {
  while (freed.isDue(position) && begun.contains(freed.front().message))
    waitForPart(freed.take());
}

void RankList::emitPart(const Placed &part) {
  begun.insert(part.message);
  emit(isCopy(part) ? InstructionKind::PostCopy
                    : InstructionKind::PostCollective,
       part);
}

void RankList::waitForPart(const Placed &part) {
  emit(isCopy(part) ? InstructionKind::WaitCopy
                    : InstructionKind::WaitCollective,
       part);
}

/// What must be over before a post.
llvm::ArrayRef<int32_t> RankList::needsOf(const Placed &post) const {
  if (post.link < 0)
    return order.works[post.message].needs;
  const Transfer &transfer = messageOf(post).transfer;
  return transfer.kind == TransferKind::Work
             ? llvm::ArrayRef(order.works[transfer.edge].needs)
             : llvm::ArrayRef<int32_t>();
}

/// Of the posts before the task at `position`, the first one that needs
/// something; null if none does.
const Placed *RankList::nextWithNeeds(int32_t position) const {
  const Placed *first = nullptr;
  for (const Queue *queue : {&sends, &parts})
    for (const Placed &placed : queue->left()) {
      if (placed.position != position)
        break;
      if (needsOf(placed).empty())
        continue;
      if (!first || placed.isBefore(*first))
        first = &placed;
      break;
    }
  return first;
}

/// Puts in all posts before the task at `position`. None is held up by a wait,
/// but for what it needs and what is made after that.
void RankList::post(int32_t position) {
  while (const Placed *late = nextWithNeeds(position)) {
    postBefore(position, late);
    waitForNeeds(position, *late);
    if (late->link < 0)
      emitPart(parts.take());
    else
      emit(InstructionKind::PostSend, sends.take());
  }
  postBefore(position, nullptr);
}

/// Those that come before `limit`: sends first, as other ranks wait for these.
void RankList::postBefore(int32_t position, const Placed *limit) {
  auto isDue = [&](const Queue &queue) {
    return queue.isDue(position) && (!limit || queue.front().isBefore(*limit));
  };
  while (isDue(sends) || isDue(parts) || isDue(receives)) {
    bool isSend = isDue(sends);
    // Where both share a queue, all ranks keep the order of production.
    if (isSend && order.keepsTotalOrder && isDue(receives))
      isSend = !receives.front().isBefore(sends.front());
    if (isSend)
      emit(InstructionKind::PostSend, sends.take());
    else if (isDue(parts))
      emitPart(parts.take());
    else {
      waitForSendsBefore(receives.front());
      emit(InstructionKind::PostReceive, receives.take());
    }
  }
}

/// For those whose bytes the receive of a stash takes.
void RankList::waitForSendsBefore(const Placed &receive) {
  llvm::ArrayRef<int32_t> needs = needsOf(receive);
  if (!needs.empty() && messageOf(receive).isStash)
    waitForSendsThat([&](const Placed &sent) {
      const Transfer &transfer = messageOf(sent).transfer;
      return transfer.kind == TransferKind::Work &&
             llvm::is_contained(needs, transfer.edge);
    });
}

void RankList::waitForNeeds(int32_t position, const Placed &post) {
  for (int32_t need : needsOf(post)) {
    if (order.works[need].on == Resource::ToHost)
      waitForFreed(position);
    if (!order.works[need].takerOn(rank))
      continue;
    bool isOnLink = order.works[need].on == Resource::Link;
    Queue &waits = isOnLink ? receiveWaits : partWaits;
    while (!over.contains(need) && waits.isDue(position))
      if (isOnLink)
        emit(InstructionKind::WaitReceive, waits.take());
      else
        waitForPart(waits.take());
  }
}

/// For sends that the rank's last task has run beside, but for stashes, and
/// those that must be over.
void RankList::waitForSends(int32_t position) {
  bool isEnd = position == static_cast<int32_t>(tasks.size());
  if (!isEnd && isSecondOfPair(tasks, position))
    return;
  waitForSendsThat([&](const Placed &sent) {
    const Message &message = messageOf(sent);
    return isEnd || message.sendWait <= position ||
           (sent.position < position && !message.isStash);
  });
}

/// And for those before them on their links.
void RankList::waitForSendsThat(
    llvm::function_ref<bool(const Placed &)> mustBeOver) {
  llvm::append_range(underWay, sends.taken().drop_front(sendsSeen));
  sendsSeen = sends.taken().size();
  llvm::SmallDenseSet<int32_t> links;
  std::vector<Placed> over, left;
  for (const Placed &sent : llvm::reverse(underWay)) {
    if (mustBeOver(sent))
      links.insert(sent.link);
    (links.contains(sent.link) ? over : left).push_back(sent);
  }
  underWay.assign(left.rbegin(), left.rend());
  for (const Placed &sent : llvm::reverse(over))
    emit(InstructionKind::WaitSend, sent);
}

std::vector<RankInstruction> RankList::build() {
  auto numTasks = static_cast<int32_t>(tasks.size());
  list.reserve(numTasks + 2 * (sends.size() + receives.size() + parts.size()));
  for (int32_t position = 0; position <= numTasks; ++position) {
    // What comes back may take their bytes.
    waitForFreed(position);
    post(position);
    waitForFreed(position);
    waitForSends(position);
    while (receiveWaits.isDue(position))
      emit(InstructionKind::WaitReceive, receiveWaits.take());
    while (partWaits.isDue(position))
      waitForPart(partWaits.take());
    if (position < numTasks)
      list.push_back(RankInstruction::compute(tasks[position]));
  }
  return std::move(list);
}

InstructionLists MessageOrder::build() {
  findConsumers();
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    collectMessages(rank);
  collectWorks();
  for (int32_t link = 0; link < static_cast<int32_t>(messages.size()); ++link)
    placeReceives(link);
  InstructionLists lists(schedule.ranks);
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    lists[rank] = RankList(*this, rank).build();
  return lists;
}

TaskCosts pipewright::schedules::withPositiveTimes(TaskCosts costs) {
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
  raise(costs.hosts.network.latency);
  for (auto &[ends, link] : costs.links)
    raise(link.latency);
  if (costs.pairFactor >= 0)
    costs.pairFactor = std::max(costs.pairFactor, 0.01);
  return costs;
}

llvm::Expected<InstructionLists> pipewright::schedules::orderMessages(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, ChannelLayout layout,
    llvm::ArrayRef<Work> works, llvm::ArrayRef<int32_t> groupOfWork) {
  // This refuses wrong costs and schedules too.
  llvm::Expected<Simulation> simulation =
      simulate(schedule, withPositiveTimes(costs), edges, works);
  if (!simulation)
    return simulation.takeError();
  llvm::Expected<Dependences> dependences = Dependences::build(schedule, edges);
  if (!dependences)
    return dependences.takeError();
  return MessageOrder(schedule, *dependences, *simulation, works, groupOfWork,
                      layout)
      .build();
}
