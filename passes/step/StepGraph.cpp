//===- StepGraph.cpp - Everything that ranks do in a step -----------------===//
//
// See StepGraph.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/StepGraph.h"

#include "passes/step/Buckets.h"
#include "passes/step/RunningStatistics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <map>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

static schedules::Work describe(const Stages &stages, CollectiveOp op) {
  schedules::Work work;
  work.kind = op.getKind();
  if (op.getOver().isOfReplicas())
    work.replicas = op.countMembers();
  for (const WeightGroup *group : weightsOf(stages, op))
    work.bytes += byteSize(group->weight.getTensorType());
  if (op.isOfPart())
    work.bytes = llvm::divideCeil(
        work.bytes, programOf(op->getParentOfType<ModuleOp>()).replicas);
  const int32_t stage = stages.numberOf(op.getStage());
  std::string of = op.getWeight()
                       ? "'" + op.getWeight()->str() + "'"
                       : "stage " + std::to_string(stages.originalOf(stage));
  if (op.getRounded())
    work.bytes /= 2;
  if (op.getBucket())
    of += ", bucket " + std::to_string(*op.getBucket());
  work.name = (op.isOfGradients() ? "gradients of " : "weights of ") + of;
  return work;
}

static schedules::Work describe(const Stages &stages, MergeStatisticsOp op) {
  schedules::Work work;
  work.replicas = op.getOver().size(op->getParentOfType<ModuleOp>());
  int32_t stage = stages.numberOf(op.getStage());
  for (auto [weight, decay] : decaysOf(stages[stage]))
    if (const WeightGroup *group =
            stages.groupOf(FlatSymbolRefAttr::get(weight)))
      work.bytes += byteSize(group->weight.getTensorType());
  work.name =
      "running statistics of stage " + std::to_string(stages.originalOf(stage));
  return work;
}

/// A sum of squares for each weight.
static schedules::Work describe(const Stages &stages, ClipGradientsOp) {
  schedules::Work work;
  work.name = "squares of gradients";
  for (const WeightGroup &group : stages.weights())
    if (llvm::is_contained(group.trained, true))
      work.bytes += sizeof(double);
  return work;
}

schedules::Work pipewright::pipe::describeWork(const Stages &stages,
                                               GroupOpInterface op) {
  return llvm::TypeSwitch<Operation *, schedules::Work>(op)
      .Case<CollectiveOp, MergeStatisticsOp, ClipGradientsOp>(
          [&](auto typed) { return describe(stages, typed); });
}

schedules::RankGroup pipewright::pipe::membersOf(GroupAttr over, int32_t rank) {
  if (over.isOfReplicas())
    return {rank};
  ArrayRef<int64_t> ranks = over.getRanks();
  return {ranks.begin(), ranks.end()};
}

schedules::Work pipewright::pipe::describeWork(const Stages &stages,
                                               const Content &content,
                                               Type type) {
  schedules::Work work;
  work.on = schedules::Resource::Link;
  work.name = content.describe();
  if (content.kind == Content::Kind::Stash)
    work.stash =
        schedules::Task::forward(stages.numberOf(content.stage),
                                 static_cast<int32_t>(content.microBatch));
  work.bytes = byteSize(cast<RankedTensorType>(type));
  return work;
}

schedules::Work pipewright::pipe::describeWork(const Stages &stages,
                                               MoveOp op) {
  schedules::Work work =
      describeWork(stages, op.contentOf(),
                   (op.isToHost() ? op.getResult() : op.getValue()).getType());
  work.on = op.isToHost() ? schedules::Resource::ToHost
                          : schedules::Resource::FromHost;
  return work;
}

namespace {

/// What must be over on a rank before a value is there.
struct Readiness {
  int64_t tasks = 0;
  SmallVector<int32_t> works;

  void add(const Readiness &other) {
    tasks = std::max(tasks, other.tasks);
    works.append(other.works);
    llvm::sort(works);
    works.erase(llvm::unique(works), works.end());
  }
};

class GraphReader {
public:
  GraphReader(StepOp step, const Stages &stages, StepGraph &graph)
      : step(step), stages(stages), graph(graph),
        firstUpdate(graph.tasks.ranks), before(graph.tasks.ranks) {}

