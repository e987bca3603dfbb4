//===- Svg.cpp - A schedule as a picture ------------------------*- C++ -*-===//
//
// From top to bottom: headline, legend, time axis, lanes, memory. Widths of
// texts are estimated for the widest of the usual fonts, so that nothing is
// clipped or overlaps whatever the reader has.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/drawing/Svg.h"

#include "passes/schedules/Collectives.h"
#include "passes/schedules/drawing/LaneRuns.h"
#include "passes/schedules/drawing/SvgElements.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace pipewright;
using namespace pipewright::schedules;
using llvm::formatv;

/// The step between ticks of an axis: 1, 2 or 5 times a power of ten.
static double tickStep(double length, double wantedTicks) {
  double rough = length / wantedTicks;
  double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0})
    if (power * factor >= rough)
      return power * factor;
  return power * 10;
}

namespace {

constexpr double margin = 16;
constexpr double numberSize = 10;
constexpr double legendLine = 20;
/// Above this many, tasks are drawn as runs; transfers are left out.
constexpr int64_t mostBoxes = 5000;
constexpr size_t mostTransfers = 1200;
constexpr int64_t mostLanes = 128;

class SvgWriter {
public:
  explicit SvgWriter(const Picture &picture);
  std::string write();

private:
  // How large things are.
  void chooseWidth();
  void chooseLanes();
  double x(double time) const { return left + time * scale; }
  double laneTop(size_t row) const {
    return lanesTop + row * (laneHeight + laneGap);
  }

  // The parts, top to bottom; each returns where it ends.
  double writeHeadline(double y);
  double writeLegend(double y);
  double writeAxis(double y);
  double writeLanes(double y);
  double writeMemory(double y);

  /// Where the next item of the legend goes.
  struct Swatch {
    double x, y;
  };
  Swatch explain(const std::string &words, double width);
  void explainKinds();
  void explainTransfers();
  void explainStages();

  void writeBoxes(size_t row);
  void writeRuns(size_t row);
  void writeShared(size_t row);
  void writeTransfers();
  void writeCurve(const MemoryCurve &curve, double top, double height,
                  int64_t most);
  void box(const Task &task, const TaskTime &time, double top, double height);
  std::string tipOf(const Task &task, const TaskTime &time, int32_t rank) const;

  const Picture &picture;
  const Schedule &schedule;
  std::vector<DrawnTransfer> transfers;
  std::vector<MemoryCurve> curves;
  SvgElements out;

  /// Drawn ranks, by row.
  std::vector<int32_t> rows;
  bool drawsBoxes = true, drawsTransfers = false, hasPairs = false;
  double left = 0, plotWidth = 0, right = 0, scale = 0, end = 0;
  double numberWidth = 0, laneHeight = 0, laneGap = 0, labelSize = 12,
         lanesTop = 0;
  double lanesBottom = 0;
  Swatch legend = {0, 0};
  unsigned usedKinds = 0;
};

} // namespace

SvgWriter::SvgWriter(const Picture &picture)
    : picture(picture), schedule(picture.schedule),
      curves(memoryCurves(picture)) {
  for (auto [order, times] :
       llvm::zip(schedule.order, picture.simulation.times))
    for (auto [task, time] : llvm::zip(order, times)) {
      end = std::max(end, time.end);
      hasPairs |= task.overlapsNext;
      // Updates that take no time are not seen.
      if (time.end > time.start)
        usedKinds |= 1u << static_cast<unsigned>(task.kind);
    }
  chooseWidth();
  chooseLanes();
}

