//===- MutationTests.cpp - The checker against plain execution --*- C++ -*-===//
//
// Good plans of all policies are broken at random, and the checker's word is
// compared with what happens when they are executed naively: from the
// definitions, in a random order, with nothing shared but the plain data.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"

#include <deque>
#include <map>
#include <random>
#include <set>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

using Random = std::mt19937;

int below(Random &random, size_t limit) {
  return static_cast<int>(random() % limit);
}

/// What is finished, and what may therefore start.
class PlainTasks {
public:
  PlainTasks(const Schedule &schedule, const std::vector<StageEdge> &edges)
      : schedule(schedule), edges(edges) {}

  bool isDone(TaskKind kind, int stage, int m) const {
    return done.count({kind, stage, m}) > 0;
  }
  bool hasGradient(int stage, int m) const {
    return isDone(TaskKind::Backward, stage, m) ||
           isDone(TaskKind::InputGradient, stage, m);
  }
  void finish(const Task &task) {
    done.insert({task.kind, task.stage, task.microBatch});
  }

  /// Whether a micro-batch goes through a stage.
  bool passes(int stage, int m) const {
    if (schedule.copies == 1)
      return true;
    bool isSecondCopy = stage >= schedule.stages / 2;
    return (m >= schedule.microBatches / 2) == isSecondCopy;
  }

  bool mayStart(const Task &task) const {
    int stage = task.stage, m = task.microBatch;
    switch (task.kind) {
    case TaskKind::Forward:
      for (const StageEdge &edge : edges)
        if (edge.to == stage && !isDone(TaskKind::Forward, edge.from, m))
          return false;
      if (schedule.weightRule == WeightRule::DelayedByOne) {
        int update = m / (schedule.microBatches / schedule.updates);
        return update < 2 || isDone(TaskKind::Update, stage, update - 2);
      }
      return true;
    case TaskKind::Recompute:
      return isDone(TaskKind::Forward, stage, m);
    case TaskKind::Backward:
    case TaskKind::InputGradient:
      if (!isDone(TaskKind::Forward, stage, m) ||
          (recomputed.count({stage, m}) &&
           !isDone(TaskKind::Recompute, stage, m)))
        return false;
      for (const StageEdge &edge : edges)
        if (edge.from == stage && edge.hasGradient && !hasGradient(edge.to, m))
          return false;
      return true;
    case TaskKind::WeightGradient:
      return isDone(TaskKind::InputGradient, stage, m);
    case TaskKind::Update: {
      int each = schedule.microBatches / schedule.updates;
      for (int i = m * each; i < (m + 1) * each; ++i)
        if (passes(stage, i) && !isDone(TaskKind::Backward, stage, i) &&
            !isDone(TaskKind::WeightGradient, stage, i))
          return false;
      return m == 0 || isDone(TaskKind::Update, stage, m - 1);
    }
    }
    return false;
  }

  /// Whether the lists of tasks are complete, each task once and at home.
  bool areComplete() {
    std::map<std::tuple<TaskKind, int, int>, int> count;
    for (int rank = 0; rank < schedule.ranks; ++rank)
      for (size_t i = 0; i < schedule.order[rank].size(); ++i) {
        const Task &task = schedule.order[rank][i];
        bool isLast = i + 1 == schedule.order[rank].size();
        if (task.stage < 0 || task.stage >= schedule.stages ||
            task.microBatch < 0 || task.microBatch >= schedule.microBatches ||
            schedule.rankOfStage[task.stage] != rank ||
            (task.overlapsNext &&
             (isLast || schedule.order[rank][i + 1].overlapsNext)))
          return false;
        ++count[{task.kind, task.stage, task.microBatch}];
        if (task.kind == TaskKind::Recompute)
          recomputed.insert({task.stage, task.microBatch});
      }
    auto number = [&](TaskKind kind, int stage, int m) {
      auto found = count.find({kind, stage, m});
      return found == count.end() ? 0 : found->second;
    };
    for (int stage = 0; stage < schedule.stages; ++stage)
      for (int m = 0; m < schedule.microBatches; ++m) {
        int f = number(TaskKind::Forward, stage, m);
        int b = number(TaskKind::Backward, stage, m);
        int i = number(TaskKind::InputGradient, stage, m);
        int w = number(TaskKind::WeightGradient, stage, m);
        int r = number(TaskKind::Recompute, stage, m);
        int u = number(TaskKind::Update, stage, m);
        bool works = passes(stage, m), trains = !schedule.forwardOnly;
        bool isWhole = b == 1 && i == 0 && w == 0;
        bool isSplit = b == 0 && i == 1 && w == 1;
        bool isRight = works && trains
                           ? f == 1 && (isWhole || isSplit) && r <= 1
                           : f == works && b + i + w + r == 0;
        if (!isRight || u != (trains && m < schedule.updates))
          return false;
      }
    return true;
  }

private:
  const Schedule &schedule;
  const std::vector<StageEdge> &edges;
  std::set<std::tuple<TaskKind, int, int>> done;
  std::set<std::pair<int, int>> recomputed;
};

