//===- ModelCut.h - How an imported model would be cut ----------*- C++ -*-===//
//
// What is asked about the stages of a module at the import level without
// making them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_MODELCUT_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_MODELCUT_H

#include "passes/pipe/staged/StageAssignment.h"
#include "passes/schedules/Schedule.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::pipe {

/// Gives an imported module what was measured of its layers: names, and
/// seconds.
void setLayerTimes(mlir::ModuleOp module,
                   llvm::ArrayRef<std::pair<std::string, double>> times);

/// Gives an imported module what each op of its function is predicted to take,
/// for the cut of `step`; none: takes that away.
void setOpSeconds(mlir::ModuleOp module, llvm::ArrayRef<double> seconds);

/// The names of an imported module's layers (ModelLayers.h), in their order.
/// Fails, with a diagnostic, where it is no model.
llvm::FailureOr<std::vector<std::string>> namesOfLayers(mlir::ModuleOp module);

/// What stages of an imported module are counted in: `manual:` has the numbers
/// of these. Fails, with a diagnostic, where it is no model.
llvm::FailureOr<int64_t> countLayers(mlir::ModuleOp module);

/// An imported module as it would be cut.
struct CutModel {
  /// By op of the model's function, in their order: its stage, of several that
  /// repeat it the first; -1 for those that the loss does not need.
  std::vector<int32_t> stageOfOp;
  /// By stage: its last op that `isLayer`; -1 where it has none.
  std::vector<int32_t> lastLayers;
  /// By stage: how many ops that `isLayer` are placed there, as `manual:`
  /// counts them.
  std::vector<int64_t> layers;
  /// What crosses borders, once for each stage that reads it.
  std::vector<schedules::StageEdge> edges;
  /// By stage, in f32: of trained weights that no other stage reads.
  std::vector<int64_t> weightBytes;
};
/// Fails as `assignStages`.
llvm::FailureOr<CutModel> cutModel(mlir::ModuleOp module, const StageCut &cut);

/// Where the nodes of an imported module would be, by their names;
/// nn::kSeveralStages where their ops are in several. Fails as `assignStages`.
llvm::FailureOr<std::map<std::string, int32_t>>
stagesOfNodes(mlir::ModuleOp module, const StageCut &cut);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_MODELCUT_H
