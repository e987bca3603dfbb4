//===- DrawingTests.cpp - Pictures say what schedules are -------*- C++ -*-===//
//
// What must be seen in pictures and pages, that nothing lies outside of them,
// and that large schedules stay small. How they look was judged by eye.
//
//===----------------------------------------------------------------------===//

#include "ScheduleTesting.h"

#include "passes/schedules/drawing/Html.h"
#include "passes/schedules/drawing/LaneRuns.h"
#include "passes/schedules/drawing/Svg.h"
#include "passes/schedules/files/ChromeTrace.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"

#include <set>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

/// A schedule with everything that a picture of it refers to.
struct Example {
  Example(llvm::StringRef policy, int64_t ranks, int64_t loops,
          int64_t microBatches)
      : Example(policy,
                buildSchedule(policy, ranks, ranks * loops, microBatches)) {}
  Example(llvm::StringRef name, Schedule built)
      : name(name.str()), schedule(std::move(built)),
        costs(TaskCosts::uniform(schedule.stages, 1, 2)) {}

  /// In seconds, with stages of different size.
  void makeUneven() {
    unitTimes = false;
    for (auto [i, stage] : llvm::enumerate(costs.stages)) {
      stage.forward = stage.recompute = 1e-3 * (1 + i % 3);
      stage.backward = 2e-3;
      stage.update = 1e-4;
      stage.stashBytes = 1000000 * (1 + i);
    }
    costs.linkLatency = 1e-4;
  }

  Picture picture() {
    simulation = valueOf(simulate(schedule, costs));
    Picture picture{name, schedule, simulation, costs};
    picture.unitTimes = unitTimes;
    return picture;
  }

  std::string name;
  Schedule schedule;
  TaskCosts costs;
  Simulation simulation;
  bool unitTimes = true;
};

size_t count(llvm::StringRef text, llvm::StringRef part) {
  return text.count(part);
}

bool has(llvm::StringRef text, llvm::StringRef part) {
  return text.contains(part);
}

/// The number of an attribute that `text` begins to name.
double numberOf(llvm::StringRef text, llvm::StringRef attribute) {
  size_t at = text.find((" " + attribute + "=\"").str());
  if (at == llvm::StringRef::npos)
    return 0;
  double value = -1e9;
  llvm::StringRef rest = text.drop_front(at + attribute.size() + 3);
  EXPECT_FALSE(
      rest.take_until([](char c) { return c == '"'; }).getAsDouble(value));
  return value;
}

/// Fails on rectangles and texts that leave the picture, with texts as wide
/// as the writer's estimate.
void expectInside(llvm::StringRef svg) {
  double width = numberOf(svg, "width"), height = numberOf(svg, "height");
  ASSERT_GT(width, 0);
  ASSERT_GT(height, 0);
  llvm::SmallVector<llvm::StringRef> lines;
  svg.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    double x = numberOf(line, "x"), y = numberOf(line, "y");
    double right = x + numberOf(line, "width");
    double bottom = y + numberOf(line, "height");
    if (line.starts_with("<text")) {
      size_t begin = line.find('>') + 1;
      double size = 10;
      if (auto [before, style] = line.split("font-size:"); !style.empty())
        EXPECT_FALSE(style.take_until([](char c) { return c == 'p'; })
                         .getAsDouble(size));
      double length = 0.64 * size * line.slice(begin, line.find('<', 1)).size();
      bool isEnd = has(line, " end\""), isMiddle = has(line, "middle");
      x -= isEnd ? length : isMiddle ? length / 2 : 0;
      right = x + length;
    } else if (!line.starts_with("<rect")) {
      continue;
    }
    EXPECT_GE(x, -0.01) << line.str();
    EXPECT_GE(y, -0.01) << line.str();
    EXPECT_LE(right, width + 0.01) << line.str();
    EXPECT_LE(bottom, height + 0.01) << line.str();
  }
}

/// The constant `data` of a page.
llvm::json::Object dataOf(llvm::StringRef page) {
  llvm::StringRef rest = page.split("const data = ").second;
  llvm::StringRef text = rest.take_front(rest.find(";\n"));
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) {
    ADD_FAILURE() << llvm::toString(value.takeError());
    return {};
  }
  return value->getAsObject() ? *value->getAsObject() : llvm::json::Object();
}