/// Whether a schedule's tasks are all there and can run.
bool scheduleRuns(const Schedule &schedule, const std::vector<StageEdge> &edges,
                  Random &random) {
  PlainTasks tasks(schedule, edges);
  if (!tasks.areComplete())
    return false;
  std::vector<size_t> at(schedule.ranks);
  // Any rank that can go on may be the next; stuck when a whole sweep is idle.
  for (int idle = 0; idle < schedule.ranks;) {
    int first = below(random, schedule.ranks);
    bool moved = false;
    for (int i = 0; i < schedule.ranks && !moved; ++i) {
      int rank = (first + i) % schedule.ranks;
      const std::vector<Task> &order = schedule.order[rank];
      if (at[rank] == order.size())
        continue;
      const Task &task = order[at[rank]];
      bool isPair = task.overlapsNext;
      if (!tasks.mayStart(task) ||
          (isPair && !tasks.mayStart(order[at[rank] + 1])))
        continue;
      for (int n = 0; n <= isPair; ++n)
        tasks.finish(order[at[rank]++]);
      moved = true;
    }
    idle = moved ? 0 : static_cast<int>(schedule.ranks);
  }
  for (int rank = 0; rank < schedule.ranks; ++rank)
    if (at[rank] < schedule.order[rank].size())
      return false;
  return true;
}

/// Runs instruction lists of a good schedule and says whether they reach their
/// end with every task fed.
class PlainMessages {
public:
  PlainMessages(const Schedule &schedule, const InstructionLists &lists,
                const std::vector<StageEdge> &edges, const Channels &channels)
      : schedule(schedule), lists(lists), edges(edges), channels(channels),
        tasks(schedule, edges), at(lists.size()), numTasks(lists.size()),
        posts(lists.size()) {}

