//===- AutopsyCommand.cpp - Where a run stands or stopped -----------------===//

#include "tools/pipewright/AutopsyCommand.h"

#include "passes/schedules/Dependences.h"
#include "passes/schedules/files/PlanFile.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/trace/FlightRecorder.h"
#include "support/InputFile.h"
#include "support/Text.h"

#include <ctime>
#include <filesystem>
#include <optional>
#include <set>

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::tool;
namespace rt = pipewright::runtime;
namespace fs = std::filesystem;
using Operation = rt::FlightRecorder::Operation;
using Recorder = rt::FlightRecorder;

const std::vector<OptionRow<AutopsyOptions>> &pipewright::tool::autopsyRows() {
  using enum OptionSpelling::Kind;
  static const std::vector<OptionRow<AutopsyOptions>> rows =
      under<OptionRow<AutopsyOptions>>(
          Heading::Output,
          {{{.name = "OUT", .kind = Word},
            option::anyText(&AutopsyOptions::folder)},
           {{"plan", "FILE", "The program's plan.json, where OUT has none"},
            option::file(&AutopsyOptions::plan)}});
  return rows;
}

namespace {

/// What one rank left.
struct Standing {
  const rt::FlightRing *ring = nullptr;
  bool isAlive = false;
  /// What it is in, or did last; of kind 0 before the first.
  Operation last;
  /// The number in the plan's order of the last task of the running step, which
  /// may not be over; -1 before the first.
  int64_t position = -1;
  /// It stands in that task.
  bool isInTask = false;
  /// The tasks of other ranks that it waits for.
  std::vector<Task> waitsFor;

  bool waits() const {
    return last.kind && !last.isTask() && !last.isPost() && !last.end;
  }
  bool waitsForRank() const {
    return waits() && (last.kind == Recorder::WaitReceive ||
                       last.kind == Recorder::WaitSend);
  }
};

class Standings {
public:
  Standings(const PlanFile &plan, const Dependences &dependences)
      : plan(plan), dependences(dependences) {}

  void add(const rt::FlightFile::Found &found);
  void print() const;

private:
  using Key = std::pair<int64_t, int64_t>;

  void findPosition(Standing &standing, llvm::ArrayRef<Operation> done) const;
  void findNeeds(Standing &standing) const;
  std::string textOf(const Standing &standing) const;
  std::string textOfNext(const Standing &standing) const;
  std::string nameOf(Key key) const;
  bool hasDone(const Standing &standing, const Task &task) const;
  std::string chainFrom(Key from) const;

  llvm::ArrayRef<Task> orderOf(const Standing &standing) const {
    return plan.schedule.order[standing.ring->owner.position];
  }

  const PlanFile &plan;
  const Dependences &dependences;
  std::vector<std::shared_ptr<const rt::FlightRing>> rings;
  /// By replica and rank.
  std::map<Key, Standing> all;
};

} // namespace

//===----------------------------------------------------------------------===//
// Where they stand
//===----------------------------------------------------------------------===//

void Standings::add(const rt::FlightFile::Found &found) {
  const rt::FlightRing::Owner &owner = found.ring->owner;
  if (owner.position < 0 || owner.position >= plan.schedule.ranks ||
      owner.replica < 0)
    rt::fail("a flight recorder is of rank ", owner.position,
             ", but the plan has ", plan.schedule.ranks);
  rings.push_back(found.ring);
  Standing standing;
  standing.ring = found.ring.get();
  standing.isAlive = found.isAlive;
  const std::vector<Operation> done =
      rt::lastOperations(*found.ring, Recorder::capacity);
  findPosition(standing, done);
  findNeeds(standing);
  all[{owner.replica, owner.position}] = std::move(standing);
}

/// A task is over where something was posted behind it.
void Standings::findPosition(Standing &standing,
                             llvm::ArrayRef<Operation> done) const {
  const Operation *task = nullptr;
  for (const Operation &operation : done) {
    if (operation.step != standing.ring->step.load())
      continue;
    standing.last = operation;
    if (operation.isTask())
      task = &operation;
  }
  if (!task)
    return;
  standing.isInTask = standing.last.isTask() && !standing.last.end;
  const std::string name = rt::nameOf(*task);
  llvm::ArrayRef<Task> order = orderOf(standing);
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i].name() == name)
      standing.position = i;
}

