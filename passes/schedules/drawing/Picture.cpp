//===- Picture.cpp - What all drawings of a schedule share ------*- C++ -*-===//
//
// Curves and transfers repeat the rules of the simulator, which keeps only
// peaks and does not keep messages.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/drawing/Picture.h"

#include "passes/schedules/Dependences.h"
#include "passes/schedules/Figures.h"
#include "passes/schedules/files/GivenTimes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

using namespace pipewright::schedules;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool pipewright::schedules::keepsBytes(const Picture &picture) {
  return llvm::any_of(picture.costs.stages, [](const StageCosts &stage) {
    return stage.stashBytes > 0;
  });
}

namespace {

/// What changes when a task begins, and when it ends.
struct Change {
  int64_t atStart = 0, atEnd = 0;
};

} // namespace

static Change changeOf(const Picture &picture, const Task &task, bool inBytes) {
  const StageCosts &stage = picture.costs.stages[task.stage];
  int64_t whole = inBytes ? stage.stashBytes : 1;
  int64_t forWeights =
      inBytes && stage.weightStashBytes >= 0 ? stage.weightStashBytes : whole;
  int64_t madeAgain =
      inBytes && stage.keptBytes >= 0 &&
              picture.schedule.recomputes(task.stage, task.microBatch)
          ? whole - stage.keptBytes
          : 0;
  switch (task.kind) {
  case TaskKind::Forward:
    if (picture.schedule.forwardOnly)
      return {};
    return {whole, -madeAgain};
  case TaskKind::Recompute:
    return {madeAgain, 0};
  case TaskKind::Backward:
    return {0, -whole};
  case TaskKind::InputGradient:
    return {0, forWeights - whole};
  case TaskKind::WeightGradient:
    return {0, -forWeights};
  case TaskKind::Update:
    return {};
  }
  return {};
}

static MemoryCurve curveOf(const Picture &picture, size_t rank, bool inBytes) {
  std::vector<MemoryCurve::Point> changes;
  for (auto [task, time] : llvm::zip(picture.schedule.order[rank],
                                     picture.simulation.times[rank])) {
    auto [atStart, atEnd] = changeOf(picture, task, inBytes);
    if (atStart != 0)
      changes.push_back({time.start, atStart});
    if (atEnd != 0)
      changes.push_back({time.end, atEnd});
  }
  // What ends at a time makes room for what begins then.
  llvm::sort(changes, [](const auto &a, const auto &b) {
    return std::tie(a.time, a.value) < std::tie(b.time, b.value);
  });
  MemoryCurve curve;
  curve.points.push_back({0, 0});
  for (const MemoryCurve::Point &change : changes) {
    int64_t value = curve.points.back().value + change.value;
    if (curve.points.back().time == change.time)
      curve.points.back().value = value;
    else
      curve.points.push_back({change.time, value});
    curve.peak = std::max(curve.peak, value);
  }
  return curve;
}

