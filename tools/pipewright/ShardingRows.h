//===- ShardingRows.h - ZeRO of orders without a model ----------*- C++ -*-===//
//
// Options of the commands that know no weights: `schedules` and `check`.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_SHARDINGROWS_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_SHARDINGROWS_H

#include "passes/schedules/ReplicaWorks.h"
#include "tools/pipewright/OptionTable.h"

#include <optional>

namespace pipewright::tool {

OptionSpelling zeroSpelling();
/// These are read with it.
OptionSpelling zeroBuffersSpelling();
OptionSpelling weightsSpelling();

/// Nothing unless `--zero` was given.
llvm::Error readSharding(const OptionValues &given, int64_t replicas,
                         std::optional<schedules::Sharding> &sharding);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_SHARDINGROWS_H
