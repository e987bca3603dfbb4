//===- ModelStages.h - What is known of a model's stages --------*- C++ -*-===//
//
// To choose among plans stages of many numbers and modes are needed: first what
// they are estimated to cost, then themselves, and the times of schedules of
// both. All of it is kept for other plans of the same model.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_MODELSTAGES_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_MODELSTAGES_H

#include "passes/pipelines/StageEstimates.h"
#include "passes/schedules/BuiltSchedules.h"
#include "passes/schedules/Placement.h"
#include "passes/schedules/Policy.h"
#include "passes/schedules/Simulator.h"
#include "passes/schedules/StashStates.h"
#include "tools/pipewright/Draft.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/Options.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::tool {

/// The staged level for a number of stages, backwards split or whole, or what
/// is known of it before it is made.
struct StagedModel {
  /// Null where the model cannot be cut so, and in an estimate.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  int64_t stages = 0;
  /// Where it was cut for; empty where ranks are alike.
  schedules::Placement places;
  /// What is known of it instead; empty where it is made.
  std::string estimate;
  /// The shares that are certain of what stages take, and of what they keep.
  double slack = 1, keptSlack = 1;
  schedules::TaskCosts costs;
  std::vector<schedules::StageEdge> edges;
  /// By stage: of the weights that it alone has and updates, in f32. Of others
  /// it may turn out not to keep states.
  std::vector<int64_t> weightBytes;
};

/// What an order of tasks keeps.
struct KeptBytes {
  /// By rank, at a time.
  std::vector<int64_t> most;
  schedules::Placement places;
};

/// A schedule of some stages.
struct TimedSchedule {
  std::string origin;
  double step = 0;
  int64_t peak = 0;
  KeptBytes kept;
};

/// What a schedule keeps, whatever its tasks take.
struct KeptStates {
  std::vector<schedules::StashStates> ranks;
  schedules::Placement places;
};

/// What was found out of a model, by what for: other plans of it, on the same
/// machine, may need that as well.
struct StagedModels {
  std::map<std::string, std::shared_ptr<const StagedModel>> models;
  std::map<std::string, std::optional<pipe::CutModel>> cuts;
  std::map<std::string, std::optional<StageEstimates>> estimates;
  /// Of stages that were made for any number of ranks and replicas.
  std::map<std::string, std::vector<schedules::StageCosts>> costs;
  std::map<std::string, std::shared_ptr<const TimedSchedule>> schedules;
  /// Whole plans.
  std::map<std::string, Draft> drafts;
  /// By schedule, sizes, and which stages recompute in tasks of their own.
  std::map<std::string, std::shared_ptr<const KeptStates>> states;
};

/// Fails where there is more than one mode of recomputation, and not one for
/// each stage.
mlir::LogicalResult checkRematModes(mlir::ModuleOp module,
                                    const StagedPipelineOptions &staged);

/// The stages of a model under some options. Ask only while diagnostics are
/// silent: a cut that is not possible is none.
class ModelStages {
public:
  /// `imported` is at the import level, and stays as it is.
  ModelStages(mlir::ModuleOp imported, const CompileOptions &options,
              StagedModels &known)
      : imported(imported), options(options), known(known),
        machine(options.machineModel()), mostBytes(mostBytesOf(options)) {}

  /// Where stages may lie, where that makes a difference to them; else one
  /// empty placement.
  std::vector<schedules::Placement> placementsOf(int64_t stages) const;
  std::shared_ptr<const StagedModel> made(int64_t stages, bool splits,
                                          schedules::Placement places);
  /// Those of the options.
  std::shared_ptr<const StagedModel> made();
  /// The module of these, to go on with; null where they were not made.
  mlir::OwningOpRef<mlir::ModuleOp> copyOfMade() const;
  /// The module of stages that were made, for the program of `imported`.
  mlir::OwningOpRef<mlir::ModuleOp> copyOf(const StagedModel &model) const;
  /// By the costs of such stages that were made for other plans, or of the
  /// model's ops; null where stages have to be made to know what they cost.
  std::shared_ptr<const StagedModel> estimated(int64_t stages, bool splits);

  /// By the costs of the model's ops alone, where it is cut as `balance` says;
  /// null where that is not possible, or stages have to be made to know more.
  std::shared_ptr<const StagedModel> ofOps(const std::string &balance);

  schedules::ScheduleOptions sizesOf(const StagedModel &model) const;
  /// By rank: what the weights of its stages take at least, with gradients and
  /// states.
  std::vector<double> fixedBytes(const StagedModel &model,
                                 const schedules::Placement &places) const;
  /// By rank: what the limit leaves for what stages keep, in bytes of `model`'s
  /// costs.
  std::vector<double> freeBytes(const StagedModel &model,
                                const schedules::Placement &places) const;
  /// What the fullest rank takes where it keeps such a share of what is
  /// expected.
  int64_t fullestOf(const StagedModel &model, const KeptBytes &kept,
                    double share) const;
  /// Of the schedule of a name; null where there is none. `built` has what was
  /// built of this model.
  std::shared_ptr<const TimedSchedule>
  timesOf(const StagedModel &model, bool splits,
          const schedules::PolicyChoice &policy, const std::string &schedule,
          schedules::BuiltSchedules &built);

  /// The same, which is not kept.
  std::shared_ptr<const TimedSchedule>
  simulated(const StagedModel &model, const schedules::PolicyChoice &policy,
            const std::string &schedule,
            schedules::BuiltSchedules &built) const;

  /// Of an order that does not depend on times, at no cost of a simulation;
  /// none where times or moves decide.
  std::optional<KeptBytes> keptBytes(const StagedModel &model,
                                     const schedules::PolicyChoice &policy,
                                     const std::string &schedule) const;

private:
  std::shared_ptr<const KeptStates>
  keptStates(const StagedModel &model, const schedules::PolicyChoice &policy,
             const std::string &schedule) const;
  void setOptions(StagedPipelineOptions &staged, int64_t stages, bool splits,
                  const schedules::Placement &places) const;
  std::string keyOfCosts(const StagedPipelineOptions &staged) const;
  bool mayBeEstimated() const;
  const std::optional<StageEstimates> &
  estimatesOfOps(const StagedPipelineOptions &staged);

  mlir::ModuleOp imported;
  const CompileOptions &options;
  StagedModels &known;
  const MachineModel &machine;
  const int64_t mostBytes;
  /// By number and what is known.
  std::map<std::string, std::shared_ptr<const StagedModel>> estimates;
};

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_MODELSTAGES_H
