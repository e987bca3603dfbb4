//===- Plan.h - What was decided and predicted ------------------*- C++ -*-===//
//
// The plan of a program as data: for plan.json, for the tables that
// `pipewright plan` prints, and for the program itself to show.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PLAN_PLAN_H
#define PIPEWRIGHT_CODEGEN_PLAN_PLAN_H

#include "codegen/plan/WeightSummary.h"
#include "codegen/target/Target.h"
#include "passes/schedules/Schedule.h"
#include "passes/schedules/Simulator.h"
#include "passes/schedules/drawing/Picture.h"
#include "passes/step/CostModel.h"
#include "runtime/core/Traffic.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace pipewright::codegen {

struct StagePlan {
  int64_t rank = 0;
  /// The first and the last part of the model in it.
  std::string layers;
  int64_t parameters = 0;
  int64_t forwardFlops = 0, backwardFlops = 0;
  /// Sent to other stages and kept for the backward, per micro-batch.
  int64_t outputBytes = 0, stashBytes = 0;
};

struct RankPlan {
  int64_t arenaBytes = 0;
  /// Pinned, for stashes that live on the host.
  int64_t hostBytes = 0;
  std::vector<std::pair<std::string, int64_t>> regions;
  double busySeconds = 0, bubbleFraction = 0;
  int64_t peakStashBytes = 0;
  /// The streams that training uses, and the number of events on them; none for
  /// targets without streams.
  std::vector<std::string> streams;
  int64_t events = 0;
};

struct Plan {
  std::string model;
  const Target *target = allTargets().front();
  Precision precision = Precision::F32;
  /// What times are of, where that is another machine than the target's.
  std::string machine;
  std::string schedule, optimizer;
  /// What the schedule came to where it was chosen, as `auto` does.
  std::string chosen;
  /// Each replica has so many micro-batches.
  int64_t microBatches = 1, microBatchSize = 1;
  /// Copies of all ranks. What is predicted of ranks is said of one replica.
  int64_t replicas = 1;
  /// In which order the processes of all replicas are numbered.
  runtime::ProcessMap processMap = runtime::ProcessMap::Replicas;
  /// The level of ZeRO.
  int64_t zero = 0;
  /// As the user gave them.
  llvm::json::Object options;
  /// The names of what training reads.
  std::vector<std::string> inputs;
  WeightSummary weights;
  std::vector<StagePlan> stages;
  std::vector<RankPlan> ranks;
  schedules::Schedule order;
  /// The tensors between stages, in training.
  std::vector<schedules::StageEdge> edges;
  /// What times and memory were predicted from, and the prediction.
  schedules::TaskCosts costs;
  schedules::Simulation simulation;
  std::string timetable;
  /// What ranks send to each other in a training step of all replicas, in
  /// transfers and for sums.
  runtime::Traffic sent;
  /// Where this machine has fewer cores than the program has ranks in all its
  /// replicas: how many, and the least time of a step on them. 0 elsewhere.
  int64_t coresHere = 0;
  double secondsHere = 0;

  /// Reads the decisions out of an allocated module and predicts times for the
  /// machine, of which each rank has a core (or GPU).
  static mlir::FailureOr<Plan> of(mlir::ModuleOp allocated,
                                  llvm::StringRef model, const Target &target,
                                  Precision precision,
                                  const MachineModel &machine);
  /// Says that the machine was another one, whose cores are not those here.
  void predictFor(llvm::StringRef otherMachine);
  /// `with a core for each rank`, `on h100-bf16 for each rank`
  std::string machineWords() const;
  /// `process-map pairs, on hosts of 2: ranks 0 3 | 1 2`; empty where all are
  /// on one host.
  std::string hostWords() const;

  /// As the user gave it, with what it chose: `auto (zb-v)`.
  std::string nameOfSchedule() const;
  /// To draw; lives as long as the plan.
  schedules::Picture picture() const;
  llvm::json::Value toJson() const;
  /// The tables of `pipewright plan`.
  void print(llvm::raw_ostream &os) const;
  /// `on the 2 cores here: 148.13 ms at least`, a line; nothing where there is
  /// one for each rank.
  void printOnCoresHere(llvm::raw_ostream &os, unsigned indent = 0) const;
};

/// Whose work the chain of tasks and messages is that the step cannot be
/// shorter than: `rank 1 83.1 %, rank 0 15.0 %, messages 1.9 %`. Empty without
/// times.
std::string criticalPathShares(const schedules::Schedule &order,
                               const schedules::Simulation &simulation);

/// `2 ranks`, `2 ranks x 3 replicas`
std::string countRanks(const Plan &plan);
/// `1 stage`, `2 stages`
std::string count(int64_t number, llvm::StringRef what);
/// `12.3 MB`
std::string formatBytes(int64_t bytes);
/// `12.3 ms`
std::string formatSeconds(double seconds);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PLAN_PLAN_H
