//===- Dependences.cpp - What each task waits for ---------------*- C++ -*-===//
//
// See Dependences.h. `runOrders` is an abstract execution: each rank advances
// until its next task lacks something, and is woken by the task that makes it.
// As no rank ever has a choice, one execution stands for all of them: if this
// one gets stuck, every one does.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Dependences.h"

#include "passes/schedules/Refusal.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace pipewright::schedules;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// EdgeIndex, LinkIndex
//===----------------------------------------------------------------------===//

EdgeIndex::EdgeIndex(int64_t stages, llvm::ArrayRef<StageEdge> edges)
    : incoming(edges.size()), incomingBegin(stages + 1), outgoing(edges.size()),
      outgoingBegin(stages + 1) {
  for (const StageEdge &edge : edges) {
    ++incomingBegin[edge.to + 1];
    ++outgoingBegin[edge.from + 1];
  }
  for (int64_t stage = 0; stage < stages; ++stage) {
    incomingBegin[stage + 1] += incomingBegin[stage];
    outgoingBegin[stage + 1] += outgoingBegin[stage];
  }
  std::vector<int32_t> nextIn = incomingBegin, nextOut = outgoingBegin;
  for (int32_t i = 0; i < static_cast<int32_t>(edges.size()); ++i) {
    incoming[nextIn[edges[i].to]++] = i;
    outgoing[nextOut[edges[i].from]++] = i;
  }
}

LinkIndex::LinkIndex(const Schedule &schedule, llvm::ArrayRef<StageEdge> edges,
                     llvm::ArrayRef<Work> works) {
  auto linkBetween = [&](int32_t from, int32_t to) {
    return Link{schedule.rankOfStage[from], schedule.rankOfStage[to]};
  };
  for (const StageEdge &edge : edges) {
    Link link = linkBetween(edge.from, edge.to);
    if (link.from == link.to)
      continue;
    all.push_back(link);
    if (edge.hasGradient)
      all.push_back({link.to, link.from});
  }
  for (const Work &work : works)
    if (work.on == Resource::Link)
      all.push_back({work.members[0].rank, work.members[1].rank});
  llvm::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());

  auto indexOf = [&](Link link) {
    return static_cast<int32_t>(llvm::lower_bound(all, link) - all.begin());
  };
  for (const StageEdge &edge : edges) {
    Link link = linkBetween(edge.from, edge.to);
    bool isLocal = link.from == link.to;
    forward.push_back(isLocal ? -1 : indexOf(link));
    gradient.push_back(
        isLocal || !edge.hasGradient ? -1 : indexOf({link.to, link.from}));
  }
  for (const Work &work : works)
    ofWork.push_back(work.on == Resource::Link
                         ? indexOf({work.members[0].rank, work.members[1].rank})
                         : -1);
}

//===----------------------------------------------------------------------===//
// Well-formedness
//===----------------------------------------------------------------------===//

