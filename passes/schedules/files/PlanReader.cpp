//===- PlanReader.cpp - Reads a plan from JSON ------------------*- C++ -*-===//
//
// Its parts; what single values may be says PlanValues.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/PlanFile.h"

#include "passes/schedules/Refusal.h"
#include "passes/schedules/files/PlanCosts.h"
#include "passes/schedules/files/PlanFormat.h"
#include "passes/schedules/files/PlanValues.h"
#include "passes/schedules/files/PlanWorks.h"
#include "support/Json.h"
#include "support/Text.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::plan;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

namespace {

class Reader {
public:
  Reader(PlanFile &plan) : plan(plan), schedule(plan.schedule) {}

  llvm::Error read(const Value &value, const JsonPath &place);

private:
  llvm::Error readVersion(const Value &value, const JsonPath &place);
  llvm::Error checkCounts(const JsonPath &place);
  llvm::Error readWeightRule(const Value &value, const JsonPath &place);
  llvm::Error readPlacement(const Value &value, const JsonPath &place);
  llvm::Error readStageTasks(const Value &value, const JsonPath &place);
  llvm::Error readOrder(const Value &value, const JsonPath &place);
  llvm::Error readTask(llvm::StringRef text, const JsonPath &place, Task &task);
  llvm::Error readCell(const Value &value, const JsonPath &place,
                       std::vector<Task> &tasks);
  llvm::Error readEdges(const Value &value, const JsonPath &place);
  llvm::Error readLists(const Value &value, const JsonPath &place);
  llvm::Error readInstruction(const Value &value, const JsonPath &place,
                              const PlanMessages &messages, int32_t rank);
  llvm::Error readSingleInstruction(const Value &value, const JsonPath &place,
                                    const PlanMessages &messages, int32_t rank);

  llvm::Error readCosts(const Value &value, const JsonPath &place) {
    return plan::readCosts(value, place, plan);
  }
  llvm::Error readTimes(const Value &value, const JsonPath &place) {
    return plan::readTimes(value, place, plan);
  }
  llvm::Error readWorks(const Value &value, const JsonPath &place) {
    return plan::readWorks(value, place, plan);
  }

  PlanFile &plan;
  Schedule &schedule;
};

} // namespace

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

llvm::Error Reader::readVersion(const Value &value, const JsonPath &place) {
  int64_t version = 0;
  if (llvm::Error error = readInteger(value, place, version, anySize))
    return error;
  if (version != planVersion)
    return refuseAt(place, "expects {0}, found {1}", planVersion, version);
  return llvm::Error::success();
}

llvm::Error Reader::checkCounts(const JsonPath &place) {
  if (schedule.stages % schedule.copies != 0 ||
      schedule.microBatches % (schedule.copies * schedule.updates) != 0)
    return refuseAt(place,
                    "expects copies and updates that divide stages and "
                    "micro-batches, found {0} copies and {1} updates of {2} "
                    "stages and {3} micro-batches",
                    schedule.copies, schedule.updates, schedule.stages,
                    schedule.microBatches);
  return llvm::Error::success();
}

llvm::Error Reader::readWeightRule(const Value &value, const JsonPath &place) {
  for (const auto &[rule, word] : planWeightRules)
    if (value.getAsString() == llvm::StringRef(word)) {
      schedule.weightRule = rule;
      return llvm::Error::success();
    }
  return refuseAt(place,
                  "expects \"synchronous\", \"newest\" or "
                  "\"delayed-by-one\", found {0}",
                  show(value));
}

llvm::Error Reader::readPlacement(const Value &value, const JsonPath &place) {
  auto readRank = [&](const Value &value, const JsonPath &at, size_t) {
    return readInteger(value, at, schedule.rankOfStage.emplace_back(),
                       {0, schedule.ranks - 1});
  };
  return readEach(value, place, readRank, schedule.stages, "stages");
}

