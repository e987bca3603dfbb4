//===- CsvWriter.cpp - Writes PyTorch's CSV ---------------------*- C++ -*-===//
//
// Strict: a schedule that the format cannot say is refused, with the reason,
// instead of written as something else.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/Csv.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace pipewright::schedules;

template <typename... Args>
static llvm::Error cannotSay(const char *format, Args &&...args) {
  return refuse("cannot be written as PyTorch's CSV: {0}",
                llvm::formatv(format, std::forward<Args>(args)...).str());
}

static llvm::Error checkPairs(llvm::ArrayRef<Task> order) {
  auto isForwardWithBackward = [](const Task &a, const Task &b) {
    return a.kind == TaskKind::Forward && b.producesGradient();
  };
  for (size_t i = 0; i + 1 < order.size(); ++i)
    if (order[i].overlapsNext &&
        !isForwardWithBackward(order[i], order[i + 1]) &&
        !isForwardWithBackward(order[i + 1], order[i]))
      return cannotSay("{0} overlaps with {1}, but PyTorch overlaps a forward "
                       "with a backward only",
                       order[i].name(), order[i + 1].name());
  return llvm::Error::success();
}

static llvm::Error checkSayable(const Schedule &schedule,
                                llvm::ArrayRef<StageEdge> edges) {
  if (llvm::Error error = checkSchedule(schedule, edges))
    return error;
  if (schedule.copies > 1)
    return cannotSay("it has {0} copies of each stage, and a stage of a CSV is "
                     "on one rank",
                     schedule.copies);
  if (schedule.updates > 1 || schedule.weightRule != WeightRule::Synchronous)
    return cannotSay("it updates weights inside of the step, for which there "
                     "is no letter");
  if (schedule.forwardOnly)
    return cannotSay("it has forwards only, and PyTorch expects a backward of "
                     "each");
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    if (!schedule.tasksOf(stage).backward)
      return cannotSay("no gradient reaches stage {0}, and PyTorch expects a "
                       "backward of each",
                       stage);
  for (const StageEdge &edge : edges)
    if (edge.to != edge.from + 1)
      return cannotSay("stage {0} feeds stage {1}, and PyTorch sends to the "
                       "next stage only",
                       edge.from, edge.to);
  for (auto [rank, order] : llvm::enumerate(schedule.order)) {
    if (!llvm::is_contained(schedule.rankOfStage, static_cast<int32_t>(rank)))
      return cannotSay("rank {0} has no stage", rank);
    for (const Task &task : order)
      if (task.kind == TaskKind::Recompute)
        return cannotSay("there is no letter for recomputation ({0})",
                         task.name());
    if (llvm::Error error = checkPairs(order))
      return error;
  }
  return llvm::Error::success();
}

static std::string cellOf(const Task &task) {
  return std::to_string(task.stage) + letterOf(task.kind) +
         std::to_string(task.microBatch);
}

static std::string cellOf(const Task &first, const Task &second) {
  return "(" + cellOf(first) + ";" + cellOf(second) + ")OVERLAP_F_B";
}

/// Start times in slots, when every task takes one, and a pair too.
static llvm::Expected<Simulation> simulateSlots(const Schedule &schedule) {
  TaskCosts costs = TaskCosts::uniform(schedule.stages);
  for (StageCosts &stage : costs.stages)
    stage.inputGradient = stage.weightGradient = 1;
  costs.pairFactor = 0.5;
  return simulate(schedule, costs);
}

