//===- CsvReader.cpp - Reads PyTorch's CSV ----------------------*- C++ -*-===//
//
// Two steps: cells become actions, and actions become a schedule (counts,
// placement, the dialect of the letter B). If there are messages, lists of
// instructions follow (CsvMessages.cpp).
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/Csv.h"

#include "passes/schedules/Refusal.h"
#include "passes/schedules/files/CsvActions.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::csv;

namespace {

constexpr Word words[] = {
    {"F", ActionKind::Forward, true},
    {"B", ActionKind::Backward, true},
    {"BW", ActionKind::BothGradients, true},
    {"I", ActionKind::InputGradient, true},
    {"W", ActionKind::WeightGradient, true},
    {"SEND_F", ActionKind::SendForward, true},
    {"RECV_F", ActionKind::ReceiveForward, true},
    {"SEND_B", ActionKind::SendGradient, true},
    {"RECV_B", ActionKind::ReceiveGradient, true},
    {"WAIT_SEND_F", ActionKind::WaitSendForward, true},
    {"WAIT_SEND_B", ActionKind::WaitSendGradient, true},
    {"UNSHARD", ActionKind::Ignored, false},
    {"RESHARD", ActionKind::Ignored, false},
    {"REDUCE_GRAD", ActionKind::Ignored, false},
    {"WAIT_REDUCE_GRAD", ActionKind::Ignored, false},
};

class Reader {
public:
  Reader(llvm::StringRef text, llvm::StringRef fileName)
      : text(text), fileName(fileName) {}

  llvm::Expected<CsvSchedule> read();

private:
  template <typename... Args>
  llvm::Error refuseAt(size_t rank, int32_t cell, const char *format,
                       Args &&...args) const {
    std::string message =
        llvm::formatv(format, std::forward<Args>(args)...).str();
    return refuse("{0}:{1}: cell {2}: {3}", fileName, rank + 1, cell, message);
  }

  llvm::Error readLine(llvm::StringRef line);
  llvm::Error readCell(llvm::StringRef cell, int32_t number);
  llvm::Error readPair(llvm::StringRef cell, int32_t number);
  llvm::Error readGroup(llvm::StringRef inside, int32_t number);
  llvm::Error readAction(llvm::StringRef cell, int32_t number);

  llvm::Error placeStages();
  llvm::Error countMicroBatches();
  llvm::Error countForwards() const;
  void findDialect();
  llvm::Error checkMessage(size_t rank, const Action &action) const;
  llvm::Error findDoubles() const;
  Task taskOf(const Action &action) const;
  void addTasks();
  void addNotes();

  llvm::StringRef text, fileName;
  std::vector<std::vector<Action>> lines;
  bool isOldDialect = false, hasMessages = false;
  std::map<llvm::StringRef, int64_t> ignored;
  CsvSchedule result;
};

} // namespace

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

llvm::Error Reader::readAction(llvm::StringRef cell, int32_t number) {
  auto isDigit = [](char c) { return llvm::isDigit(c); };
  llvm::StringRef stage = cell.take_while(isDigit);
  llvm::StringRef rest = cell.drop_front(stage.size());
  llvm::StringRef name = rest.take_until(isDigit);
  llvm::StringRef microBatch = rest.drop_front(name.size());
  const Word *word =
      llvm::find_if(words, [&](const Word &word) { return word.text == name; });
  bool isKnown = word != std::end(words);
  Action action;
  for (llvm::StringRef digits : {stage, microBatch.take_while(isDigit)})
    if (int32_t value; !digits.empty() && digits.getAsInteger(10, value))
      return refuseAt(lines.size() - 1, number,
                      "expects numbers of at most {0}, found '{1}'",
                      std::numeric_limits<int32_t>::max(),
                      text::shortened(cell));
  bool isNumbered = !microBatch.getAsInteger(10, action.microBatch);
  if (stage.getAsInteger(10, action.stage) || !isKnown ||
      word->hasMicroBatch != isNumbered ||
      (!word->hasMicroBatch && !microBatch.empty()))
    return refuseAt(
        lines.size() - 1, number, "expects {0}, found '{1}'",
        isKnown && word->hasMicroBatch
            ? "a stage, '" + word->text.str() + "' and a micro-batch"
        : isKnown ? "a stage and '" + word->text.str() + "'"
                  : std::string("an action such as 0F1 (stage, kind, "
                                "micro-batch; kinds are F, B, I, W, SEND_F, "
                                "RECV_F, SEND_B, RECV_B)"),
        text::shortened(cell));
  action.kind = word->kind;
  action.word = word;
  action.cell = number;
  if (action.kind == ActionKind::Ignored) {
    ++ignored[word->text];
    return llvm::Error::success();
  }
  hasMessages |= action.isMessage();
  lines.back().push_back(action);
  return llvm::Error::success();
}

