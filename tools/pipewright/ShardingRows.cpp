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

OptionSpelling tool::weightsSpelling() {
  return {
      "weights", "BYTES",
      "With --zero, where it is known how fast links are: a rank's share of "
      "the weights, and of their gradients"};
}

llvm::Error tool::readSharding(const OptionValues &given, int64_t replicas,
                               std::optional<schedules::Sharding> &sharding) {
  if (!given.isGiven("zero")) {
    for (llvm::StringRef name : {"zero-buffers", "weights"})
      if (given.isGiven(name))
        return option::fail("--", name, " goes with --zero");
    return llvm::Error::success();
  }
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
  // A sum over micro-batches can be counted.
  constexpr int64_t most = int64_t(1) << 50;
  if (given.isGiven("weights"))
    if (llvm::Error error =
            option::readBytes("weights", given["weights"], 0, read.weightBytes))
      return error;
  if (read.weightBytes > most)
    return option::fail("--weights expects 1PiB at most, but got '",
                        text::shortened(given["weights"]), "'");
  sharding = read;
  return llvm::Error::success();
}
