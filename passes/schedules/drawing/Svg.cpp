//===- Svg.cpp - Schedules as a picture -----------------------------------===//
//
// From top to bottom: headline, legend, time axis, the lanes of each schedule,
// and what the ranks of an only one keep. Widths of texts are estimated for the
// widest of the usual fonts, so that nothing is clipped or overlaps whatever
// the reader has.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/drawing/Svg.h"

#include "passes/schedules/drawing/SvgLanes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

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
constexpr double legendLine = 20;
constexpr double titleSize = 17, textSize = 12;

class SvgWriter {
public:
  SvgWriter(llvm::ArrayRef<Picture> pictures, const SvgStyle &style);
  std::string write();

private:
  bool isOne() const { return all.size() == 1; }
  template <class Test>
  bool any(Test test) const {
    return llvm::any_of(all, test);
  }
  void chooseLanes();
  void chooseWidth();

  // The parts, top to bottom; each returns where it ends.
  double writeHeadline(double y);
  double writeLegend(double y);
  double writeAxis(double y);
  double writeHeading(const SvgLanes &lanes, double y);
  void writeGrid(double top, double bottom);
  double writeWords(llvm::StringRef words, llvm::StringRef kind, double y);

  /// Where the next item of the legend goes.
  struct Swatch {
    double x, y;
  };
  Swatch explain(const std::string &words, double width);
  void explainKinds();
  void explainTransfers();
  void explainStages();

  const llvm::ArrayRef<Picture> pictures;
  const SvgStyle &style;
  std::vector<SvgLanes> all;
  SvgElements out;
  SvgFrame frame;
  double end = 0, width = 0;
  Swatch legend = {0, 0};
};

} // namespace

SvgWriter::SvgWriter(llvm::ArrayRef<Picture> pictures, const SvgStyle &style)
    : pictures(pictures), style(style) {
  for (const Picture &picture : pictures)
    end = std::max(end, all.emplace_back(picture).end());
  frame.isGrey = style.isGrey;
  chooseLanes();
  chooseWidth();
  for (SvgLanes &lanes : all)
    lanes.fit(frame);
}

void SvgWriter::chooseLanes() {
  size_t count = 0;
  for (const SvgLanes &lanes : all)
    count += lanes.drawnRanks();
  bool hasPairs = any([](const SvgLanes &lanes) { return lanes.hasPairs(); });
  frame.laneHeight = std::clamp((isOne() ? 640.0 : 900.0) / count, 6.0,
                                hasPairs ? 34.0 : 26.0);
  frame.laneGap = count <= 16 || (!isOne() && frame.laneHeight >= 20)
                      ? 9
                      : std::clamp(frame.laneHeight / 5, 1.0, 3.0);
  frame.labelSize =
      std::clamp(frame.laneHeight + frame.laneGap - 1, 8.0, textSize);
}

/// Wide enough for the numbers in most boxes, if that is not too wide for a
/// screen and a half; runs need no more than a screen.
void SvgWriter::chooseWidth() {
  constexpr double narrowest = 640, widest = 2300, widestRuns = 1640;
  /// A picture as narrow as a column has no room for what is said behind lanes.
  constexpr double narrowestWithNotes = 480;
  double labels = 0, notes = 0, wanted = 0;
  for (const SvgLanes &lanes : all) {
    labels = std::max(labels, lanes.widthOfLabels(frame.labelSize));
    notes = std::max(notes, lanes.widthOfNotes(frame.labelSize));
    // The shortest step of several is on the same scale.
    if (lanes.end() > 0)
      wanted = std::max(wanted, lanes.wantedWidth() * end / lanes.end());
  }
  frame.left = margin + 8 + labels;
  frame.hasNotes = style.width == 0 || style.width >= narrowestWithNotes;
  frame.right = (frame.hasNotes ? notes + 10 : 0) + margin;
  bool hasRuns = any([](const SvgLanes &lanes) { return !lanes.hasBoxes(); });
  frame.plotWidth =
      style.width > 0
          ? std::max(40.0, style.width - frame.left - frame.right)
          : std::clamp(wanted, narrowest, hasRuns ? widestRuns : widest);
  frame.scale = end > 0 ? frame.plotWidth / end : 1;
  width = frame.left + frame.plotWidth + frame.right;
}

