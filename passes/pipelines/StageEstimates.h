//===- StageEstimates.h - What stages cost before they are made -*- C++ -*-===//
//
// To know what stages cost they have to be cut, differentiated and their
// kernels formed, for each number of stages anew. An estimate does so once,
// notes what each op of the model comes to, and adds that up for any cut.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPELINES_STAGEESTIMATES_H
#define PIPEWRIGHT_PASSES_PIPELINES_STAGEESTIMATES_H

#include "passes/pipe/staged/ModelCut.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/schedules/Simulator.h"
#include "passes/step/OpCosts.h"

#include <optional>
#include <vector>

namespace pipewright {

class StageEstimates {
public:
  /// Stages take no less than this share of an estimate: code may be fused
  /// otherwise, and what is kept is chosen for each stage.
  double slack() const { return choosesKept ? 0.85 : 0.96; }
  /// Nor do they keep less than this share.
  double keptSlack() const { return choosesKept ? 0.7 : 0.9; }

  /// Of `imported`, at the import level, as `options` say but for the cut; none
  /// where it has no two layers to cut between. Ranks have to be alike.
  static std::optional<StageEstimates> of(mlir::ModuleOp imported,
                                          const StagedPipelineOptions &options,
                                          const MachineModel &machine);

  /// Of stages of the same model, with the costs of links between its ranks.
  schedules::TaskCosts ofCut(const pipe::CutModel &cut,
                             schedules::TaskCosts links) const;

  /// By op of the model's function: seconds of a micro-batch, there and back.
  std::vector<double> secondsOfOps() const;

private:
  std::vector<OpCost> ops;
  /// Whether products may be computed again.
  bool recomputes = false;
  /// Whether the values that are kept are chosen within bytes.
  bool choosesKept = false;
};

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PIPELINES_STAGEESTIMATES_H
