//===- PlanWriter.cpp - Writes a plan as JSON -------------------*- C++ -*-===//
//
// What is not said is left out. Tasks and messages are short texts, so that the
// file can be read and edited by hand.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/PlanFile.h"

#include "passes/schedules/files/PlanFormat.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace pipewright::schedules;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// One cell for each task, one for an overlapped pair.
static Array orderToJson(llvm::ArrayRef<Task> tasks) {
  Array cells;
  for (size_t i = 0; i < tasks.size(); ++i) {
    std::string cell = tasks[i].name();
    if (tasks[i].overlapsNext && i + 1 < tasks.size())
      cell += planPairSeparator + tasks[++i].name();
    cells.push_back(std::move(cell));
  }
  return cells;
}

static Value edgesToJson(llvm::ArrayRef<StageEdge> edges) {
  Array list;
  for (const StageEdge &edge : edges)
    list.push_back(Object{{"from", edge.from},
                          {"to", edge.to},
                          {"bytes", edge.bytes},
                          {"gradient", edge.hasGradient}});
  return list;
}

/// JSON has no infinity; a bandwidth without limit is null.
static Value bandwidthToJson(double bandwidth) {
  return std::isinf(bandwidth) ? Value(nullptr) : Value(bandwidth);
}

static Value costsToJson(const TaskCosts &costs, bool hasCopies) {
  Array stages, links;
  for (const StageCosts &stage : costs.stages) {
    Object object{{"forward", stage.forward},
                  {"backward", stage.backward},
                  {"input_gradient", stage.inputGradient},
                  {"weight_gradient", stage.weightGradient},
                  {"recompute", stage.recompute},
                  {"update", stage.update},
                  {"stash_bytes", stage.stashBytes},
                  {"weight_stash_bytes", stage.weightStashBytes}};
    if (stage.keptBytes >= 0)
      object["kept_bytes"] = stage.keptBytes;
    stages.push_back(std::move(object));
  }
  for (const auto &[ranks, link] : costs.links)
    links.push_back(Object{{"from", ranks.first},
                           {"to", ranks.second},
                           {"latency", link.latency},
                           {"bandwidth", bandwidthToJson(link.bandwidth)}});
  Object object{{"stages", std::move(stages)},
                {"link_latency", costs.linkLatency},
                {"link_bandwidth", bandwidthToJson(costs.linkBandwidth)},
                {"links", std::move(links)},
                {"pair_factor", costs.pairFactor}};
  if (hasCopies) {
    object["host_latency"] = costs.hostLink.latency;
    object["host_bandwidth"] = bandwidthToJson(costs.hostLink.bandwidth);
  }
  if (const Hosts &hosts = costs.hosts; hosts.processes > 0)
    object["hosts"] =
        Object{{"ranks", hosts.processes},
               {"replicas", hosts.mesh.data},
               {"process_map", nameOf(hosts.mesh.map)},
               {"latency", hosts.network.latency},
               {"bandwidth", bandwidthToJson(hosts.network.bandwidth)}};
  return object;
}

/// `send F2.3`: the output that edge 2 carries of micro-batch 3; G is its
/// gradient, X a transfer of the program's own. Rank and size follow from the
/// edge, and are told where they do not.
static std::string messageToJson(const RankInstruction &message,
                                 const PlanMessages &messages, int32_t rank) {
  const Transfer &transfer = message.transfer;
  std::string text =
      llvm::formatv("{0} {1}{2}.{3}", planMessageWord(message.kind),
                    planLetter(transfer.kind), transfer.edge,
                    transfer.microBatch)
          .str();
  std::optional<RankInstruction> implied =
      messages.find(message.kind, transfer, rank);
  if (implied)
    implied->groupedWithNext = message.groupedWithNext;
  if (!implied || *implied != message)
    text += llvm::formatv("{0}{1}{2}{3}", planRankWord, message.peer,
                          planBytesWord, message.bytes)
                .str();
  return text;
}