//===----------------------------------------------------------------------===//
// Headline
//===----------------------------------------------------------------------===//

/// Words on as many lines as they need; a picture whose width is not given is
/// as wide as its first line needs instead.
double SvgWriter::writeWords(llvm::StringRef words, llvm::StringRef kind,
                             double y) {
  constexpr double line = 17;
  if (words.empty())
    return y;
  if (style.width == 0 && isOne()) {
    width = std::max(width, widthOf(words, textSize) + 2 * margin);
    out.text(margin, y + 12, words, kind);
    return y + line;
  }
  llvm::SmallVector<llvm::StringRef> parts;
  words.split(parts, ' ');
  std::string text;
  for (llvm::StringRef part : parts) {
    std::string longer = text + (text.empty() ? "" : " ") + part.str();
    if (!text.empty() && widthOf(longer, textSize) > width - 2 * margin) {
      out.text(margin, y + 12, text, kind);
      y += line;
      longer = part.str();
    }
    text = longer;
  }
  out.text(margin, y + 12, text, kind);
  return y + line;
}

double SvgWriter::writeHeadline(double y) {
  const Picture &first = all.front().of();
  std::string title = style.title.value_or(titleText(pictures));
  if (title.empty())
    return y;
  // A long title gets smaller, and, where nothing holds it, the picture wider.
  double size = titleSize;
  if (style.width > 0 || !isOne())
    size = std::clamp((width - 2 * margin) / widthOf(title, 1), 8.0, titleSize);
  if (style.width == 0)
    width = std::max(width, widthOf(title, size) + 2 * margin);
  out.text(margin, y + 18, title, "title", size < titleSize ? size : 0);
  y += 26;
  if (isOne()) {
    y = writeWords(sizesText(first), "faint", y);
    y = writeWords(resultsText(first), "faint", y);
  } else if (style.title) {
    // Otherwise the title has them.
    y = writeWords(commonSizesText(pictures), "faint", y);
  }
  bool sameTimes = llvm::all_of(all, [&](const SvgLanes &lanes) {
    return lanes.of().times == first.times;
  });
  if (sameTimes)
    y = writeWords(first.times, "faint", y);
  return y + 4;
}

//===----------------------------------------------------------------------===//
// Legend
//===----------------------------------------------------------------------===//

/// Room for a swatch with words behind it, on a new line where they do not fit.
SvgWriter::Swatch SvgWriter::explain(const std::string &words, double swatch) {
  constexpr double gap = 6, between = 16;
  double needed = swatch + gap + widthOf(words, textSize);
  if (legend.x > margin && legend.x + needed > width - margin)
    legend = {margin, legend.y + legendLine};
  Swatch at = legend;
  out.text(at.x + swatch + gap, at.y + 11, words, "");
  legend.x += needed + between;
  return at;
}

void SvgWriter::explainKinds() {
  constexpr double swatch = 22, height = 14;
  auto filled = [&](TaskKind kind) {
    return "class=\"box\" " +
           SvgLanes::fill(all.front().of(), style.isGrey, kind, 0);
  };
  for (unsigned i = 0; i < numTaskKinds; ++i) {
    auto kind = static_cast<TaskKind>(i);
    if (!any([&](const SvgLanes &lanes) { return lanes.uses(kind); }))
      continue;
    auto [x, y] =
        explain(formatv("{0} {1}", letterOf(kind), wordOf(kind)), swatch);
    out.rect(x, y, swatch, height, filled(kind));
    if (kind == TaskKind::Recompute)
      out.rect(x, y, swatch, height, "fill=\"url(#stripes)\"");
  }
  auto [x, y] = explain("idle", swatch);
  out.rect(x, y, swatch, height, "class=\"idle\"");
  if (!any([](const SvgLanes &l) { return l.hasPairs() && l.hasBoxes(); }))
    return;
  auto [pairX, pairY] = explain("overlapped pair", swatch);
  out.rect(pairX, pairY, swatch, height / 2, filled(TaskKind::Forward));
  out.rect(pairX, pairY + height / 2, swatch, height / 2,
           filled(TaskKind::Backward));
  out.rect(pairX, pairY, swatch, height, "class=\"pair\"");
}