llvm::Error pipewright::schedules::checkFrame(const Schedule &schedule,
                                              llvm::ArrayRef<StageEdge> edges) {
  if (schedule.ranks < 1 || schedule.stages < 1 || schedule.microBatches < 1)
    return refuse("a schedule needs at least 1 rank, 1 stage and 1 "
                  "micro-batch, but got {0}, {1} and {2}",
                  schedule.ranks, schedule.stages, schedule.microBatches);
  // Numbers of micro-batches come from files; this many bytes are allocated.
  constexpr int64_t maxPairs = int64_t(1) << 28;
  if (schedule.stages > maxPairs ||
      schedule.microBatches > maxPairs / schedule.stages)
    return refuse("{0} stages and {1} micro-batches make a schedule too large "
                  "to check",
                  schedule.stages, schedule.microBatches);
  if (static_cast<int64_t>(schedule.rankOfStage.size()) != schedule.stages)
    return refuse("expects a rank for each of {0} stages, but got {1}",
                  schedule.stages, schedule.rankOfStage.size());
  if (!schedule.stageTasks.empty() &&
      static_cast<int64_t>(schedule.stageTasks.size()) != schedule.stages)
    return refuse("expects the tasks of {0} stages, but got those of {1}",
                  schedule.stages, schedule.stageTasks.size());
  for (auto [stage, rank] : llvm::enumerate(schedule.rankOfStage))
    if (rank < 0 || rank >= schedule.ranks)
      return refuse("stage {0} is on rank {1}, but there are {2} ranks", stage,
                    rank, schedule.ranks);
  if (schedule.copies < 1 || schedule.copies > 2 || schedule.updates < 1 ||
      schedule.stages % schedule.copies != 0 ||
      schedule.microBatches % (schedule.copies * schedule.updates) != 0)
    return refuse("{0} copies of the model and {1} updates need to divide {2} "
                  "stages and {3} micro-batches",
                  schedule.copies, schedule.updates, schedule.stages,
                  schedule.microBatches);
  // With several, a forward would read what an update of its own step left.
  if (schedule.updates > 1 && schedule.weightRule == WeightRule::Synchronous)
    return refuse("a synchronous schedule ends each step with 1 update, but "
                  "got {0}",
                  schedule.updates);
  for (auto [i, edge] : llvm::enumerate(edges))
    if (edge.from < 0 || edge.to >= schedule.stages || edge.from >= edge.to ||
        edge.bytes < 0)
      return refuse("edge {0} goes from stage {1} to stage {2} with {3} bytes, "
                    "but expects a later one of {4} stages and no negative "
                    "size",
                    i, edge.from, edge.to, edge.bytes, schedule.stages);
  for (auto [i, edge] : llvm::enumerate(edges))
    if (schedule.copyOf(edge.from) != schedule.copyOf(edge.to))
      return refuse("edge {0} goes from stage {1} to stage {2}, which is part "
                    "of the other copy of the model",
                    i, edge.from, edge.to);
  for (auto [i, edge] : llvm::enumerate(edges))
    for (int32_t stage : {edge.from, edge.to})
      if (!schedule.forwardOnly && edge.hasGradient &&
          !schedule.tasksOf(stage).backward)
        return refuse("edge {0} has a gradient, but stage {1} has no backward",
                      i, stage);
  return llvm::Error::success();
}

static llvm::Error checkShape(const Schedule &schedule,
                              llvm::ArrayRef<StageEdge> edges) {
  if (llvm::Error error = checkFrame(schedule, edges))
    return error;
  if (static_cast<int64_t>(schedule.order.size()) != schedule.ranks)
    return refuse("expects an order for each of {0} ranks, but got {1}",
                  schedule.ranks, schedule.order.size());
  return llvm::Error::success();
}

llvm::Error Dependences::registerTask(int32_t rank, const Task &task) {
  if (static_cast<unsigned>(task.kind) >= numTaskKinds || task.stage < 0 ||
      task.stage >= schedule->stages || task.microBatch < 0 ||
      task.microBatch >= schedule->microBatches)
    return refuse("rank {0} runs {1}, but there are {2} stages and {3} "
                  "micro-batches",
                  rank, task.name(), schedule->stages, schedule->microBatches);
  if (task.kind == TaskKind::Update && task.microBatch >= schedule->updates)
    return refuse("rank {0} runs {1}, but each stage has {2} update{3} in a "
                  "step",
                  rank, task.name(), schedule->updates,
                  schedule->updates == 1 ? "" : "s");
  if (schedule->forwardOnly && task.kind != TaskKind::Forward)
    return refuse("rank {0} runs {1}, but this schedule has forwards only",
                  rank, task.name());
  if (task.kind != TaskKind::Update &&
      !schedule->runs(task.stage, task.microBatch))
    return refuse("rank {0} runs {1}, but that micro-batch goes through the "
                  "other copy of the model",
                  rank, task.name());
  const StageTasks has = schedule->tasksOf(task.stage);
  if (task.kind == TaskKind::Forward  ? !has.forward
      : task.kind == TaskKind::Update ? !has.update
                                      : !has.backward)
    return refuse("rank {0} runs {1}, which the model does not have of this "
                  "stage",
                  rank, task.name());
  int32_t home = schedule->rankOfStage[task.stage];
  if (home != rank)
    return refuse("rank {0} runs {1}, but stage {2} is on rank {3}", rank,
                  task.name(), task.stage, home);
  uint8_t &bits =
      present[task.stage * schedule->microBatches + task.microBatch];
  if (bits & bitOf(task.kind))
    return refuse("rank {0} runs {1} twice", rank, task.name());
  bits |= bitOf(task.kind);
  return llvm::Error::success();
}