/// Wide enough for the numbers in most boxes, if that is not too wide for a
/// screen and a half; runs need no more than a screen.
void SvgWriter::chooseWidth() {
  constexpr double narrowest = 640, widest = 2300, widestRuns = 1640;
  std::vector<double> lengths;
  for (auto [order, times] :
       llvm::zip(schedule.order, picture.simulation.times))
    for (auto [task, time] : llvm::zip(order, times))
      if (time.end > time.start && task.kind != TaskKind::Update)
        lengths.push_back(time.end - time.start);
  double typical = end > 0 ? end : 1;
  if (!lengths.empty()) {
    auto low = lengths.begin() + lengths.size() / 10;
    std::nth_element(lengths.begin(), low, lengths.end());
    typical = *low;
  }
  numberWidth = widthOf(std::to_string(schedule.microBatches - 1), numberSize);
  double wanted = std::max(14.0, numberWidth + 5);
  plotWidth = std::clamp(end / typical * wanted, narrowest, widest);
  scale = end > 0 ? plotWidth / end : 1;
  drawsBoxes = totalTasks(schedule) <= mostBoxes && typical * scale >= 2;
  if (drawsBoxes || plotWidth <= widestRuns)
    return;
  plotWidth = widestRuns;
  scale = plotWidth / end;
}

void SvgWriter::chooseLanes() {
  int64_t count = std::min(schedule.ranks, mostLanes);
  for (int64_t row = 0; row < count; ++row)
    rows.push_back(count == 1 ? 0
                              : static_cast<int32_t>(
                                    row * (schedule.ranks - 1) / (count - 1)));
  laneHeight = std::clamp(640.0 / count, 6.0, hasPairs ? 34.0 : 26.0);
  laneGap = count <= 16 ? 9 : std::clamp(laneHeight / 5, 1.0, 3.0);
  labelSize = std::clamp(laneHeight + laneGap - 1, 8.0, 12.0);
  left = margin + 8 +
         widthOf("rank " + std::to_string(schedule.ranks - 1), labelSize);
  right = 12;
  for (const MemoryCurve &curve : curves)
    right = std::max(right,
                     widthOf(memoryText(picture, curve.peak), labelSize) + 10);
  right = std::max(right, widthOf("idle 99.9 %", labelSize) + 10) + margin;
  if (drawsBoxes && count <= 16) {
    transfers = transfersOf(picture);
    drawsTransfers = !transfers.empty() && transfers.size() <= mostTransfers;
  }
}

//===----------------------------------------------------------------------===//
// Headline and legend
//===----------------------------------------------------------------------===//

double SvgWriter::writeHeadline(double y) {
  out.text(margin, y + 18, picture.name, "title");
  out.text(margin, y + 38, sizesText(picture), "faint");
  out.text(margin, y + 55, resultsText(picture), "faint");
  return y + 64;
}

/// Room for a swatch with words behind it, on a new line where they do not fit.
SvgWriter::Swatch SvgWriter::explain(const std::string &words, double width) {
  constexpr double gap = 6, between = 16;
  double needed = width + gap + widthOf(words, 12);
  if (legend.x > margin &&
      legend.x + needed > left + plotWidth + right - margin)
    legend = {margin, legend.y + legendLine};
  Swatch swatch = legend;
  out.text(swatch.x + width + gap, swatch.y + 11, words, "");
  legend.x += needed + between;
  return swatch;
}

void SvgWriter::explainKinds() {
  constexpr double width = 22, height = 14;
  auto filled = [&](TaskKind kind) {
    return "class=\"box\" fill=\"" + colorOf(schedule, kind, 0) + "\"";
  };
  for (unsigned i = 0; i < numTaskKinds; ++i) {
    auto kind = static_cast<TaskKind>(i);
    if (!(usedKinds & (1u << i)))
      continue;
    auto [x, y] =
        explain(formatv("{0} {1}", letterOf(kind), wordOf(kind)), width);
    out.rect(x, y, width, height, filled(kind));
    if (kind == TaskKind::Recompute)
      out.rect(x, y, width, height, "fill=\"url(#stripes)\"");
  }
  auto [x, y] = explain("idle", width);
  out.rect(x, y, width, height, "class=\"idle\"");
  if (!hasPairs || !drawsBoxes)
    return;
  auto [pairX, pairY] = explain("overlapped pair", width);
  out.rect(pairX, pairY, width, height / 2, filled(TaskKind::Forward));
  out.rect(pairX, pairY + height / 2, width, height / 2,
           filled(TaskKind::Backward));
  out.rect(pairX, pairY, width, height, "class=\"pair\"");
}