  LogicalResult read();

private:
  int32_t rankOf(Operation *op) const {
    FlatSymbolRefAttr stage = cast<StepOpInterface>(op).getStageName();
    return graph.tasks.rankOfStage[stages.numberOf(stage)];
  }
  void findPositions();
  LogicalResult verify(Operation &op);
  Readiness readinessOf(Value value, int32_t rank);
  Readiness readinessFor(Operation *taker, Value value, int32_t rank);
  int64_t neededBy(Operation *op);
  int32_t ownerOf(HoldOp hold) const {
    return graph.tasks.rankOfStage[stages.numberOf(hold.getOfAttr())];
  }
  void placeHold(HoldOp hold, schedules::Work &work);
  int64_t mostBefore(int32_t rank, bool isOfGradients, int64_t needed) const;
  void readTransfers(Operation &op);
  void readPart(GroupOpInterface op);
  void readMove(MoveOp op);

  StepOp step;
  const Stages &stages;
  StepGraph &graph;
  /// Where tasks stand in the order of their rank, and what is done before one;
  /// what is held, in that of the rank whose stash it is.
  llvm::DenseMap<Operation *, int64_t> positions;
  /// By rank: the position of the first update behind its last backward, or the
  /// number of its tasks.
  std::vector<int64_t> firstUpdate;
  /// The number of the transfer that takes a value to a rank, of the work of a
  /// collective, or of a copy to the host or back.
  std::map<std::pair<void *, int32_t>, int32_t> transfers;
  llvm::DenseMap<Operation *, int32_t> ownWorks;
  /// By rank: the works of collectives that stand before.
  std::vector<SmallVector<int32_t>> before;
  /// What was found before, of values on their own ranks, and for parts of
  /// collectives.
  llvm::DenseMap<Value, Readiness> readiness;
  llvm::DenseMap<Operation *, Readiness> begun;
  llvm::DenseMap<Operation *, int64_t> needs;
  /// The n-th parts of all members of a group are one work.
  std::map<std::pair<schedules::RankGroup, int64_t>, int32_t> groups;
  std::map<std::pair<schedules::RankGroup, int32_t>, int64_t> counts;
};

} // namespace

void GraphReader::findPositions() {
  for (auto [rank, order] : llvm::enumerate(graph.tasks.order))
    firstUpdate[rank] = static_cast<int64_t>(order.size());
  std::vector<int64_t> next(graph.tasks.ranks);
  std::vector<SmallVector<Operation *, 1>> waiting(graph.tasks.ranks);
  for (Operation &op : *step.getBody()) {
    if (isa<KeepGradientsOp, LoadWeightsOp>(op)) {
      positions[&op] = next[rankOf(&op)];
      waiting[rankOf(&op)].push_back(&op);
    }
    if (auto hold = dyn_cast<HoldOp>(op))
      positions[&op] = next[ownerOf(hold)];
    if (isa<MoveOp, WaitMoveOp>(op))
      positions[&op] = next[rankOf(&op)];
    auto task = dyn_cast<TaskOp>(op);
    if (!task)
      continue;
    int32_t rank = rankOf(task);
    if (!waiting[rank].empty())
      graph.before[task] = std::exchange(waiting[rank], {});
    int64_t at = positions[task] = next[rank]++;
    if (plainTask(stages, task).endsStash())
      firstUpdate[rank] = static_cast<int64_t>(graph.tasks.order[rank].size());
    else if (task.getKind() == TaskKind::update)
      firstUpdate[rank] = std::min(firstUpdate[rank], at);
  }
}

LogicalResult GraphReader::verify(Operation &op) {
  FlatSymbolRefAttr stage = cast<StepOpInterface>(op).getStageName();
  if (!stage || stages.numberOf(stage) < 0)
    return op.emitOpError("belongs to no stage of the module");
  for (Value operand : op.getOperands())
    if (!isa<RankedTensorType>(operand.getType()) &&
        rankOf(operand.getDefiningOp()) != rankOf(&op))
      return op.emitOpError("takes ")
             << operand.getType() << " from another rank, but only tensors "
             << "can be sent";
  return success();
}

