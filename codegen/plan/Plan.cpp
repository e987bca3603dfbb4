//===- Plan.cpp - What was decided and predicted --------------------------===//
//
// Decisions are read from the IR, so that the file cannot say anything else
// than what was compiled.
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/Plan.h"

#include "codegen/host/Identifiers.h"
#include "dialects/nn/NNCountedInput.h"
#include "dialects/nn/NNLocation.h"
#include "passes/schedules/Figures.h"
#include "passes/schedules/Timetable.h"
#include "passes/schedules/files/GivenTimes.h"
#include "passes/schedules/files/PlanFile.h"
#include "passes/step/Prediction.h"
#include "passes/step/StepOrder.h"
#include "passes/step/StepTraffic.h"
#include "support/Text.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace pipewright::codegen {

std::string count(int64_t number, StringRef what) {
  StringRef ending = number == 1 ? "" : what.ends_with("ch") ? "es" : "s";
  return (Twine(number) + " " + what + ending).str();
}

std::string countRanks(const Plan &plan) {
  std::string ranks = count(plan.ranks.size(), "rank");
  if (plan.replicas > 1)
    ranks += " x " + count(plan.replicas, "replica");
  if (plan.zero > 0)
    ranks += " (ZeRO-" + std::to_string(plan.zero) + ")";
  return ranks;
}

std::string formatBytes(int64_t bytes) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1000 && unit < 4; ++unit)
    value /= 1000;
  return llvm::formatv(unit == 0 ? "{0:F0} {1}" : "{0:F1} {1}", value,
                       units[unit])
      .str();
}

std::string formatSeconds(double seconds) {
  auto [number, unit] = schedules::scaledSeconds(seconds);
  return unit == "us" ? llvm::formatv("{0:F1} us", number).str()
                      : llvm::formatv("{0:F2} {1}", number, unit).str();
}

/// `h.0.attn .. h.5.mlp`
static std::string layersOf(Region &body) {
  std::string first, last;
  for (Operation &op : body.getOps()) {
    if (onlyBrings(&op))
      continue;
    std::string layer = nn::layerOfLocation(op.getLoc());
    if (layer.empty())
      layer = nn::nameOfLocation(op.getLoc()).str();
    if (layer.empty())
      continue;
    if (first.empty())
      first = layer;
    last = layer;
  }
  return first == last ? first : first + " .. " + last;
}

static StagePlan planOfStage(const pipe::Stages &stages, int32_t number,
                             const MachineModel &machine) {
  SymbolTableCollection kernels;
  pipe::StageOp op = stages[number];
  StagePlan plan;
  plan.rank = op.getRank().value_or(0);
  plan.layers = text::printable(layersOf(op.getForward().getBodyRegion()));
  for (const pipe::WeightGroup &weight : stages.weights())
    if (weight.isTrained() && weight.owner() == number)
      plan.parameters += weight.weight.getTensorType().getNumElements();
  plan.forwardFlops =
      workOf(op.getForward().getBodyRegion(), machine, kernels).flops;
  if (pipe::BackwardOp backward = op.getBackward())
    plan.backwardFlops =
        workOf(backward.getBodyRegion(), machine, kernels).flops;
  for (const pipe::StageLink &link : stages.links())
    if (link.from == number)
      plan.outputBytes += link.bytes;
  for (Value value : op.getForward().getReturn().getStash())
    plan.stashBytes += pipe::byteSize(cast<RankedTensorType>(value.getType()));
  return plan;
}

/// Streams in the order of their first use.
static void countStreams(ModuleOp module, std::vector<RankPlan> &ranks) {
  for (auto list : module.getOps<pipe::RankOp>()) {
    if (list.getMode() != pipe::StepMode::train ||
        list.getRank() >= ranks.size())
      continue;
    RankPlan &rank = ranks[list.getRank()];
    rank.streams = {"compute"};
    for (auto op : list.getBody()->getOps<pipe::StepOpInterface>()) {
      std::optional<uint64_t> event = op.getRecordedEvent();
      if (!op.isAsynchronous() && !event)
        continue;
      std::string name = op.getWorkStream().describe();
      if (!llvm::is_contained(rank.streams, name))
        rank.streams.push_back(name);
      if (event)
        rank.events = std::max(rank.events, static_cast<int64_t>(*event) + 1);
    }
  }
}