static const char *attributesOf(TransferKind kind) {
  return kind == TransferKind::Forward ? "class=\"forward\""
                                       : "class=\"gradient\"";
}

void SvgWriter::explainTransfers() {
  auto line = [&](const char *words, TransferKind kind) {
    if (llvm::none_of(transfers, [&](const DrawnTransfer &sent) {
          return sent.kind == kind;
        }))
      return;
    auto [x, y] = explain(words, 10);
    out.path(attributesOf(kind),
             "M" + numberText(x + 5) + " " + numberText(y) + "v14");
  };
  line("sends an activation", TransferKind::Forward);
  line("sends a gradient", TransferKind::Gradient);
}

/// Few stages have a swatch each, many share a strip.
void SvgWriter::explainStages() {
  int64_t stages = schedule.stages / schedule.copies;
  if (stages <= 1)
    return;
  constexpr int64_t mostSwatches = 16, mostStripes = 48;
  int64_t count = std::min(stages, mostStripes);
  double width = stages <= mostSwatches ? 16 : 3;
  auto [x, y] = explain(formatv("stage 0 to {0}{1}", stages - 1,
                                schedule.copies > 1 ? " of both copies" : ""),
                        width * count);
  for (int64_t i = 0; i < count; ++i)
    out.rect(x + i * width, y, width, 14,
             "fill=\"" +
                 colorOf(schedule, TaskKind::Backward,
                         static_cast<int32_t>(i * stages / count)) +
                 "\"");
}

double SvgWriter::writeLegend(double y) {
  legend = {margin, y};
  explainKinds();
  if (drawsTransfers)
    explainTransfers();
  explainStages();
  y = legend.y + legendLine;
  if (drawsBoxes)
    return y;
  std::string note = "boxes show what a run of tasks spends its time with";
  if (rows.size() < static_cast<size_t>(schedule.ranks))
    note +=
        formatv("; {0} of {1} ranks are drawn", rows.size(), schedule.ranks);
  out.text(margin, y + 11, note, "faint");
  return y + legendLine;
}

//===----------------------------------------------------------------------===//
// Axis
//===----------------------------------------------------------------------===//

double SvgWriter::writeAxis(double y) {
  double unit = 1;
  std::string name;
  if (!picture.unitTimes) {
    unit = end >= 1 ? 1 : end >= 1e-3 ? 1e-3 : 1e-6;
    name = end >= 1 ? "s" : end >= 1e-3 ? "ms" : "us";
  }
  out.text(left, y + 10, name.empty() ? "time" : "time in " + name,
           "faint small");
  double step = end > 0 ? tickStep(end / unit, plotWidth / 90) : 1;
  double bottom = lanesBottom;
  for (int64_t tick = 0; tick * step <= end / unit * (1 + 1e-9); ++tick) {
    double at = x(tick * step * unit);
    out.path("class=\"grid\"", "M" + numberText(at) + " " + numberText(y + 26) +
                                   "V" + numberText(bottom));
    out.text(at, y + 23, numberText(tick * step, 6), "faint small middle");
  }
  return y + 30;
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

std::string SvgWriter::tipOf(const Task &task, const TaskTime &time,
                             int32_t rank) const {
  return formatv("{0} on rank {1}: {2} of stage {3}, micro-batch {4}, {5} to "
                 "{6}",
                 task.name(), rank, wordOf(task.kind), task.stage,
                 task.microBatch, timeText(picture, time.start),
                 timeText(picture, time.end));
}

void SvgWriter::box(const Task &task, const TaskTime &time, double top,
                    double height) {
  double width = (time.end - time.start) * scale;
  if (width <= 0)
    return;
  out.rect(x(time.start), top, width, height,
           "class=\"box\" fill=\"" + colorOf(schedule, task.kind, task.stage) +
               "\"",
           tipOf(task, time, schedule.rankOfStage[task.stage]));
  if (task.kind == TaskKind::Recompute)
    out.rect(x(time.start), top, width, height, "fill=\"url(#stripes)\"");
  if (task.kind == TaskKind::Update)
    return;
  std::string words = std::to_string(task.microBatch);
  // All numbers or none, in boxes of one width.
  if (numberWidth + 1 > width || height < numberSize + 1)
    return;
  out.text(x(time.start) + width / 2, top + height / 2 + numberSize * 0.36,
           words,
           hasDarkText(task.kind) ? "small middle dark" : "small middle light");
}

void SvgWriter::writeBoxes(size_t row) {
  int32_t rank = rows[row];
  const std::vector<Task> &order = schedule.order[rank];
  const std::vector<TaskTime> &times = picture.simulation.times[rank];
  double top = laneTop(row), half = laneHeight / 2;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!order[i].overlapsNext || i + 1 == order.size()) {
      box(order[i], times[i], top, laneHeight);
      continue;
    }
    // A pair shares its time: one above the other, framed together.
    box(order[i], times[i], top, half);
    box(order[i + 1], times[i + 1], top + half, half);
    out.rect(x(times[i].start) + 0.8, top,
             std::max(0.0, (times[i].end - times[i].start) * scale - 1.6),
             laneHeight, "class=\"pair\"");
    ++i;
  }
}