/// One of its timetables.
llvm::json::Object timetableOf(llvm::StringRef page, size_t number = 0) {
  llvm::json::Object data = dataOf(page);
  const llvm::json::Array *all = data.getArray("timetables");
  if (!all || all->size() <= number || !(*all)[number].getAsObject()) {
    ADD_FAILURE() << "no timetable " << number;
    return {};
  }
  return *(*all)[number].getAsObject();
}

std::vector<int64_t> integersOf(const llvm::json::Value *list, size_t count) {
  std::vector<int64_t> numbers;
  for (const llvm::json::Value &value : *list->getAsArray())
    if (numbers.size() < count)
      numbers.push_back(value.getAsInteger().value_or(-1000));
  return numbers;
}

} // namespace

//===----------------------------------------------------------------------===//
// What is derived
//===----------------------------------------------------------------------===//

TEST(Picture, CurvesPeakWhereTheSimulatorSays) {
  for (const char *policy : {"gpipe", "1f1b", "breadth-first"}) {
    Example example(policy, 3, policy[0] == 'b' ? 2 : 1, 5);
    Picture picture = example.picture();
    std::vector<MemoryCurve> curves = memoryCurves(picture);
    ASSERT_FALSE(keepsBytes(picture));
    for (size_t rank = 0; rank < curves.size(); ++rank) {
      EXPECT_EQ(curves[rank].peak, example.simulation.ranks[rank].peakInFlight);
      EXPECT_EQ(curves[rank].points.back().value, 0) << policy;
    }
    example.makeUneven();
    Picture inBytes = example.picture();
    ASSERT_TRUE(keepsBytes(inBytes));
    curves = memoryCurves(inBytes);
    for (size_t rank = 0; rank < curves.size(); ++rank)
      EXPECT_EQ(curves[rank].peak,
                example.simulation.ranks[rank].peakStashBytes);
  }
}

TEST(Picture, HalvesGiveBackWhatTheyKept) {
  Schedule schedule;
  schedule.ranks = schedule.stages = schedule.microBatches = 1;
  schedule.rankOfStage = {0};
  schedule.order = {{Task::forward(0, 0), Task::inputGradient(0, 0),
                     Task::weightGradient(0, 0), Task::update(0)}};
  Example example("halves", schedule);
  example.costs.stages[0].stashBytes = 100;
  example.costs.stages[0].weightStashBytes = 30;
  Picture picture = example.picture();
  MemoryCurve curve = memoryCurves(picture)[0];
  std::vector<int64_t> values;
  for (const MemoryCurve::Point &point : curve.points)
    values.push_back(point.value);
  EXPECT_EQ(values, (std::vector<int64_t>{100, 30, 0}));
}

TEST(Picture, TransfersArriveWhenTasksMayStart) {
  Example example("1f1b", 2, 1, 2);
  example.costs.linkLatency = 0.25;
  Picture picture = example.picture();
  std::vector<DrawnTransfer> transfers = transfersOf(picture);
  ASSERT_EQ(transfers.size(), 4u);
  EXPECT_EQ(transfers[0].fromRank, 0);
  EXPECT_EQ(transfers[0].toRank, 1);
  EXPECT_EQ(transfers[0].end, 1.25);
  EXPECT_EQ(example.simulation.times[1][0].start, 1.25);
  EXPECT_EQ(transfers[2].kind, TransferKind::Gradient);
}

TEST(Picture, ColorsTellStagesAndKindsApart) {
  Schedule schedule = buildSchedule("1f1b", 8, 8, 1);
  std::set<std::string> colors;
  for (int32_t stage = 0; stage < 8; ++stage)
    for (TaskKind kind : {TaskKind::Forward, TaskKind::Backward,
                          TaskKind::InputGradient, TaskKind::WeightGradient})
      colors.insert(colorOf(schedule, kind, stage));
  EXPECT_EQ(colors.size(), 32u);
  for (const std::string &color : colors)
    EXPECT_EQ(color.size(), 7u) << color;
}

TEST(Picture, NumbersAreShort) {
  EXPECT_EQ(numberText(2.0), "2");
  EXPECT_EQ(numberText(0.126), "0.13");
  EXPECT_EQ(numberText(-0.001), "0");
  EXPECT_EQ(numberText(100, 0), "100");
}

TEST(LaneRuns, OneFOneBHasThreePhases) {
  Example example("1f1b", 8, 1, 512);
  Picture picture = example.picture();
  std::vector<LaneRun> runs = findRuns(picture, 0, 10);
  double seconds = 0;
  for (const LaneRun &run : runs)
    for (const auto &[key, part] : run.seconds)
      seconds += part;
  EXPECT_NEAR(seconds, example.simulation.ranks[0].busySeconds, 1e-6);
  EXPECT_LE(runs.size(), 6u);
  for (size_t i = 0; i + 1 < runs.size(); ++i)
    EXPECT_LE(runs[i].end, runs[i + 1].start + 1e-9);
}

