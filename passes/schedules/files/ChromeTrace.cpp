//===- ChromeTrace.cpp - Predicted and measured runs as events --*- C++ -*-===//
//
// One event per line, as the runtime writes them. Everything in a file that
// is read may be wrong.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/ChromeTrace.h"

#include "passes/schedules/Refusal.h"
#include "support/InputFile.h"
#include "support/Json.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

using namespace pipewright::schedules;

/// The processes of a trace.
static constexpr int64_t measuredProcess = 0, predictedProcess = 1;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

/// Puts commas between events.
class EventWriter {
public:
  explicit EventWriter(llvm::raw_ostream &os) : os(os) { os << "[\n"; }
  ~EventWriter() { os << "\n]\n"; }

  void nameProcess(int64_t process, const char *name, int64_t ranks);
  void task(int64_t process, int32_t rank, const Task &task, int64_t step,
            const TaskTime &time);
  void wait(int64_t process, int32_t rank, int32_t peer, const TaskTime &time);
  void collective(int64_t process, int32_t rank, const std::string &name,
                  const TaskTime &time);

private:
  llvm::raw_ostream &next() {
    if (!isFirst)
      os << ",\n";
    isFirst = false;
    return os;
  }
  void complete(int64_t process, int32_t rank, llvm::StringRef name,
                const char *category, const TaskTime &time);

  llvm::raw_ostream &os;
  bool isFirst = true;
  /// Which rows of collectives have a name.
  std::set<std::pair<int64_t, int32_t>> named;
};

} // namespace

void EventWriter::nameProcess(int64_t process, const char *name,
                              int64_t ranks) {
  next() << "{\"ph\":\"M\",\"pid\":" << process
         << ",\"name\":\"process_name\",\"args\":{\"name\":\"" << name
         << "\"}}";
  for (int64_t rank = 0; rank < ranks; ++rank)
    next() << "{\"ph\":\"M\",\"pid\":" << process << ",\"tid\":" << rank
           << ",\"name\":\"thread_name\",\"args\":{\"name\":\"rank " << rank
           << "\"}}";
}

void EventWriter::complete(int64_t process, int32_t rank, llvm::StringRef name,
                           const char *category, const TaskTime &time) {
  next() << "{\"ph\":\"X\",\"pid\":" << process << ",\"tid\":" << rank
         << ",\"name\":\"" << name << "\",\"cat\":\"" << category
         << "\",\"ts\":" << llvm::format("%.3f", time.start * 1e6)
         << ",\"dur\":" << llvm::format("%.3f", (time.end - time.start) * 1e6);
}

void EventWriter::task(int64_t process, int32_t rank, const Task &task,
                       int64_t step, const TaskTime &time) {
  complete(process, rank, task.name(), "task", time);
  os << ",\"args\":{\"kind\":\"" << letterOf(task.kind)
     << "\",\"stage\":" << task.stage << ",\"micro_batch\":" << task.microBatch
     << ",\"step\":" << step << "}}";
}

void EventWriter::wait(int64_t process, int32_t rank, int32_t peer,
                       const TaskTime &time) {
  complete(process, rank, "wait receive rank " + std::to_string(peer), "wait",
           time);
  os << "}";
}

/// Collectives have rows of their own, behind those of all ranks: a rank's
/// number behind this one. Programs have others, which end in 999999 and begin
/// with the rank's number plus one.
static constexpr int64_t firstRow = 1000000;

static int64_t rankOfRow(int64_t row) {
  return (row + 1) % firstRow == 0 ? (row + 1) / firstRow - 2 : row - firstRow;
}

void EventWriter::collective(int64_t process, int32_t rank,
                             const std::string &name, const TaskTime &time) {
  int64_t row = firstRow + rank;
  if (named.insert({process, rank}).second)
    next() << "{\"ph\":\"M\",\"pid\":" << process << ",\"tid\":" << row
           << ",\"name\":\"thread_name\",\"args\":{\"name\":\"rank " << rank
           << " collectives\"}}";
  std::string quoted = pipewright::text::json(name);
  complete(process, static_cast<int32_t>(row),
           llvm::StringRef(quoted).drop_front().drop_back(), "collective",
           time);
  os << "}";
}