/// Sends and receives that start together. PyTorch's runtime has them, as
/// `batch_isend_irecv`, but its format has no word for them.
llvm::Error Reader::readGroup(llvm::StringRef inside, int32_t number) {
  llvm::SmallVector<llvm::StringRef> cells;
  inside.split(cells, ';');
  for (auto [i, cell] : llvm::enumerate(cells)) {
    if (llvm::Error error = readAction(cell.trim(), number))
      return error;
    if (lines.back().empty() || lines.back().back().cell != number ||
        !lines.back().back().isPost())
      return refuseAt(lines.size() - 1, number,
                      "expects a group of sends and receives, found '{0}'",
                      text::shortened(cell));
    lines.back().back().groupedWithNext = i + 1 < cells.size();
  }
  return llvm::Error::success();
}

llvm::Error Reader::readPair(llvm::StringRef cell, int32_t number) {
  auto refusePair = [&] {
    return refuseAt(lines.size() - 1, number,
                    "expects a pair such as (0F7;7B3)OVERLAP_F_B, or a group "
                    "such as (0SEND_F7;0RECV_B3)BATCH_P2P, found '{0}'",
                    text::shortened(cell));
  };
  llvm::StringRef inside = cell.drop_front();
  if (inside.consume_back(csvGroupEnd))
    return readGroup(inside, number);
  if (!inside.consume_back(")OVERLAP_F_B"))
    return refusePair();
  auto [first, second] = inside.split(';');
  size_t before = lines.back().size();
  for (llvm::StringRef part : {first, second})
    if (llvm::Error error = readAction(part.trim(), number))
      return error;
  llvm::ArrayRef<Action> parts =
      llvm::ArrayRef<Action>(lines.back()).drop_front(before);
  if (parts.size() != 2 || !parts[0].isTask() || !parts[1].isTask())
    return refusePair();
  lines.back()[before].overlapsNext = true;
  return llvm::Error::success();
}

llvm::Error Reader::readCell(llvm::StringRef cell, int32_t number) {
  cell = cell.trim();
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
    cell = cell.drop_front().drop_back().trim();
  // Idle steps carry no more than time.
  if (cell.empty())
    return llvm::Error::success();
  return cell.front() == '(' ? readPair(cell, number)
                             : readAction(cell, number);
}