/// In the order of the ranks' programs; without those that are counted.
static std::vector<std::string> inputsOf(ModuleOp module) {
  llvm::SetVector<StringRef> names;
  for (auto rank : module.getOps<pipe::RankOp>())
    if (rank.getMode() == pipe::StepMode::train)
      for (auto input : rank.getBody()->getOps<pipe::InputOp>())
        if (!nn::countedInput(module, input.getName()))
          names.insert(input.getName());
  return {names.begin(), names.end()};
}

FailureOr<Plan> Plan::of(ModuleOp module, StringRef model, const Target &target,
                         Precision precision, const MachineModel &machine) {
  Plan plan;
  plan.model = text::printable(model);
  plan.target = &target;
  plan.precision = precision;
  FailureOr<pipe::Stages> stages = pipe::Stages::read(module);
  if (failed(stages))
    return failure();
  FailureOr<int64_t> microBatches = pipe::microBatchesOf(module);
  if (failed(microBatches))
    return failure();
  plan.microBatches = *microBatches;
  pipe::ProgramFields program = pipe::programOf(module);
  plan.replicas = program.replicas;
  plan.processMap = program.processMap;
  plan.zero = program.zero;
  plan.microBatchSize = program.microBatchSize.value_or(1);
  if (program.schedule)
    plan.schedule = text::printable(program.schedule);
  if (program.optimizer)
    plan.optimizer = program.optimizer.getName().str();

  plan.weights = WeightSummary::of(module);
  plan.inputs = inputsOf(module);
  for (int32_t number = 0; number < stages->size(); ++number)
    plan.stages.push_back(planOfStage(*stages, number, machine));
  FailureOr<pipe::Prediction> prediction =
      pipe::predictStep(module, *stages, machine);
  if (failed(prediction))
    return failure();
  plan.order = std::move(prediction->order);
  plan.edges = std::move(prediction->edges);
  plan.costs = std::move(prediction->costs);
  plan.simulation = std::move(prediction->simulation);
  if (int64_t cores = countCores();
      target.sharesCores() && cores < plan.order.ranks * plan.replicas) {
    plan.coresHere = cores;
    plan.secondsHere = secondsOnCores(plan.simulation, plan.replicas, cores);
  }
  plan.sent = pipe::trafficOf(module);
  plan.timetable = schedules::printTimetable(plan.order);
  if (plan.replicas > 1)
    plan.timetable += "each of " + count(plan.replicas, "replica") +
                      " runs so, on micro-batches of its own\n";

  plan.ranks.resize(plan.order.ranks);
  for (auto [rank, summary] : llvm::zip(plan.ranks, plan.simulation.ranks)) {
    rank.busySeconds = summary.busySeconds;
    rank.bubbleFraction = summary.bubbleFraction;
    rank.peakStashBytes = summary.peakStashBytes;
  }
  for (auto arena : module.getOps<pipe::ArenaOp>()) {
    if (arena.getRank() >= plan.ranks.size())
      continue;
    RankPlan &rank = plan.ranks[arena.getRank()];
    rank.arenaBytes = arena.getBytes();
    rank.hostBytes = arena.getHostBytes();
    for (auto region : arena.getOps<pipe::RegionOp>())
      rank.regions.push_back(
          {region.getName().str(), region.getBuffer().getBytes()});
  }
  if (target.hasStreams())
    countStreams(module, plan.ranks);
  return plan;
}

void Plan::predictFor(StringRef otherMachine) {
  machine = otherMachine.str();
  coresHere = 0;
}

std::string Plan::machineWords() const {
  if (!machine.empty())
    return "on " + machine + " for each rank";
  StringRef words = target->planWords().machine;
  return words.empty() ? "" : ("with " + words).str();
}

std::string Plan::nameOfSchedule() const {
  return chosen.empty() ? schedule : schedule + " (" + chosen + ")";
}

schedules::Picture Plan::picture() const {
  schedules::Picture picture{nameOfSchedule(), order, simulation, costs, edges};
  picture.model = model;
  picture.replicas = replicas;
  return picture;
}