void pipewright::schedules::writeChromeTrace(llvm::raw_ostream &os,
                                             const Schedule &schedule,
                                             const Simulation &simulation,
                                             const MeasuredTrace *measured) {
  EventWriter writer(os);
  if (measured) {
    writer.nameProcess(measuredProcess, "measured", measured->ranks());
    for (const MeasuredTask &task : measured->last())
      writer.task(measuredProcess, task.rank, task.task, task.step, task.time);
    for (const MeasuredCollective &each : measured->lastCollectives())
      writer.collective(measuredProcess, each.rank, each.name, each.time);
  }
  writer.nameProcess(predictedProcess, "predicted", schedule.ranks);
  int64_t step = measured ? measured->lastStep() : 0;
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    for (auto [task, time] :
         llvm::zip(schedule.order[rank], simulation.times[rank]))
      writer.task(predictedProcess, rank, task, step, time);
  for (const TimedWork &shared : simulation.works)
    for (const Work::Member &member : shared.work.members)
      writer.collective(predictedProcess, member.rank, shared.work.text(),
                        shared.time);
  for (const IdleInterval &idle : simulation.idle)
    if (!idle.atEndOfStep)
      writer.wait(predictedProcess, idle.rank, idle.causeRank,
                  {idle.start, idle.end});
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

int32_t MeasuredTrace::ranks() const {
  int32_t count = 0;
  for (const MeasuredTask &task : tasks)
    count = std::max(count, task.rank + 1);
  return count;
}

llvm::ArrayRef<MeasuredTask> MeasuredTrace::last() const {
  auto first = llvm::find_if(
      tasks, [&](const MeasuredTask &task) { return task.step == lastStep(); });
  return llvm::ArrayRef<MeasuredTask>(tasks).drop_front(first - tasks.begin());
}

llvm::ArrayRef<MeasuredCollective> MeasuredTrace::lastCollectives() const {
  auto first = llvm::find_if(
      collectives, [&](const auto &each) { return each.step == lastStep(); });
  return llvm::ArrayRef<MeasuredCollective>(collectives)
      .drop_front(first - collectives.begin());
}

static bool readKind(llvm::StringRef letter, TaskKind &kind) {
  for (unsigned i = 0; i < numTaskKinds; ++i)
    if (letter.size() == 1 && letter[0] == letterOf(static_cast<TaskKind>(i))) {
      kind = static_cast<TaskKind>(i);
      return true;
    }
  return false;
}

/// A whole number of an object, within what our types hold.
static bool readNumber(const llvm::json::Object &object, llvm::StringRef key,
                       int64_t &number) {
  std::optional<int64_t> found = object.getInteger(key);
  if (!found || *found < 0 || *found > std::numeric_limits<int32_t>::max())
    return false;
  number = *found;
  return true;
}

static llvm::Error readTime(const llvm::json::Object &event, size_t number,
                            TaskTime &time) {
  std::optional<double> start = event.getNumber("ts"),
                        length = event.getNumber("dur");
  // Some thirty years; also what is no number fails this.
  constexpr double most = 1e15;
  if (!start || !length || !(std::abs(*start) <= most) ||
      !(*length >= 0 && *length <= most))
    return refuse("event {0} expects a time (ts) and a duration (dur) of 0 to "
                  "1e15 microseconds",
                  number);
  time = {*start * 1e-6, (*start + *length) * 1e-6};
  return llvm::Error::success();
}

static llvm::Error readCollective(const llvm::json::Object &event,
                                  size_t number,
                                  MeasuredCollective &collective) {
  int64_t row = 0;
  constexpr int64_t maxRanks = int64_t(1) << 24;
  if (!readNumber(event, "tid", row) || rankOfRow(row) < 0 ||
      rankOfRow(row) >= maxRanks)
    return refuse("event {0} expects the row of a rank's collectives (tid), as "
                  "a program's --trace writes them",
                  number);
  collective.rank = static_cast<int32_t>(rankOfRow(row));
  collective.name = event.getString("name").value_or("collective").str();
  return readTime(event, number, collective.time);
}

static llvm::Error readTask(const llvm::json::Object &event, size_t number,
                            MeasuredTask &task) {
  const llvm::json::Object *arguments = event.getObject("args");
  int64_t rank = 0, stage = 0, microBatch = 0;
  if (!arguments || !readNumber(event, "tid", rank) ||
      !readKind(arguments->getString("kind").value_or(""), task.task.kind) ||
      !readNumber(*arguments, "stage", stage) ||
      !readNumber(*arguments, "micro_batch", microBatch) ||
      !readNumber(*arguments, "step", task.step))
    return refuse("event {0} expects a rank (tid) and the arguments kind, "
                  "stage, micro_batch and step, as a program's --trace writes "
                  "them",
                  number);
  task.rank = static_cast<int32_t>(rank);
  task.task.stage = static_cast<int32_t>(stage);
  task.task.microBatch = static_cast<int32_t>(microBatch);
  return readTime(event, number, task.time);
}

/// What a plan says of its program; none where it is no plan.
static std::optional<TracedProgram>
readProgram(const llvm::json::Object *plan) {
  const llvm::json::Array *stages = plan ? plan->getArray("stages") : nullptr;
  if (!stages)
    return std::nullopt;
  TracedProgram program;
  program.target = plan->getString("target").value_or("").str();
  program.precision = plan->getString("precision").value_or("").str();
  program.microBatchSize = plan->getInteger("micro_batch_size").value_or(0);
  for (const llvm::json::Value &stage : *stages) {
    const llvm::json::Object *object = stage.getAsObject();
    program.layers.push_back(
        object ? object->getString("layers").value_or("").str() : "");
  }
  return program;
}

/// What all that was measured is sorted by.
template <class Measured>
static void sortByStep(std::vector<Measured> &all) {
  llvm::sort(all, [](const Measured &a, const Measured &b) {
    return std::tie(a.step, a.rank, a.time.start, a.time.end) <
           std::tie(b.step, b.rank, b.time.start, b.time.end);
  });
}

/// Sorts, and lets each step begin at 0. Of collectives only the time is known:
/// they belong to the last step that has begun by then.
static void alignSteps(MeasuredTrace &trace) {
  std::vector<MeasuredTask> &tasks = trace.tasks;
  std::map<int64_t, double> begin;
  for (const MeasuredTask &task : tasks) {
    auto [found, isNew] = begin.try_emplace(task.step, task.time.start);
    found->second = std::min(found->second, task.time.start);
  }
  for (MeasuredTask &task : tasks) {
    task.time.start -= begin[task.step];
    task.time.end -= begin[task.step];
  }
  std::vector<std::pair<double, int64_t>> begun;
  for (auto [step, start] : begin)
    begun.emplace_back(start, step);
  llvm::sort(begun);
  for (MeasuredCollective &each : trace.collectives) {
    auto next = llvm::upper_bound(
        begun, each.time.start,
        [](double time, const auto &step) { return time < step.first; });
    const auto &[start, step] = next == begun.begin() ? *next : next[-1];
    each.step = step;
    each.time.start -= start;
    each.time.end -= start;
  }
  sortByStep(tasks);
  sortByStep(trace.collectives);
}

/// The tasks like they are in the file: neither sorted nor aligned.
static llvm::Expected<MeasuredTrace> parseTasks(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> file = pipewright::parseJson(text);
  if (!file)
    return refuse("is not a Chrome trace: {0}",
                  llvm::toString(file.takeError()));
  const llvm::json::Array *events = file->getAsArray();
  if (const llvm::json::Object *object = file->getAsObject())
    events = object->getArray("traceEvents");
  if (!events)
    return refuse("is not a Chrome trace: expects a list of events");

  // One trace for each process of the file; where none of them was measured,
  // any other will do.
  std::map<int64_t, MeasuredTrace> traces;
  std::optional<TracedProgram> program;
  for (auto [number, value] : llvm::enumerate(*events)) {
    const llvm::json::Object *event = value.getAsObject();
    if (!event)
      return refuse("is not a Chrome trace: event {0} is not an object",
                    number);
    const llvm::StringRef phase = event->getString("ph").value_or("");
    if (phase == "M" && event->getString("name") == "plan" && !program)
      program = readProgram(event->getObject("args"));
    if (phase != "X")
      continue;
    llvm::StringRef category = event->getString("cat").value_or("");
    MeasuredTrace &trace = traces[event->getInteger("pid").value_or(0)];
    if (category == "task") {
      if (llvm::Error error =
              readTask(*event, number, trace.tasks.emplace_back()))
        return error;
    } else if (category == "collective") {
      if (llvm::Error error =
              readCollective(*event, number, trace.collectives.emplace_back()))
        return error;
    }
  }
  for (auto &[process, trace] : traces)
    if (!trace.tasks.empty()) {
      trace.program = std::move(program);
      return std::move(trace);
    }
  return refuse("has no task in it; expects what a program's --trace wrote");
}

llvm::Expected<MeasuredTrace>
pipewright::schedules::parseChromeTrace(llvm::StringRef text) {
  llvm::Expected<MeasuredTrace> trace = parseTasks(text);
  if (trace)
    alignSteps(*trace);
  return trace;
}

llvm::Expected<MeasuredTrace>
pipewright::schedules::readChromeTrace(llvm::StringRef paths) {
  llvm::SmallVector<llvm::StringRef> list;
  if (llvm::sys::fs::exists(paths))
    list.push_back(paths);
  else
    paths.split(list, ',');
  MeasuredTrace all;
  for (llvm::StringRef path : list) {
    llvm::Expected<FileBuffer> file = readTextFile(path);
    if (!file)
      return refuse("trace '{0}' {1}", path, llvm::toString(file.takeError()));
    llvm::Expected<MeasuredTrace> trace = parseTasks((*file)->getBuffer());
    if (!trace)
      return refuse("trace '{0}' {1}", path, llvm::toString(trace.takeError()));
    if (!all.program)
      all.program = std::move(trace->program);
    llvm::append_range(all.tasks, trace->tasks);
    llvm::append_range(all.collectives, trace->collectives);
  }
  alignSteps(all);
  return all;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

static llvm::Error refuseStage(const Task &task, int64_t stages) {
  return refuse("is of another program: it has {0}, but this one has {1} "
                "stage{2}",
                task.name(), stages, stages == 1 ? "" : "s");
}

llvm::Error pipewright::schedules::checkTrace(const MeasuredTrace &trace,
                                              const Schedule &schedule) {
  for (const MeasuredTask &measured : trace.tasks) {
    const Task &task = measured.task;
    if (task.stage >= schedule.stages)
      return refuseStage(task, schedule.stages);
    if (task.microBatch >= schedule.microBatches)
      return refuse("is of another program: it has {0}, but this one has {1} "
                    "micro-batch{2}",
                    task.name(), schedule.microBatches,
                    schedule.microBatches == 1 ? "" : "es");
    if (schedule.rankOfStage[task.stage] != measured.rank)
      return refuse("is of another program: it has {0} on rank {1}, but this "
                    "one has stage {2} on rank {3}",
                    task.name(), measured.rank, task.stage,
                    schedule.rankOfStage[task.stage]);
  }
  return llvm::Error::success();
}

static double medianOf(std::vector<double> &values) {
  if (values.empty())
    return -1;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1)
    return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void pipewright::schedules::applyTimes(const MeasuredTimes &times,
                                       StageCosts &costs) {
  auto take = [&](TaskKind kind, double &seconds) {
    double measured = times[static_cast<unsigned>(kind)];
    if (measured >= 0)
      seconds = measured;
    return measured >= 0;
  };
  double halves = costs.inputGradient + costs.weightGradient;
  double inputShare = halves > 0 ? costs.inputGradient / halves : 0.5;
  take(TaskKind::Forward, costs.forward);
  if (!take(TaskKind::Recompute, costs.recompute))
    costs.recompute = costs.forward;
  take(TaskKind::Update, costs.update);
  bool hasWhole = take(TaskKind::Backward, costs.backward);
  bool hasInput = take(TaskKind::InputGradient, costs.inputGradient);
  bool hasWeight = take(TaskKind::WeightGradient, costs.weightGradient);
  if (hasWhole && !hasInput && !hasWeight) {
    costs.inputGradient = costs.backward * inputShare;
    costs.weightGradient = costs.backward - costs.inputGradient;
  } else if (!hasWhole && (hasInput || hasWeight)) {
    costs.backward = costs.inputGradient + costs.weightGradient;
  }
}

llvm::Expected<std::vector<MeasuredTimes>>
pipewright::schedules::medianTimes(const MeasuredTrace &trace, int64_t stages) {
  std::vector<std::array<std::vector<double>, numTaskKinds>> all(stages);
  for (const auto &[task, rank, step, time] : trace.tasks) {
    if (task.stage >= stages)
      return refuseStage(task, stages);
    all[task.stage][static_cast<unsigned>(task.kind)].push_back(time.end -
                                                                time.start);
  }
  std::vector<MeasuredTimes> medians(stages);
  for (int64_t stage = 0; stage < stages; ++stage) {
    if (all[stage][static_cast<unsigned>(TaskKind::Forward)].empty())
      return refuse("is of another program: it has no forward of stage {0}",
                    stage);
    for (unsigned kind = 0; kind < numTaskKinds; ++kind)
      medians[stage][kind] = medianOf(all[stage][kind]);
  }
  return medians;
}

llvm::Expected<TaskCosts>
pipewright::schedules::costsFromTrace(const MeasuredTrace &trace,
                                      TaskCosts costs) {
  auto medians = medianTimes(trace, costs.stages.size());
  if (!medians)
    return medians.takeError();
  for (auto [times, stage] : llvm::zip(*medians, costs.stages))
    applyTimes(times, stage);
  return costs;
}

llvm::Expected<TaskCosts>
pipewright::schedules::costsFromTrace(const MeasuredTrace &trace,
                                      int64_t stages) {
  return costsFromTrace(trace, TaskCosts::uniform(stages));
}