void SvgWriter::writeRuns(size_t row) {
  // A path for each kind and stage, in the order of the stack.
  std::map<std::pair<TaskKind, int32_t>, std::string> paths;
  double top = laneTop(row);
  for (const LaneRun &run : findRuns(picture, rows[row], 6 / scale)) {
    double below = top + laneHeight;
    double length = run.end - run.start;
    for (const auto &[key, seconds] : run.seconds) {
      double height = laneHeight * seconds / length;
      below -= height;
      paths[key] += "M" + numberText(x(run.start)) + " " + numberText(below) +
                    "h" + numberText(length * scale) + "v" +
                    numberText(height) + "h" + numberText(-length * scale) +
                    "z";
    }
  }
  for (const auto &[key, path] : paths)
    out.path("fill=\"" + colorOf(schedule, key.first, key.second) + "\"", path);
}

/// What ranks do together beside their tasks: a bar at the foot of the lane.
void SvgWriter::writeShared(size_t row) {
  constexpr double height = 4;
  for (const auto &[work, time] : picture.simulation.shared)
    if (llvm::is_contained(work.ranks(), rows[row]))
      out.rect(x(time.start), laneTop(row) + laneHeight - height,
               (time.end - time.start) * scale, height, "fill=\"#8250df\"",
               formatv("{0} of {1} over {2}: {3}", nameOfKind(work.kind),
                       work.name, work.over(),
                       timeText(picture, time.end - time.start))
                   .str());
}

/// Between neighbours a transfer is seen in the gap of their lanes; a longer
/// way passes behind the boxes.
void SvgWriter::writeTransfers() {
  // Two ranks often send to each other at the same time.
  constexpr double aside = 0.8;
  for (const DrawnTransfer &sent : transfers) {
    double from = laneTop(sent.fromRank), to = laneTop(sent.toRank);
    (to > from ? from : to) += laneHeight;
    double shift = sent.kind == TransferKind::Forward ? -aside : aside;
    out.path(attributesOf(sent.kind),
             "M" + numberText(x(sent.start) + shift) + " " + numberText(from) +
                 "L" + numberText(x(sent.end) + shift) + " " + numberText(to));
  }
}

