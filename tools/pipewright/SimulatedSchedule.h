//===- SimulatedSchedule.h - A schedule without a model ---------*- C++ -*-===//
//
// What `pipewright schedules` tables, draws and writes: an order by name or
// from a file, at the sizes and with the times that the user gives.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_SIMULATEDSCHEDULE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_SIMULATEDSCHEDULE_H

#include "passes/schedules/Figures.h"
#include "passes/schedules/Policy.h"
#include "passes/schedules/ReplicaWorks.h"
#include "passes/schedules/drawing/Picture.h"
#include "passes/schedules/files/GivenTimes.h"
#include "passes/schedules/files/PlanFile.h"
#include "tools/pipewright/ChosenMachine.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::tool {

/// What to build instead of the policy's own example.
struct ScheduleSizes {
  std::optional<int64_t> ranks, loops, microBatches;
  /// Copies of all ranks, each with as many micro-batches.
  int64_t replicas = 1;
  /// How processes are numbered; none: as is usual on the machine.
  std::optional<runtime::ProcessMap> processMap;
  /// Whether, and how, what they do together is part of the step.
  std::optional<schedules::Sharding> sharding;
  /// The share of its stashes that a rank may have on its host.
  double offload = 0;
  /// Bytes of a rank's whole stash of a micro-batch, and what W needs of it.
  std::optional<int64_t> stash, weightStash;
  /// Bytes that a stage gives the next one of a micro-batch.
  std::optional<int64_t> message;
};

/// What tasks and links take; where nothing is given, what a file says of
/// itself, and units otherwise.
struct ScheduleTimes {
  std::optional<schedules::GivenTimes> tasks;
  std::optional<schedules::GivenTime> latency;
  /// Of a rank's whole stash of a micro-batch, to the host or back.
  std::optional<schedules::GivenTime> copy;
  /// Of a rank's share of the weights, between replicas (`Sharding`).
  std::optional<schedules::GivenTime> exchange;
  /// Whose links these are, in place of the three.
  std::optional<ChosenMachine> machine;

  /// Whether tasks take seconds.
  bool inSeconds(const schedules::PolicyChoice &choice) const;
};

struct SimulatedSchedule {
  /// As the user typed it, a file without its folder.
  std::string name;
  schedules::PolicyChoice choice;
  schedules::Schedule schedule;
  schedules::TaskCosts costs;
  /// Empty: a chain.
  std::vector<schedules::StageEdge> edges;
  schedules::Simulation simulation;
  /// What the costs are, for people: `F=1 B=2 I=1 W=1 of a rank's share`.
  std::string times;
  /// With the costs of a file, or with times that have units.
  bool inSeconds = false;
  /// Its processes: of the copies of all ranks, one is simulated.
  runtime::Mesh mesh;
  /// Whether hosts may keep stashes.
  bool offloads = false;

  schedules::Figures figures() const {
    return schedules::Figures::of(schedule, simulation, edges);
  }
  /// Refers to this.
  schedules::Picture picture() const;
  /// As a file that says all of it.
  schedules::PlanFile plan() const;
};

/// `each of 2 replicas runs so, on micro-batches of its own`
std::string replicasText(int64_t replicas);

/// A schedule that the user named.
struct NamedSchedule {
  std::string name;
  schedules::PolicyChoice choice;
};

/// The schedules of these names, each of which may be several between commas;
/// of no names, all.
llvm::Expected<std::vector<NamedSchedule>>
chooseSchedules(llvm::ArrayRef<std::string> names);

/// The policy's own example, with what the user asks for in its place.
schedules::ScheduleOptions sizedOptions(const schedules::PolicyChoice &choice,
                                        const ScheduleSizes &sizes);

llvm::Expected<SimulatedSchedule> simulateNamed(const NamedSchedule &named,
                                                const ScheduleSizes &sizes,
                                                const ScheduleTimes &times);

/// Several beside each other, of the same ranks and micro-batches: a number of
/// loops is for those that can have it, and what is not possible is left out
/// with a warning. Fails if nothing is
/// left, and on times that cannot be compared.
llvm::Expected<std::vector<SimulatedSchedule>>
simulateSeveral(llvm::ArrayRef<NamedSchedule> all, const ScheduleSizes &given,
                const ScheduleTimes &times);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_SIMULATEDSCHEDULE_H
