//===- MutationTests.cpp - The checker against plain execution --*- C++ -*-===//
//
// Good lists are broken at random, and the checker's word is compared with
// what happens when they are executed naively: queues of names, round robin,
// no shared code.
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

/// Runs instruction lists under rendezvous semantics and says whether they
/// reach their end with every task fed.
class PlainExecution {
public:
  PlainExecution(const Schedule &schedule, const InstructionLists &lists,
                 const std::vector<StageEdge> &edges)
      : schedule(schedule), lists(lists), edges(edges) {}

  bool succeeds() {
    for (size_t rank = 0; rank < lists.size(); ++rank) {
      std::vector<Task> tasks;
      for (const RankInstruction &instruction : lists[rank])
        if (instruction.kind == InstructionKind::Task)
          tasks.push_back(instruction.task);
      if (tasks != schedule.order[rank])
        return false;
    }
    std::vector<size_t> at(lists.size());
    bool moved = true;
    while (moved && !wrong) {
      moved = false;
      for (size_t rank = 0; rank < lists.size(); ++rank)
        if (at[rank] < lists[rank].size() &&
            step(static_cast<int>(rank), lists[rank][at[rank]])) {
          ++at[rank];
          moved = true;
        }
    }
    for (size_t rank = 0; rank < lists.size(); ++rank)
      wrong |= at[rank] < lists[rank].size();
    for (auto &[link, state] : links)
      wrong |= state.sends.size() != state.receives.size() ||
               state.sendsDone != state.sends.size() ||
               state.receivesDone != state.receives.size();
    for (size_t edge = 0; edge < edges.size(); ++edge)
      for (int m = 0; m < schedule.microBatches; ++m)
        for (auto kind : {TransferKind::Forward, TransferKind::Gradient})
          wrong |= crosses(edges[edge], kind) &&
                   !sent.count({kind, static_cast<int>(edge), m});
    return !wrong;
  }

private:
  using Key = std::tuple<TransferKind, int, int>;
  struct Link {
    std::vector<RankInstruction> sends, receives;
    size_t sendsDone = 0, receivesDone = 0;
  };

  static Key keyOf(const Transfer &transfer) {
    return {transfer.kind, transfer.edge, transfer.microBatch};
  }

  bool crosses(const StageEdge &edge, TransferKind kind) const {
    return schedule.rankOfStage[edge.from] != schedule.rankOfStage[edge.to] &&
           (kind == TransferKind::Forward || edge.hasGradient);
  }

  /// False when the rank has to wait.
  bool step(int rank, const RankInstruction &instruction) {
    if (instruction.kind == InstructionKind::Task) {
      compute(instruction.task);
      return true;
    }
    const Transfer &transfer = instruction.transfer;
    if (transfer.edge < 0 || transfer.edge >= static_cast<int>(edges.size())) {
      wrong = true;
      return false;
    }
    const StageEdge &edge = edges[transfer.edge];
    int from = schedule.rankOfStage[edge.from];
    int to = schedule.rankOfStage[edge.to];
    if (transfer.kind == TransferKind::Gradient)
      std::swap(from, to);
    bool out = instruction.kind == InstructionKind::PostSend ||
               instruction.kind == InstructionKind::WaitSend;
    wrong |= !crosses(edge, transfer.kind) || rank != (out ? from : to) ||
             instruction.peer != (out ? to : from) ||
             instruction.bytes != edge.bytes || transfer.microBatch < 0 ||
             transfer.microBatch >= schedule.microBatches;
    if (wrong)
      return false;
    Link &link = links[{from, to}];
    switch (instruction.kind) {
    case InstructionKind::PostSend:
      wrong |= !sent.insert(keyOf(transfer)).second;
      wrong |= !results.count(
          {transfer.kind,
           transfer.kind == TransferKind::Forward ? edge.from : edge.to,
           transfer.microBatch});
      link.sends.push_back(instruction);
      break;
    case InstructionKind::PostReceive:
      link.receives.push_back(instruction);
      break;
    case InstructionKind::WaitSend:
      return complete(transfer, link.sends, link.receives, link.sendsDone);
    case InstructionKind::WaitReceive:
      if (!complete(transfer, link.receives, link.sends, link.receivesDone))
        return false;
      received.insert(keyOf(transfer));
      break;
    case InstructionKind::Task:
      break;
    }
    return true;
  }

  bool complete(const Transfer &transfer,
                const std::vector<RankInstruction> &own,
                const std::vector<RankInstruction> &other, size_t &done) {
    if (done == own.size() || !(own[done].transfer == transfer)) {
      wrong = true;
      return false;
    }
    if (done >= other.size())
      return false;
    wrong |= !(other[done].transfer == transfer);
    ++done;
    return true;
  }