double SvgWriter::writeLanes(double y) {
  for (size_t row = 0; row < rows.size(); ++row)
    out.rect(left, laneTop(row), plotWidth, laneHeight, "class=\"idle\"");
  if (drawsTransfers)
    writeTransfers();
  if (drawsBoxes)
    for (const IdleInterval &idle : picture.simulation.idle)
      if (auto found = llvm::find(rows, idle.rank); found != rows.end())
        out.rect(x(idle.start), laneTop(found - rows.begin()),
                 (idle.end - idle.start) * scale, laneHeight, "class=\"idle\"",
                 "idle for " + timeText(picture, idle.end - idle.start) + ": " +
                     idle.describe());
  // Labels that would touch each other are left out.
  size_t every =
      static_cast<size_t>(std::ceil((labelSize + 1) / (laneHeight + laneGap)));
  for (size_t row = 0; row < rows.size(); ++row) {
    double baseline = laneTop(row) + laneHeight / 2 + labelSize * 0.36;
    if (row % every == 0) {
      out.text(left - 8, baseline, "rank " + std::to_string(rows[row]),
               "faint end", labelSize);
      double idle = picture.simulation.ranks[rows[row]].bubbleFraction;
      out.text(left + plotWidth + 8, baseline,
               "idle " + numberText(100 * idle, 1) + " %", "faint", labelSize);
    }
    if (drawsBoxes)
      writeBoxes(row);
    else
      writeRuns(row);
    writeShared(row);
  }
  return lanesBottom;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void SvgWriter::writeCurve(const MemoryCurve &curve, double top, double height,
                           int64_t most) {
  // Several changes within a pixel are drawn as the largest value.
  constexpr double finest = 1;
  std::string path = "M" + numberText(left) + " " + numberText(top + height);
  double level = 0;
  for (size_t i = 0; i < curve.points.size();) {
    double at = x(curve.points[i].time);
    int64_t value = curve.points[i].value;
    size_t next = i + 1;
    for (; next < curve.points.size() &&
           x(curve.points[next].time) < at + finest &&
           (!drawsBoxes || curve.points[next].time == curve.points[i].time);
         ++next)
      value = std::max(value, curve.points[next].value);
    i = next;
    double newLevel = height * value / most;
    if (newLevel == level)
      continue;
    path += "H" + numberText(at) + "V" + numberText(top + height - newLevel);
    level = newLevel;
  }
  path +=
      "H" + numberText(left + plotWidth) + "V" + numberText(top + height) + "z";
  out.path("class=\"memory\"", path);
}

double SvgWriter::writeMemory(double y) {
  int64_t most = 0;
  for (const MemoryCurve &curve : curves)
    most = std::max(most, curve.peak);
  if (most == 0)
    return y;
  out.text(left, y + 22,
           keepsBytes(picture)
               ? "stash of each rank; the highest is " +
                     memoryText(picture, most)
               : "micro-batches in flight on each rank; the most is " +
                     std::to_string(most),
           "faint small");
  y += 30;
  double height = std::max(6.0, laneHeight * 0.8), gap = std::min(laneGap, 6.0);
  double size = std::clamp(height + gap - 1, 8.0, 12.0);
  size_t every = static_cast<size_t>(std::ceil((size + 1) / (height + gap)));
  for (size_t row = 0; row < rows.size(); ++row) {
    double top = y + row * (height + gap);
    const MemoryCurve &curve = curves[rows[row]];
    out.rect(left, top, plotWidth, height, "class=\"idle\"");
    writeCurve(curve, top, height, most);
    if (row % every != 0)
      continue;
    double baseline = top + height / 2 + size * 0.36;
    out.text(left - 8, baseline, "rank " + std::to_string(rows[row]),
             "faint end", size);
    out.text(left + plotWidth + 8, baseline, memoryText(picture, curve.peak),
             "faint", size);
  }
  return y + rows.size() * (height + gap);
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

std::string SvgWriter::write() {
  double y = writeLegend(writeHeadline(margin));
  constexpr double axisHeight = 30;
  lanesTop = y + 6 + axisHeight;
  lanesBottom = laneTop(rows.size()) - laneGap;
  writeAxis(y + 6);
  double bottom = writeMemory(writeLanes(lanesTop)) + margin;

  double width = left + plotWidth + right;
  std::string words =
      picture.name + ": " + sizesText(picture) + "; " + resultsText(picture);
  width = std::max(width, widthOf(sizesText(picture), 12) + 2 * margin);
  width = std::max(width, widthOf(picture.name, 17) + 2 * margin);
  bool hasStripes =
      usedKinds & (1u << static_cast<unsigned>(TaskKind::Recompute));
  return out.toFile(width, bottom, words, hasStripes);
}

std::string pipewright::schedules::drawSvg(const Picture &picture) {
  return SvgWriter(picture).write();
}