  bool succeed(Random &random) {
    int ranks = static_cast<int>(lists.size());
    for (const std::vector<RankInstruction> &list : lists)
      for (size_t i = 0; i < list.size(); ++i)
        wrong |= !standsTogether(list, i);
    for (bool moved = true; moved && !wrong;) {
      moved = false;
      // Ranks and queues take turns at random.
      int first = below(random, ranks);
      for (int i = 0; i < ranks; ++i) {
        int rank = (first + i) % ranks;
        for (int steps = 1 + below(random, 8); steps > 0 && !wrong; --steps)
          moved |= step(rank);
        if (below(random, 2))
          moved |= moveSomeMessage(rank);
      }
      if (!moved)
        for (int rank = 0; rank < ranks; ++rank)
          moved |= moveSomeMessage(rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      wrong |= at[rank] < lists[rank].size();
      wrong |= numTasks[rank] < schedule.order[rank].size();
      for (const Post &post : posts[rank])
        wrong |= !post.waited;
    }
    for (const auto &[queue, waiting] : queues)
      wrong |= !waiting.empty();
    for (const auto &[channel, waiting] : buffers)
      wrong |= !waiting.empty();
    for (size_t edge = 0; edge < edges.size(); ++edge)
      for (int m = 0; m < schedule.microBatches; ++m)
        for (auto kind : {TransferKind::Forward, TransferKind::Gradient})
          wrong |= crosses(edges[edge], kind) &&
                   tasks.passes(edges[edge].from, m) &&
                   !sent.count({kind, static_cast<int>(edge), m});
    return !wrong;
  }

private:
  using Key = std::tuple<TransferKind, int, int>;
  struct Post {
    RankInstruction instruction;
    bool moved = false, left = false, waited = false;
  };
  /// From, to and, where directions have their own communicators, which.
  using Channel = std::tuple<int, int, int>;

  static Key keyOf(const Transfer &transfer) {
    return {transfer.kind, transfer.edge, transfer.microBatch};
  }
  static bool goesOut(InstructionKind kind) {
    return kind == InstructionKind::PostSend ||
           kind == InstructionKind::WaitSend;
  }

  /// The tasks of a pair, and the posts of a group.
  static bool standsTogether(const std::vector<RankInstruction> &list,
                             size_t i) {
    auto isPostAt = [&](size_t at) {
      return at < list.size() &&
             (list[at].kind == InstructionKind::PostSend ||
              list[at].kind == InstructionKind::PostReceive);
    };
    if (list[i].kind == InstructionKind::Task)
      return !list[i].task.overlapsNext ||
             (i + 1 < list.size() && list[i + 1].kind == InstructionKind::Task);
    return !list[i].groupedWithNext || (isPostAt(i) && isPostAt(i + 1));
  }

  bool crosses(const StageEdge &edge, TransferKind kind) const {
    return schedule.rankOfStage[edge.from] != schedule.rankOfStage[edge.to] &&
           (kind == TransferKind::Forward ||
            (edge.hasGradient && !schedule.forwardOnly));
  }

  int communicatorOf(const Transfer &transfer) const {
    return channels.layout == ChannelLayout::Direction
               ? transfer.kind == TransferKind::Forward
               : 0;
  }
  Channel channelOf(int rank, const RankInstruction &instruction) const {
    int peer = instruction.peer;
    bool out = goesOut(instruction.kind);
    return {out ? rank : peer, out ? peer : rank,
            communicatorOf(instruction.transfer)};
  }
  /// Names the queue of a rank.
  std::vector<int> queueOf(int rank, const RankInstruction &instruction) const {
    int communicator = communicatorOf(instruction.transfer);
    if (channels.layout == ChannelLayout::Link)
      return {rank, instruction.peer, goesOut(instruction.kind)};
    if (channels.layout == ChannelLayout::Pair)
      return {rank, instruction.peer};
    return {rank, communicator};
  }

  /// False when the rank has to wait.
  bool step(int rank) {
    if (at[rank] == lists[rank].size())
      return false;
    const RankInstruction &instruction = lists[rank][at[rank]];
    if (instruction.kind == InstructionKind::Task) {
      compute(rank, instruction.task);
    } else if (!isRightMessage(rank, instruction)) {
      wrong = true;
    } else if (instruction.kind == InstructionKind::PostSend ||
               instruction.kind == InstructionKind::PostReceive) {
      post(rank, instruction);
      // All of a group before anything else happens.
      if (instruction.groupedWithNext && !wrong) {
        ++at[rank];
        return step(rank);
      }
    } else if (!wait(rank, instruction)) {
      return false;
    }
    if (!wrong)
      ++at[rank];
    return !wrong;
  }

  bool isRightMessage(int rank, const RankInstruction &instruction) const {
    const Transfer &transfer = instruction.transfer;
    if (transfer.edge < 0 || transfer.edge >= static_cast<int>(edges.size()) ||
        transfer.microBatch < 0 || transfer.microBatch >= schedule.microBatches)
      return false;
    const StageEdge &edge = edges[transfer.edge];
    int from = schedule.rankOfStage[edge.from];
    int to = schedule.rankOfStage[edge.to];
    if (transfer.kind == TransferKind::Gradient)
      std::swap(from, to);
    bool out = goesOut(instruction.kind);
    return crosses(edge, transfer.kind) && rank == (out ? from : to) &&
           instruction.peer == (out ? to : from) &&
           instruction.bytes == edge.bytes;
  }

  void post(int rank, const RankInstruction &instruction) {
    const Transfer &transfer = instruction.transfer;
    if (instruction.kind == InstructionKind::PostSend) {
      const StageEdge &edge = edges[transfer.edge];
      wrong |= !sent.insert(keyOf(transfer)).second;
      wrong |=
          transfer.kind == TransferKind::Forward
              ? !tasks.isDone(TaskKind::Forward, edge.from, transfer.microBatch)
              : !tasks.hasGradient(edge.to, transfer.microBatch);
    }
    // A group is one entry of each queue that it is in.
    auto &queue = queues[queueOf(rank, instruction)];
    if (!groupsOpen.insert(queueOf(rank, instruction)).second)
      queue.back().push_back(posts[rank].size());
    else
      queue.push_back({posts[rank].size()});
    posts[rank].push_back({instruction});
    if (!instruction.groupedWithNext)
      groupsOpen.clear();
  }

  bool wait(int rank, const RankInstruction &instruction) {
    bool out = goesOut(instruction.kind);
    for (Post &post : posts[rank]) {
      if (post.waited || goesOut(post.instruction.kind) != out ||
          channelOf(rank, post.instruction) != channelOf(rank, instruction))
        continue;
      wrong |= !(post.instruction.transfer == instruction.transfer);
      if (wrong || !post.left)
        return false;
      post.waited = true;
      if (!out)
        received.insert(keyOf(instruction.transfer));
      return true;
    }
    wrong = true;
    return false;
  }

  /// Moves one message at the head of a queue of this rank, if one can move.
  bool moveSomeMessage(int rank) {
    for (auto &[name, queue] : queues)
      if (name[0] == rank && !queue.empty())
        for (size_t number : queue.front())
          if (isNext(rank, queue.front(), number) &&
              moveOne(rank, queue, posts[rank][number]))
            return true;
    return false;
  }

  /// Whether a post of a group is the oldest of its channel that is left.
  bool isNext(int rank, const std::vector<size_t> &group, size_t number) const {
    const RankInstruction &own = posts[rank][number].instruction;
    for (size_t other : group) {
      const Post &post = posts[rank][other];
      if (!post.moved && goesOut(post.instruction.kind) == goesOut(own.kind) &&
          channelOf(rank, post.instruction) == channelOf(rank, own))
        return other == number;
    }
    return false;
  }

  void finish(int rank, std::deque<std::vector<size_t>> &queue, Post &post) {
    post.moved = true;
    for (size_t number : queue.front())
      if (!posts[rank][number].moved)
        return;
    for (size_t number : queue.front())
      posts[rank][number].left = true;
    queue.pop_front();
  }

  bool moveOne(int rank, std::deque<std::vector<size_t>> &queue, Post &own) {
    bool out = goesOut(own.instruction.kind);
    std::deque<RankInstruction> &buffer =
        buffers[channelOf(rank, own.instruction)];
    int64_t size = own.instruction.bytes, held = 0;
    for (const RankInstruction &each : buffer)
      held += each.bytes;
    bool isBuffered =
        channels.buffering.messages > 0 && size <= channels.buffering.bytes;
    if (out && isBuffered) {
      if (static_cast<int64_t>(buffer.size()) >= channels.buffering.messages ||
          held > channels.buffering.bytes - size)
        return false;
      buffer.push_back(own.instruction);
    } else if (!out && !buffer.empty()) {
      match(buffer.front(), own.instruction);
      buffer.pop_front();
    } else if (!buffer.empty() || (!out && isBuffered)) {
      return false;
    } else {
      int peer = own.instruction.peer;
      RankInstruction wanted = own.instruction;
      wanted.peer = rank;
      wanted.kind =
          out ? InstructionKind::PostReceive : InstructionKind::PostSend;
      std::deque<std::vector<size_t>> &across = queues[queueOf(peer, wanted)];
      if (across.empty())
        return false;
      auto found = llvm::find_if(across.front(), [&](size_t number) {
        const Post &other = posts[peer][number];
        return other.instruction.peer == rank && !other.moved &&
               goesOut(other.instruction.kind) != out &&
               communicatorOf(other.instruction.transfer) ==
                   communicatorOf(own.instruction.transfer);
      });
      if (found == across.front().end())
        return false;
      Post &other = posts[peer][*found];
      match(own.instruction, other.instruction);
      finish(peer, across, other);
    }
    finish(rank, queue, own);
    return true;
  }

  void match(const RankInstruction &a, const RankInstruction &b) {
    wrong |= !(a.transfer == b.transfer) || a.bytes != b.bytes;
  }

  bool isFed(const Task &task) const {
    for (size_t i = 0; i < edges.size(); ++i) {
      int edge = static_cast<int>(i);
      bool isInput = task.kind == TaskKind::Forward &&
                     edges[i].to == task.stage &&
                     crosses(edges[i], TransferKind::Forward);
      bool isGradient = task.producesGradient() &&
                        edges[i].from == task.stage &&
                        crosses(edges[i], TransferKind::Gradient);
      if ((isInput &&
           !received.count({TransferKind::Forward, edge, task.microBatch})) ||
          (isGradient &&
           !received.count({TransferKind::Gradient, edge, task.microBatch})))
        return false;
    }
    return true;
  }

  void compute(int rank, const Task &task) {
    const std::vector<Task> &order = schedule.order[rank];
    size_t &next = numTasks[rank];
    if (next == order.size() || !(order[next] == task) || !isFed(task) ||
        order[next].overlapsNext != task.overlapsNext) {
      wrong = true;
      return;
    }
    ++next;
    if (order[next - 1].overlapsNext) {
      // Results are there when the pair ends.
      wrong |= !isFed(order[next]);
      return;
    }
    tasks.finish(task);
    if (next > 1 && order[next - 2].overlapsNext)
      tasks.finish(order[next - 2]);
  }

  const Schedule &schedule;
  const InstructionLists &lists;
  const std::vector<StageEdge> &edges;
  Channels channels;
  PlainTasks tasks;
  std::vector<size_t> at, numTasks;
  std::vector<std::vector<Post>> posts;
  /// Numbers of posts, by rank and queue.
  std::map<std::vector<int>, std::deque<std::vector<size_t>>> queues;
  /// Those that the group being posted has an entry of.
  std::set<std::vector<int>> groupsOpen;
  std::map<Channel, std::deque<RankInstruction>> buffers;
  std::set<Key> sent, received;
  bool wrong = false;
};

void mutate(Schedule &schedule, Random &random) {
  std::vector<Task> &tasks = schedule.order[below(random, schedule.ranks)];
  if (tasks.empty())
    return;
  int i = below(random, tasks.size()), j = below(random, tasks.size());
  int next = std::min<int>(i + 1, tasks.size() - 1);
  switch (below(random, 14)) {
  case 0:
    tasks.erase(tasks.begin() + i);
    break;
  case 1:
    tasks.insert(tasks.begin() + j, tasks[i]);
    break;
  case 2:
    tasks[i].microBatch ^= 1;
    break;
  case 3:
    tasks[i].kind = static_cast<TaskKind>(below(random, numTaskKinds));
    break;
  case 4:
    tasks[i].overlapsNext ^= true;
    break;
  case 5: {
    std::vector<Task> &others = schedule.order[below(random, schedule.ranks)];
    others.insert(others.begin() + below(random, others.size() + 1), tasks[i]);
    tasks.erase(tasks.begin() + i);
    break;
  }
  case 6: // A backward in two halves; right, if it was whole.
    if (tasks[i].kind == TaskKind::Backward) {
      tasks[i].kind = TaskKind::InputGradient;
      tasks.insert(tasks.begin() + std::max(i + 1, j),
                   Task::weightGradient(tasks[i].stage, tasks[i].microBatch));
    }
    break;
  case 7: // Something to compute again; right, if it is before its backward.
    if (tasks[i].producesGradient())
      tasks.insert(tasks.begin() + (below(random, 4) ? std::min(i, j) : j),
                   Task::recompute(tasks[i].stage, tasks[i].microBatch));
    break;
  case 8:
    std::swap(tasks[i], tasks[j]);
    break;
  case 9: // Elsewhere in the order.
    std::rotate(tasks.begin() + std::min(i, j),
                tasks.begin() + std::min(i, j) + 1,
                tasks.begin() + std::max(i, j) + 1);
    break;
  default: // Neighbours: what most often stays right.
    std::swap(tasks[i], tasks[next]);
    break;
  }
}

/// Moves the waits for one kind of posts right behind these.
void blockAtPosts(std::vector<RankInstruction> &list, InstructionKind posts) {
  InstructionKind waits = posts == InstructionKind::PostSend
                              ? InstructionKind::WaitSend
                              : InstructionKind::WaitReceive;
  std::vector<RankInstruction> changed;
  for (const RankInstruction &instruction : list) {
    if (instruction.kind != waits)
      changed.push_back(instruction);
    if (instruction.kind == posts) {
      changed.push_back(instruction);
      changed.back().kind = waits;
    }
  }
  list = changed;
}

/// Moves the posts of receives right before their waits: good for buffers that
/// are large enough.
void deferReceives(std::vector<RankInstruction> &list) {
  std::vector<RankInstruction> changed;
  for (const RankInstruction &instruction : list) {
    if (instruction.kind == InstructionKind::PostReceive)
      continue;
    changed.push_back(instruction);
    if (instruction.kind == InstructionKind::WaitReceive) {
      changed.back().kind = InstructionKind::PostReceive;
      changed.push_back(instruction);
    }
  }
  list = changed;
}

bool isPost(const RankInstruction &instruction) {
  return instruction.kind == InstructionKind::PostSend ||
         instruction.kind == InstructionKind::PostReceive;
}

/// Breaks lists in any way, or only in ways that keep what is sent to whom.
void mutate(InstructionLists &lists, bool keepsMessages, Random &random) {
  int ranks = static_cast<int>(lists.size());
  std::vector<RankInstruction> &list = lists[below(random, ranks)];
  if (list.empty())
    return;
  int i = below(random, list.size()), j = below(random, list.size());
  switch (keepsMessages ? 8 + below(random, 6) : below(random, 17)) {
  case 0:
    list.erase(list.begin() + i);
    break;
  case 1:
    list.insert(list.begin() + j, list[i]);
    break;
  case 2:
    list[i].bytes += 1;
    break;
  case 3:
    list[i].transfer.microBatch ^= 1;
    break;
  case 4:
    std::swap(list[i], list[j]);
    break;
  case 5:
    list[i].peer = below(random, ranks);
    break;
  case 6:
    if (list[i].kind != InstructionKind::Task)
      list[i].kind = static_cast<InstructionKind>(1 + below(random, 4));
    break;
  case 7: { // Messages that cross: two posts and their waits change places.
    Transfer a = list[i].transfer, b = list[j].transfer;
    for (RankInstruction &each : list)
      if (each.kind != InstructionKind::Task) {
        if (each.transfer == a)
          each.transfer = b;
        else if (each.transfer == b)
          each.transfer = a;
      }
    break;
  }
  case 8: // Blocking sends or receives: fine with buffers, if anywhere.
    blockAtPosts(list, below(random, 2) ? InstructionKind::PostSend
                                        : InstructionKind::PostReceive);
    break;
  case 9:
    deferReceives(list);
    break;
  case 10:
  case 11: { // Earlier or later by some places.
    int low = std::max(0, i - below(random, 6));
    int high = std::min<int>(list.size() - 1, i + below(random, 6));
    if (below(random, 2))
      std::rotate(list.begin() + low, list.begin() + i, list.begin() + i + 1);
    else
      std::rotate(list.begin() + i, list.begin() + i + 1,
                  list.begin() + high + 1);
    break;
  }
  case 12: // Posts in a row start together, most of them.
    for (size_t at = 0; at + 1 < list.size(); ++at)
      if (isPost(list[at]) && isPost(list[at + 1]) && below(random, 3))
        list[at].groupedWithNext = true;
    break;
  default: { // Neighbours: what most often stays right.
    int next = std::min<int>(i + 1, list.size() - 1);
    std::swap(list[i], list[next]);
    break;
  }
  }
}

/// Good schedules of every policy, in all sizes that it takes of these.
const std::vector<Schedule> &goodSchedules() {
  static const std::vector<Schedule> all = [] {
    std::vector<Schedule> all;
    for (const Policy *policy : allPolicies())
      for (int64_t ranks : {2, 3, 4})
        for (int64_t loops : {1, 2})
          for (int64_t m : {1, 2, 3, 4, 6, 8}) {
            // Small enough to be executed thousands of times.
            if (ranks * loops * m > 32)
              continue;
            llvm::Expected<Schedule> schedule =
                policy->build({ranks, ranks * loops, m});
            if (schedule)
              all.push_back(std::move(*schedule));
            else
              llvm::consumeError(schedule.takeError());
          }
    return all;
  }();
  return all;
}

/// A chain, and often a skip connection.
std::vector<StageEdge> edgesOf(const Schedule &schedule, Random &random) {
  std::vector<StageEdge> edges =
      linearEdges(schedule.stages, 8, schedule.copies);
  int each = static_cast<int>(schedule.stages / schedule.copies);
  if (below(random, 2) && each > 1)
    for (int copy = 0; copy < schedule.copies; ++copy)
      edges.push_back(
          {copy * each, copy * each + each - 1, 4, below(random, 2) == 0});
  return edges;
}

} // namespace