llvm::Error Reader::readLine(llvm::StringRef line) {
  lines.emplace_back();
  int32_t number = 0;
  for (bool isLast = false; !isLast;) {
    size_t end = line.find(',');
    isLast = end == llvm::StringRef::npos;
    if (llvm::Error error = readCell(line.take_front(end), ++number))
      return error;
    line = isLast ? "" : line.drop_front(end + 1);
  }
  if (lines.back().empty())
    return refuse("{0}:{1}: expects the actions of rank {2}, found none",
                  fileName, lines.size(), lines.size() - 1);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

llvm::Error Reader::placeStages() {
  std::map<int32_t, size_t> rankOfStage;
  for (auto [rank, actions] : llvm::enumerate(lines))
    for (const Action &action : actions) {
      if (!action.isTask())
        continue;
      auto [found, isNew] = rankOfStage.try_emplace(action.stage, rank);
      if (found->second != rank)
        return refuseAt(rank, action.cell,
                        "'{0}' runs stage {1}, which is on rank {2} (line "
                        "{3}); expects each stage on one rank",
                        action.name(), action.stage, found->second,
                        found->second + 1);
    }
  Schedule &schedule = result.schedule;
  for (const auto &[stage, rank] : rankOfStage) {
    if (stage != static_cast<int32_t>(schedule.rankOfStage.size()))
      return refuse(
          "{0}:{1}: stage {2} occurs, but stage {3} does not; expects "
          "all stages from 0 on",
          fileName, rank + 1, stage, schedule.rankOfStage.size());
    schedule.rankOfStage.push_back(static_cast<int32_t>(rank));
  }
  schedule.ranks = static_cast<int64_t>(lines.size());
  schedule.stages = static_cast<int64_t>(rankOfStage.size());
  if (schedule.stages == 0)
    return refuse("{0}: expects tasks, found only messages", fileName);
  return llvm::Error::success();
}

llvm::Error Reader::countMicroBatches() {
  std::set<int32_t> found;
  for (const std::vector<Action> &actions : lines)
    for (const Action &action : actions)
      if (action.isTask())
        found.insert(action.microBatch);
  for (int32_t microBatch : found)
    if (microBatch != result.schedule.microBatches++)
      return refuse("{0}: micro-batch {1} occurs, but micro-batch {2} does "
                    "not; expects all micro-batches from 0 on",
                    fileName, microBatch, result.schedule.microBatches - 1);
  return countForwards();
}

/// A stage that lacks some forwards is told here, so that whatever follows may
/// use memory in proportion to stages times micro-batches.
llvm::Error Reader::countForwards() const {
  std::vector<int64_t> forwards(result.schedule.stages);
  for (const std::vector<Action> &actions : lines)
    for (const Action &action : actions)
      if (action.kind == ActionKind::Forward)
        ++forwards[action.stage];
  for (auto [stage, count] : llvm::enumerate(forwards))
    if (count != result.schedule.microBatches)
      return refuse("{0}:{1}: stage {2} has {3} forward{4}, but there are {5} "
                    "micro-batches",
                    fileName, result.schedule.rankOfStage[stage] + 1, stage,
                    count, count == 1 ? "" : "s", result.schedule.microBatches);
  return llvm::Error::success();
}

void Reader::findDialect() {
  const Schedule &schedule = result.schedule;
  std::vector<uint8_t> seen(schedule.stages * schedule.microBatches);
  bool isSplit = false, hasInputGradient = false;
  for (const std::vector<Action> &actions : lines)
    for (const Action &action : actions) {
      hasInputGradient |= action.kind == ActionKind::InputGradient;
      isOldDialect |= action.kind == ActionKind::BothGradients;
      if (action.kind != ActionKind::Backward &&
          action.kind != ActionKind::WeightGradient)
        continue;
      uint8_t &bits =
          seen[action.stage * schedule.microBatches + action.microBatch];
      bits |= action.kind == ActionKind::Backward ? 1 : 2;
      isSplit |= bits == 3;
    }
  // A file that knows the letter I means by B what it says today.
  isOldDialect |= isSplit && !hasInputGradient;
}

llvm::Error Reader::checkMessage(size_t rank, const Action &action) const {
  const Schedule &schedule = result.schedule;
  if (action.stage >= schedule.stages ||
      action.microBatch >= schedule.microBatches)
    return refuseAt(rank, action.cell,
                    "'{0}', but the file has tasks of {1} stages and {2} "
                    "micro-batches",
                    action.name(), schedule.stages, schedule.microBatches);
  int32_t home = schedule.rankOfStage[action.stage];
  if (home != static_cast<int32_t>(rank))
    return refuseAt(rank, action.cell,
                    "'{0}' is a message of stage {1}, which is on rank {2} "
                    "(line {3})",
                    action.name(), action.stage, home, home + 1);
  bool toNext = action.kind == ActionKind::SendForward ||
                action.kind == ActionKind::WaitSendForward ||
                action.kind == ActionKind::ReceiveGradient;
  int32_t other = action.stage + (toNext ? 1 : -1);
  if (other < 0 || other >= schedule.stages)
    return refuseAt(rank, action.cell, "'{0}', but stage {1} is the {2}",
                    action.name(), action.stage, toNext ? "last" : "first");
  if (schedule.rankOfStage[other] == home)
    return refuseAt(rank, action.cell,
                    "'{0}', but stages {1} and {2} are both on rank {3}; "
                    "expects no message between them",
                    action.name(), std::min(action.stage, other),
                    std::max(action.stage, other), home);
  return llvm::Error::success();
}

llvm::Error Reader::findDoubles() const {
  const Schedule &schedule = result.schedule;
  std::vector<uint16_t> seen(schedule.stages * schedule.microBatches);
  for (auto [rank, actions] : llvm::enumerate(lines))
    for (const Action &action : actions) {
      if (action.isMessage())
        if (llvm::Error error = checkMessage(rank, action))
          return error;
      uint16_t &bits =
          seen[action.stage * schedule.microBatches + action.microBatch];
      uint16_t bit = 1u << static_cast<unsigned>(action.kind);
      if (bits & bit) {
        const Action &first = *llvm::find_if(actions, [&](const Action &a) {
          return a.kind == action.kind && a.stage == action.stage &&
                 a.microBatch == action.microBatch;
        });
        return refuseAt(rank, action.cell, "'{0}' is in cell {1} already",
                        action.name(), first.cell);
      }
      bits |= bit;
    }
  return llvm::Error::success();
}

Task Reader::taskOf(const Action &action) const {
  Task task;
  switch (action.kind) {
  case ActionKind::Forward:
    task = Task::forward(action.stage, action.microBatch);
    break;
  case ActionKind::InputGradient:
    task = Task::inputGradient(action.stage, action.microBatch);
    break;
  case ActionKind::WeightGradient:
    task = Task::weightGradient(action.stage, action.microBatch);
    break;
  case ActionKind::Backward:
    task = isOldDialect ? Task::inputGradient(action.stage, action.microBatch)
                        : Task::backward(action.stage, action.microBatch);
    break;
  default:
    task = Task::backward(action.stage, action.microBatch);
    break;
  }
  task.overlapsNext = action.overlapsNext;
  return task;
}

void Reader::addTasks() {
  Schedule &schedule = result.schedule;
  schedule.order.resize(schedule.ranks);
  schedule.forwardOnly = true;
  for (auto [actions, order] : llvm::zip(lines, schedule.order))
    for (const Action &action : actions)
      if (action.isTask()) {
        order.push_back(taskOf(action));
        schedule.forwardOnly &= action.kind == ActionKind::Forward;
      }
  if (schedule.forwardOnly)
    return;
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    schedule.order[schedule.rankOfStage[stage]].push_back(Task::update(stage));
}

void Reader::addNotes() {
  if (isOldDialect)
    result.notes.push_back("B was read as the gradient of the input, as the "
                           "file has W for the same micro-batches");
  if (result.schedule.forwardOnly)
    result.notes.push_back("there are forwards only: no gradient, no update");
  std::vector<std::string> counts;
  for (const auto &[word, count] : ignored)
    counts.push_back(std::to_string(count) + " " + word.str());
  if (!counts.empty())
    result.notes.push_back("left out: " + llvm::join(counts, ", ") +
                           " (sharded parameters and data-parallel gradients "
                           "are not part of a schedule)");
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

llvm::Expected<CsvSchedule> Reader::read() {
  text.consume_front("\xef\xbb\xbf");
  text = text.rtrim();
  if (text.empty())
    return refuse("{0}: expects a line of actions per rank, but the file is "
                  "empty",
                  fileName);
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    if (llvm::Error error = readLine(line))
      return error;
    text = rest;
  }
  if (llvm::Error error = placeStages())
    return error;
  if (llvm::Error error = countMicroBatches())
    return error;
  findDialect();
  if (llvm::Error error = findDoubles())
    return error;
  addTasks();
  addNotes();
  if (hasMessages)
    for (auto [rank, actions] : llvm::enumerate(lines))
      result.lists.push_back(
          instructionsOf(result.schedule, static_cast<int32_t>(rank), actions));
  return std::move(result);
}

llvm::Expected<CsvSchedule>
pipewright::schedules::parseCsv(llvm::StringRef text,
                                llvm::StringRef fileName) {
  return Reader(text, fileName).read();
}
