//===- Buckets.h - What replicas cut into parts together --------*- C++ -*-===//
//
// Replicas sum what a backward makes, and gather what an update makes, bucket
// by bucket (`bucket_size` of `#pipe.program`): the sum of one begins when its
// weights have got all their gradients, while the backward goes on with others
// (S. Li et al., "PyTorch Distributed", VLDB 2020, section 3.2.2).
//
// With ZeRO each replica has an equal part of each. Parts may end within a
// weight, but not within a matrix that an optimizer takes as a whole: such
// matrices are a bucket of their own, and each has a replica that updates it.
// The passes that write collectives, their verifiers, the layout of the arena
// and the predicted time of an update ask here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_BUCKETS_H
#define PIPEWRIGHT_PASSES_STEP_BUCKETS_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

struct Bucket {
  llvm::SmallVector<const WeightGroup *> weights;
  /// Parallel to `weights`: the replica that updates each. Empty where parts
  /// may end within a weight.
  std::vector<int64_t> homes;

  /// In float32, without padding.
  int64_t bytes() const;
};

/// Those of a stage, in the order in which they lie: first what is updated
/// element by element, that whose gradients are whole first in front, then
/// matrices, if there are any. None where nothing is updated. With ZeRO parts
/// of a weight that other ranks hold, too, are the same ones there: it is alone
/// in its bucket, but for weights that a stage and its mirror alone hold, which
/// have the same buckets in both.
llvm::SmallVector<Bucket> bucketsOf(const Stages &stages, int32_t stage);

/// The numbers of these as `pipe.collective` gives them: none, alone, for all
/// that the optimizer of a stage updates as one range.
llvm::SmallVector<std::optional<int64_t>> bucketNumbers(const Stages &stages,
                                                        int32_t stage);

/// The weights that a collective is about: one, those of a bucket, or all that
/// its stage updates, in the order of its buckets.
llvm::SmallVector<const WeightGroup *> weightsOf(const Stages &stages,
                                                 CollectiveOp op);

/// The number of the bucket of a stage that has this weight.
std::optional<size_t> bucketOf(const Stages &stages, int32_t stage,
                               const WeightGroup *weight);

/// Floating-point operations of the products that update a stage's matrices,
/// on the replica that has most.
double matrixOperations(const Stages &stages, int32_t stage);

/// Gives each of several pieces of work to one of `workers`, so that the one
/// with most has little more than the others: the longest piece first, to whom
/// has least (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969:
/// at most 4/3 of the best).
std::vector<int64_t> shareOut(llvm::ArrayRef<double> work, int64_t workers);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_BUCKETS_H