llvm::Error Dependences::findMissingTasks() const {
  auto isMissing = [&](TaskKind kind, int32_t stage, int32_t microBatch) {
    return refuse("rank {0} never runs {1}", schedule->rankOfStage[stage],
                  Task{kind, stage, microBatch}.name());
  };
  for (int32_t stage = 0; stage < schedule->stages; ++stage) {
    const StageTasks has = schedule->tasksOf(stage);
    for (int32_t m = 0; m < schedule->microBatches; ++m) {
      if (!schedule->runs(stage, m))
        continue;
      if (has.forward && !hasKind(TaskKind::Forward, stage, m))
        return isMissing(TaskKind::Forward, stage, m);
      if (schedule->forwardOnly || !has.backward)
        continue;
      bool isWhole = hasKind(TaskKind::Backward, stage, m);
      bool hasInput = hasKind(TaskKind::InputGradient, stage, m);
      bool hasWeight = hasKind(TaskKind::WeightGradient, stage, m);
      if (isWhole && (hasInput || hasWeight))
        return refuse(
            "rank {0} runs both {1} and {2}, which is part of it",
            schedule->rankOfStage[stage], Task::backward(stage, m).name(),
            Task{hasInput ? TaskKind::InputGradient : TaskKind::WeightGradient,
                 stage, m}
                .name());
      if (!isWhole && !hasInput)
        return isMissing(
            hasWeight ? TaskKind::InputGradient : TaskKind::Backward, stage, m);
      if (!isWhole && !hasWeight)
        return isMissing(TaskKind::WeightGradient, stage, m);
    }
    for (int32_t number = 0; number < schedule->updates; ++number)
      if (!schedule->forwardOnly && has.update &&
          !hasKind(TaskKind::Update, stage, number))
        return isMissing(TaskKind::Update, stage, number);
  }
  return llvm::Error::success();
}

/// Gradients come back as far as stages go backward.
static std::vector<StageEdge> chainOf(const Schedule &schedule) {
  std::vector<StageEdge> edges =
      linearEdges(schedule.stages, 0, schedule.copies);
  for (StageEdge &edge : edges)
    edge.hasGradient = schedule.tasksOf(edge.from).backward &&
                       schedule.tasksOf(edge.to).backward;
  return edges;
}

Dependences::Dependences(const Schedule &schedule,
                         llvm::ArrayRef<StageEdge> edges)
    : schedule(&schedule),
      edgeList(edges.empty() ? chainOf(schedule) : edges.vec()),
      index(schedule.stages, edgeList),
      present(schedule.stages * schedule.microBatches) {}

llvm::Expected<Dependences>
Dependences::begin(const Schedule &shape, llvm::ArrayRef<StageEdge> edges) {
  if (llvm::Error error = checkShape(shape, edges))
    return error;
  return Dependences(shape, edges);
}

