//===- PeerPartitions.h - How others cut a chain of layers ------*- C++ -*-===//
//
// The algorithms of other systems, as they are, so that what was published of
// them can be compared with what is here. None of them is the best one: where
// nothing is to be reproduced, StageGraph.h cuts.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_PEERPARTITIONS_H
#define PIPEWRIGHT_PASSES_PLANNING_PEERPARTITIONS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace pipewright {

/// All of them give the number of the first layer of each of `parts` parts.
/// There must be at least as many layers as parts.

/// DeepSpeed's `uniform`: as many layers each, the first parts one more where
/// these are no whole number.
std::vector<int64_t> cutAsDeepSpeedUniform(int64_t layers, int64_t parts);

/// DeepSpeed's `parameters` and `type`: the least difference of the largest
/// and the smallest part, as a table finds it that keeps one cut for each
/// number of layers and parts. That is not always the least (the best cut of
/// all need not begin with the best one of fewer layers), and of equals it is
/// the one that begins a part the latest.
std::vector<int64_t> cutAsDeepSpeedBalanced(llvm::ArrayRef<double> costs,
                                            int64_t parts);

/// torchgpipe's: I. Barany and V. Grinberg, "Block partitions of sequences",
/// 2015. Costs are moved and scaled to [0, 1], so that the cheapest layer
/// counts as none; parts begin as long as each other, and a neighbour of the
/// smallest part hands it a layer until the largest is at most 1 above it.
/// Nothing where that leaves a part empty, or never ends: both happen, as what
/// counts as none may be all that a part has.
std::vector<int64_t> cutAsTorchgpipe(llvm::ArrayRef<double> costs,
                                     int64_t parts);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_PEERPARTITIONS_H
