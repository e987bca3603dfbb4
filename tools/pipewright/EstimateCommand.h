//===- EstimateCommand.h - How large micro-batches should be ----*- C++ -*-===//
//
// `pipewright estimate`: the step of a pipeline from how long one of its stages
// takes for micro-batches of several sizes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_ESTIMATECOMMAND_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_ESTIMATECOMMAND_H

#include "tools/pipewright/OptionTable.h"

#include <map>

namespace pipewright::tool {

struct EstimateOptions {
  int64_t ranks = 1, batch = 0;
  /// Seconds of a forward and a backward by the samples of a micro-batch.
  std::map<int64_t, double> stageSeconds;
  /// By how many micro-batches of a stage a step is longer than its tasks;
  /// nothing: ranks - 1, as for 1F1B and GPipe.
  std::optional<double> overhead;
};

const std::vector<OptionRow<EstimateOptions>> &estimateRows();

/// A step of a replica with micro-batches of `size` samples: what its stages
/// take for all of them, and `overhead` micro-batches more. In terms of
/// utilization these are equations 2 to 4 of "Re-evaluating the Memory-balanced
/// Pipeline Parallelism: BPipe" (Huang and others, arXiv 2401.02088).
double estimatedStep(const EstimateOptions &options, int64_t size);

void printEstimate(const EstimateOptions &options, llvm::raw_ostream &os);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_ESTIMATECOMMAND_H