/// What the next task needs from the rank that this one waits for.
void Standings::findNeeds(Standing &standing) const {
  if (!standing.waits() || standing.last.kind != Recorder::WaitReceive)
    return;
  const Schedule &schedule = plan.schedule;
  llvm::ArrayRef<Task> order = orderOf(standing);
  for (size_t i = standing.position + 1;
       i < order.size() && standing.waitsFor.empty(); ++i)
    dependences.forEachNeed(order[i], [&](const Dependences::Need &need) {
      if (schedule.rankOfStage[need.stage] == standing.last.place)
        for (const Task &task : schedule.order[standing.last.place])
          if (task.stage == need.stage && task.microBatch == need.microBatch &&
              (task.kind == need.kind ||
               (need.kind == TaskKind::Backward && task.producesGradient())))
            standing.waitsFor.push_back(task);
      return true;
    });
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string Standings::nameOf(Key key) const {
  std::string name = "rank " + std::to_string(key.second);
  if (all.rbegin()->first.first > 0)
    name += " of replica " + std::to_string(key.first);
  return name;
}

/// "in F0.2", "waits for rank 1, which is to send what B1.0 makes"
std::string Standings::textOf(const Standing &standing) const {
  const Operation &last = standing.last;
  if (!last.kind)
    return "before its first task";
  if (standing.isInTask)
    return "in " + rt::nameOf(last);
  llvm::ArrayRef<Task> order = orderOf(standing);
  const std::string behind = standing.position < 0
                                 ? "before the first task"
                                 : "behind " + order[standing.position].name();
  const std::string peer = "rank " + std::to_string(last.place);
  if (!standing.waits())
    return behind;
  switch (last.kind) {
  case Recorder::WaitReceive: {
    std::string text = behind + ", waits for " + peer;
    for (const Task &task : standing.waitsFor)
      text += (&task == &standing.waitsFor.front() ? ", for what " : " and ") +
              task.name();
    return text + (standing.waitsFor.empty() ? "" : " makes");
  }
  case Recorder::WaitSend:
    return behind + ", waits until " + peer + " has taken what it sent";
  case Recorder::WaitCollective:
    return behind + ", waits for the others of group " +
           std::to_string(last.place);
  case Recorder::Norm:
    return behind + ", waits for all others, to add up the norm of the "
                    "gradients";
  case Recorder::EndOfStep:
    return "at the end of the step, waits for all others";
  default:
    return behind;
  }
}

std::string Standings::textOfNext(const Standing &standing) const {
  llvm::ArrayRef<Task> order = orderOf(standing);
  std::string text;
  for (size_t i = standing.position + 1;
       i < order.size() && i < static_cast<size_t>(standing.position) + 4; ++i)
    text += " " + order[i].name();
  return text.empty() ? " the end of the step" : text;
}

/// When it began what it is in, or ended what it did last.
static std::string timeOf(const Standing &standing) {
  if (!standing.last.kind)
    return "";
  const int64_t when =
      standing.last.end ? standing.last.end : standing.last.start;
  const time_t seconds = (when + standing.ring->clockOffset) / 1'000'000'000;
  tm local = {};
  char text[32];
  if (!localtime_r(&seconds, &local) ||
      !strftime(text, sizeof text, ", since %F %T", &local))
    return "";
  return text;
}

/// Whether a rank has done a task of the step that it is in.
bool Standings::hasDone(const Standing &standing, const Task &task) const {
  llvm::ArrayRef<Task> order = orderOf(standing);
  const int64_t number = llvm::find(order, task) - order.begin();
  return number < standing.position ||
         (number == standing.position && !standing.isInTask);
}

/// From a rank that waits along what it waits for, to one that does not, or
/// that was there before.
std::string Standings::chainFrom(Key from) const {
  std::string chain = nameOf(from);
  std::set<Key> seen;
  for (Key at = from;;) {
    if (!all.contains(at))
      return chain + ", which has left nothing";
    const Standing &here = all.at(at);
    if (!here.waitsForRank())
      return at == from ? "" : chain + ", which is " + textOf(here);
    if (!seen.insert(at).second)
      return chain + ": they wait for each other";
    at.second = here.last.place;
    chain +=
        (seen.size() > 1 ? ", which waits for " : " waits for ") + nameOf(at);
    if (here.waitsFor.empty())
      continue;
    const Task &task = here.waitsFor.front();
    chain += " (" + task.name() + ")";
    if (all.contains(at) && all.at(at).ring->step.load() == here.ring->step &&
        hasDone(all.at(at), task))
      return chain + ", which has done it: the message is under way, or lost";
  }
}

void Standings::print() const {
  for (const auto &[key, standing] : all) {
    llvm::outs() << nameOf(key) << " (" << (standing.isAlive ? "runs" : "ended")
                 << ", process " << standing.ring->process << "): ";
    if (standing.ring->step.load() < 0)
      llvm::outs() << "before the first step\n";
    else
      llvm::outs() << "step " << standing.ring->step.load() + 1 << ", "
                   << textOf(standing) << timeOf(standing)
                   << "\n  next:" << textOfNext(standing) << "\n";
  }
  for (int64_t rank = 0; rank < plan.schedule.ranks; ++rank)
    if (!all.contains({0, rank}))
      llvm::outs() << "rank " << rank << ": left nothing\n";
  for (const auto &[key, standing] : all)
    if (const std::string chain = chainFrom(key); !chain.empty())
      llvm::outs() << chain << "\n";
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

/// The files of all ranks, by name.
static std::vector<std::string> ringsIn(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("flight-rank") && name.ends_with(".ring"))
      found.push_back(it->path().string());
  }
  if (error)
    rt::fail("cannot read '", folder, "': ", error.message());
  if (found.empty())
    rt::fail("'", folder,
             "' has no flight-rank*.ring: no run has begun that wrote to it, "
             "or all have ended as they should");
  llvm::sort(found);
  return found;
}

llvm::Error pipewright::tool::runAutopsy(const AutopsyOptions &options) {
  const std::string path =
      options.plan.empty() ? options.folder + "/plan.json" : options.plan;
  auto text = readTextFile(path);
  if (!text)
    return option::fail("'", text::shortened(path), "' ",
                        llvm::toString(text.takeError()),
                        "; --plan FILE says where the program's plan.json is");
  auto plan = parsePlan((*text)->getBuffer(), path);
  if (!plan)
    return plan.takeError();
  auto dependences = Dependences::build(plan->schedule, plan->edges);
  if (!dependences)
    return dependences.takeError();
  try {
    Standings standings(*plan, *dependences);
    for (const std::string &file : ringsIn(options.folder)) {
      const rt::FlightFile::Found found = rt::FlightFile::read(file);
      if (found.ring->owner.plan !=
          rt::hashOf({(*text)->getBufferStart(), (*text)->getBufferSize()}))
        rt::fail("'", file, "' is of another plan than '", path, "'");
      standings.add(found);
    }
    standings.print();
  } catch (const rt::Error &error) {
    llvm::outs().flush();
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}
