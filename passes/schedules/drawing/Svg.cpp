//===- Svg.cpp - A schedule as a picture ------------------------*- C++ -*-===//
//
// From top to bottom: headline, legend, time axis, lanes, memory. Widths of
// texts are estimated for the widest of the usual fonts, so that nothing is
// clipped or overlaps whatever the reader has.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/drawing/Svg.h"

#include "passes/schedules/drawing/LaneRuns.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace pipewright;
using namespace pipewright::schedules;
using llvm::formatv;

/// Colours for light backgrounds. A viewer that prefers dark ones replaces the
/// neutral colours, while boxes are the same on both.
static const char style[] = R"css(
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif; font-size: 12px; fill: #24292f; }
.background { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; }
.faint { fill: #59636e; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.small { font-size: 10px; }
.idle { fill: #eef0f3; }
.grid { stroke: #d0d7de; stroke-width: 1; fill: none; }
.box { stroke: #ffffff; stroke-width: 0.5; }
.dark { fill: #10151c; }
.light { fill: #ffffff; }
.pair { fill: none; stroke: #10151c; stroke-width: 1.6; }
.forward { stroke: #1a7f37; stroke-width: 1; fill: none; }
.gradient { stroke: #bc4c00; stroke-width: 1; fill: none; }
.memory { fill: #8c959f; }
.peak { stroke: #cf222e; stroke-width: 1; stroke-dasharray: 3 3; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .background { fill: #0d1117; }
  .faint { fill: #9aa4af; }
  .idle { fill: #1d232b; }
  .grid { stroke: #3d444d; }
  .box { stroke: #0d1117; }
  .dark { fill: #10151c; }
  .light { fill: #ffffff; }
  .pair { stroke: #f0f6fc; }
  .forward { stroke: #3fb950; }
  .gradient { stroke: #f0883e; }
  .memory { fill: #6e7681; }
  .peak { stroke: #ff7b72; }
}
)css";

/// The width of a character, as a share of the font's size.
static constexpr double characterWidth = 0.64;

static double widthOf(llvm::StringRef text, double fontSize) {
  return text.size() * fontSize * characterWidth;
}

static std::string number(double value) { return numberText(value, 2); }

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
  void writeTransfers();
  void writeCurve(const MemoryCurve &curve, double top, double height,
                  int64_t most);
  void rect(double x, double y, double width, double height,
            llvm::StringRef attributes, llvm::StringRef tip = "");
  void text(double x, double y, llvm::StringRef words, llvm::StringRef kind,
            double size = 0);
  void box(const Task &task, const TaskTime &time, double top, double height);
  std::string tipOf(const Task &task, const TaskTime &time, int32_t rank) const;

  const Picture &picture;
  const Schedule &schedule;
  std::vector<DrawnTransfer> transfers;
  std::vector<MemoryCurve> curves;
  std::string out;

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
// Elements
//===----------------------------------------------------------------------===//

void SvgWriter::rect(double x, double y, double width, double height,
                     llvm::StringRef attributes, llvm::StringRef tip) {
  out += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
         number(width) + "\" height=\"" + number(height) + "\" ";
  out += attributes;
  if (tip.empty())
    out += "/>\n";
  else
    out += "><title>" + text::xml(tip) + "</title></rect>\n";
}

void SvgWriter::text(double x, double y, llvm::StringRef words,
                     llvm::StringRef kind, double size) {
  out += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"";
  if (!kind.empty())
    out += (" class=\"" + kind + "\"").str();
  if (size > 0)
    out += " style=\"font-size:" + number(size) + "px\"";
  out += ">" + text::xml(words) + "</text>\n";
}

//===----------------------------------------------------------------------===//
// Headline and legend
//===----------------------------------------------------------------------===//

double SvgWriter::writeHeadline(double y) {
  text(margin, y + 18, picture.name, "title");
  text(margin, y + 38, sizesText(picture), "faint");
  text(margin, y + 55, resultsText(picture), "faint");
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
  text(swatch.x + width + gap, swatch.y + 11, words, "");
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
    rect(x, y, width, height, filled(kind));
    if (kind == TaskKind::Recompute)
      rect(x, y, width, height, "fill=\"url(#stripes)\"");
  }
  auto [x, y] = explain("idle", width);
  rect(x, y, width, height, "class=\"idle\"");
  if (!hasPairs || !drawsBoxes)
    return;
  auto [pairX, pairY] = explain("overlapped pair", width);
  rect(pairX, pairY, width, height / 2, filled(TaskKind::Forward));
  rect(pairX, pairY + height / 2, width, height / 2,
       filled(TaskKind::Backward));
  rect(pairX, pairY, width, height, "class=\"pair\"");
}

void SvgWriter::explainTransfers() {
  auto line = [&](const char *words, TransferKind kind, const char *style) {
    if (llvm::none_of(transfers, [&](const DrawnTransfer &sent) {
          return sent.kind == kind;
        }))
      return;
    auto [x, y] = explain(words, 10);
    out += formatv("<path class=\"{0}\" d=\"M{1} {2}v14\"/>\n", style,
                   number(x + 5), number(y));
  };
  line("sends an activation", TransferKind::Forward, "forward");
  line("sends a gradient", TransferKind::Gradient, "gradient");
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
    rect(x + i * width, y, width, 14,
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
  text(margin, y + 11, note, "faint");
  return y + legendLine;
}

//===----------------------------------------------------------------------===//
// Axis
//===----------------------------------------------------------------------===//

double SvgWriter::writeAxis(double y) {
  double unit = 1;
  std::string name = "multiples of a forward";
  if (!picture.unitTimes) {
    unit = end >= 1 ? 1 : end >= 1e-3 ? 1e-3 : 1e-6;
    name = end >= 1 ? "s" : end >= 1e-3 ? "ms" : "us";
  }
  text(left, y + 10, "time in " + name, "faint small");
  double step = end > 0 ? tickStep(end / unit, plotWidth / 90) : 1;
  double bottom = lanesBottom;
  for (int64_t tick = 0; tick * step <= end / unit * (1 + 1e-9); ++tick) {
    double at = x(tick * step * unit);
    out += formatv("<path class=\"grid\" d=\"M{0} {1}V{2}\"/>\n", number(at),
                   number(y + 26), number(bottom));
    text(at, y + 23, numberText(tick * step, 6), "faint small middle");
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
  rect(x(time.start), top, width, height,
       "class=\"box\" fill=\"" + colorOf(schedule, task.kind, task.stage) +
           "\"",
       tipOf(task, time, schedule.rankOfStage[task.stage]));
  if (task.kind == TaskKind::Recompute)
    rect(x(time.start), top, width, height, "fill=\"url(#stripes)\"");
  if (task.kind == TaskKind::Update)
    return;
  std::string words = std::to_string(task.microBatch);
  // All numbers or none, in boxes of one width.
  if (numberWidth + 1 > width || height < numberSize + 1)
    return;
  text(x(time.start) + width / 2, top + height / 2 + numberSize * 0.36, words,
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
    rect(x(times[i].start) + 0.8, top,
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
      paths[key] += "M" + number(x(run.start)) + " " + number(below) + "h" +
                    number(length * scale) + "v" + number(height) + "h" +
                    number(-length * scale) + "z";
    }
  }
  for (const auto &[key, path] : paths)
    out += "<path fill=\"" + colorOf(schedule, key.first, key.second) +
           "\" d=\"" + path + "\"/>\n";
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
    out += formatv("<path class=\"{0}\" d=\"M{1} {2}L{3} {4}\"/>\n",
                   sent.kind == TransferKind::Forward ? "forward" : "gradient",
                   number(x(sent.start) + shift), number(from),
                   number(x(sent.end) + shift), number(to));
  }
}

double SvgWriter::writeLanes(double y) {
  for (size_t row = 0; row < rows.size(); ++row)
    rect(left, laneTop(row), plotWidth, laneHeight, "class=\"idle\"");
  if (drawsTransfers)
    writeTransfers();
  if (drawsBoxes)
    for (const IdleInterval &idle : picture.simulation.idle)
      if (auto found = llvm::find(rows, idle.rank); found != rows.end())
        rect(x(idle.start), laneTop(found - rows.begin()),
             (idle.end - idle.start) * scale, laneHeight, "class=\"idle\"",
             "idle for " + timeText(picture, idle.end - idle.start) + ": " +
                 idle.describe());
  // Labels that would touch each other are left out.
  size_t every =
      static_cast<size_t>(std::ceil((labelSize + 1) / (laneHeight + laneGap)));
  for (size_t row = 0; row < rows.size(); ++row) {
    double baseline = laneTop(row) + laneHeight / 2 + labelSize * 0.36;
    if (row % every == 0) {
      text(left - 8, baseline, "rank " + std::to_string(rows[row]), "faint end",
           labelSize);
      double idle = picture.simulation.ranks[rows[row]].bubbleFraction;
      text(left + plotWidth + 8, baseline,
           "idle " + numberText(100 * idle, 1) + " %", "faint", labelSize);
    }
    if (drawsBoxes)
      writeBoxes(row);
    else
      writeRuns(row);
  }
  return lanesBottom;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void SvgWriter::writeCurve(const MemoryCurve &curve, double top, double height,
                           int64_t most) {
  // Of several changes within a pixel the largest value is seen.
  constexpr double finest = 1;
  std::string path = "M" + number(left) + " " + number(top + height);
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
    path += "H" + number(at) + "V" + number(top + height - newLevel);
    level = newLevel;
  }
  path += "H" + number(left + plotWidth) + "V" + number(top + height) + "z";
  out += "<path class=\"memory\" d=\"" + path + "\"/>\n";
}

double SvgWriter::writeMemory(double y) {
  int64_t most = 0;
  for (const MemoryCurve &curve : curves)
    most = std::max(most, curve.peak);
  if (most == 0)
    return y;
  text(left, y + 22,
       keepsBytes(picture)
           ? "stash of each rank; the highest is " + memoryText(picture, most)
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
    rect(left, top, plotWidth, height, "class=\"idle\"");
    writeCurve(curve, top, height, most);
    if (row % every != 0)
      continue;
    double baseline = top + height / 2 + size * 0.36;
    text(left - 8, baseline, "rank " + std::to_string(rows[row]), "faint end",
         size);
    text(left + plotWidth + 8, baseline, memoryText(picture, curve.peak),
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
  std::string head =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) +
      "\" height=\"" + number(bottom) + "\" viewBox=\"0 0 " + number(width) +
      " " + number(bottom) + "\" role=\"img\">\n<title>" + text::xml(words) +
      "</title>\n<style>" + style + "</style>\n";
  if (usedKinds & (1u << static_cast<unsigned>(TaskKind::Recompute)))
    head += "<defs><pattern id=\"stripes\" width=\"5\" height=\"5\" "
            "patternUnits=\"userSpaceOnUse\" "
            "patternTransform=\"rotate(45)\"><path d=\"M0 0V5\" "
            "stroke=\"#57606a\" stroke-width=\"1.5\"/></pattern></defs>\n";
  head += "<rect class=\"background\" width=\"" + number(width) +
          "\" height=\"" + number(bottom) + "\"/>\n";
  return head + out + "</svg>\n";
}

std::string pipewright::schedules::drawSvg(const Picture &picture) {
  return SvgWriter(picture).write();
}
