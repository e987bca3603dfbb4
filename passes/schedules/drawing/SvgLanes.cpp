//===- SvgLanes.cpp - The lanes of one schedule ---------------------------===//
//
// See SvgLanes.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/drawing/SvgLanes.h"

#include "passes/schedules/drawing/LaneRuns.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace pipewright;
using namespace pipewright::schedules;
using llvm::formatv;

/// Numbers in boxes: what fits, between these.
static constexpr double largestNumber = 10, smallestNumber = 7;
/// Above this many, tasks are drawn as runs; transfers are left out.
static constexpr int64_t maxBoxes = 5000;
static constexpr size_t maxTransfers = 1200;
static constexpr int64_t maxLanes = 128;

SvgLanes::SvgLanes(const Picture &picture)
    : picture(picture), schedule(picture.schedule),
      curves(memoryCurves(picture)) {
  std::vector<double> lengths;
  for (auto [order, times] :
       llvm::zip(schedule.order, picture.simulation.times))
    for (auto [task, time] : llvm::zip(order, times)) {
      lastEnd = std::max(lastEnd, time.end);
      pairs |= task.overlapsNext;
      // Updates that take no time are not seen.
      if (time.end <= time.start)
        continue;
      usedKinds |= 1u << static_cast<unsigned>(task.kind);
      if (task.kind != TaskKind::Update)
        lengths.push_back(time.end - time.start);
    }
  typical = lastEnd > 0 ? lastEnd : 1;
  if (!lengths.empty()) {
    auto low = lengths.begin() + lengths.size() / 10;
    std::nth_element(lengths.begin(), low, lengths.end());
    typical = *low;
  }
  wantedBox = std::max(
      14.0,
      widthOf(std::to_string(schedule.microBatches - 1), largestNumber) + 5);
  int64_t count = std::min(schedule.ranks, maxLanes);
  for (int64_t row = 0; row < count; ++row)
    rows.push_back(count == 1 ? 0
                              : static_cast<int32_t>(
                                    row * (schedule.ranks - 1) / (count - 1)));
  boxes = totalTasks(schedule) <= maxBoxes;
  findLoops();
}

void SvgLanes::findLoops() {
  std::vector<int64_t> counts(schedule.ranks), seen(schedule.ranks);
  for (int32_t rank : schedule.rankOfStage)
    ++counts[rank];
  for (int32_t rank : schedule.rankOfStage)
    loops.push_back(counts[rank] == 1
                        ? 0
                        : static_cast<double>(seen[rank]++) /
                              static_cast<double>(counts[rank] - 1));
}

double SvgLanes::widthOfLabels(double size) const {
  return widthOf("rank " + std::to_string(schedule.ranks - 1), size);
}

double SvgLanes::widthOfNotes(double size) const {
  double width = 0;
  for (const auto &notes : {idleNotes(), memoryNotes()})
    for (const std::string &note : notes)
      width = std::max(width, widthOf(note, size));
  return width;
}

/// Says once what is the same on all ranks.
static std::vector<std::string> oneOfAlike(std::vector<std::string> notes) {
  if (notes.size() < 2 || !llvm::all_equal(notes))
    return notes;
  std::vector<std::string> once(notes.size());
  once.front() = notes.front() + " each";
  return once;
}

std::vector<std::string> SvgLanes::idleNotes() const {
  std::vector<std::string> notes;
  for (int32_t rank : rows)
    notes.push_back(
        "idle " +
        numberText(100 * picture.simulation.ranks[rank].bubbleFraction, 1) +
        " %");
  return oneOfAlike(std::move(notes));
}

std::vector<std::string> SvgLanes::memoryNotes() const {
  std::vector<std::string> notes;
  for (int32_t rank : rows)
    notes.push_back(memoryText(picture, curves[rank].peak));
  return oneOfAlike(std::move(notes));
}

bool SvgLanes::hasTransfers(TransferKind kind) const {
  return llvm::any_of(
      transfers, [&](const DrawnTransfer &sent) { return sent.kind == kind; });
}