//===----------------------------------------------------------------------===//
// Pictures
//===----------------------------------------------------------------------===//

TEST(Svg, ShowsEveryTaskAndItsNumber) {
  Example example("1f1b", 2, 1, 3);
  std::string svg = drawSvg(example.picture());
  expectInside(svg);
  for (const char *part :
       {"<title>1f1b: 2 ranks, 1 stage per rank, 3 micro-batches; step 12, "
        "bubble 25 %, peak 2 activations</title>",
        "B1.0 on rank 1: backward of stage 1, micro-batch 0, 2 to 4",
        "idle for 2: rank 0 waits at B0.0 for B1.0 on rank 1",
        "prefers-color-scheme: dark", ">F forward</text>", ">idle</text>",
        ">sends an activation</text>", ">stage 0 to 1</text>", ">time</text>",
        ">idle 25 % each</text>"})
    EXPECT_TRUE(has(svg, part)) << part << " in\n" << svg;
  for (int32_t stage = 0; stage < 2; ++stage)
    for (int32_t m = 0; m < 3; ++m)
      for (const Task &task :
           {Task::forward(stage, m), Task::backward(stage, m)})
        EXPECT_EQ(count(svg, "<title>" + task.name() + " on rank"), 1u);
  // Each micro-batch, twice on each rank.
  EXPECT_EQ(count(svg, "dark\">2</text>"), 2u);
  EXPECT_EQ(count(svg, "light\">2</text>"), 2u);
  // An update that takes no time is not explained.
  EXPECT_FALSE(has(svg, "U update"));
  EXPECT_EQ(svg, drawSvg(example.picture()));
}

TEST(Svg, ShowsSecondsAndBytes) {
  Example example("gpipe", 3, 1, 4);
  example.makeUneven();
  std::string svg = drawSvg(example.picture());
  expectInside(svg);
  for (const char *part : {">time in ms</text>", "U update",
                           "stash of each "
                           "rank; the highest is 12 MB",
                           ">4 MB</text>"})
    EXPECT_TRUE(has(svg, part)) << part;
}

TEST(Svg, FramesPairs) {
  Schedule schedule;
  schedule.ranks = 1;
  schedule.stages = 1;
  schedule.microBatches = 2;
  schedule.rankOfStage = {0};
  schedule.order = {{Task::forward(0, 0), Task::forward(0, 1),
                     Task::backward(0, 0), Task::backward(0, 1),
                     Task::update(0)}};
  schedule.order[0][1].overlapsNext = true;
  Example example("pairs", schedule);
  std::string svg = drawSvg(example.picture());
  expectInside(svg);
  // The pair, and the legend's.
  EXPECT_EQ(count(svg, "class=\"pair\""), 2u);
  EXPECT_TRUE(has(svg, ">overlapped pair</text>"));
  EXPECT_TRUE(has(svg, "F0.1 on rank 0: forward of stage 0, micro-batch 1, 1 "
                       "to 4"));
}

TEST(Svg, EscapesNames) {
  Example example("a<b>&\"c\"", buildSchedule("gpipe", 1, 1, 1));
  std::string svg = drawSvg(example.picture());
  EXPECT_TRUE(has(svg, ">a&lt;b&gt;&amp;&quot;c&quot;</text>"));
  EXPECT_FALSE(has(svg, "a<b"));
}

TEST(Svg, StaysInsideForAllPolicies) {
  for (const Policy *policy : allPolicies())
    for (int64_t ranks : {1, 2, 4, 7, 20}) {
      int64_t stages = ranks * policy->defaultLoops();
      auto schedule = policy->build({ranks, stages, 4 * ranks});
      if (!schedule) {
        llvm::consumeError(schedule.takeError());
        continue;
      }
      Example example(policy->name(), std::move(*schedule));
      expectInside(drawSvg(example.picture()));
      example.makeUneven();
      expectInside(drawSvg(example.picture()));
    }
}

