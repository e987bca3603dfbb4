//===- Check.cpp - Proves or refuses a schedule from a file ---------------===//
//
// The proofs are those of passes/schedules; here is what is asked in which
// order, and how the answers are told.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Check.h"

#include "tools/pipewright/ScheduleOutput.h"
#include "tools/pipewright/ShardingRows.h"
#include "tools/pipewright/SimulatedSchedule.h"

#include "codegen/plan/Plan.h"
#include "passes/planning/MachineLinks.h"
#include "passes/schedules/ChannelSimulator.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/Figures.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/StashMeter.h"
#include "passes/schedules/StashMoves.h"
#include "passes/schedules/WorkOrder.h"
#include "passes/schedules/files/FilePolicy.h"
#include "passes/schedules/files/GivenTimes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::tool;

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

/// F takes 1, B 2, I and W 1 each.
static TaskCosts unitCosts(const Schedule &schedule) {
  TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, 2);
  for (StageCosts &stage : costs.stages) {
    stage.inputGradient = stage.weightGradient = 1;
    stage.stashBytes = 1;
  }
  return costs;
}

namespace {

/// What was found about the messages on one layout; no refusal is a proof.
struct Verdict {
  Channels channels;
  std::string refusal;
};

} // namespace

/// Gives the plan lists of messages and works, if it has none, and judges them
/// on each layout.
static llvm::Expected<std::vector<Verdict>>
judgeMessages(PlanFile &plan, llvm::ArrayRef<Channels> layouts) {
  std::vector<Verdict> verdicts;
  std::vector<RankGroup> groups;
  std::vector<Work> works = plan.works();
  if (llvm::Error error = checkMoves(plan.schedule, works))
    return std::move(error);
  if (plan.lists.empty()) {
    std::vector<int32_t> groupOfWork = numberGroups(works, groups);
    llvm::Expected<InstructionLists> lists = orderMessages(
        plan.schedule, plan.costs ? *plan.costs : unitCosts(plan.schedule),
        plan.edges, layouts[0].layout, works, groupOfWork);
    if (!lists)
      return lists.takeError();
    plan.lists = std::move(*lists);
  }
  if (llvm::Error error = checkDataFlow(plan.schedule, plan.lists, plan.edges))
    return error;
  std::vector<StageEdge> edges = plan.edges;
  if (edges.empty())
    edges = linearEdges(plan.schedule.stages, 0, plan.schedule.copies);
  auto nameOf = [&](const Transfer &transfer) {
    auto number = static_cast<size_t>(transfer.edge);
    return transfer.kind == TransferKind::Work && number < works.size()
               ? works[number].name
               : transferName(transfer, edges);
  };
  for (Channels channels : layouts) {
    channels.groups = groups;
    llvm::Error error = checkInstructions(plan.lists, nameOf, channels);
    if (error && layouts.size() == 1)
      return error;
    verdicts.push_back({channels, llvm::toString(std::move(error))});
  }
  return verdicts;
}

/// Puts the plan on a machine.
static llvm::Error setMachine(PlanFile &plan, const ChosenMachine &machine,
                              const runtime::Mesh &mesh) {
  if (!plan.costs)
    return refuse("--machine needs to know what tasks take, which only a plan "
                  "with costs says: plan.json of pipewright plan or compile");
  setLinks(*plan.costs, machine.model, mesh);
  return llvm::Error::success();
}

/// Whether the plan says how large stashes are.
static bool knowsStashes(const PlanFile &plan) {
  return plan.costs &&
         llvm::any_of(plan.costs->stages, [](const StageCosts &stage) {
           return stage.stashBytes > 0;
         });
}