void SvgLanes::fit(const SvgFrame &chosen) {
  frame = &chosen;
  boxes = boxes && typical * frame->scale >= 2;
  double widest = typical * frame->scale - 1;
  std::string longest = std::to_string(schedule.microBatches - 1);
  numberSize = std::min(largestNumber, widest / widthOf(longest, 1));
  if (!boxes || schedule.ranks > 16)
    return;
  transfers = transfersOf(picture);
  if (transfers.size() > maxTransfers)
    transfers.clear();
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

const char *SvgLanes::attributesOf(TransferKind kind) {
  return kind == TransferKind::Forward ? "class=\"forward\""
                                       : "class=\"gradient\"";
}

std::string SvgLanes::fill(const Picture &picture, bool isGrey, TaskKind kind,
                           int32_t stage) {
  return "fill=\"" +
         (isGrey ? greyOf(kind) : colorOf(picture.schedule, kind, stage)) +
         "\"";
}

std::string SvgLanes::tipOf(const Task &task, const TaskTime &time,
                            int32_t rank) const {
  return formatv("{0} on rank {1}: {2} of stage {3}, micro-batch {4}, {5} to "
                 "{6}",
                 task.name(), rank, wordOf(task.kind), task.stage,
                 task.microBatch, timeText(picture, time.start),
                 timeText(picture, time.end));
}

void SvgLanes::box(SvgElements &out, const Task &task, const TaskTime &time,
                   double top, double height) const {
  double left = frame->x(time.start);
  double width = (time.end - time.start) * frame->scale;
  if (width <= 0)
    return;
  out.rect(left, top, width, height,
           "class=\"box\" " +
               fill(picture, frame->isGrey, task.kind, task.stage),
           tipOf(task, time, schedule.rankOfStage[task.stage]));
  if (task.kind == TaskKind::Recompute)
    out.rect(left, top, width, height, "fill=\"url(#stripes)\"");
  if (frame->isGrey && loops[task.stage] > 0)
    out.rect(left, top + height - 3, width * loops[task.stage], 2.5,
             "class=\"loop\"");
  if (task.kind == TaskKind::Update)
    return;
  // All numbers or none, in boxes of one width.
  if (numberSize < smallestNumber || height < numberSize + 1)
    return;
  // Longer tasks may be of another kind with less room; a size is for all.
  std::string words = std::to_string(task.microBatch);
  if (widthOf(words, numberSize) > width)
    return;
  bool isDark =
      frame->isGrey ? hasDarkTextInGrey(task.kind) : hasDarkText(task.kind);
  out.text(left + width / 2, top + height / 2 + numberSize * 0.36, words,
           isDark ? "small middle dark" : "small middle light",
           numberSize < largestNumber ? numberSize : 0);
}

void SvgLanes::writeBoxes(SvgElements &out, size_t row) const {
  int32_t rank = rows[row];
  const std::vector<Task> &order = schedule.order[rank];
  const std::vector<TaskTime> &times = picture.simulation.times[rank];
  double top = laneTop(row), half = frame->laneHeight / 2;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!order[i].overlapsNext || i + 1 == order.size()) {
      box(out, order[i], times[i], top, frame->laneHeight);
      continue;
    }
    // A pair shares its time: one above the other, framed together.
    box(out, order[i], times[i], top, half);
    box(out, order[i + 1], times[i + 1], top + half, half);
    out.rect(
        frame->x(times[i].start) + 0.8, top,
        std::max(0.0, (times[i].end - times[i].start) * frame->scale - 1.6),
        frame->laneHeight, "class=\"pair\"");
    ++i;
  }
}

void SvgLanes::writeRuns(SvgElements &out, size_t row) const {
  // A path for each kind and stage, in the order of the stack.
  std::map<std::pair<TaskKind, int32_t>, std::string> paths;
  double top = laneTop(row);
  for (const LaneRun &run : findRuns(picture, rows[row], 6 / frame->scale)) {
    double below = top + frame->laneHeight;
    double length = run.end - run.start;
    for (const auto &[key, seconds] : run.seconds) {
      double height = frame->laneHeight * seconds / length;
      below -= height;
      paths[key] +=
          "M" + numberText(frame->x(run.start)) + " " + numberText(below) +
          "h" + numberText(length * frame->scale) + "v" + numberText(height) +
          "h" + numberText(-length * frame->scale) + "z";
    }
  }
  for (const auto &[key, path] : paths)
    out.path(fill(picture, frame->isGrey, key.first, key.second), path);
}

/// What ranks do together beside their tasks: a bar at the foot of the lane.
void SvgLanes::writeShared(SvgElements &out, size_t row) const {
  constexpr double height = 4;
  for (const auto &[work, time] : picture.simulation.works)
    if (llvm::is_contained(work.ranks(), rows[row]))
      out.rect(frame->x(time.start), laneTop(row) + frame->laneHeight - height,
               (time.end - time.start) * frame->scale, height,
               "class=\"shared\"",
               formatv("{0} of {1} over {2}: {3}", work.kindText(), work.name,
                       work.over(), timeText(picture, time.end - time.start))
                   .str());
}

/// Between neighbours a transfer is seen in the gap of their lanes; a longer
/// way passes behind the boxes.
void SvgLanes::writeTransfers(SvgElements &out) const {
  // Two ranks often send to each other at the same time.
  constexpr double aside = 0.8;
  for (const DrawnTransfer &sent : transfers) {
    double from = laneTop(sent.fromRank), to = laneTop(sent.toRank);
    (to > from ? from : to) += frame->laneHeight;
    double shift = sent.kind == TransferKind::Forward ? -aside : aside;
    out.path(attributesOf(sent.kind),
             "M" + numberText(frame->x(sent.start) + shift) + " " +
                 numberText(from) + "L" +
                 numberText(frame->x(sent.end) + shift) + " " + numberText(to));
  }
}