TEST(Svg, PutsSeveralOnOneTimeAxis) {
  Example first("gpipe", 4, 1, 8), second("zb-v", 4, 2, 8);
  std::vector<Picture> pictures = {first.picture(), second.picture()};
  std::string svg = drawSvg(pictures);
  expectInside(svg);
  // One second is as long in both.
  for (const char *task : {"F0.0 on rank 0", "F1.0 on rank 1"})
    EXPECT_EQ(count(svg, std::string("<title>") + task), 2u) << task;
  EXPECT_EQ(count(svg, ">time</text>"), 1u);
  EXPECT_EQ(count(svg, ">F forward</text>"), 1u);
  for (const char *part :
       {">2 schedules on 4 ranks, 8 micro-batches</text>",
        "<title>2 schedules on 4 ranks, 8 micro-batches: gpipe, zb-v</title>",
        ">gpipe</text>", ">zb-v</text>",
        ">step 33, bubble 27.3 %, peak 8 activations<", ">idle 27.3 % each<",
        ">8 stages; step 51, span 48, bubble 5.9 %, peak 4 "
        "activations<",
        ">first to last stage</text>"})
    EXPECT_TRUE(has(svg, part)) << part;
  EXPECT_EQ(count(svg, ">idle 27.3 %"), 1u);
  EXPECT_FALSE(has(svg, "stash of each rank"));
}

TEST(Svg, IsStyledForAPaper) {
  Example example("zb-v", 4, 2, 8);
  SvgStyle style;
  style.title = "Our <schedule>";
  style.hasLegend = false;
  std::string svg = drawSvg(example.picture(), style);
  expectInside(svg);
  EXPECT_TRUE(has(svg, ">Our &lt;schedule&gt;</text>"));
  EXPECT_FALSE(has(svg, ">F forward</text>"));
  style.title = "";
  svg = drawSvg(example.picture(), style);
  EXPECT_FALSE(has(svg, "class=\"title\""));
  EXPECT_FALSE(has(svg, ">4 ranks"));
  for (double width : {240., 317., 700., 1500.}) {
    SvgStyle narrow;
    narrow.width = width;
    svg = drawSvg(example.picture(), narrow);
    EXPECT_TRUE(has(svg, " width=\"" + numberText(width) + "\" ")) << width;
    expectInside(svg);
  }
}

TEST(Svg, NeedsNoColorsInGrey) {
  Example first("zb-v", 4, 2, 8), second("dualpipe", 4, 1, 8);
  SvgStyle style;
  style.isGrey = true;
  for (Example *example : {&first, &second}) {
    std::string svg = drawSvg(example->picture(), style);
    expectInside(svg);
    llvm::StringRef rest = svg;
    size_t boxes = 0;
    for (rest = rest.split("fill=\"#").second; !rest.empty();
         rest = rest.split("fill=\"#").second, ++boxes) {
      EXPECT_EQ(rest.substr(0, 2), rest.substr(2, 2));
      EXPECT_EQ(rest.substr(0, 2), rest.substr(4, 2));
    }
    EXPECT_GT(boxes, 80u);
    EXPECT_TRUE(has(svg, "class=\"loop\""));
    EXPECT_TRUE(has(svg, ">the second stage of a rank</text>"));
    EXPECT_FALSE(has(svg, "prefers-color-scheme"));
  }
  std::set<std::string> shades;
  for (unsigned kind = 0; kind < 4; ++kind)
    shades.insert(greyOf(static_cast<TaskKind>(kind)));
  EXPECT_EQ(shades.size(), 4u);
}