llvm::Expected<std::string>
pipewright::schedules::writeComputeOnlyCsv(const Schedule &schedule,
                                           llvm::ArrayRef<StageEdge> edges) {
  if (llvm::Error error = checkSayable(schedule, edges))
    return error;
  llvm::Expected<Simulation> simulation = simulateSlots(schedule);
  if (!simulation)
    return simulation.takeError();
  int64_t slots = std::llround(simulation->globalStepTime);
  std::string text;
  for (auto [order, times] : llvm::zip(schedule.order, simulation->times)) {
    int64_t column = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i].kind == TaskKind::Update)
        continue;
      for (int64_t start = std::llround(times[i].start); column < start;
           ++column)
        text += ',';
      bool isPair = order[i].overlapsNext;
      text += isPair ? cellOf(order[i], order[i + 1]) : cellOf(order[i]);
      i += isPair;
      if (++column < slots)
        text += ',';
    }
    for (; column + 1 < slots; ++column)
      text += ',';
    text += '\n';
  }
  return text;
}

static std::string cellOf(const RankInstruction &message) {
  bool isForward = message.transfer.kind == TransferKind::Forward;
  bool isReceive = message.kind == InstructionKind::PostReceive;
  const char *word = isReceive                                   ? "RECV_"
                     : message.kind == InstructionKind::PostSend ? "SEND_"
                                                                 : "WAIT_SEND_";
  // The cell names the stage at its own end.
  int32_t stage = message.transfer.edge + (isForward == isReceive);
  return std::to_string(stage) + word + (isForward ? "F" : "B") +
         std::to_string(message.transfer.microBatch);
}

/// The cells of one rank. What is posted between the tasks of a pair is posted
/// before both: posts keep their order, and none of them blocks.
static llvm::Expected<std::string> lineOf(llvm::ArrayRef<RankInstruction> list,
                                          bool withSendWaits) {
  std::string line, group;
  auto append = [&](const std::string &cell) {
    line += (line.empty() ? "" : ",") + cell;
  };
  const Task *first = nullptr;
  for (const RankInstruction &instruction : list) {
    if (instruction.kind == InstructionKind::Task) {
      const Task &task = instruction.task;
      if (task.overlapsNext && !first)
        first = &task;
      else if (task.kind != TaskKind::Update)
        append(first ? cellOf(*std::exchange(first, nullptr), task)
                     : cellOf(task));
      continue;
    }
    if (instruction.transfer.kind == TransferKind::Work)
      return cannotSay("it has transfers that are neither outputs nor "
                       "gradients of stages, as for tied weights");
    // The wait for a receive is part of its consumer.
    if (instruction.kind != InstructionKind::WaitReceive &&
        (instruction.kind != InstructionKind::WaitSend || withSendWaits)) {
      if (instruction.groupedWithNext || !group.empty())
        group += (group.empty() ? "(" : ";") + cellOf(instruction);
      if (group.empty())
        append(cellOf(instruction));
      else if (!instruction.groupedWithNext)
        append(std::exchange(group, "") + csvGroupEnd.str());
    }
  }
  return line;
}

llvm::Expected<std::string> pipewright::schedules::writeComputeCommsCsv(
    const Schedule &schedule, const InstructionLists &lists,
    llvm::ArrayRef<StageEdge> edges, bool withSendWaits) {
  if (llvm::Error error = checkSayable(schedule, edges))
    return error;
  for (auto [number, edge] : llvm::enumerate(edges)) {
    bool isNext = edge.from == static_cast<int32_t>(number);
    if (!isNext || !edge.hasGradient)
      return cannotSay(
          "{0}, and a CSV has one message and its gradient from each stage to "
          "the next",
          isNext ? "an edge has no gradient"
                 : "several tensors, or none, go from one stage to the next");
  }
  if (!edges.empty() &&
      static_cast<int64_t>(edges.size()) != schedule.stages - 1)
    return cannotSay("stage {0} feeds no other", edges.size());
  if (llvm::Error error = checkDataFlow(schedule, lists, edges))
    return error;
  std::string text;
  for (llvm::ArrayRef<RankInstruction> list : lists) {
    llvm::Expected<std::string> line = lineOf(list, withSendWaits);
    if (!line)
      return line.takeError();
    text += *line + "\n";
  }
  return text;
}