void SvgWriter::explainTransfers() {
  auto line = [&](const char *words, TransferKind kind) {
    if (!any([&](const SvgLanes &lanes) { return lanes.hasTransfers(kind); }))
      return;
    auto [x, y] = explain(words, 10);
    out.path(SvgLanes::attributesOf(kind),
             "M" + numberText(x + 5) + " " + numberText(y) + "v14");
  };
  line("sends an activation", TransferKind::Forward);
  line("sends a gradient", TransferKind::Gradient);
  if (!any([](const SvgLanes &lanes) {
        return !lanes.of().simulation.works.empty();
      }))
    return;
  auto [x, y] = explain("ranks together", 10);
  out.rect(x, y + 10, 10, 4, "class=\"shared\"");
}

/// Few stages have a swatch each, many share a strip. Schedules that cut the
/// model differently have the same hues for the same parts of it.
void SvgWriter::explainStages() {
  int64_t stages = 0, copies = 1, perRank = 1;
  const Picture *finest = nullptr;
  for (const SvgLanes &lanes : all) {
    const Schedule &schedule = lanes.of().schedule;
    copies = std::max(copies, schedule.copies);
    perRank = std::max(perRank, schedule.stages / schedule.ranks);
    if (schedule.stages / schedule.copies <= stages)
      continue;
    stages = schedule.stages / schedule.copies;
    finest = &lanes.of();
  }
  if (style.isGrey) {
    if (perRank <= 1 || !any([](const SvgLanes &l) { return l.hasBoxes(); }))
      return;
    constexpr double swatch = 22;
    auto [x, y] = explain(
        perRank == 2 ? "the second stage of a rank"
                     : "no bar to a full one: first to last stage of a rank",
        swatch);
    out.rect(x, y, swatch, 14,
             "class=\"box\" " +
                 SvgLanes::fill(*finest, true, TaskKind::Forward, 0));
    out.rect(x, y + 11, swatch, 2.5, "class=\"loop\"");
    return;
  }
  if (stages <= 1)
    return;
  constexpr int64_t maxSwatches = 16, maxStripes = 48;
  int64_t count = std::min(stages, maxStripes);
  double swatch = stages <= maxSwatches ? 16 : 3;
  auto [x, y] = explain(isOne() ? formatv("stage 0 to {0}{1}", stages - 1,
                                          copies > 1 ? " of both copies" : "")
                                      .str()
                                : "first to last stage",
                        swatch * count);
  for (int64_t i = 0; i < count; ++i)
    out.rect(x + i * swatch, y, swatch, 14,
             "fill=\"" +
                 colorOf(finest->schedule, TaskKind::Backward,
                         static_cast<int32_t>(i * stages / count)) +
                 "\"");
}

double SvgWriter::writeLegend(double y) {
  if (!style.hasLegend)
    return y;
  legend = {margin, y};
  explainKinds();
  explainTransfers();
  explainStages();
  y = legend.y + legendLine;
  for (const SvgLanes &lanes : all) {
    if (lanes.hasBoxes())
      continue;
    std::string note = "boxes show what a run of tasks spends its time with";
    int64_t ranks = lanes.of().schedule.ranks;
    if (lanes.drawnRanks() < static_cast<size_t>(ranks))
      note +=
          formatv("; {0} of {1} ranks are drawn", lanes.drawnRanks(), ranks);
    return writeWords(note, "faint", y) + legendLine - 17;
  }
  return y;
}

