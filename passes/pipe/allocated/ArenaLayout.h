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
#include "passes/step/Buckets.h"

#include <map>
#include <optional>
#include <set>

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
    /// Whether the optimizer takes it as a matrix.
    bool isMatrix;
    /// From the beginning of each flat range of its stage, where it is updated.
    int64_t inFlat = 0;
    Range weight;
    std::optional<Range> gradient;
    /// The bf16 copy, if the stage reads that.
    std::optional<Range> rounded;
    /// Of a gradient that is not updated: sums of groups of micro-batches.
    std::optional<Range> aside;
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
    /// Sums of groups of micro-batches, if these are added as a tree.
    std::optional<Range> aside;
    /// What it keeps of weights, if they are put together for tasks, or these
    /// read their bf16 copies.
    std::optional<Range> home, roundedHome;
    /// Where they are put together, by turn, if that is not always in the same
    /// bytes.
    llvm::SmallVector<Range> gathered;
    /// A replica has its part of them in place, from step to step.
    bool isSplit = false;
    /// Where it takes matrices: the bytes in front of them, and room for their
    /// products.
    std::optional<int64_t> elementwise;
    std::optional<Range> workspace;
    /// The bytes of each bucket of the flat ranges.
    llvm::SmallVector<int64_t> buckets;

    /// The newest version of what the stage reads.
    Range newest() const { return rounded.value_or(weights); }
  };
  struct Region {
    llvm::StringRef name;
    Range range;
  };

  /// When a range of a stage is in use, and whether a replica's part of it is
  /// kept elsewhere in between. Where each turn has one of the rank's ranges,
  /// `ranges` are their numbers.
  struct RangeUse {
    std::vector<BufferTurns::Turn> turns;
    bool isKept = false;
    std::vector<int64_t> ranges;
  };
  /// Parallel to the stages of a rank, or empty: what is not in use at one time
  /// may have the same bytes.
  struct RangeUses {
    std::vector<RangeUse> weights, rounded, gradients;
    /// The stages whose weights a replica has a part of in place.
    std::set<int32_t> split;
    /// How many sums of groups of micro-batches may be aside.
    int64_t aside = 0;
  };

  /// Lays out the stages on one rank, ascending; `oldVersions` is parallel. Of
  /// optimizer state there is one of `shards` equal parts.
  ArenaLayout(const Stages &stages, llvm::ArrayRef<int32_t> onRank,
              const nn::OptimizerChoice &choice,
              llvm::ArrayRef<int64_t> oldVersions, const RangeUses &uses,
              int64_t shards);

  /// The end of the last buffer.
  int64_t bytes() const { return end; }
  llvm::ArrayRef<Place> places() const { return allPlaces; }
  const Place &placeOf(int32_t stage, llvm::StringRef weight) const;
  /// Null where a stage has nothing to train.
  const Optimizer *optimizerOf(int32_t stage) const;
  /// Where the bodies of a stage find what an op reads: in its place, or at a
  /// distance from where the task (that trains, if `isTraining`) is told that
  /// the weights are.
  BufferAttr bufferOf(nn::ParameterOp read, int32_t stage,
                      bool isTraining) const;

  /// Names a range, which may enlarge the arena; nothing where it is empty.
  void addRegion(llvm::StringRef name, int64_t begin, int64_t end);

  /// Writes `pipe.place`, `pipe.optimizer` and `pipe.region` ops.
  void emit(mlir::OpBuilder &builder, const Stages &stages) const;

private:
  /// What a stage's optimizer works on, in the order in which it lies.
  struct Flat {
    std::vector<Place *> places;
    llvm::SmallVector<int64_t> buckets;
    /// The bytes in front of matrices, where there are such.
    std::optional<int64_t> elementwise;
    int64_t bytes = 0;
  };

  Range allocate(int64_t bytes);
  Flat arrange(const Stages &stages, int32_t stage);
  int64_t arrangeBucket(Flat &flat, const Bucket &bucket, int32_t stage);
  /// All of a flat range, of which a place has `part`.
  static Range around(const Flat &flat, const Place &place, Range part);
  /// Moves a range of each stage, of so many bytes, to a place behind `begin`
  /// that may be that of others, unless `uses` are empty; `end` is then behind
  /// all. Returns the ranges of stages that are not always in the same bytes,
  /// by turn.
  std::map<int32_t, llvm::SmallVector<Range>>
  share(llvm::ArrayRef<Flat> ofStages, llvm::ArrayRef<int64_t> bytes,
        llvm::ArrayRef<RangeUse> uses, int64_t begin,
        llvm::function_ref<Range &(Place &)> rangeIn);

  const int64_t shards;

  std::vector<Place> allPlaces;
  std::vector<Optimizer> optimizers;
  std::vector<Region> regions;
  int64_t end = 0;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ARENALAYOUT_H
