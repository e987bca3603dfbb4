//===- Stages.h - What passes ask about all stages of a module --*- C++ -*-===//
//
// Stages by number, the tensors between them, and who holds which weight. Read
// from the IR anew by every pass that asks; nothing is cached across passes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_STAGES_H
#define PIPEWRIGHT_PASSES_STEP_STAGES_H

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/schedules/Schedule.h"
#include "passes/schedules/Simulator.h"
#include "passes/step/CostModel.h"

#include "llvm/ADT/StringMap.h"

namespace pipewright::pipe {

/// A tensor that the forward of one stage hands to that of another.
struct StageLink {
  int32_t from = 0;
  int32_t to = 0;
  /// The result of `from`'s forward and the argument of `to`'s.
  int64_t result = 0;
  int64_t argument = 0;
  int64_t bytes = 0;
  /// Which result of `to`'s backward is the gradient that `from`'s backward
  /// reads; -1 where none flows back.
  int64_t gradientResult = -1;
};

/// A weight and the stages that hold a copy of it, ascending: several of one
/// model (a tied weight), the same of two copies of the model, or both.
struct WeightGroup {
  /// A handle; its accessors are not const.
  mutable nn::WeightOp weight;
  llvm::SmallVector<int32_t> stages;
  /// Parallel to `stages`: whether the stage's backward adds to its gradient.
  llvm::SmallVector<bool> trained;

  /// The stage whose copy the optimizer updates and that is saved.
  int32_t owner() const { return stages.front(); }
  /// Whether each stage gets the gradients of all and updates its own copy, in
  /// place of the owner for all (pipe-synchronize-weights).
  bool isAllReduced() const {
    return weight->hasAttr(PipeDialect::kAllReduced);
  }
  /// Whether the optimizer of `stage`, one of `stages`, updates its copy.
  bool isUpdatedIn(int32_t stage) const {
    return isTrained() && (stage == owner() || isAllReduced());
  }
  bool isTrained() const { return !trained.empty() && trained.front(); }
  bool isTied() const { return isTrained() && stages.size() > 1; }
};

class Stages final : public StepContext {
public:
  /// Fails, with a diagnostic, where sources name what is not there or a
  /// forward result has several consumers.
  static mlir::FailureOr<Stages> read(mlir::ModuleOp module);

  /// The number of stages of all copies of the model.
  int32_t size() const { return ops.size(); }
  /// Copies of the model, 1 or 2. With two, stage s + size()/2 mirrors stage s.
  int64_t copies() const { return numCopies; }
  /// Whether a stage trains on a micro-batch, of `microBatches`. Evaluation
  /// uses the first copy only.
  bool runs(int32_t stage, int64_t microBatch, int64_t microBatches) const {
    return schedules::ModelCopies{numCopies, size()}.runs(stage, microBatch,
                                                          microBatches);
  }
  /// The stage of the first copy that a stage is the same part of the model as.
  int32_t originalOf(int32_t stage) const {
    return stage % (size() / numCopies);
  }
  StageOp operator[](int32_t stage) const { return ops[stage]; }
  /// The number of a stage; -1 where the module has no such stage.
  int32_t numberOf(llvm::StringRef name) const;
  int32_t numberOf(mlir::FlatSymbolRefAttr name) const override {
    return numberOf(name.getValue());
  }
  StageOp stageOf(mlir::FlatSymbolRefAttr name) const override {
    int32_t number = numberOf(name);
    return number < 0 ? StageOp() : ops[number];
  }
  mlir::FlatSymbolRefAttr nameOf(int32_t stage) const {
    return mlir::FlatSymbolRefAttr::get(ops[stage].getSymNameAttr());
  }

  /// By receiving stage, then by argument. Evaluation may have links that
  /// training has not.
  llvm::ArrayRef<StageLink> links(StepMode mode = StepMode::train) const {
    return allLinks[static_cast<size_t>(mode)];
  }
  /// The number of the link that consumes a result, -1 if none does.
  int64_t linkOutOf(int32_t stage, int64_t result,
                    StepMode mode = StepMode::train) const;