llvm::Error Dependences::addRank(int32_t rank, llvm::ArrayRef<Task> tasks) {
  for (auto [i, task] : llvm::enumerate(tasks)) {
    bool isLast = i + 1 == tasks.size();
    if (task.overlapsNext && (isLast || tasks[i + 1].overlapsNext))
      return refuse("rank {0} overlaps {1} with {2}, but expects pairs", rank,
                    task.name(), isLast ? "nothing" : "a chain of tasks");
    if (llvm::Error error = registerTask(rank, task))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<Dependences>
Dependences::build(const Schedule &schedule, llvm::ArrayRef<StageEdge> edges) {
  llvm::Expected<Dependences> result = begin(schedule, edges);
  if (!result)
    return result;
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    if (llvm::Error error = result->addRank(rank, schedule.order[rank]))
      return error;
  if (llvm::Error error = result->findMissingTasks())
    return error;
  return result;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// A need of `task`, or of the one that starts with it, that is not among the
/// finished tasks.
bool Dependences::findUnmet(const Task &task, const Task *partner,
                            llvm::ArrayRef<uint8_t> done, Need &unmet) const {
  bool found = false;
  auto visit = [&](const Need &need) {
    uint8_t wanted = bitOf(need.kind);
    if (need.kind == TaskKind::Backward)
      wanted |= bitOf(TaskKind::InputGradient);
    if (done[pairOf(need.stage, need.microBatch)] & wanted)
      return true;
    unmet = need;
    found = true;
    return false;
  };
  forEachNeed(task, visit);
  if (!found && partner)
    forEachNeed(*partner, visit);
  return found;
}

namespace {

/// Goes through the orders of a schedule.
struct ScheduleCursor {
  const Schedule &schedule;
  std::vector<size_t> position;

  const Task *at(int32_t rank, size_t position) const {
    const std::vector<Task> &tasks = schedule.order[rank];
    return position < tasks.size() ? &tasks[position] : nullptr;
  }
  const Task *task(int32_t rank) const { return at(rank, position[rank]); }
  const Task *partner(int32_t rank) const {
    return at(rank, position[rank] + 1);
  }
  void advance(int32_t rank) { ++position[rank]; }
};

} // namespace

llvm::Error Dependences::run(
    llvm::function_ref<void(int32_t rank, int64_t position)> visit) const {
  return run(visit, {}, [](int32_t) {});
}

llvm::Error
Dependences::run(llvm::function_ref<void(int32_t rank, int64_t position)> visit,
                 llvm::ArrayRef<Work> works, VisitWork visitWork) const {
  ScheduleCursor cursor{*schedule, std::vector<size_t>(schedule->ranks)};
  WorkProgress progress(schedule->ranks, works);
  return runOrders(
      cursor,
      [&](int32_t rank) {
        visit(rank, static_cast<int64_t>(cursor.position[rank]));
      },
      progress, visitWork);
}

static std::string describe(const Dependences::Need &need) {
  const char *what = need.kind == TaskKind::Forward     ? "output"
                     : need.kind == TaskKind::Backward  ? "gradient"
                     : need.kind == TaskKind::Recompute ? "recomputed values"
                     : need.kind == TaskKind::Update    ? "updated weights"
                                                        : "weight gradient";
  return formatv("the {0} of stage {1}, {2} {3}", what, need.stage,
                 need.kind == TaskKind::Update ? "update" : "micro-batch",
                 need.microBatch);
}

std::string Dependences::describeDeadlock(llvm::ArrayRef<Blocked> blocked,
                                          llvm::ArrayRef<uint8_t> done,
                                          const WorkProgress &works) const {
  std::vector<Need> need(schedule->ranks);
  std::vector<int32_t> waitsFor(schedule->ranks, -1);
  for (int32_t rank = 0; rank < schedule->ranks; ++rank)
    if (blocked[rank].work >= 0) {
      waitsFor[rank] = works.missingFor(blocked[rank].work).second;
    } else if (blocked[rank].task) {
      findUnmet(*blocked[rank].task, blocked[rank].partner, done, need[rank]);
      waitsFor[rank] = schedule->rankOfStage[need[rank].stage];
    }
  std::vector<int32_t> cycle = findWaitCycle(waitsFor);
  auto nameOf = [&](int32_t rank) {
    auto [task, partner, work] = blocked[rank];
    return partner ? task->name() + "&" + partner->name() : task->name();
  };

  // `the all-reduce of x`, which has not begun; behind one that it needs, where
  // that is why.
  auto describeWork = [&](int32_t rank) {
    const Work &held = works.works()[blocked[rank].work];
    const Work &missing =
        works.works()[works.missingFor(blocked[rank].work).first];
    return "the " + held.text() +
           (&held == &missing ? "" : ", behind the " + missing.text());
  };
  if (cycle.size() == 1 && blocked[cycle[0]].work >= 0)
    return formatv("rank {0} waits at {1} for {2}, which it begins later",
                   cycle[0], nameOf(cycle[0]), describeWork(cycle[0]));
  if (cycle.size() == 1) {
    const Need &missing = need[cycle[0]];
    bool isSplit =
        missing.kind == TaskKind::Backward &&
        hasKind(TaskKind::InputGradient, missing.stage, missing.microBatch);
    Task producer{isSplit ? TaskKind::InputGradient : missing.kind,
                  missing.stage, missing.microBatch};
    auto [task, partner, work] = blocked[cycle[0]];
    if (partner && (*task == producer || *partner == producer))
      return formatv("rank {0} overlaps {1} with {2}, but one needs the other",
                     cycle[0], task->name(), partner->name());
    return formatv("rank {0} runs {1} before {2}, which it needs", cycle[0],
                   nameOf(cycle[0]), producer.name());
  }
  auto tell = [&](size_t i) -> std::string {
    int32_t rank = cycle[i], other = cycle[(i + 1) % cycle.size()];
    std::string waits =
        i == 0 ? formatv("rank {0} waits at {1} for ", rank, nameOf(rank)).str()
               : std::string("which waits for ");
    bool isHeld = blocked[rank].work >= 0;
    return formatv("{0}{1}, which rank {2} {3} after {4}", waits,
                   isHeld ? describeWork(rank) : describe(need[rank]), other,
                   isHeld ? "begins" : "computes", nameOf(other));
  };
  return "deadlock: " + joinCycle(cycle.size(), ", ", tell);
}