  void compute(const Task &task) {
    int stage = task.stage, m = task.microBatch;
    for (size_t i = 0; i < edges.size(); ++i) {
      int edge = static_cast<int>(i);
      if (task.kind == TaskKind::Forward && edges[i].to == stage)
        wrong |= crosses(edges[i], TransferKind::Forward) &&
                 !received.count({TransferKind::Forward, edge, m});
      if (task.kind == TaskKind::Backward && edges[i].from == stage)
        wrong |= crosses(edges[i], TransferKind::Gradient) &&
                 !received.count({TransferKind::Gradient, edge, m});
    }
    if (task.kind == TaskKind::Forward)
      results.insert({TransferKind::Forward, stage, m});
    if (task.kind == TaskKind::Backward)
      results.insert({TransferKind::Gradient, stage, m});
  }

  const Schedule &schedule;
  const InstructionLists &lists;
  const std::vector<StageEdge> &edges;
  std::map<std::pair<int, int>, Link> links;
  std::set<Key> sent, received, results;
  bool wrong = false;
};

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  int below(size_t limit) { return static_cast<int>(random() % limit); }

  void mutate(InstructionLists &lists) {
    std::vector<RankInstruction> &list = lists[below(lists.size())];
    if (list.empty())
      return;
    int i = below(list.size()), j = below(list.size());
    switch (below(8)) {
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
    default: { // Neighbours: what most often stays right.
      int next = std::min<int>(i + 1, list.size() - 1);
      std::swap(list[i], list[next]);
      break;
    }
    }
  }

private:
  std::mt19937 random;
};

} // namespace

TEST(Checker, AgreesWithPlainExecutionOnMutatedLists) {
  Mutator mutator(7);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    llvm::ArrayRef<const Policy *> policies = allPolicies();
    const Policy &policy = *policies[mutator.below(policies.size())];
    int64_t ranks = 2 + mutator.below(2);
    int64_t stages = policy.name() == "breadth-first" ? 2 * ranks : ranks;
    Schedule schedule =
        valueOf(policy.build({ranks, stages, 1 + mutator.below(4)}));
    std::vector<StageEdge> edges = linearEdges(stages, 8);
    edges.push_back(
        {0, static_cast<int32_t>(stages - 1), 4, mutator.below(2) == 0});
    InstructionLists lists =
        valueOf(orderMessages(schedule, TaskCosts::uniform(stages), edges));
    for (int n = mutator.below(4); n >= 0; --n)
      mutator.mutate(lists);

    std::string message = messageOf(checkInstructions(lists));
    if (message.empty())
      message = messageOf(checkDataFlow(schedule, lists, edges));
    bool isRight = PlainExecution(schedule, lists, edges).succeeds();
    ASSERT_EQ(isRight, message.empty()) << "round " << round << ": " << message;
    ++(isRight ? accepted : refused);
  }
  // The comparison means something only if both happen often.
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 1000);
}

TEST(Checker, AgreesWithPlainExecutionOnMutatedSchedules) {
  Mutator mutator(11);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    int64_t ranks = 2 + mutator.below(3);
    Schedule schedule = buildSchedule(round % 2 ? "1f1b" : "gpipe", ranks,
                                      ranks, 1 + mutator.below(4));
    for (int n = mutator.below(4); n >= 0; --n) {
      std::vector<Task> &tasks = schedule.order[mutator.below(ranks)];
      int i = mutator.below(tasks.size() - 1);
      std::swap(tasks[i],
                tasks[mutator.below(3) ? i + 1 : mutator.below(tasks.size())]);
    }

    // Round robin: a task runs when its inputs are among what has run.
    std::set<std::string> finished;
    std::vector<size_t> at(ranks);
    auto isReady = [&](const Task &task) {
      int stage = task.stage, m = task.microBatch;
      switch (task.kind) {
      case TaskKind::Forward:
        return stage == 0 || finished.count(Task::forward(stage - 1, m).name());
      case TaskKind::Backward:
        return finished.count(Task::forward(stage, m).name()) &&
               (stage + 1 == ranks ||
                finished.count(Task::backward(stage + 1, m).name()));
      default:
        for (int each = 0; each < schedule.microBatches; ++each)
          if (!finished.count(Task::backward(stage, each).name()))
            return false;
        return true;
      }
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t rank = 0; rank < ranks; ++rank)
        if (at[rank] < schedule.order[rank].size() &&
            isReady(schedule.order[rank][at[rank]])) {
          finished.insert(schedule.order[rank][at[rank]++].name());
          moved = true;
        }
    }
    bool isRight = true;
    for (int64_t rank = 0; rank < ranks; ++rank)
      isRight &= at[rank] == schedule.order[rank].size();
    std::string message = messageOf(checkSchedule(schedule));
    ASSERT_EQ(isRight, message.empty()) << "round " << round << ": " << message;
    ++(isRight ? accepted : refused);
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 1000);
}
