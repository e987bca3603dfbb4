//===- ArenaLayout.h - The fixed part of a rank's arena ---------*- C++ -*-===//
//
// Where weights, gradients and optimizer state of a rank's stages live from
// the first step to the last. What an optimizer updates together is one flat
// range per stage, with the same layout in each of its buffers.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ARENALAYOUT_H
#define PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ARENALAYOUT_H

#include "passes/planning/MemoryPlanner.h"
#include "passes/step/Stages.h"

#include <optional>

namespace pipewright::pipe {

class ArenaLayout {
public:
  struct Range {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  /// A copy of a weight.
  struct Place {
    const WeightGroup *group;
    int32_t stage;
    bool isUpdated;
    Range weight;
    std::optional<Range> gradient;
    /// The bf16 copy, if the stage reads that.
    std::optional<Range> rounded;
  };
  struct Optimizer {
    int32_t stage;
    Range weights, gradients;
    llvm::SmallVector<Range> states;
    Range hyper;
    /// The bf16 copies, if the stage reads those.
    std::optional<Range> rounded;
    /// Room for old versions of what the stage reads.
    llvm::SmallVector<Range> versions;
    /// Where a replica adds its part of sums, if there are several.
    std::optional<Range> kept;

    /// The newest version of what the stage reads.
    Range newest() const { return rounded.value_or(weights); }
  };
  struct Region {
    llvm::StringRef name;
    Range range;
  };

  /// When the gradients of a stage are in use, and whether parts of sums are
  /// kept elsewhere in between.
  struct GradientUse {
    std::vector<BufferTurns::Turn> turns;
    bool isKept = false;
  };

  /// Lays out the stages on one rank, ascending; `oldVersions` is parallel, and
  /// so is `gradientUses`, unless empty: gradients that are not in use at one
  /// time may have the same bytes. Of optimizer state there is one of `shards`
  /// equal parts.
  ArenaLayout(const Stages &stages, llvm::ArrayRef<int32_t> onRank,
              const nn::OptimizerChoice &choice,
              llvm::ArrayRef<int64_t> oldVersions,
              llvm::ArrayRef<GradientUse> gradientUses, int64_t shards);

  /// The end of the last buffer.
  int64_t bytes() const { return end; }
  llvm::ArrayRef<Place> places() const { return allPlaces; }
  const Place &placeOf(int32_t stage, llvm::StringRef weight) const;
  /// Null where a stage has nothing to train.
  const Optimizer *optimizerOf(int32_t stage) const;
  /// Where the bodies of a stage find what an op reads: in its place, or, for
  /// forward and backward (`isTraining`), at a distance from the version that
  /// the task reads.
  BufferAttr bufferOf(nn::ParameterOp read, int32_t stage,
                      bool isTraining) const;

  /// Names a range, which may enlarge the arena; nothing where it is empty.
  void addRegion(llvm::StringRef name, int64_t begin, int64_t end);

  /// Writes `pipe.place`, `pipe.optimizer` and `pipe.region` ops.
  void emit(mlir::OpBuilder &builder, const Stages &stages) const;

private:
  Range allocate(int64_t bytes);
  Range around(Range first, Range last) const;
  /// Moves the gradients of stages, each in one piece, to places behind `begin`
  /// that may be those of others; the bytes of all.
  int64_t shareGradients(llvm::ArrayRef<std::vector<Place *>> ofStages,
                         llvm::ArrayRef<GradientUse> uses, int64_t begin) const;

  const int64_t shards;

  std::vector<Place> allPlaces;
  std::vector<Optimizer> optimizers;
  std::vector<Region> regions;
  int64_t end = 0;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ARENALAYOUT_H
