//===- CheckpointCommand.h - Looks at checkpoints of runs -------*- C++ -*-===//
//
//   pipewright checkpoint show DIR          what is there
//   pipewright checkpoint verify DIR        whether it is as it was written
//   pipewright checkpoint export DIR -o F   its weights as one file
//   pipewright checkpoint diff DIR DIR      where two differ
//
// DIR is that of a run's --checkpoint, or one of the step-N in it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECKPOINTCOMMAND_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECKPOINTCOMMAND_H

#include "tools/pipewright/OptionTable.h"

namespace pipewright::tool {

struct CheckpointOptions {
  /// What to do, and with which folders or files.
  std::vector<std::string> words;
  /// Of a run's folder; 0: the newest valid one.
  int64_t step = 0;
  std::string output;
  /// Export the states of the optimizer, too.
  bool withStates = false;
  bool asJson = false;
};

const std::vector<OptionRow<CheckpointOptions>> &checkpointRows();

/// Fails where a folder has no checkpoints; `verify` where one is damaged,
/// `diff` where two differ.
llvm::Error runCheckpoint(const CheckpointOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_CHECKPOINTCOMMAND_H