std::vector<MemoryCurve>
pipewright::schedules::memoryCurves(const Picture &picture) {
  bool inBytes = keepsBytes(picture);
  std::vector<MemoryCurve> curves;
  for (size_t rank = 0; rank < picture.schedule.order.size(); ++rank)
    curves.push_back(curveOf(picture, rank, inBytes));
  return curves;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

std::vector<DrawnTransfer>
pipewright::schedules::transfersOf(const Picture &picture) {
  const Schedule &schedule = picture.schedule;
  std::vector<StageEdge> edges(picture.edges);
  if (edges.empty())
    edges = linearEdges(schedule.stages, 0, schedule.copies);
  EdgeIndex index(schedule.stages, edges);
  LinkIndex links(schedule, edges);
  std::vector<double> linkFree(links.links().size());
  std::vector<DrawnTransfer> transfers;

  auto send = [&](TransferKind kind, int32_t edge, int32_t microBatch,
                  double end) {
    int32_t link = links.linkOf(kind, edge);
    if (link < 0)
      return;
    auto [from, to] = links.links()[link];
    LinkCosts cost = picture.costs.linkBetween(from, to);
    linkFree[link] =
        std::max(linkFree[link], end) + edges[edge].bytes / cost.bandwidth;
    transfers.push_back(
        {kind, from, to, microBatch, end, linkFree[link] + cost.latency});
  };
  for (size_t rank = 0; rank < schedule.order.size(); ++rank)
    for (auto [task, time] :
         llvm::zip(schedule.order[rank], picture.simulation.times[rank])) {
      if (task.kind == TaskKind::Forward)
        for (int32_t edge : index.outOf(task.stage))
          send(TransferKind::Forward, edge, task.microBatch, time.end);
      else if (task.producesGradient())
        for (int32_t edge : index.into(task.stage))
          send(TransferKind::Gradient, edge, task.microBatch, time.end);
    }
  return transfers;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

int64_t pipewright::schedules::totalTasks(const Schedule &schedule) {
  int64_t tasks = 0;
  for (const std::vector<Task> &order : schedule.order)
    tasks += order.size();
  return tasks;
}

std::string pipewright::schedules::numberText(double value, int digits) {
  char buffer[64];
  int length = std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  std::string text(buffer, std::min<int>(length, sizeof buffer - 1));
  if (text.find('.') != std::string::npos) {
    text.resize(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

static std::string counted(int64_t number, const char *one, const char *many) {
  return formatv("{0} {1}", number, number == 1 ? one : many);
}

static std::string microBatchesText(const Picture &picture) {
  std::string text =
      counted(picture.schedule.microBatches, "micro-batch", "micro-batches");
  if (picture.replicas > 1)
    text += " in each of " + counted(picture.replicas, "replica", "replicas");
  return text;
}

std::string pipewright::schedules::sizesText(const Picture &picture) {
  const Schedule &schedule = picture.schedule;
  std::string text = counted(schedule.ranks, "rank", "ranks") + ", ";
  text += schedule.stages % schedule.ranks == 0
              ? counted(schedule.stages / schedule.ranks, "stage per rank",
                        "stages per rank")
              : counted(schedule.stages, "stage", "stages");
  if (schedule.copies > 1)
    text += " of two copies";
  return text + ", " + microBatchesText(picture);
}

std::string
pipewright::schedules::commonSizesText(llvm::ArrayRef<Picture> pictures) {
  const Picture &first = pictures.front();
  bool areAlike = llvm::all_of(pictures, [&](const Picture &picture) {
    return picture.schedule.ranks == first.schedule.ranks &&
           picture.schedule.microBatches == first.schedule.microBatches &&
           picture.replicas == first.replicas;
  });
  if (!areAlike)
    return "";
  return counted(first.schedule.ranks, "rank", "ranks") + ", " +
         microBatchesText(first);
}

std::string pipewright::schedules::nameText(const Picture &picture) {
  return picture.model.empty() ? picture.name
                               : picture.model + ": " + picture.name;
}

std::string pipewright::schedules::titleText(llvm::ArrayRef<Picture> pictures) {
  const Picture &first = pictures.front();
  if (pictures.size() == 1)
    return nameText(first);
  std::string text = formatv("{0} schedules", pictures.size());
  if (!first.model.empty())
    text += " of " + first.model;
  std::string sizes = commonSizesText(pictures);
  return sizes.empty() ? text : text + " on " + sizes;
}

std::string pipewright::schedules::timeText(const Picture &picture,
                                            double time) {
  if (picture.unitTimes)
    return numberText(time);
  auto [number, unit] = scaledSeconds(time);
  return numberText(number, unit == "us" ? 1 : 2) + " " + unit.str();
}

std::string pipewright::schedules::memoryText(const Picture &picture,
                                              int64_t value) {
  if (!keepsBytes(picture)) {
    double activations = value / stagesPerRank(picture.schedule);
    return numberText(activations) +
           (activations == 1 ? " activation" : " activations");
  }
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  double scaled = value;
  unsigned unit = 0;
  for (; scaled >= 1000 && unit < 4; ++unit)
    scaled /= 1000;
  return numberText(scaled, 1) + " " + units[unit];
}

std::string pipewright::schedules::resultsText(const Picture &picture) {
  Figures figures =
      Figures::of(picture.schedule, picture.simulation, picture.edges);
  std::string text = "step " + timeText(picture, figures.step);
  // Rounding apart, they often are the same.
  if (figures.span < figures.step * (1 - 1e-9))
    text += ", span " + timeText(picture, figures.span);
  text += ", bubble " + numberText(100 * figures.bubble, 1) + " %";
  if (!picture.simulation.works.empty())
    text += ", exposed " + timeText(picture, picture.simulation.exposedSeconds);
  if (picture.schedule.forwardOnly)
    return text;
  return text + ", peak " +
         memoryText(picture,
                    keepsBytes(picture) ? figures.stashBytes : figures.stashes);
}

const char *pipewright::schedules::wordOf(TaskKind kind) {
  static const char *const words[numTaskKinds] = {
      "forward",         "backward",  "input gradient",
      "weight gradient", "recompute", "update"};
  return words[static_cast<unsigned>(kind)];
}

//===----------------------------------------------------------------------===//
// Colours
//===----------------------------------------------------------------------===//

/// sRGB of OKLCH, where equal lightness looks equally light in every hue;
/// saturation gives way where a screen cannot show it.
static std::string rgbOf(double lightness, double chroma, double degrees) {
  double hue = degrees * 3.14159265358979323846 / 180;
  for (;; chroma *= 0.95) {
    double a = chroma * std::cos(hue), b = chroma * std::sin(hue);
    auto cubed = [](double x) { return x * x * x; };
    double l = cubed(lightness + 0.3963377774 * a + 0.2158037573 * b);
    double m = cubed(lightness - 0.1055613458 * a - 0.0638541728 * b);
    double s = cubed(lightness - 0.0894841775 * a - 1.2914855480 * b);
    double linear[] = {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
                       -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
                       -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
    bool fits = llvm::all_of(
        linear, [](double x) { return x >= -0.0005 && x <= 1.0005; });
    if (!fits && chroma > 0.001)
      continue;
    std::string text = "#";
    for (double x : linear) {
      x = std::clamp(x, 0.0, 1.0);
      double gamma =
          x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
      int byte = static_cast<int>(std::lround(255 * gamma));
      text += llvm::hexdigit(byte / 16, /*LowerCase=*/true);
      text += llvm::hexdigit(byte % 16, /*LowerCase=*/true);
    }
    return text;
  }
}

std::string pipewright::schedules::colorOf(const Schedule &schedule,
                                           TaskKind kind, int32_t stage) {
  struct Tone {
    double lightness, chroma;
  };
  static constexpr Tone tones[numTaskKinds] = {{0.87, 0.09},  {0.58, 0.15},
                                               {0.72, 0.13},  {0.46, 0.12},
                                               {0.87, 0.045}, {0.55, 0.02}};
  // Two copies of a stage are the same part of the model.
  int64_t stages = std::max<int64_t>(1, schedule.stages / schedule.copies);
  constexpr double firstHue = 255;
  double hue =
      firstHue + 360.0 * (stage % stages) / std::max<int64_t>(stages, 3);
  const Tone &tone = tones[static_cast<unsigned>(kind)];
  return rgbOf(tone.lightness, tone.chroma, hue);
}

bool pipewright::schedules::hasDarkText(TaskKind kind) {
  return kind == TaskKind::Forward || kind == TaskKind::InputGradient ||
         kind == TaskKind::Recompute;
}

/// Kinds that stand beside each other differ by a sixth or more.
static double lightnessInGrey(TaskKind kind) {
  static constexpr double lightness[numTaskKinds] = {0.95, 0.62, 0.78,
                                                     0.45, 0.95, 0.30};
  return lightness[static_cast<unsigned>(kind)];
}

std::string pipewright::schedules::greyOf(TaskKind kind) {
  return rgbOf(lightnessInGrey(kind), 0, 0);
}

bool pipewright::schedules::hasDarkTextInGrey(TaskKind kind) {
  return lightnessInGrey(kind) > 0.6;
}