TEST(Svg, SummarizesWhatIsTooMuchToRead) {
  Example large("1f1b", 64, 1, 512);
  std::string svg = drawSvg(large.picture());
  expectInside(svg);
  EXPECT_LT(svg.size(), 1u << 20);
  EXPECT_TRUE(has(svg, "boxes show what a run of tasks spends its time with"));
  EXPECT_FALSE(has(svg, "<title>F0.0"));
  EXPECT_TRUE(has(svg, ">rank 63</text>"));

  Example huge("breadth-first", 200, 2, 400);
  svg = drawSvg(huge.picture());
  expectInside(svg);
  EXPECT_LT(svg.size(), 4u << 20);
  EXPECT_TRUE(has(svg, "; 128 of 200 ranks are drawn"));
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

TEST(Html, HoldsTheWholeSchedule) {
  Example example("1f1b", 2, 1, 3);
  Picture picture = example.picture();
  std::string page = valueOf(drawHtml(picture));
  EXPECT_TRUE(llvm::StringRef(page).starts_with("<!doctype html>"));
  // Nothing is fetched from anywhere.
  for (const char *part : {"src=", "http:", "https:", "@import", "fetch("})
    EXPECT_FALSE(has(page, part)) << part;
  EXPECT_EQ(dataOf(page).getString("title"), "1f1b");
  EXPECT_EQ(dataOf(page).getBoolean("unitTimes"), true);
  llvm::json::Object data = timetableOf(page);
  EXPECT_EQ(data.getString("name"), "1f1b");
  const llvm::json::Array *tasks = data.getArray("tasks");
  ASSERT_TRUE(tasks && tasks->size() == 2);
  // F1.0 from 1 to 2, then B1.0 from 2 to 4.
  ASSERT_EQ((*tasks)[1].getAsArray()->size(), 5u * 7);
  EXPECT_EQ(integersOf(&(*tasks)[1], 10),
            (std::vector<int64_t>{0, 1, 0, 1, 1, 1, 1, 0, 2, 2}));
  // Rank 0 waits for B1.0 of rank 1 from 2 to 4.
  EXPECT_EQ(integersOf(&(*data.getArray("idle"))[0], 8),
            (std::vector<int64_t>{2, 4, 1, 1, 0, 1, 0, -1}));
  // Rank and place of F0.0, then all of rank 1, then rank 0's last backward and
  // its update.
  EXPECT_EQ(integersOf(data.get("path"), 99),
            (std::vector<int64_t>{0, 0, 1, 0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 0,
                                  5, 0, 6}));
  EXPECT_EQ(data.getArray("transfers")->size(), 6u * 6);
  EXPECT_EQ(data.getArray("colors")->size(), 2u * 6);
  EXPECT_TRUE(data.get("measured")->getAsNull());
}

TEST(Html, HoldsSeveralSchedules) {
  Example first("gpipe", 4, 1, 8), second("zb-v", 4, 2, 8);
  std::vector<Picture> pictures = {first.picture(), second.picture()};
  std::string page = valueOf(drawHtml(pictures));
  EXPECT_TRUE(
      has(page, "<title>2 schedules on 4 ranks, 8 micro-batches</title>"));
  EXPECT_EQ(timetableOf(page, 0).getString("name"), "gpipe");
  EXPECT_EQ(timetableOf(page, 1).getString("name"), "zb-v");
  EXPECT_EQ(timetableOf(page, 1).getInteger("stages"), 8);
  EXPECT_EQ(timetableOf(page, 1).getInteger("stagesPerRank"), 2);
}

TEST(Html, ShowsAMeasuredRunOfTheSameSchedule) {
  Example example("1f1b", 2, 1, 2);
  Picture picture = example.picture();
  std::string text;
  llvm::raw_string_ostream os(text);
  writeChromeTrace(os, example.schedule, example.simulation);
  MeasuredTrace trace = valueOf(parseChromeTrace(text));
  picture.measured = &trace;
  llvm::json::Object data = timetableOf(valueOf(drawHtml(picture)));
  const llvm::json::Array *measured = data.getArray("measured");
  ASSERT_TRUE(measured && measured->size() == 2);
  EXPECT_EQ((*measured)[0].getAsArray()->size(), 5u * 5);

  Example other("1f1b", 2, 1, 1);
  Picture otherPicture = other.picture();
  otherPicture.measured = &trace;
  EXPECT_EQ(
      messageOf(drawHtml(otherPicture)),
      "the measured trace is of another program: it has F0.1, but this one "
      "has 1 micro-batch");
}

TEST(Html, NoNameEndsTheScript) {
  Example example("</script><b>", buildSchedule("gpipe", 1, 1, 1));
  std::string page = valueOf(drawHtml(example.picture()));
  EXPECT_EQ(count(page, "</script>"), 1u);
  EXPECT_TRUE(has(page, "<title>&lt;/script&gt;&lt;b&gt;</title>"));
  EXPECT_EQ(dataOf(page).getString("title"), "</script><b>");
}

TEST(Html, RefusesWhatNoBrowserHolds) {
  Example example("gpipe", 1, 1, 600000);
  EXPECT_EQ(messageOf(drawHtml(example.picture())),
            "a page shows at most 1048576 tasks, but this schedule has "
            "1200001; a picture (--svg) has no limit");
  Example half("gpipe", 1, 1, 300000);
  std::vector<Picture> pictures = {half.picture(), half.picture()};
  EXPECT_EQ(messageOf(drawHtml(pictures)),
            "a page shows at most 1048576 tasks, but these schedules have "
            "1200002; a picture (--svg) has no limit");
}
