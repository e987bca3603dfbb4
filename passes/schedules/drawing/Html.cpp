//===- Html.cpp - A schedule as a page to explore ---------------*- C++ -*-===//
//
// Writes each timetable into one JavaScript constant, as flat lists of numbers,
// which stay small and load fast:
//
//   tasks      by rank: kind + 8 if it overlaps the next, stage, micro-batch,
//              start, length
//   measured   by rank: the same; null without a measured run
//   idle       by rank: start, end, kind, stage, micro-batch and rank of the
//              cause (kind -1: waits for that rank to end the step), time that
//              its message or the work took, number of that work or -1
//   path       rank and place in `tasks` of the tasks that nothing could have
//              ended earlier, in their order
//   memory     by rank: time, value
//   transfers  0 forward or 1 gradient, from, to, micro-batch, start, end
//   works      what ranks do together, as text
//   together   by rank: number of the work, start, length
//   measuredTogether  by rank: the same of measured works, whose numbers go on
//              behind; null without a measured run
//
// Times are microseconds, or plain numbers.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/drawing/Html.h"

#include "passes/schedules/Figures.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/drawing/HtmlPage.h"
#include "passes/schedules/files/ChromeTrace.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"

using namespace pipewright;
using namespace pipewright::schedules;

/// Some 20 bytes each.
static constexpr int64_t maxTasks = 1 << 20;
static constexpr size_t maxTransfers = 1 << 17;

namespace {

/// Writes one timetable.
class DataWriter {
public:
  explicit DataWriter(const Picture &picture)
      : picture(picture), schedule(picture.schedule) {}

  std::string write();

private:
  void key(const char *name) { out += (",\n\"" + std::string(name) + "\":"); }
  void value(int64_t number) { out += std::to_string(number) + ","; }
  void time(double time) {
    out += numberText(picture.unitTimes ? time : time * 1e6, 3) + ",";
  }
  void endList() {
    if (out.back() == ',')
      out.pop_back();
    out += "]";
  }
  /// One list for each rank.
  template <typename Write>
  void byRank(const char *name, Write write);
  void task(const Task &task, const TaskTime &time);

  void writeColors();
  void writeIdle();
  void writePath();
  void writeTransfers();
  void writeMeasured();
  void writeTogether();

  const Picture &picture;
  const Schedule &schedule;
  std::string out;
};

} // namespace

template <typename Write>
void DataWriter::byRank(const char *name, Write write) {
  key(name);
  out += "[";
  for (int32_t rank = 0; rank < schedule.ranks; ++rank) {
    out += "[";
    write(rank);
    endList();
    out += ",";
  }
  endList();
}

void DataWriter::task(const Task &task, const TaskTime &of) {
  value(static_cast<int64_t>(task.kind) + (task.overlapsNext ? 8 : 0));
  value(task.stage);
  value(task.microBatch);
  time(of.start);
  time(of.end - of.start);
}

void DataWriter::writeColors() {
  key("colors");
  out += "[";
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    for (unsigned kind = 0; kind < numTaskKinds; ++kind)
      out += text::json(colorOf(schedule, static_cast<TaskKind>(kind), stage)) +
             ",";
  endList();
}

void DataWriter::writeIdle() {
  // Sorted by rank already.
  llvm::ArrayRef<IdleInterval> rest = picture.simulation.idle;
  byRank("idle", [&](int32_t rank) {
    for (; !rest.empty() && rest.front().rank == rank;
         rest = rest.drop_front()) {
      const IdleInterval &idle = rest.front();
      time(idle.start);
      time(idle.end);
      // -1: the end of the step is waited for; -2: what begins with it.
      value(idle.hasCause()    ? static_cast<int64_t>(idle.cause.kind)
            : idle.atEndOfStep ? -1
                               : -2);
      value(idle.cause.stage);
      value(idle.cause.microBatch);
      value(idle.causeRank);
      time(idle.transferSeconds);
      value(idle.work);
    }
  });
}

/// Of the rank that ends the step.
void DataWriter::writePath() {
  int32_t last = lastRank(picture.simulation);
  key("path");
  out += "[";
  for (const PathStep &step : picture.simulation.criticalPath(schedule, last)) {
    value(step.rank);
    value(step.position);
  }
  endList();
}

void DataWriter::writeTransfers() {
  std::vector<DrawnTransfer> transfers = transfersOf(picture);
  key("transfers");
  out += "[";
  if (transfers.size() <= maxTransfers)
    for (const DrawnTransfer &sent : transfers) {
      value(sent.kind == TransferKind::Forward ? 0 : 1);
      value(sent.fromRank);
      value(sent.toRank);
      value(sent.microBatch);
      time(sent.start);
      time(sent.end);
    }
  endList();
}

