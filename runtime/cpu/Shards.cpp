//===- Shards.cpp - What the shards of a rank do in a task ----------------===//

#include "runtime/calls/Shards.h"
#include "runtime/calls/Memory.h"
#include "runtime/rank/Rank.h"

using namespace pipewright::runtime;

template <>
void pipewright::runtime::sumOverShards(Rank &rank, const ShardSumShape &shape,
                                        Buffer x, Buffer y) {
  copy(rank, x, y);
  if (!shape.isSummed)
    rank.sumOverShards(y);
}