llvm::json::Value Plan::toJson() const {
  using llvm::json::Array;
  using llvm::json::Object;
  Array stageList, rankList;
  for (auto [number, stage] : llvm::enumerate(stages))
    stageList.push_back(Object{{"stage", static_cast<int64_t>(number)},
                               {"rank", stage.rank},
                               {"layers", stage.layers},
                               {"parameters", stage.parameters},
                               {"forward_flops", stage.forwardFlops},
                               {"backward_flops", stage.backwardFlops},
                               {"output_bytes", stage.outputBytes},
                               {"stash_bytes", stage.stashBytes}});
  for (auto [number, rank] : llvm::enumerate(ranks)) {
    Object regions;
    for (const auto &[name, bytes] : rank.regions)
      regions[name] = bytes;
    Object entry{{"rank", static_cast<int64_t>(number)},
                 {"arena_bytes", rank.arenaBytes},
                 {"memory", std::move(regions)},
                 {"predicted_busy_seconds", rank.busySeconds},
                 {"predicted_bubble", rank.bubbleFraction}};
    if (rank.hostBytes > 0)
      entry["host_bytes"] = rank.hostBytes;
    if (target->hasStreams()) {
      entry["streams"] = Array(rank.streams);
      entry["events"] = rank.events;
    }
    rankList.push_back(std::move(entry));
  }
  // All that `pipewright check` needs to prove it again.
  schedules::PlanFile file{order,           edges, costs, {}, simulation.times,
                           simulation.works};
  Object plan{
      {"compiler", "pipewright 0.1.0"},
      {"model", model},
      {"target", target->name()},
      {"precision", nameOf(precision)},
      {"options", Object(options)},
      {"schedule", schedule},
      {"optimizer", optimizer},
      {"replicas", replicas},
      {"process_map", nameOf(processMap)},
      {"micro_batches", microBatches},
      {"micro_batch_size", microBatchSize},
      {"inputs", Array(inputs)},
      {"weights", weights.toJson()},
      {"stages", std::move(stageList)},
      {"ranks", std::move(rankList)},
      {schedules::scheduleKey, schedules::planToJson(file)},
      {"timetable", timetable},
      {"predicted_step_seconds", simulation.globalStepTime},
      {"predicted_exposed_seconds", simulation.exposedSeconds},
      {"predicted_collective_wait_seconds", simulation.longestWorkWait()},
      {"sent_messages", sent.messages},
      {"sent_bytes", sent.bytes}};
  if (!chosen.empty())
    plan["chosen"] = chosen;
  return plan;
}

