//===- ShardingRows.cpp - ZeRO of orders without a model ------------------===//
//
// See ShardingRows.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/ShardingRows.h"

#include "support/Text.h"

using namespace pipewright;
using namespace pipewright::tool;

OptionSpelling tool::zeroSpelling() {
  return {"zero", "LEVEL",
          "Make what replicas do together part of the step, of stages with as "
          "many weights each. They keep a part each of nothing (0), of the "
          "states of the optimizer (1), also of the gradients, for which "
          "stages take turns in memory (2), or also of the weights, which are "
          "gathered for the tasks that read them (3)"};
}

OptionSpelling tool::zeroBuffersSpelling() {
  return under(Heading::Expert,
               {"zero-buffers", "K",
                "Of how many stages a rank has room for gradients at a time "
                "(--zero 2 and 3), and for whole weights (3)",
                "2"});
}

llvm::Error tool::readSharding(const OptionValues &given, int64_t replicas,
                               std::optional<schedules::Sharding> &sharding) {
  if (!given.isGiven("zero"))
    return given.isGiven("zero-buffers")
               ? option::fail("--zero-buffers goes with --zero")
               : llvm::Error::success();
  schedules::Sharding read;
  llvm::StringRef level = given["zero"];
  if (level.size() != 1 || level[0] < '0' || level[0] > '3')
    return option::fail("--zero expects 0, 1, 2 or 3, but got '",
                        text::shortened(level), "'");
  read.level = level[0] - '0';
  read.replicas = replicas;
  if (replicas == 1)
    return option::fail("--zero ", level,
                        " expects replicas: --data-parallel D of at least 2");
  if (llvm::Error error =
          option::readCount("zero-buffers", given["zero-buffers"], read.ranges))
    return error;
  if (given.isGiven("zero-buffers") && read.level < 2)
    return option::fail("--zero-buffers ", read.ranges,
                        " expects stages that share memory: --zero 2 or 3");
  sharding = read;
  return llvm::Error::success();
}
