//===- ReplicaWorks.cpp - What replicas do together -----------------------===//
//
// See ReplicaWorks.h. Which stage has which range when is decided as for
// programs, in SharedRanges.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/ReplicaWorks.h"

#include "passes/schedules/Figures.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/SharedRanges.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <map>
#include <set>

using namespace pipewright::schedules;

/// Of one stage and one replica, where works take time.
static constexpr int64_t bytesOfPart = 1 << 20;

static int64_t bytesOfStage(const Sharding &sharding,
                            const Schedule &schedule) {
  if (sharding.exchangeSeconds > 0)
    return bytesOfPart * sharding.replicas;
  return static_cast<int64_t>(static_cast<double>(sharding.weightBytes) /
                              stagesPerRank(schedule));
}

/// The stage of each task for which `isUser` says yes, if it has an update.
static std::vector<int32_t>
usersOf(llvm::ArrayRef<Task> tasks,
        llvm::function_ref<bool(const Task &)> isUser) {
  std::set<int32_t> updated;
  for (const Task &task : tasks)
    if (task.kind == TaskKind::Update)
      updated.insert(task.stage);
  std::vector<int32_t> users;
  for (const Task &task : tasks)
    users.push_back(isUser(task) && updated.contains(task.stage) ? task.stage
                                                                 : -1);
  return users;
}

/// Of those that add to the gradients of weights.
static std::vector<int32_t> addersOf(llvm::ArrayRef<Task> tasks) {
  return usersOf(tasks, [](const Task &task) { return task.endsStash(); });
}

/// Of those that read weights.
static std::vector<int32_t> readersOf(llvm::ArrayRef<Task> tasks) {
  return usersOf(tasks, [](const Task &task) {
    return task.kind != TaskKind::Update &&
           task.kind != TaskKind::WeightGradient;
  });
}

namespace {

/// One rank.
class RankWorks {
public:
  /// Each stage has so many bytes of weights.
  RankWorks(std::vector<Task> &tasks, int32_t rank, const Sharding &sharding,
            int64_t bytes, std::vector<Work> &works)
      : tasks(tasks), rank(rank), sharding(sharding), bytes(bytes),
        works(works) {}

  void add();

private:
  void shareGradients();
  void moveUpdate(int32_t stage, int64_t place);
  void addSums();
  void addGathers();
  void addWork(CollectiveKind kind, const char *what, int32_t stage,
               int64_t posted, int64_t waited);
  std::vector<RangeTurn> gradientTurns() const {
    const std::vector<int32_t> adders = addersOf(tasks);
    return turnsOf(adders, rangesOf(adders, gradientRanges));
  }

  std::vector<Task> &tasks;
  const int32_t rank;
  const Sharding &sharding;
  const int64_t bytes;
  std::vector<Work> &works;
  RangeOfStage gradientRanges;
  /// Stages that come back to their ranges add to what they keep.
  bool sharesGradients = false;
};

} // namespace

static BytesOfStage alike(llvm::ArrayRef<int32_t> users) {
  BytesOfStage bytes;
  for (int32_t stage : users)
    if (stage >= 0)
      bytes[stage] = bytesOfPart;
  return bytes;
}

void RankWorks::addWork(CollectiveKind kind, const char *what, int32_t stage,
                        int64_t posted, int64_t waited) {
  Work work;
  work.kind = kind;
  work.name = std::string(what) + " of s" + std::to_string(stage);
  work.bytes = bytes;
  work.members = {{rank, posted, waited}};
  work.replicas = sharding.replicas;
  works.push_back(std::move(work));
}

/// Pairs stay together.
void RankWorks::moveUpdate(int32_t stage, int64_t place) {
  auto update = llvm::find(tasks, Task::update(stage));
  if (update == tasks.end() || update - tasks.begin() <= place ||
      (place > 0 && tasks[place - 1].overlapsNext))
    return;
  std::rotate(tasks.begin() + place, update, update + 1);
}

void RankWorks::shareGradients() {
  gradientRanges = rangesInTurns(addersOf(tasks), sharding.ranges);
  std::vector<RangeTurn> turns = gradientTurns();
  sharesGradients = sharding.level >= 2 &&
                    savesMemory(turns, gradientRanges, alike(addersOf(tasks)),
                                sharding.replicas);
  std::set<int32_t> keep;
  // By place: the stage whose update makes room there.
  std::map<int64_t, int32_t> moves;
  for (const RangeTurn &turn : turns) {
    if (turn.comesBack && sharesGradients)
      keep.insert(turn.stage);
    else if (turn.next >= 0 && !turn.comesBack && !keep.contains(turn.stage))
      moves[turn.next] = turn.stage;
  }
  for (auto [place, stage] : llvm::reverse(moves))
    moveUpdate(stage, place);
}

