//===- PlainExecution.cpp - Plans run as they are defined -------*- C++ -*-===//

#include "test/unit/schedules/PlainExecution.h"

#include "llvm/ADT/STLExtras.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

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

/// Runs instruction lists of a good schedule and says whether they reach their
/// end with every task fed.
class PlainMessages {
public:
  PlainMessages(const Schedule &schedule, const InstructionLists &lists,
                const std::vector<StageEdge> &edges, const Channels &channels)
      : schedule(schedule), lists(lists), edges(edges), channels(channels),
        tasks(schedule, edges), at(lists.size()), numTasks(lists.size()),
        posts(lists.size()), together(lists.size()) {}

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
      for (const Post &post : together[rank])
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
    } else if (instruction.isCollective()) {
      if (!takePart(rank, instruction))
        return false;
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

  /// Posts a collective, or waits for the oldest; false when the rank has to
  /// wait.
  bool takePart(int rank, const RankInstruction &instruction) {
    int numGroups = static_cast<int>(channels.groups.size());
    if (instruction.group < 0 || instruction.group >= numGroups) {
      wrong = true;
      return false;
    }
    const RankGroup &group = channels.groups[instruction.group];
    bool hasRoot = pipewright::runtime::factsOf(instruction.collective).rooted;
    wrong |= !llvm::is_contained(group, rank) || instruction.bytes < 0;
    wrong |= hasRoot ? !llvm::is_contained(group, instruction.peer)
                     : instruction.peer != -1;
    if (wrong)
      return false;
    if (instruction.kind == InstructionKind::PostCollective) {
      together[rank].push_back({instruction});
      return true;
    }
    for (Post &post : together[rank]) {
      if (post.waited)
        continue;
      const RankInstruction &oldest = post.instruction;
      wrong |= !(oldest.transfer == instruction.transfer) ||
               oldest.collective != instruction.collective ||
               oldest.group != instruction.group;
      if (wrong || !post.moved)
        return false;
      return post.waited = true;
    }
    wrong = true;
    return false;
  }

  /// What comes next of a rank's collectives; null where there is nothing.
  Post *nextTogether(int rank) {
    for (Post &post : together[rank])
      if (!post.moved)
        return &post;
    return nullptr;
  }

  /// Runs the next collective of a rank if it is the next one of all members.
  bool moveTogether(int rank) {
    Post *own = nextTogether(rank);
    if (!own)
      return false;
    std::vector<Post *> all;
    for (int member : channels.groups[own->instruction.group]) {
      all.push_back(nextTogether(member));
      if (!all.back() ||
          all.back()->instruction.group != own->instruction.group)
        return false;
    }
    for (Post *post : all) {
      match(post->instruction, own->instruction);
      wrong |= post->instruction.collective != own->instruction.collective ||
               post->instruction.peer != own->instruction.peer;
      post->moved = true;
    }
    return true;
  }

  bool isRightMessage(int rank, const RankInstruction &instruction) const {
    const Transfer &transfer = instruction.transfer;
    // Of no edge: whoever posts it has it.
    if (transfer.kind == TransferKind::Work)
      return true;
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
    if (instruction.kind == InstructionKind::PostSend &&
        transfer.kind != TransferKind::Work) {
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
    if (moveTogether(rank))
      return true;
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
  /// Collectives, by rank, in the order of their posts.
  std::vector<std::deque<Post>> together;
  /// Numbers of posts, by rank and queue.
  std::map<std::vector<int>, std::deque<std::vector<size_t>>> queues;
  /// Those that the group being posted has an entry of.
  std::set<std::vector<int>> groupsOpen;
  std::map<Channel, std::deque<RankInstruction>> buffers;
  std::set<Key> sent, received;
  bool wrong = false;
};

} // namespace

bool pipewright::schedules::testing::runsPlainly(
    const Schedule &schedule, const std::vector<StageEdge> &edges,
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

bool pipewright::schedules::testing::arrivePlainly(
    const Schedule &schedule, const InstructionLists &lists,
    const std::vector<StageEdge> &edges, const Channels &channels,
    Random &random) {
  return PlainMessages(schedule, lists, edges, channels).succeed(random);
}