Readiness GraphReader::readinessOf(Value value, int32_t rank) {
  Operation *op = value.getDefiningOp();
  Readiness ready;
  if (rankOf(op) != rank) {
    ready.works.push_back(transfers.at({value.getAsOpaquePointer(), rank}));
    return ready;
  }
  if (isa<TaskOp>(op)) {
    ready.tasks = positions.lookup(op) + 1;
    return ready;
  }
  if (isa<LoadWeightsOp>(op)) {
    ready.tasks = positions.lookup(op);
    return ready;
  }
  if (auto known = readiness.find(value); known != readiness.end())
    return known->second;
  if (isa<GroupOpInterface, MoveOp>(op))
    ready.works.push_back(ownWorks.lookup(op));
  for (Value operand : op->getOperands())
    ready.add(readinessOf(operand, rank));
  return readiness[value] = ready;
}

/// Collectives of two weights, or buckets, of one stage may be under way
/// together. None begins before the one whose result it takes.
Readiness GraphReader::readinessFor(Operation *taker, Value value,
                                    int32_t rank) {
  auto before = value.getDefiningOp<CollectiveOp>();
  auto collective = dyn_cast<CollectiveOp>(taker);
  if (!before || !collective)
    return readinessOf(value, rank);
  Readiness ready = begun.lookup(before);
  for (; before; before = before.getValue().getDefiningOp<CollectiveOp>())
    if (!before.isApartFrom(collective))
      ready.works.push_back(ownWorks.lookup(before));
  return ready;
}

/// The first task of the rank that takes what an op makes, over whatever ops.
int64_t GraphReader::neededBy(Operation *op) {
  if (auto known = needs.find(op); known != needs.end())
    return known->second;
  int32_t rank = rankOf(op);
  auto needed = static_cast<int64_t>(graph.tasks.order[rank].size());
  for (Operation *user : op->getUsers())
    if (rankOf(user) == rank)
      needed = std::min(needed, isa<TaskOp, KeepGradientsOp>(user)
                                    ? positions.lookup(user)
                                    : neededBy(user));
  return needs[op] = needed;
}

/// How many tasks may come before a wait. Where each stage has one update, all
/// gradients of a rank are whole before the updates that end it, and none is
/// still on its way when one of these clears it.
int64_t GraphReader::mostBefore(int32_t rank, bool isOfGradients,
                                int64_t needed) const {
  return isOfGradients && graph.tasks.updates == 1
             ? std::min(needed, firstUpdate[rank])
             : needed;
}

/// A stash leaves its rank, or comes back, from the place of its op on.
void GraphReader::placeHold(HoldOp hold, schedules::Work &work) {
  const int64_t place = positions.lookup(hold);
  schedules::Work::Member &own = work.members[hold.isAway() ? 0 : 1];
  own.posted = std::min(std::max(own.posted, place), own.waited);
  if (!hold.isAway())
    return;
  // It is gone when the task behind is over.
  own.waited = std::min(own.posted + 1, own.waited);
  if (Value before = hold.getBehind())
    if (auto sentBack =
            transfers.find({before.getAsOpaquePointer(), ownerOf(hold)});
        sentBack != transfers.end())
      work.needs.push_back(sentBack->second);
}