/// That of the user, or else of the machine, if it is known.
static std::optional<MemoryLimit> limitOf(const PlanFile &plan,
                                          const CheckOptions &options,
                                          const runtime::Mesh &mesh) {
  if (options.limit || !options.machine || !knowsStashes(plan))
    return options.limit;
  MemoryLimit limit{0, /*isBytes=*/true,
                    "than a rank has memory on " + options.machine->name};
  for (int64_t rank = 0; rank < plan.schedule.ranks; ++rank) {
    const double memory = options.machine->model.ofRank(rank, mesh).memory;
    if (memory == MachineModel::unknownMemory)
      return std::nullopt;
    limit.ofRanks.push_back(static_cast<int64_t>(memory));
  }
  return limit;
}

/// A limit of stashes, told with the task that goes over it.
static llvm::Error checkStashes(const PlanFile &plan, int64_t limit) {
  const Schedule &schedule = plan.schedule;
  TaskCosts costs = TaskCosts::uniform(schedule.stages);
  for (auto [rank, tasks] : llvm::enumerate(schedule.order)) {
    StashMeter meter(schedule, costs);
    meter.addTransfers(plan.works(), static_cast<int32_t>(rank));
    for (size_t i = 0; i < tasks.size(); ++i) {
      meter.runAt(tasks, i);
      if (meter.peakInFlight() > limit)
        return refuse("rank {0} keeps {1} stashes in {2}, but its limit is {3}",
                      rank, meter.peakInFlight(), tasks[i].name(), limit);
    }
  }
  return llvm::Error::success();
}

