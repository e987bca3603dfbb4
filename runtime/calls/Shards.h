//===- Shards.h - What the shards of a rank do in a task -------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_SHARDS_H
#define PIPEWRIGHT_RUNTIME_CALLS_SHARDS_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

namespace pipewright::runtime {

struct ShardSumShape {
  /// Whether x is the same on all shards, and y becomes just that.
  bool isSummed = false;

  PIPEWRIGHT_FIELDS(isSummed)
};

/// f32: y becomes the sum of the x of all shards, in their order. All call it
/// at the same place; it returns when the sum is there.
template <class AnyRank>
void sumOverShards(AnyRank &rank, const ShardSumShape &shape, Buffer x,
                   Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_SHARDS_H