static Value listsToJson(const PlanFile &plan) {
  PlanMessages messages(plan.schedule, plan.edges);
  Array ranks;
  for (auto [rank, list] : llvm::enumerate(plan.lists)) {
    Array texts;
    std::string text;
    for (const RankInstruction &instruction : list) {
      text += instruction.kind == InstructionKind::Task
                  ? instruction.task.name()
                  : messageToJson(instruction, messages,
                                  static_cast<int32_t>(rank));
      if (instruction.groupedWithNext)
        text += planPairSeparator;
      else
        texts.push_back(std::exchange(text, ""));
    }
    ranks.push_back(std::move(texts));
  }
  return ranks;
}

static Value timesToJson(llvm::ArrayRef<std::vector<TaskTime>> times) {
  Array ranks;
  for (llvm::ArrayRef<TaskTime> tasks : times) {
    Array list;
    for (const TaskTime &time : tasks)
      list.push_back(Array{time.start, time.end});
    ranks.push_back(std::move(list));
  }
  return ranks;
}

static Value worksToJson(llvm::ArrayRef<TimedWork> works) {
  Array list;
  for (const auto &[work, time] : works) {
    Array ranks, posted, waited, left;
    bool isInside = false;
    for (const Work::Member &member : work.members) {
      left.push_back(member.left);
      isInside |= member.left > 0;
      ranks.push_back(member.rank);
      posted.push_back(member.posted);
      waited.push_back(member.waited);
    }
    Object entry{{"kind", work.kindText()},
                 {"of", pipewright::text::printable(work.name)},
                 {"bytes", work.bytes},
                 {"ranks", std::move(ranks)},
                 {"posted", std::move(posted)},
                 {"waited", std::move(waited)},
                 {"time", Array{time.start, time.end}}};
    if (isInside)
      entry["left"] = std::move(left);
    if (work.replicas > 1)
      entry["replicas"] = work.replicas;
    if (!work.needs.empty())
      entry["needs"] = Array(work.needs);
    if (work.stash)
      entry["stash"] = Array{work.stash->stage, work.stash->microBatch};
    list.push_back(std::move(entry));
  }
  return list;
}

static Object stageTasksToJson(const Schedule &schedule) {
  Object without;
  for (const auto &[key, has] : planStageTasks) {
    Array stages;
    for (auto [stage, tasks] : llvm::enumerate(schedule.stageTasks))
      if (!(tasks.*has))
        stages.push_back(static_cast<int64_t>(stage));
    if (!stages.empty())
      without[key] = std::move(stages);
  }
  return without;
}

int64_t PlanFile::replicas() const {
  for (const TimedWork &timed : timedWorks)
    if (timed.work.replicas > 1)
      return timed.work.replicas;
  return 1;
}

std::vector<Work> PlanFile::works() const {
  std::vector<Work> works;
  for (const TimedWork &timed : timedWorks)
    works.push_back(timed.work);
  return works;
}

Value pipewright::schedules::planToJson(const PlanFile &plan) {
  const Schedule &schedule = plan.schedule;
  Array placement, order;
  for (int32_t rank : schedule.rankOfStage)
    placement.push_back(rank);
  for (llvm::ArrayRef<Task> tasks : schedule.order)
    order.push_back(orderToJson(tasks));
  Object object{{"version", planVersion},
                {"ranks", schedule.ranks},
                {"stages", schedule.stages},
                {"micro_batches", schedule.microBatches},
                {"placement", std::move(placement)},
                {"order", std::move(order)}};
  if (schedule.copies != 1)
    object["copies"] = schedule.copies;
  if (schedule.updates != 1)
    object["updates"] = schedule.updates;
  if (schedule.weightRule != WeightRule::Synchronous)
    object["weights"] = planWeightRule(schedule.weightRule);
  if (schedule.forwardOnly)
    object["forward_only"] = true;
  if (Object without = stageTasksToJson(schedule); !without.empty())
    object["without"] = std::move(without);
  if (!plan.edges.empty())
    object["edges"] = edgesToJson(plan.edges);
  if (plan.costs)
    object["costs"] = costsToJson(
        *plan.costs, llvm::any_of(plan.timedWorks, [](const auto &timed) {
          return timed.work.isCopy();
        }));
  if (!plan.lists.empty())
    object["instructions"] = listsToJson(plan);
  if (!plan.times.empty())
    object["times"] = timesToJson(plan.times);
  if (!plan.timedWorks.empty())
    object["works"] = worksToJson(plan.timedWorks);
  return object;
}