std::string criticalPathShares(const schedules::Schedule &order,
                               const schedules::Simulation &simulation) {
  if (simulation.times.empty())
    return "";
  int32_t last = schedules::lastRank(simulation);
  double end =
      simulation.times[last].empty() ? 0 : simulation.times[last].back().end;
  if (end <= 0)
    return "";
  // The ranks', then that of messages.
  std::vector<std::pair<double, size_t>> seconds;
  for (size_t i = 0; i <= simulation.times.size(); ++i)
    seconds.push_back({0, i});
  for (const schedules::PathStep &step : simulation.criticalPath(order, last)) {
    seconds[step.rank].first += step.time.end - step.time.start;
    seconds.back().first += step.transferSeconds;
  }
  llvm::sort(seconds, [](auto &a, auto &b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  constexpr size_t maxShown = 6;
  std::string text;
  for (auto [spent, i] : llvm::ArrayRef(seconds).take_front(maxShown))
    if (spent > 0)
      text += llvm::formatv("{0}{1} {2:F1} %", text.empty() ? "" : ", ",
                            i < simulation.times.size()
                                ? "rank " + std::to_string(i)
                                : "messages",
                            100 * spent / end);
  double rest = 0;
  for (auto [spent, i] :
       llvm::ArrayRef(seconds).drop_front(std::min(maxShown, seconds.size())))
    rest += spent;
  if (rest > 0)
    text += llvm::formatv(", others {0:F1} %", 100 * rest / end);
  return text;
}

std::string Plan::hostWords() const {
  constexpr int64_t most = 64;
  const schedules::Hosts &hosts = costs.hosts;
  if (hosts.processes == 0)
    return "";
  std::string text = "process-map " + std::string(nameOf(hosts.mesh.map)) +
                     ", on hosts of " + std::to_string(hosts.processes) +
                     (replicas > 1 ? ": rank.replica " : ": ranks ");
  const int64_t listed = std::min(hosts.mesh.size(), most);
  for (int64_t process = 0; process < listed; ++process) {
    const runtime::Place place = hosts.mesh.placeOf(process);
    text += (process == 0                     ? ""
             : process % hosts.processes == 0 ? " | "
                                              : " ") +
            std::to_string(place.position) +
            (replicas > 1 ? "." + std::to_string(place.replica) : "");
  }
  return text + (listed < hosts.mesh.size() ? " ..." : "");
}

void Plan::print(llvm::raw_ostream &os) const {
  os << "model " << model << ": " << count(stages.size(), "stage") << " on "
     << countRanks(*this) << ", " << count(microBatches, "micro-batch")
     << " of " << microBatchSize << ", schedule " << nameOfSchedule()
     << ", optimizer " << optimizer;
  const PlanWords words = target->planWords();
  if (!words.runsOn.empty())
    os << ", for " << words.runsOn;
  if (!words.runsOn.empty() || precision != Precision::F32)
    os << " in " << nameOf(precision);
  os << "\ntrains ";
  weights.print(os);
  os << "\n\n";
  os << "stage  rank  parameters  forward  backward    sends   stashes  "
        "layers\n";
  auto giga = [](int64_t flops) {
    return flops < 100'000'000 ? llvm::formatv("{0:F2} MF", flops * 1e-6).str()
                               : llvm::formatv("{0:F2} GF", flops * 1e-9).str();
  };
  for (auto [number, stage] : llvm::enumerate(stages))
    os << llvm::formatv("{0,5} {1,5} {2,11} {3,8} {4,9} {5,8} {6,9}  {7}\n",
                        number, stage.rank, stage.parameters,
                        giga(stage.forwardFlops), giga(stage.backwardFlops),
                        formatBytes(stage.outputBytes),
                        formatBytes(stage.stashBytes), stage.layers);
  os << "\n" << StringRef(timetable).rtrim() << "\n\n";
  for (auto [number, rank] : llvm::enumerate(ranks)) {
    os << llvm::formatv("rank {0}: busy {1}, idle {2:F1} %, arena {3}", number,
                        formatSeconds(rank.busySeconds),
                        rank.bubbleFraction * 100,
                        formatBytes(rank.arenaBytes));
    const char *separator = " (";
    for (const auto &[name, bytes] : rank.regions) {
      os << separator << name << " " << formatBytes(bytes);
      separator = ", ";
    }
    os << (rank.regions.empty() ? "" : ")");
    if (rank.hostBytes > 0)
      os << ", stashes on the host " << formatBytes(rank.hostBytes);
    if (!rank.streams.empty())
      os << ", " << count(rank.streams.size(), "stream") << ", "
         << count(rank.events, "event");
    os << "\n";
  }
  for (const auto &[work, time] : simulation.works)
    os << work.kindText() << " of " << text::printable(work.name) << " over "
       << work.over() << ": " << formatBytes(work.bytes) << ", "
       << formatSeconds(time.end - time.start) << "\n";
  if (!simulation.works.empty())
    os << "exposed: " << formatSeconds(simulation.exposedSeconds)
       << " of the step, in which ranks wait for these alone\n";
  if (!words.besideArenas.empty())
    os << words.besideArenas << "\n";
  if (std::string shares = criticalPathShares(order, simulation);
      !shares.empty())
    os << "critical path: " << shares << "\n";
  if (const std::string hosts = hostWords(); !hosts.empty())
    os << hosts << "\n";
  os << "predicted step time: " << formatSeconds(simulation.globalStepTime);
  if (std::string on = machineWords(); !on.empty())
    os << ", " << on;
  os << "\n";
  printOnCoresHere(os);
}

void Plan::printOnCoresHere(llvm::raw_ostream &os, unsigned indent) const {
  if (coresHere > 0)
    os.indent(indent) << "on the " << count(coresHere, "core")
                      << " here: " << formatSeconds(secondsHere)
                      << " at least\n";
}

} // namespace pipewright::codegen