void RankWorks::addSums() {
  const CollectiveKind kind = sharding.level == 0
                                  ? CollectiveKind::AllReduce
                                  : CollectiveKind::ReduceScatter;
  auto end = static_cast<int64_t>(tasks.size());
  // By stage: the first task of the one that has its range behind it.
  std::map<int32_t, int64_t> nextOf;
  if (sharesGradients)
    for (const RangeTurn &turn : gradientTurns()) {
      const int64_t next = turn.next >= 0 ? turn.next : end;
      nextOf[turn.stage] = next;
      if (turn.comesBack)
        addWork(kind, "gradients", turn.stage, turn.tasks.back() + 1, next);
    }
  std::map<int32_t, int64_t> made;
  for (int64_t position = 0; position < end; ++position) {
    const Task &task = tasks[position];
    if (task.endsStash())
      made[task.stage] = position + 1;
    if (task.kind != TaskKind::Update || !made.contains(task.stage))
      continue;
    auto next = nextOf.find(task.stage);
    addWork(kind, "gradients", task.stage, made[task.stage],
            next == nextOf.end() ? position : std::min(position, next->second));
  }
}

void RankWorks::addGathers() {
  if (sharding.level == 0)
    return;
  const std::vector<int32_t> readers = readersOf(tasks);
  WeightRanges ranges;
  if (sharding.level == 3)
    ranges = chooseWeightRanges(readers, alike(readers), sharding.replicas,
                                sharding.ranges, /*mayMove=*/true);
  for (const RangeTurn &turn : turnsOf(readers, ranges.of(readers)))
    addWork(CollectiveKind::AllGather, "weights", turn.stage, turn.freed,
            turn.tasks.front());
  std::vector<int32_t> later;
  if (ranges.empty())
    later = stagesReadLater(readers);
  for (int32_t stage : later)
    addWork(CollectiveKind::AllGather, "weights", stage, 0,
            llvm::find(readers, stage) - readers.begin());
  auto end = static_cast<int64_t>(tasks.size());
  for (int64_t position = 0; position < end; ++position)
    if (tasks[position].kind == TaskKind::Update &&
        !ranges.contains(tasks[position].stage) &&
        !llvm::is_contained(later, tasks[position].stage))
      addWork(CollectiveKind::AllGather, "weights", tasks[position].stage,
              position + 1, end);
}

void RankWorks::add() {
  if (sharding.level > 0)
    shareGradients();
  addSums();
  addGathers();
}

llvm::Expected<std::vector<Work>>
pipewright::schedules::addReplicaWorks(Schedule &schedule,
                                       const Sharding &sharding) {
  if (schedule.forwardOnly)
    return refuse("replicas have nothing to do together where nothing is "
                  "trained");
  if (schedule.copies > 1)
    return refuse("its two copies of the model sum their gradients, too, which "
                  "takes a model to know; 'pipewright plan MODEL "
                  "--data-parallel {0} --zero {1}' shows it",
                  sharding.replicas, sharding.level);
  if (sharding.level > 0 && schedule.weightRule != WeightRule::Synchronous)
    return refuse("tasks read older versions of the weights, of which replicas "
                  "cannot keep a part each: use --zero 0");
  std::vector<Work> works;
  for (auto [rank, tasks] : llvm::enumerate(schedule.order))
    RankWorks(tasks, static_cast<int32_t>(rank), sharding,
              bytesOfStage(sharding, schedule), works)
        .add();
  return works;
}

llvm::Error pipewright::schedules::setExchangeTime(TaskCosts &costs,
                                                   const Schedule &schedule,
                                                   const Sharding &sharding) {
  if (sharding.exchangeSeconds == 0)
    return llvm::Error::success();
  if (costs.hosts.processes > 0)
    return refuse("the costs say how fast the network between replicas is; "
                  "leave out what an exchange takes");
  costs.hosts.processes = schedule.ranks;
  costs.hosts.mesh = {.pipe = schedule.ranks,
                      .data = sharding.replicas,
                      .map = runtime::ProcessMap::Pipelines};
  costs.hosts.network.latency = costs.linkLatency;
  // A replica sends its part to each of the others.
  costs.hosts.network.bandwidth = static_cast<double>(bytesOfPart) *
                                  static_cast<double>(sharding.replicas - 1) *
                                  stagesPerRank(schedule) /
                                  sharding.exchangeSeconds;
  return llvm::Error::success();
}