TEST(Checker, AgreesWithPlainExecutionOnMutatedLists) {
  Random random(7);
  const std::vector<Schedule> &schedules = goodSchedules();
  const Buffering bufferings[] = {
      Buffering::none(),     Buffering{1},           Buffering{2},
      Buffering::ofBytes(4), Buffering::ofBytes(12), Buffering::infinite()};
  auto anyLayout = [&] {
    return channelLayouts[below(random, std::size(channelLayouts))].layout;
  };
  int accepted = 0, refused = 0, deadlocks = 0;
  for (int round = 0; round < 10000; ++round) {
    const Schedule &schedule = schedules[below(random, schedules.size())];
    std::vector<StageEdge> edges = edgesOf(schedule, random);
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    costs.linkLatency = 0.5 * below(random, 3);
    // The lists may be made for another layout than they are run on.
    Channels channels = {anyLayout(),
                         bufferings[below(random, std::size(bufferings))]};
    ChannelLayout madeFor = below(random, 4) ? channels.layout : anyLayout();
    InstructionLists lists =
        valueOf(orderMessages(schedule, costs, edges, madeFor));
    bool keepsMessages = below(random, 2);
    for (int n = below(random, keepsMessages ? 10 : 4); n > 0; --n)
      mutate(lists, keepsMessages, random);

    std::string message = messageOf(checkInstructions(lists, channels));
    deadlocks += llvm::StringRef(message).starts_with("deadlock");
    if (message.empty())
      message = messageOf(checkDataFlow(schedule, lists, edges));
    bool isRight =
        PlainMessages(schedule, lists, edges, channels).succeed(random);
    ASSERT_EQ(isRight, message.empty())
        << "round " << round << ", " << describe(channels) << ": " << message;
    ++(isRight ? accepted : refused);
  }
  // The comparison means something only if all three happen often.
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
  EXPECT_GT(deadlocks, 200);
}

TEST(Checker, AgreesWithPlainExecutionOnMutatedSchedules) {
  Random random(11);
  const std::vector<Schedule> &schedules = goodSchedules();
  int accepted = 0, refused = 0, deadlocks = 0;
  for (int round = 0; round < 10000; ++round) {
    Schedule schedule = schedules[below(random, schedules.size())];
    std::vector<StageEdge> edges = edgesOf(schedule, random);
    for (int n = below(random, 4); n > 0; --n)
      mutate(schedule, random);
    std::string message = messageOf(checkSchedule(schedule, edges));
    deadlocks += llvm::StringRef(message).starts_with("deadlock");
    bool isRight = scheduleRuns(schedule, edges, random);
    ASSERT_EQ(isRight, message.empty()) << "round " << round << ": " << message;
    ++(isRight ? accepted : refused);
    if (!isRight)
      continue;
    // What the checker accepts gets a safe order of messages.
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    InstructionLists lists =
        valueOf(orderMessages(schedule, costs, edges, ChannelLayout::Rank));
    EXPECT_TRUE(PlainMessages(schedule, lists, edges, {ChannelLayout::Rank, {}})
                    .succeed(random))
        << "round " << round;
  }
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
  EXPECT_GT(deadlocks, 200);
}