void DataWriter::writeMeasured() {
  if (!picture.measured) {
    key("measured");
    out += "null";
    return;
  }
  llvm::ArrayRef<MeasuredTask> rest = picture.measured->last();
  byRank("measured", [&](int32_t rank) {
    for (; !rest.empty() && rest.front().rank == rank; rest = rest.drop_front())
      task(rest.front().task, rest.front().time);
  });
}

void DataWriter::writeTogether() {
  llvm::ArrayRef<TimedWork> works = picture.simulation.works;
  llvm::ArrayRef<MeasuredCollective> measured;
  if (picture.measured)
    measured = picture.measured->lastCollectives();
  key("works");
  out += "[";
  for (const auto &[work, unused] : works)
    out += text::json(work.text() + " over " + work.over() + ", " +
                      numberText(static_cast<double>(work.bytes) * 1e-3, 1) +
                      " kB") +
           ",";
  for (const MeasuredCollective &each : measured)
    out += text::json(each.name) + ",";
  endList();
  auto interval = [&](size_t number, const TaskTime &of) {
    value(static_cast<int64_t>(number));
    time(of.start);
    time(of.end - of.start);
  };
  byRank("together", [&](int32_t rank) {
    for (auto [number, each] : llvm::enumerate(works))
      if (llvm::is_contained(each.work.ranks(), rank))
        interval(number, each.time);
  });
  if (!picture.measured) {
    key("measuredTogether");
    out += "null";
    return;
  }
  byRank("measuredTogether", [&](int32_t rank) {
    for (auto [number, each] : llvm::enumerate(measured))
      if (each.rank == rank)
        interval(works.size() + number, each.time);
  });
}

std::string DataWriter::write() {
  out = "{\"name\":" + text::json(picture.name) +
        ",\n\"sizes\":" + text::json(sizesText(picture)) +
        ",\n\"results\":" + text::json(resultsText(picture)) +
        ",\n\"times\":" + text::json(picture.times) +
        ",\n\"stages\":" + std::to_string(schedule.stages / schedule.copies) +
        ",\n\"stagesPerRank\":" + numberText(stagesPerRank(schedule), 6) +
        ",\n\"inBytes\":" + (keepsBytes(picture) ? "true" : "false");
  writeColors();
  byRank("tasks", [&](int32_t rank) {
    for (auto [of, when] :
         llvm::zip(schedule.order[rank], picture.simulation.times[rank]))
      task(of, when);
  });
  writeMeasured();
  writeIdle();
  writePath();
  std::vector<MemoryCurve> curves = memoryCurves(picture);
  byRank("memory", [&](int32_t rank) {
    for (const MemoryCurve::Point &point : curves[rank].points) {
      time(point.time);
      value(point.value);
    }
  });
  writeTransfers();
  writeTogether();
  return out + "}";
}

static std::string dataOf(llvm::ArrayRef<Picture> pictures) {
  std::string out =
      "{\"title\":" + text::json(titleText(pictures)) +
      ",\n\"unitTimes\":" + (pictures.front().unitTimes ? "true" : "false") +
      ",\n\"words\":[";
  for (unsigned kind = 0; kind < numTaskKinds; ++kind)
    out +=
        (kind > 0 ? "," : "") + text::json(wordOf(static_cast<TaskKind>(kind)));
  out += "],\n\"timetables\":[";
  for (const Picture &picture : pictures)
    out += (&picture == pictures.begin() ? "" : ",\n") +
           DataWriter(picture).write();
  return out + "]}";
}

static llvm::Error checkSize(llvm::ArrayRef<Picture> pictures) {
  int64_t tasks = 0;
  for (const Picture &picture : pictures)
    tasks += totalTasks(picture.schedule);
  if (tasks <= maxTasks)
    return llvm::Error::success();
  return refuse("a page shows at most {0} tasks, but {1} {2}; a picture "
                "(--svg) has no limit",
                maxTasks,
                pictures.size() == 1 ? "this schedule has"
                                     : "these schedules have",
                tasks);
}

llvm::Expected<std::string>
pipewright::schedules::drawHtml(llvm::ArrayRef<Picture> pictures) {
  if (llvm::Error error = checkSize(pictures))
    return std::move(error);
  for (const Picture &picture : pictures)
    if (picture.measured)
      if (llvm::Error error = checkTrace(*picture.measured, picture.schedule))
        return refuse("the measured trace {0}",
                      llvm::toString(std::move(error)));
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\">\n<title>" +
         text::xml(titleText(pictures)) + "</title>\n<style>\n" + pageStyle +
         "</style>\n</head>\n<body>\n" + pageBody +
         "<script>\n'use strict';\nconst data = " + dataOf(pictures) + ";\n\n" +
         pageReading + "\n" + pageDrawing + "\n" + pageScript +
         "</script>\n</body>\n</html>\n";
}