  /// In the order of their declarations; unused weights are not listed.
  llvm::ArrayRef<WeightGroup> weights() const { return allWeights; }
  /// Null where no stage uses the weight.
  const WeightGroup *groupOf(mlir::FlatSymbolRefAttr weight) const;
  llvm::SmallVector<mlir::FlatSymbolRefAttr>
  holdersOf(mlir::FlatSymbolRefAttr weight) const override;
  /// Whether the backward of a stage adds to the gradient of any weight.
  bool hasGradients(int32_t stage) const { return withGradients[stage]; }
  /// Whether the optimizer of a stage has any weight to update.
  bool hasUpdate(int32_t stage) const { return withUpdate[stage]; }
  /// The bytes of these weights, in float32.
  int64_t updatedBytes(int32_t stage) const;
  /// Whether any body of a stage reads the bf16 copy of a weight; of any weight
  /// that its optimizer updates.
  bool readsRounded(int32_t stage, const WeightGroup &group) const;
  bool readsRounded(int32_t stage) const;
  /// Whether anybody reads a weight itself that the optimizer of a stage
  /// updates, and not its bf16 copy: a body, or who holds it as well.
  bool readsMasters(int32_t stage) const;
  /// Whether tasks of that kind read any weight that the optimizer of their
  /// stage updates, or its bf16 copy.
  bool readsUpdated(int32_t stage, TaskKind kind) const;
  bool hasTiedWeights() const {
    return llvm::any_of(allWeights,
                        [](const WeightGroup &w) { return w.isTied(); });
  }

  /// For schedules with stale weights; fails, with a diagnostic, where a weight
  /// is tied. It would have to be sent to its copies after every update, and
  /// their gradients back before it, between tasks of ranks that do not wait.
  mlir::LogicalResult refuseTiedWeights() const;

  /// The links as `passes/schedules` wants them, in the same order.
  std::vector<schedules::StageEdge> edges(StepMode mode) const;
  /// What tasks take on the machine that the module is for; measured times
  /// where the module has them. Stages are on the ranks of `rankOfStage`, or
  /// on their own where that is empty.
  schedules::TaskCosts costs(StepMode mode,
                             llvm::ArrayRef<int32_t> rankOfStage = {}) const;
  /// Whether the machine that the module is for has ranks of several kinds.
  bool ranksDiffer() const { return machine.isUneven(); }
  /// The same on another machine.
  schedules::TaskCosts costs(StepMode mode, const MachineModel &machine,
                             llvm::ArrayRef<int32_t> rankOfStage = {}) const;
  /// The rank of each stage; fails where one has none.
  mlir::FailureOr<llvm::SmallVector<int32_t>> ranks() const;

private:
  mlir::LogicalResult readCopies();
  template <typename Body>
  mlir::LogicalResult readLinks(Body (StageOp::*bodyOf)(), StepMode mode);
  void findGradient(StageLink &link) const;
  int64_t updateBytes(int32_t stage) const;
  mlir::LogicalResult readWeights(mlir::ModuleOp module);

  /// Handles; their accessors are not const.
  mutable llvm::SmallVector<StageOp> ops;
  llvm::StringMap<int32_t> numbers;
  int64_t numCopies = 1;
  MachineModel machine;
  /// The links of each mode, sorted as `links` says.
  std::vector<StageLink> allLinks[2];
  std::vector<WeightGroup> allWeights;
  /// Of a weight by its name.
  llvm::DenseMap<mlir::StringAttr, size_t> weightNumbers;
  llvm::SmallVector<bool> withGradients, withUpdate;

  /// Whether code of a stage reads a weight that the stage's optimizer updates,
  /// or its bf16 copy, and not the other one.
  bool readsUpdatedAs(int32_t stage, bool isRounded) const;
};

/// M of a module; fails, with a diagnostic, if it is not decided.
mlir::FailureOr<int64_t> microBatchesOf(mlir::ModuleOp module);

/// The kind under which the schedules folder knows a task; evaluation counts
/// as forward.
schedules::TaskKind scheduleKindOf(TaskKind kind);

/// The arena of a program's rank; fails, with a diagnostic, where it has none.
mlir::FailureOr<ArenaOp> arenaOf(RankOp program);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_STAGES_H