static std::string causeOf(const Picture &picture, const IdleInterval &idle) {
  if (idle.work < 0)
    return idle.describe();
  const Work &work = picture.simulation.works[idle.work].work;
  return formatv("rank {0} waits at {1} for the {2} over {3}", idle.rank,
                 idle.next.name(), work.text(), work.over());
}

void SvgLanes::writeIdle(SvgElements &out) const {
  for (const IdleInterval &idle : picture.simulation.idle)
    if (auto found = llvm::find(rows, idle.rank); found != rows.end())
      out.rect(frame->x(idle.start), laneTop(found - rows.begin()),
               (idle.end - idle.start) * frame->scale, frame->laneHeight,
               "class=\"idle\"",
               "idle for " + timeText(picture, idle.end - idle.start) + ": " +
                   causeOf(picture, idle));
}

void SvgLanes::writeLabels(SvgElements &out, size_t row, double middle,
                           double size, const std::string &note) const {
  double baseline = middle + size * 0.36;
  out.text(frame->left - 8, baseline, "rank " + std::to_string(rows[row]),
           "faint end", size);
  if (frame->hasNotes && !note.empty())
    out.text(frame->left + frame->plotWidth + 8, baseline, note, "faint", size);
}

double SvgLanes::writeLanes(SvgElements &out, double top) {
  lanesTop = top;
  // A shorter step than others on the axis is not idle behind its end.
  for (size_t row = 0; row < rows.size(); ++row)
    out.rect(frame->left, laneTop(row), lastEnd * frame->scale,
             frame->laneHeight, "class=\"idle\"");
  writeTransfers(out);
  if (boxes)
    writeIdle(out);
  std::vector<std::string> notes = idleNotes();
  // Labels that would touch each other are left out.
  double size = frame->labelSize;
  size_t every = static_cast<size_t>(
      std::ceil((size + 1) / (frame->laneHeight + frame->laneGap)));
  for (size_t row = 0; row < rows.size(); ++row) {
    if (row % every == 0)
      writeLabels(out, row, laneTop(row) + frame->laneHeight / 2, size,
                  notes[row]);
    if (boxes)
      writeBoxes(out, row);
    else
      writeRuns(out, row);
    writeShared(out, row);
  }
  return top + heightOfLanes();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void SvgLanes::writeCurve(SvgElements &out, const MemoryCurve &curve,
                          double top, double height, int64_t most) const {
  // Several changes within a pixel are drawn as the largest value.
  constexpr double finest = 1;
  std::string path =
      "M" + numberText(frame->left) + " " + numberText(top + height);
  double level = 0;
  for (size_t i = 0; i < curve.points.size();) {
    double at = frame->x(curve.points[i].time);
    int64_t value = curve.points[i].value;
    size_t next = i + 1;
    for (; next < curve.points.size() &&
           frame->x(curve.points[next].time) < at + finest &&
           (!boxes || curve.points[next].time == curve.points[i].time);
         ++next)
      value = std::max(value, curve.points[next].value);
    i = next;
    double newLevel = height * value / most;
    if (newLevel == level)
      continue;
    path += "H" + numberText(at) + "V" + numberText(top + height - newLevel);
    level = newLevel;
  }
  path += "H" + numberText(frame->left + frame->plotWidth) + "V" +
          numberText(top + height) + "z";
  out.path("class=\"memory\"", path);
}

double SvgLanes::writeMemory(SvgElements &out, double y) const {
  int64_t most = 0;
  for (const MemoryCurve &curve : curves)
    most = std::max(most, curve.peak);
  if (most == 0)
    return y;
  std::string words =
      "stash of each rank; the highest is " + memoryText(picture, most);
  // Where there is little room, it begins at the edge of the picture.
  bool isNarrow =
      widthOf(words, largestNumber) > frame->plotWidth + frame->right;
  double begin = isNarrow ? 8 : frame->left;
  double fits = (frame->left + frame->plotWidth + frame->right - 2 * begin) /
                widthOf(words, 1);
  out.text(begin, y + 22, words, "faint small", isNarrow ? fits : 0);
  y += 30;
  double height = std::max(6.0, frame->laneHeight * 0.8),
         gap = std::min(frame->laneGap, 6.0);
  double size = std::clamp(height + gap - 1, 8.0, 12.0);
  size_t every = static_cast<size_t>(std::ceil((size + 1) / (height + gap)));
  std::vector<std::string> notes = memoryNotes();
  for (size_t row = 0; row < rows.size(); ++row) {
    double top = y + row * (height + gap);
    const MemoryCurve &curve = curves[rows[row]];
    out.rect(frame->left, top, frame->plotWidth, height, "class=\"idle\"");
    writeCurve(out, curve, top, height, most);
    if (row % every == 0)
      writeLabels(out, row, top + height / 2, size, notes[row]);
  }
  return y + rows.size() * (height + gap);
}