//===----------------------------------------------------------------------===//
// Axis
//===----------------------------------------------------------------------===//

namespace {

/// Ticks in a unit that suits the step.
struct Axis {
  double unit = 1, step = 1;
  const char *name = "";

  Axis(const Picture &picture, double end, double plotWidth) {
    if (!picture.unitTimes) {
      unit = end >= 1 ? 1 : end >= 1e-3 ? 1e-3 : 1e-6;
      name = end >= 1 ? " in s" : end >= 1e-3 ? " in ms" : " in us";
    }
    if (end > 0)
      step = tickStep(end / unit, plotWidth / 90);
  }
};

} // namespace

double SvgWriter::writeAxis(double y) {
  Axis axis(all.front().of(), end, frame.plotWidth);
  out.text(frame.left, y + 10, std::string("time") + axis.name, "faint small");
  for (int64_t tick = 0; tick * axis.step <= end / axis.unit * (1 + 1e-9);
       ++tick)
    out.text(frame.x(tick * axis.step * axis.unit), y + 23,
             numberText(tick * axis.step, 6), "faint small middle");
  return y + 30;
}

void SvgWriter::writeGrid(double top, double bottom) {
  Axis axis(all.front().of(), end, frame.plotWidth);
  for (int64_t tick = 0; tick * axis.step <= end / axis.unit * (1 + 1e-9);
       ++tick)
    out.path("class=\"grid\"",
             "M" + numberText(frame.x(tick * axis.step * axis.unit)) + " " +
                 numberText(top) + "V" + numberText(bottom));
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

/// `zb-v   8 stages; step 25.5, bubble 5.9 %, peak 4 activations`
double SvgWriter::writeHeading(const SvgLanes &lanes, double y) {
  constexpr double size = 13;
  const Picture &picture = lanes.of();
  const Schedule &schedule = picture.schedule;
  std::string words;
  if (int64_t stages = schedule.stages / schedule.copies;
      stages != schedule.ranks)
    words = formatv("{0} stages; ", stages);
  words += resultsText(picture);
  if (schedule.copies > 1)
    words += formatv(", {0} copies of the weights", schedule.copies);
  out.text(frame.left, y + 14, picture.name, "title", size);
  double after = frame.left + widthOf(picture.name, size) + 12;
  if (after + widthOf(words, textSize) <= width - margin) {
    out.text(after, y + 14, words, "faint");
    return y + 20;
  }
  double fits = (width - margin - frame.left) / widthOf(words, 1);
  out.text(frame.left, y + 29, words, "faint",
           fits < textSize ? std::max(7.0, fits) : 0);
  return y + 35;
}

std::string SvgWriter::write() {
  double y = writeLegend(writeHeadline(margin));
  y = writeAxis(y + 6);
  for (SvgLanes &lanes : all) {
    if (!isOne())
      y = writeHeading(lanes, &lanes == all.data() ? y : y + 12);
    writeGrid(y - 4, y + lanes.heightOfLanes());
    y = lanes.writeLanes(out, y);
  }
  if (isOne())
    y = all.front().writeMemory(out, y);
  std::string words = titleText(pictures) + ": ";
  if (isOne())
    words += sizesText(pictures.front()) + "; " + resultsText(pictures.front());
  else
    words += llvm::join(
        llvm::map_range(pictures,
                        [](const Picture &picture) { return picture.name; }),
        ", ");
  bool hasStripes = any(
      [](const SvgLanes &lanes) { return lanes.uses(TaskKind::Recompute); });
  return out.toFile(width, y + margin, words, hasStripes, style.isGrey);
}

std::string pipewright::schedules::drawSvg(llvm::ArrayRef<Picture> pictures,
                                           const SvgStyle &style) {
  return SvgWriter(pictures, style).write();
}
