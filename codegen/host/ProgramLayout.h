//===- ProgramLayout.h - An allocated module, indexed -----------*- C++ -*-===//
//
// What every part of host code generation looks up: stages in order, ranks
// with their arenas, where weights live, and the numbers of model inputs and
// outputs. Refuses a module that is not at the allocated level.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_PROGRAMLAYOUT_H
#define PIPEWRIGHT_CODEGEN_HOST_PROGRAMLAYOUT_H

#include "codegen/target/Target.h"
#include "dialects/nn/NNCountedInput.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/step/BackwardParts.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

#include <map>
#include <optional>
#include <string>

namespace pipewright::codegen {

class IndexBounds;

/// A model input or output, as one micro-batch has it.
struct Port {
  std::string name;
  mlir::RankedTensorType type;
  /// An input's values are below it; 0 means that any value will do.
  int64_t limit = 0;
  /// The one value that is allowed beside these.
  std::optional<int64_t> ignored;
  /// Set for an input that is counted, not read as data.
  std::optional<nn::CountedInput> counted = {};
};

struct StageLayout {
  pipe::StageOp op;
  int64_t number = 0;
  int64_t rank = 0;
  /// Where the stage's copies of weights live.
  llvm::DenseMap<mlir::StringAttr, pipe::PlaceOp> places;
  /// Null where the stage has nothing to train.
  pipe::OptimizerOp optimizer;
  /// The kinds of tasks that some rank runs as a whole.
  llvm::SmallSet<pipe::TaskKind, 4> run;
  /// Those that some rank runs in parts, and where they are cut.
  std::map<pipe::TaskKind, pipe::BackwardParts> parts;
};

struct RankLayout {
  int64_t number = 0;
  pipe::ArenaOp arena;
  pipe::RankOp train;
  /// Null without evaluation.
  pipe::RankOp evaluate;
};

class ProgramLayout final : public pipe::StepContext {
public:
  static mlir::FailureOr<ProgramLayout> of(mlir::ModuleOp module,
                                           const Target &target);

  mlir::ModuleOp module;
  const Target *target = nullptr;
  /// How often the weights are updated in one step.
  int64_t updates = 1;
  /// What the optimizer keeps of each weight.
  llvm::SmallVector<nn::OptimizerState> states;
  std::vector<StageLayout> stages;
  std::vector<RankLayout> ranks;
  llvm::MapVector<mlir::StringAttr, nn::WeightOp> weights;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  /// Those that have collectives, by number.
  std::vector<pipe::GroupAttr> groups;

  const StageLayout *findStage(llvm::StringRef name) const;
  pipe::StageOp stageOf(mlir::FlatSymbolRefAttr name) const override;
  int32_t numberOf(mlir::FlatSymbolRefAttr stage) const override;
  llvm::SmallVector<mlir::FlatSymbolRefAttr>
  holdersOf(mlir::FlatSymbolRefAttr weight) const override;
  /// The number of the group that an op is of; of a new one, how many there
  /// are.
  int64_t groupNumber(pipe::CollectiveOp op) const;
  /// -1 where there is none.
  int64_t inputNumber(llvm::StringRef name) const;
  int64_t outputNumber(llvm::StringRef name) const;
  /// An identifier for result `index` of a stage's forward.
  std::string nameOfOutput(const StageLayout &stage, unsigned index) const;

private:
  mlir::LogicalResult indexStages();
  mlir::LogicalResult indexRanks();
  mlir::LogicalResult indexTask(pipe::TaskOp task, StageLayout &stage);
  void indexGroups();
  mlir::LogicalResult indexArena(pipe::ArenaOp arena);
  /// `bounds` has an entry for each of `inputs`.
  mlir::LogicalResult indexPorts(mlir::Region &body, mlir::ArrayAttr sources,
                                 std::vector<IndexBounds> &bounds);
};

/// The value behind views: what a reshape of a reshape looks at.
mlir::Value behindViews(mlir::Value value);

/// The buffer that the plan gives to an op's result, in stage bodies; null
/// where there is none.
pipe::BufferAttr plannedBuffer(mlir::Value value);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_PROGRAMLAYOUT_H