static llvm::Error checkLimit(const PlanFile &plan, const MemoryLimit &limit) {
  if (!limit.isBytes)
    return checkStashes(plan, limit.number);
  if (!knowsStashes(plan))
    return refuse("--memory in bytes needs to know the bytes of a stash, which "
                  "only a plan with costs says; give a number of stashes");
  return checkMemory(plan.schedule, *plan.costs,
                     limit.ofRanks.empty() ? llvm::ArrayRef(limit.number)
                                           : llvm::ArrayRef(limit.ofRanks),
                     plan.edges, plan.works());
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

static std::string counted(int64_t number, llvm::StringRef what,
                           llvm::StringRef plural = "s") {
  return llvm::formatv("{0} {1}{2}", number, what, number == 1 ? "" : plural);
}

static int64_t tasksIn(const Schedule &schedule) {
  int64_t tasks = 0;
  for (const std::vector<Task> &order : schedule.order)
    tasks += static_cast<int64_t>(order.size());
  return tasks;
}

static int64_t messagesIn(const InstructionLists &lists) {
  int64_t messages = 0;
  for (const std::vector<RankInstruction> &list : lists)
    messages += llvm::count_if(list, [](const RankInstruction &instruction) {
      return instruction.kind == InstructionKind::PostSend;
    });
  return messages;
}

/// `8, 7, 6, 5`, or the most where there are many ranks.
static std::string describePeaks(const Simulation &simulation) {
  constexpr size_t most = 16;
  if (simulation.ranks.size() > most) {
    auto fullest = llvm::max_element(
        simulation.ranks, [](const RankSummary &a, const RankSummary &b) {
          return a.peakInFlight < b.peakInFlight;
        });
    return llvm::formatv("{0} at most, on rank {1}", fullest->peakInFlight,
                         fullest - simulation.ranks.begin());
  }
  std::vector<std::string> peaks;
  for (const RankSummary &rank : simulation.ranks)
    peaks.push_back(std::to_string(rank.peakInFlight));
  return (peaks.size() == 1
              ? "rank 0: "
              : "ranks 0 to " + std::to_string(peaks.size() - 1) + ": ") +
         llvm::join(peaks, ", ");
}

/// Whether the instruction lists have all that ranks wait for: what replicas do
/// together, and copies to hosts and back, are none of their messages.
static bool saysAllWaits(const PlanFile &plan) {
  return llvm::none_of(plan.works(), [](const Work &work) {
    return work.replicas > 1 || work.isCopy();
  });
}

/// How long a step takes, first if messages never wait for each other, then
/// with what the order of messages costs on the channels where it is proven, if
/// that is all that ranks wait for.
static llvm::Error
printTimes(const PlanFile &plan, const TaskCosts &costs,
           llvm::ArrayRef<Verdict> verdicts, llvm::StringRef costsName,
           llvm::function_ref<std::string(double)> timeToText) {
  llvm::Expected<Simulation> ideal =
      simulate(plan.schedule, costs, plan.edges, plan.works());
  if (!ideal)
    return ideal.takeError();
  llvm::outs() << costsName << ": " << timeToText(ideal->globalStepTime)
               << llvm::formatv(", idle {0:F1} % of the time",
                                100 *
                                    Figures::of(plan.schedule, *ideal).bubble);
  for (const Verdict &verdict : verdicts) {
    if (!verdict.refusal.empty() || !saysAllWaits(plan))
      continue;
    llvm::Expected<ChannelSimulation> queued =
        simulateInstructions(plan.lists, costs, verdict.channels);
    if (!queued)
      return queued.takeError();
    llvm::outs() << "; " << timeToText(queued->globalStepTime) << " with "
                 << (verdicts.size() == 1
                         ? llvm::StringRef("its messages in these queues")
                         : llvm::StringRef(
                               infoOf(verdict.channels.layout).description));
  }
  llvm::outs() << "\n";
  return llvm::Error::success();
}

/// One line for each layout.
static void printVerdicts(const PlanFile &plan,
                          llvm::ArrayRef<Verdict> verdicts, bool hadLists) {
  llvm::raw_ostream &os = llvm::outs();
  if (llvm::all_of(verdicts, [](const auto &v) { return v.refusal.empty(); }))
    os << "proven: " << counted(messagesIn(plan.lists), "message")
       << (hadLists ? " in the file's order"
                    : " in the order of their predicted production")
       << ", the same at both ends, each there before its use\n";
  int64_t together = llvm::count_if(plan.timedWorks, [](const auto &timed) {
    return timed.work.on == Resource::Group;
  });
  if (together > 0)
    os << "proven: " << counted(together, "collective")
       << ", of all their members in one order\n";
  if (verdicts.size() == 1) {
    os << "proven: no deadlock " << describe(verdicts[0].channels) << "\n";
    return;
  }
  for (const auto &[channels, refusal] : verdicts) {
    const ChannelLayoutInfo &info = infoOf(channels.layout);
    os << (refusal.empty() ? "proven" : "refused") << " with "
       << info.description << " (PyTorch's " << info.pytorch << "): "
       << (refusal.empty() ? "no deadlock " + describe({ChannelLayout::Link,
                                                        channels.buffering})
                           : refusal)
       << "\n";
  }
}

static llvm::Error printReport(const ScheduleFile &file,
                               const CheckOptions &options, int64_t replicas,
                               bool hadLists,
                               llvm::ArrayRef<Verdict> verdicts) {
  const PlanFile &plan = file.plan;
  const Schedule &schedule = plan.schedule;
  llvm::Expected<Simulation> unit =
      simulate(schedule, unitCosts(schedule), plan.edges, plan.works());
  if (!unit)
    return unit.takeError();
  llvm::raw_ostream &os = llvm::outs();
  os << options.file << ": " << counted(schedule.ranks, "rank") << ", "
     << counted(schedule.stages, "stage") << ", "
     << counted(schedule.microBatches, "micro-batch", "es") << ", "
     << counted(tasksIn(schedule), "task")
     << (replicas > 1 ? "; " + counted(replicas, "replica") : "") << "\n";
  for (const std::string &note : file.notes)
    os << "note: " << note << "\n";
  os << "proven: each task runs once, on the rank of its stage, after all that "
        "it needs\n";
  printVerdicts(plan, verdicts, hadLists);
  os << "stashes in flight: " << describePeaks(*unit) << "\n";
  if (schedule.weightRule != WeightRule::Synchronous)
    os << "versions of weights: " << Figures::of(schedule, *unit).versions
       << " at most, of each stage\n";
  if (llvm::Error error =
          printTimes(plan, unitCosts(schedule), verdicts,
                     "with F = I = W = 1 and B = 2", [](double slots) {
                       return llvm::formatv("{0:F0} slots", slots).str();
                     }))
    return error;
  if (!plan.costs)
    return llvm::Error::success();
  const std::string costs =
      options.machine
          ? "with the plan's tasks and the links of " + options.machine->name
          : "with the plan's costs";
  return printTimes(plan, *plan.costs, verdicts, costs, codegen::formatSeconds);
}

/// Exit code 1 where a layout was refused, after the report said why.
static llvm::Error refuseLayouts(llvm::ArrayRef<Verdict> verdicts) {
  std::vector<std::string> refused;
  for (const Verdict &verdict : verdicts)
    if (!verdict.refusal.empty())
      refused.push_back(infoOf(verdict.channels.layout).description.str());
  if (refused.empty())
    return llvm::Error::success();
  // The report stands above the error, wherever both go.
  llvm::outs().flush();
  return refuse("refused with {0}, as told above; --channels LAYOUT asks for "
                "one layout alone",
                llvm::join(refused, ", "));
}

/// With the costs that the file has, or units.
static llvm::Error drawFile(const PlanFile &plan, llvm::StringRef path,
                            int64_t replicas, const DrawOptions &drawings) {
  GivenTimes units = GivenTimes::units();
  llvm::Expected<TaskCosts> costs =
      plan.costs ? *plan.costs : units.costsOf(plan.schedule);
  if (!costs)
    return costs.takeError();
  llvm::Expected<Simulation> simulation =
      simulate(plan.schedule, *costs, plan.edges, plan.works());
  if (!simulation)
    return simulation.takeError();
  Picture picture{llvm::sys::path::filename(path).str(), plan.schedule,
                  *simulation, *costs, plan.edges};
  picture.unitTimes = !plan.costs;
  picture.replicas = replicas;
  if (!plan.costs)
    picture.times = units.describe() + " of a rank's share";
  return writeDrawings(picture, drawings);
}

/// Those that the plan's costs make; the file may have been written with
/// others.
static llvm::Error predictTimes(PlanFile &plan) {
  if (!plan.costs)
    return llvm::Error::success();
  llvm::Expected<Simulation> simulation =
      simulate(plan.schedule, *plan.costs, plan.edges, plan.works());
  if (!simulation)
    return simulation.takeError();
  plan.times = std::move(simulation->times);
  plan.timedWorks = std::move(simulation->works);
  return llvm::Error::success();
}

/// As the plan and the user say, who must agree.
static llvm::Expected<int64_t> replicasOf(const PlanFile &plan,
                                          const CheckOptions &options) {
  int64_t own = plan.replicas();
  int64_t replicas = options.replicas.value_or(own);
  if (own > 1 && own != replicas)
    return refuse(
        "--data-parallel {0}, but the plan's sums are of {1} replicas",
        replicas, own);
  if (plan.costs && plan.costs->hosts.processes > 0 && own > 1 &&
      plan.costs->hosts.mesh.data != own)
    return refuse("costs.hosts.replicas is {0}, but the plan's sums are of {1} "
                  "replicas",
                  plan.costs->hosts.mesh.data, own);
  return replicas;
}

/// Its processes, as the plan, the user or the machine says.
static runtime::Mesh meshOf(const PlanFile &plan, const CheckOptions &options,
                            int64_t replicas) {
  runtime::Mesh mesh = {.pipe = plan.schedule.ranks, .data = replicas};
  if (options.processMap)
    mesh.map = *options.processMap;
  else if (plan.costs && plan.costs->hosts.processes > 0)
    mesh.map = plan.costs->hosts.mesh.map;
  else if (options.machine)
    mesh.map = processMapsOn(options.machine->model, mesh.pipe, replicas,
                             llvm::any_of(plan.schedule.moves,
                                          [](const StashMove &move) {
                                            return !move.keeper.isHost();
                                          }))
                   .front();
  return mesh;
}

/// What replicas do together, which the file does not say.
static llvm::Error addWorks(PlanFile &plan, const Sharding &sharding) {
  if (!plan.lists.empty() || !plan.timedWorks.empty())
    return refuse("--zero {0} adds what replicas do together to an order of "
                  "tasks, but the file says {1} already; leave --zero out, or "
                  "give the order alone",
                  sharding.level,
                  plan.timedWorks.empty() ? "what is sent when"
                                          : "what ranks do together");
  if (sharding.weightBytes > 0 && !plan.costs)
    return refuse("--weights needs to know how fast links are, which only a "
                  "plan with costs says");
  llvm::Expected<std::vector<Work>> works =
      addReplicaWorks(plan.schedule, sharding);
  if (!works)
    return works.takeError();
  const TaskCosts costs = plan.costs ? *plan.costs : unitCosts(plan.schedule);
  llvm::Expected<Simulation> simulation =
      simulateWithMoves(plan.schedule, costs, plan.edges, *works);
  if (!simulation)
    return simulation.takeError();
  plan.timedWorks = std::move(simulation->works);
  return llvm::Error::success();
}

llvm::Error tool::checkFile(const CheckOptions &o,
                            const DrawOptions &drawings) {
  llvm::Expected<ScheduleFile> file = readScheduleFile(o.file);
  if (!file)
    return file.takeError();
  PlanFile &plan = file->plan;
  bool hadLists = !plan.lists.empty();
  auto inFile = [&](llvm::Error error) {
    return refuse("{0}: {1}", o.file, llvm::toString(std::move(error)));
  };
  if (llvm::Error error = checkSchedule(plan.schedule, plan.edges))
    return inFile(std::move(error));
  llvm::Expected<int64_t> replicas = replicasOf(plan, o);
  if (!replicas)
    return inFile(replicas.takeError());
  const runtime::Mesh mesh = meshOf(plan, o, *replicas);
  if (plan.costs && plan.costs->hosts.processes > 0) {
    plan.costs->hosts.mesh.map = mesh.map;
    if (o.replicas)
      plan.costs->hosts.mesh.data = *replicas;
  } else if (o.processMap && !o.machine) {
    return inFile(refuse("--process-map {0} expects several hosts: those of "
                         "--machine, or of the plan's costs",
                         nameOf(*o.processMap)));
  }
  if (o.machine)
    if (llvm::Error error = setMachine(plan, *o.machine, mesh))
      return inFile(std::move(error));
  if (o.sharding)
    if (llvm::Error error = addWorks(plan, *o.sharding))
      return inFile(std::move(error));
  if (drawings.any())
    if (llvm::Error error = drawFile(plan, o.file, *replicas, drawings))
      return inFile(std::move(error));
  llvm::Expected<std::vector<Verdict>> verdicts =
      judgeMessages(plan, o.layouts);
  if (!verdicts)
    return inFile(verdicts.takeError());
  const std::optional<MemoryLimit> limit = limitOf(plan, o, mesh);
  if (limit)
    if (llvm::Error error = checkLimit(plan, *limit))
      return inFile(std::move(error));
  if (llvm::Error error = printReport(*file, o, *replicas, hadLists, *verdicts))
    return inFile(std::move(error));
  if (limit)
    llvm::outs() << "proven: no rank ever keeps more " << limit->inWords()
                 << "\n";
  if (llvm::Error error = refuseLayouts(*verdicts))
    return inFile(std::move(error));
  if (o.write.empty())
    return llvm::Error::success();
  if (llvm::Error error = predictTimes(plan))
    return inFile(std::move(error));
  return writeSchedule(plan, o.write, o.withMessages, o.sendWaits);
}
