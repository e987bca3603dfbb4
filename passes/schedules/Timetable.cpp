//===- Timetable.cpp - A schedule as a drawn grid ---------------*- C++ -*-===//
//
// See Timetable.h. Times are rounded to slots; a task never begins before the
// one before it on its rank ends, so nothing is hidden by rounding.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Timetable.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace pipewright::schedules;
using llvm::formatv;

namespace {

class Grid {
public:
  Grid(const Schedule &schedule, const Simulation *simulation)
      : schedule(schedule), simulation(simulation) {
    for (auto [stage, rank] : llvm::enumerate(schedule.rankOfStage))
      namesStages |= static_cast<int64_t>(stage) != rank;
    findSlotLength();
    for (size_t rank = 0; rank < schedule.order.size(); ++rank)
      for (auto [i, task] : llvm::enumerate(schedule.order[rank]))
        if (task.kind != TaskKind::Update) {
          size_t length = slotsOf(rank, i);
          cellWidth = std::max(cellWidth, textOf(rank, i).size() / length + 1);
          usedKinds |= 1u << static_cast<unsigned>(task.kind);
        }
  }

  std::string draw();
  double slotSeconds() const { return slotLength; }

private:
  void findSlotLength();
  std::string drawRank(size_t rank);
  std::string legend() const;
  std::string nameOf(const Task &task) const;
  std::string textOf(size_t rank, size_t position) const;
  int64_t slotsOf(size_t rank, size_t position) const;

  const Schedule &schedule;
  const Simulation *simulation;
  bool namesStages = false;
  double slotLength = 0;
  size_t cellWidth = 1;
  unsigned usedKinds = 0;
  int64_t numSlots = 0;
};

} // namespace

std::string Grid::nameOf(const Task &task) const {
  if (namesStages)
    return task.name();
  return letterOf(task.kind) + std::to_string(task.microBatch);
}

/// How a task is written, or the overlapped pair that begins there.
std::string Grid::textOf(size_t rank, size_t position) const {
  const Task *task = &schedule.order[rank][position];
  return task->overlapsNext ? nameOf(task[0]) + "&" + nameOf(task[1])
                            : nameOf(*task);
}

int64_t Grid::slotsOf(size_t rank, size_t position) const {
  if (slotLength <= 0)
    return 1;
  const TaskTime &time = simulation->times[rank][position];
  return std::max<int64_t>(1,
                           std::llround((time.end - time.start) / slotLength));
}

/// The shortest task, but not so short that the longest fills the screen.
void Grid::findSlotLength() {
  if (!simulation)
    return;
  double shortest = 0, longest = 0;
  for (size_t rank = 0; rank < schedule.order.size(); ++rank)
    for (auto [i, task] : llvm::enumerate(schedule.order[rank])) {
      const TaskTime &time = simulation->times[rank][i];
      double seconds = time.end - time.start;
      if (task.kind == TaskKind::Update || seconds <= 0)
        continue;
      shortest = shortest > 0 ? std::min(shortest, seconds) : seconds;
      longest = std::max(longest, seconds);
    }
  constexpr double maxSlotsPerTask = 8;
  slotLength = std::max(shortest, longest / maxSlotsPerTask);
}

std::string Grid::drawRank(size_t rank) {
  std::string line;
  int64_t slot = 0;
  bool isSecond = false;
  for (auto [i, task] : llvm::enumerate(schedule.order[rank])) {
    bool isDrawn = std::exchange(isSecond, task.overlapsNext);
    if (isDrawn || task.kind == TaskKind::Update)
      continue;
    int64_t length = slotsOf(rank, i);
    if (slotLength > 0)
      slot = std::max<int64_t>(
          slot, std::llround(simulation->times[rank][i].start / slotLength));
    line.resize(slot * cellWidth, ' ');
    line += textOf(rank, i);
    slot += length;
    line.resize(slot * cellWidth - 1, length > 1 ? '-' : ' ');
  }
  numSlots = std::max(numSlots, slot);
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::string Grid::legend() const {
  auto count = [](int64_t number, const char *what) -> std::string {
    return formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s");
  };
  std::string text = count(schedule.ranks, "rank");
  if (namesStages)
    text += ", " + count(schedule.stages, "stage");
  text += ", ";
  text += schedule.microBatches == 1
              ? "1 micro-batch"
              : formatv("{0} micro-batches", schedule.microBatches).str();
  text += ", " + count(numSlots, "slot") + "; cells: ";
  constexpr const char *words[] = {"forward", "backward", "input gradient",
                                   "weight gradient", "recompute"};
  for (unsigned kind = 0; kind < std::size(words); ++kind)
    if (usedKinds & (1u << kind))
      text += formatv("{0} {1}, ", letterOf(static_cast<TaskKind>(kind)),
                      words[kind]);
  return text +
         (namesStages ? "then stage.micro-batch" : "then the micro-batch");
}

std::string Grid::draw() {
  size_t labelWidth = std::to_string(schedule.order.size() - 1).size();
  std::string lines;
  for (size_t rank = 0; rank < schedule.order.size(); ++rank) {
    std::string label = std::to_string(rank);
    std::string cells = drawRank(rank);
    lines += "rank " + std::string(labelWidth - label.size(), ' ') + label +
             (cells.empty() ? " |" : " | ") + cells + "\n";
  }
  return legend() + "\n" + lines;
}

static bool isSplit(const Schedule &schedule) {
  return llvm::any_of(schedule.order, [](const std::vector<Task> &tasks) {
    return llvm::any_of(tasks, [](const Task &task) {
      return task.kind == TaskKind::WeightGradient;
    });
  });
}

static std::string secondsText(double seconds) {
  if (seconds >= 1)
    return formatv("{0:F2} s", seconds);
  if (seconds >= 1e-3)
    return formatv("{0:F2} ms", seconds * 1e3);
  return formatv("{0:F2} us", seconds * 1e6);
}

std::string
pipewright::schedules::printTimetable(const Schedule &schedule,
                                      const Simulation *simulation) {
  if (simulation) {
    Grid grid(schedule, simulation);
    std::string text = grid.draw();
    size_t endOfLegend = text.find('\n');
    return text.insert(endOfLegend,
                       "; one slot is " + secondsText(grid.slotSeconds()));
  }
  // Where some backwards are split, F, I and W take a slot each, as the papers
  // on them draw it, and what is left of B two.
  llvm::Expected<Simulation> unit =
      simulate(schedule, TaskCosts::uniform(schedule.stages, 1,
                                            isSplit(schedule) ? 2 : 1));
  if (unit)
    return Grid(schedule, &*unit).draw();
  std::string why = llvm::toString(unit.takeError());
  return Grid(schedule, nullptr).draw() + "no times, as it cannot run: " + why +
         "\n";
}