/// Tensors that an op takes from other ranks, but for those of stage edges.
void GraphReader::readTransfers(Operation &op) {
  int32_t rank = rankOf(&op);
  // What is received has a place in memory from its post on.
  Readiness own;
  for (Value operand : op.getOperands())
    if (rankOf(operand.getDefiningOp()) == rank)
      own.add(readinessOf(operand, rank));
  for (Value operand : op.getOperands()) {
    Operation *giver = operand.getDefiningOp();
    int32_t from = rankOf(giver);
    auto number = static_cast<int32_t>(graph.works.size());
    if (from == rank ||
        !transfers.insert({{operand.getAsOpaquePointer(), rank}, number})
             .second)
      continue;
    Readiness given = readinessOf(operand, from);
    schedules::Work work =
        describeWork(stages,
                     cast<StepOpInterface>(giver)
                         .getContent(cast<OpResult>(operand), stages)
                         .value_or(Content()),
                     operand.getType());
    auto end = static_cast<int64_t>(graph.tasks.order[from].size());
    int64_t needed =
        mostBefore(rank, given.tasks <= firstUpdate[from], neededBy(&op));
    work.members = {{from, given.tasks,
                     mostBefore(from, given.tasks <= firstUpdate[from], end)},
                    {rank, std::min(own.tasks, needed), needed}};
    work.needs.assign(given.works.begin(), given.works.end());
    if (auto hold = dyn_cast<HoldOp>(op))
      placeHold(hold, work);
    graph.works.push_back(std::move(work));
    graph.ops.push_back({{}, operand, {}});
  }
}

void GraphReader::readPart(GroupOpInterface op) {
  int32_t rank = rankOf(op);
  schedules::RankGroup over = membersOf(op.getOver(), rank);
  auto [known, isNew] =
      groups.insert({{over, counts[{over, rank}]++},
                     static_cast<int32_t>(graph.works.size())});
  int32_t number = known->second;
  if (isNew) {
    graph.works.push_back(describeWork(stages, op));
    graph.ops.emplace_back();
  }
  graph.ops[number].parts.push_back(op);
  ownWorks[op] = number;
  Readiness ready;
  for (Value operand : op->getOperands())
    ready.add(readinessFor(op, operand, rank));
  begun[op] = ready;
  int64_t posted = ready.tasks;
  int64_t waited =
      mostBefore(rank, ready.tasks <= firstUpdate[rank], neededBy(op));
  // Where the program stands still in it, it comes as late as it may, and
  // nothing is under way.
  if (!cast<StepOpInterface>(*op).isAsynchronous()) {
    posted = waited = neededBy(op);
    ready.works.append(before[rank]);
  }
  before[rank].push_back(number);
  schedules::Work &work = graph.works[number];
  work.members.push_back({rank, posted, waited});
  llvm::append_range(work.needs, ready.works);
}

/// It begins at its place, or behind what it takes; a stash has left by the
/// place of the wait, and is back where it is taken.
void GraphReader::readMove(MoveOp op) {
  const int32_t rank = rankOf(op);
  ownWorks[op] = static_cast<int32_t>(graph.works.size());
  const Readiness ready = readinessOf(op.getValue(), rank);
  schedules::Work work = describeWork(stages, op);
  WaitMoveOp wait = op.getWait();
  const int64_t waited = wait ? positions.lookup(wait) : neededBy(op);
  const int64_t posted = std::max(ready.tasks, positions.lookup(op));
  work.members = {{rank, std::min(posted, waited), waited}};
  work.needs.assign(ready.works.begin(), ready.works.end());
  graph.works.push_back(std::move(work));
  graph.ops.push_back({{}, {}, op});
}

LogicalResult GraphReader::read() {
  findPositions();
  for (Operation &op : *step.getBody()) {
    if (failed(verify(op)))
      return failure();
    if (isa<InputOp, TaskOp, WaitMoveOp>(op))
      continue;
    if (auto move = dyn_cast<MoveOp>(op)) {
      readMove(move);
      continue;
    }
    readTransfers(op);
    if (auto part = dyn_cast<GroupOpInterface>(op))
      readPart(part);
  }
  for (schedules::Work &work : graph.works) {
    llvm::sort(work.needs);
    work.needs.erase(llvm::unique(work.needs), work.needs.end());
  }
  return success();
}

FailureOr<StepGraph> pipewright::pipe::readStepGraph(StepOp step,
                                                     const Stages &stages) {
  FailureOr<schedules::Schedule> schedule =
      readSchedule(step->getParentOfType<ModuleOp>(), stages, step.getMode());
  if (failed(schedule))
    return failure();
  StepGraph graph;
  graph.tasks = std::move(*schedule);
  graph.edges = stages.edges(step.getMode());
  if (failed(GraphReader(step, stages, graph).read()))
    return failure();
  return graph;
}