llvm::Error Reader::readStageTasks(const Value &value, const JsonPath &place) {
  schedule.stageTasks.resize(schedule.stages);
  std::vector<Field> fields;
  for (const auto &[key, has] : planStageTasks) {
    auto readStage = [this, has = has](const Value &value, const JsonPath &at,
                                       size_t) -> llvm::Error {
      int32_t stage = 0;
      if (llvm::Error error =
              readInteger(value, at, stage, {0, schedule.stages - 1}))
        return error;
      schedule.stageTasks[stage].*has = false;
      return llvm::Error::success();
    };
    fields.push_back({key, [=](const Value &value, const JsonPath &at) {
                        return readEach(value, at, readStage);
                      }});
  }
  return readObject(value, place, fields);
}

/// `F0.3`, `U2` or `U2.1`.
llvm::Error Reader::readTask(llvm::StringRef text, const JsonPath &place,
                             Task &task) {
  llvm::StringRef rest = text;
  task.kind = static_cast<TaskKind>(numTaskKinds);
  for (unsigned kind = 0; kind < numTaskKinds; ++kind)
    if (rest.starts_with(
            llvm::StringRef(std::string(1, letterOf(TaskKind(kind))))))
      task.kind = TaskKind(kind);
  auto [stage, microBatch] = rest.drop_front(!rest.empty()).split('.');
  bool isFirstUpdate = task.kind == TaskKind::Update && !rest.contains('.');
  bool hasNumbers =
      !stage.getAsInteger(10, task.stage) &&
      (isFirstUpdate || !microBatch.getAsInteger(10, task.microBatch));
  if (static_cast<unsigned>(task.kind) == numTaskKinds || !hasNumbers)
    return refuseAt(place,
                    "expects a task such as F0.3 (one of F, B, I, W, R, the "
                    "stage, the micro-batch) or U0, found '{0}'",
                    text::shortened(text, 32));
  int64_t most =
      task.kind == TaskKind::Update ? schedule.updates : schedule.microBatches;
  if (task.stage < 0 || task.stage >= schedule.stages || task.microBatch < 0 ||
      task.microBatch >= most)
    return refuseAt(place, "'{0}', but there are {1} stages and {2} {3}", text,
                    schedule.stages, most,
                    task.kind == TaskKind::Update ? "updates"
                                                  : "micro-batches");
  return llvm::Error::success();
}

llvm::Error Reader::readCell(const Value &value, const JsonPath &place,
                             std::vector<Task> &tasks) {
  std::optional<llvm::StringRef> text = value.getAsString();
  if (!text)
    return refuseAt(place, "expects a task such as \"F0.3\", found {0}",
                    show(value));
  auto [first, second] = text->split(planPairSeparator);
  bool isPair = first.size() < text->size();
  if (llvm::Error error = readTask(first, place, tasks.emplace_back()))
    return error;
  if (!isPair)
    return llvm::Error::success();
  tasks.back().overlapsNext = true;
  if (llvm::Error error = readTask(second, place, tasks.emplace_back()))
    return error;
  for (const Task &task : llvm::ArrayRef<Task>(tasks).take_back(2))
    if (task.kind == TaskKind::Update)
      return refuseAt(place,
                      "'{0}' overlaps an update; expects two tasks of "
                      "micro-batches",
                      *text);
  return llvm::Error::success();
}

llvm::Error Reader::readOrder(const Value &value, const JsonPath &place) {
  // Every pair of stage and micro-batch needs a task, so a file that is much
  // smaller than its numbers say is wrong before memory is spent on them.
  int64_t tasks = 0;
  auto readRank = [&](const Value &value, const JsonPath &at,
                      size_t) -> llvm::Error {
    std::vector<Task> &order = schedule.order.emplace_back();
    if (const Array *list = value.getAsArray())
      order.reserve(list->size());
    if (llvm::Error error = readEach(
            value, at, [&](const Value &cell, const JsonPath &at, size_t) {
              return readCell(cell, at, order);
            }))
      return error;
    tasks += static_cast<int64_t>(order.size());
    return llvm::Error::success();
  };
  if (llvm::Error error =
          readEach(value, place, readRank, schedule.ranks, "ranks"))
    return error;
  if (tasks < schedule.stages * schedule.microBatches / schedule.copies)
    return refuseAt(place,
                    "expects a task or more for each of {0} stages and {1} "
                    "micro-batches, found {2} in all",
                    schedule.stages, schedule.microBatches, tasks);
  noteRecomputes(schedule);
  return llvm::Error::success();
}

llvm::Error Reader::readEdges(const Value &value, const JsonPath &place) {
  const Array *list = value.getAsArray();
  if (schedule.stages < 2 && list && !list->empty())
    return refuseAt(place, "expects none, as there is one stage, found {0}",
                    list->size());
  auto readEdge = [&](const Value &value, const JsonPath &at, size_t) {
    StageEdge &edge = plan.edges.emplace_back();
    auto readTo = [&](const Value &value, const JsonPath &at) {
      return readInteger(value, at, edge.to,
                         {edge.from + 1, schedule.stages - 1});
    };
    return readObject(
        value, at,
        {required({"from", integer(edge.from, {0, schedule.stages - 2})}),
         required({"to", readTo}),
         {"bytes", integer(edge.bytes, anySize)},
         {"gradient", flag(edge.hasGradient)}});
  };
  return readEach(value, place, readEdge);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// `F2.3`, with an optional ` rank 1 bytes 64` behind it.
static bool readMessage(llvm::StringRef text, RankInstruction &instruction,
                        bool &isExplicit) {
  size_t letter =
      text.empty() ? llvm::StringRef::npos : planLetters.find(text[0]);
  if (letter == llvm::StringRef::npos)
    return false;
  instruction.transfer.kind = static_cast<TransferKind>(letter);
  auto [name, ends] = text.drop_front().split(planRankWord);
  isExplicit = name.size() + 1 < text.size();
  auto [edge, microBatch] = name.split('.');
  if (edge.getAsInteger(10, instruction.transfer.edge) ||
      microBatch.getAsInteger(10, instruction.transfer.microBatch))
    return false;
  if (!isExplicit)
    return true;
  auto [peer, bytes] = ends.split(planBytesWord);
  return !peer.getAsInteger(10, instruction.peer) &&
         !bytes.getAsInteger(10, instruction.bytes);
}

llvm::Error Reader::readInstruction(const Value &value, const JsonPath &place,
                                    const PlanMessages &messages,
                                    int32_t rank) {
  std::optional<llvm::StringRef> text = value.getAsString();
  if (!text || !text->contains(planPairSeparator))
    return readSingleInstruction(value, place, messages, rank);
  // A group of posts.
  llvm::SmallVector<llvm::StringRef> parts;
  text->split(parts, planPairSeparator);
  std::vector<RankInstruction> &list = plan.lists[rank];
  for (auto [i, part] : llvm::enumerate(parts)) {
    if (llvm::Error error =
            readSingleInstruction(Value(part), place, messages, rank))
      return error;
    if (list.back().kind != InstructionKind::PostSend &&
        list.back().kind != InstructionKind::PostReceive)
      return refuseAt(place, "expects a group of sends and receives, found {0}",
                      show(value));
    list.back().groupedWithNext = i + 1 < parts.size();
  }
  return llvm::Error::success();
}

llvm::Error Reader::readSingleInstruction(const Value &value,
                                          const JsonPath &place,
                                          const PlanMessages &messages,
                                          int32_t rank) {
  std::vector<RankInstruction> &list = plan.lists[rank];
  std::optional<llvm::StringRef> text = value.getAsString();
  auto [word, rest] = text.value_or("").split(' ');
  const auto *kind = llvm::find_if(planMessageWords, [&](const auto &known) {
    return known.second == word;
  });
  if (text && kind == std::end(planMessageWords)) {
    Task task;
    if (llvm::Error error = readTask(*text, place, task))
      return error;
    list.push_back(RankInstruction::compute(task));
    return llvm::Error::success();
  }
  RankInstruction instruction;
  bool isExplicit = false;
  if (!text || !readMessage(rest, instruction, isExplicit))
    return refuseAt(place,
                    "expects a task, or a message such as \"send F2.3\" (send, "
                    "receive, wait-send or wait-receive; F, G or X, the edge, "
                    "the micro-batch), found {0}",
                    show(value));
  instruction.kind = kind->first;
  if (isExplicit) {
    if (instruction.peer < 0 || instruction.peer >= schedule.ranks ||
        instruction.peer == rank || instruction.bytes < 0)
      return refuseAt(place,
                      "expects another of {0} ranks and no negative size, "
                      "found '{1}'",
                      schedule.ranks, *text);
    list.push_back(instruction);
    return llvm::Error::success();
  }
  std::optional<RankInstruction> implied =
      messages.find(instruction.kind, instruction.transfer, rank);
  if (!implied)
    return refuseAt(
        place, "'{0}', but rank {1} is not at that end of {2} {3}", *text, rank,
        instruction.transfer.kind == TransferKind::Work ? "work" : "edge",
        instruction.transfer.edge);
  list.push_back(*implied);
  return llvm::Error::success();
}

/// Whether tasks overlap is said in the order; the lists follow it.
static void markPairs(std::vector<RankInstruction> &list,
                      llvm::ArrayRef<Task> order) {
  size_t next = 0;
  for (RankInstruction &instruction : list)
    if (instruction.kind == InstructionKind::Task && next < order.size())
      instruction.task.overlapsNext = order[next++].overlapsNext;
}

llvm::Error Reader::readLists(const Value &value, const JsonPath &place) {
  PlanMessages messages(schedule, plan.edges);
  plan.lists.resize(schedule.ranks);
  auto readRank = [&](const Value &value, const JsonPath &at,
                      size_t rank) -> llvm::Error {
    if (llvm::Error error = readEach(
            value, at, [&](const Value &value, const JsonPath &at, size_t) {
              return readInstruction(value, at, messages, rank);
            }))
      return error;
    markPairs(plan.lists[rank], schedule.order[rank]);
    return llvm::Error::success();
  };
  return readEach(value, place, readRank, schedule.ranks, "ranks");
}

llvm::Error Reader::read(const Value &value, const JsonPath &place) {
  auto with =
      [&](llvm::Error (Reader::*read)(const Value &, const JsonPath &)) {
        return [this, read](const Value &value, const JsonPath &at) {
          return (this->*read)(value, at);
        };
      };
  constexpr Range counts = {1, int64_t(1) << 24};
  auto readPlacement = [&](const Value &value, const JsonPath &at) {
    llvm::Error error = checkCounts(place);
    return error ? std::move(error) : this->readPlacement(value, at);
  };
  // Each stands on those before it.
  return readObject(
      value, place,
      {required({"version", with(&Reader::readVersion)}),
       required({"ranks", integer(schedule.ranks, counts)}),
       required({"stages", integer(schedule.stages, counts)}),
       required({"micro_batches", integer(schedule.microBatches, counts)}),
       {"copies", integer(schedule.copies, {1, 2})},
       {"updates", integer(schedule.updates, counts)},
       {"weights", with(&Reader::readWeightRule)},
       {"forward_only", flag(schedule.forwardOnly)},
       required({"placement", readPlacement}),
       {"without", with(&Reader::readStageTasks)},
       required({"order", with(&Reader::readOrder)}),
       {"edges", with(&Reader::readEdges)},
       {"costs", with(&Reader::readCosts)},
       {"instructions", with(&Reader::readLists)},
       {"times", with(&Reader::readTimes)},
       {"works", with(&Reader::readWorks)}});
}

llvm::Expected<PlanFile>
pipewright::schedules::parsePlan(llvm::StringRef text,
                                 llvm::StringRef fileName) {
  llvm::Expected<Value> value = parseJson(text);
  if (!value)
    return refuse("{0}: {1}", fileName, llvm::toString(value.takeError()));
  JsonPath root{nullptr, fileName};
  const Value *schedule = &*value;
  JsonPath place = root;
  if (const Object *object = value->getAsObject())
    if (const Value *inner = object->get(scheduleKey)) {
      schedule = inner;
      place = root.at(scheduleKey);
    }
  PlanFile plan;
  if (llvm::Error error = Reader(plan).read(*schedule, place))
    return error;
  return plan;
}
