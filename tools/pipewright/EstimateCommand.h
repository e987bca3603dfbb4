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

/// A transformer of `layers` of `width`, whose sequences have `tokens` of a
/// vocabulary.
struct TransformerShape {
  int64_t layers = 0, width = 0, tokens = 0, vocabulary = 0;

  /// Floating-point operations of forwards and backwards of so many samples,
  /// without what is computed again: 72 B s l h^2 (1 + s / 6h + V / 12lh), as
  /// products with 12 l h^2 + V h weights take six a token and weight, and
  /// attention 12 l h s a token (A. Chowdhery et al., "PaLM", 2022, appendix
  /// B).
  double flops(double samples) const;
  /// The same with V / 16lh, as D. Narayanan et al., "Efficient Large-Scale
  /// Language Model Training on GPU Clusters Using Megatron-LM", 2021, and the
  /// paper of `estimatedStep` have it: of 96, with all layers computed again,
  /// that is the share of the logits.
  double publishedFlops(double samples) const;
};

struct EstimateOptions {
  int64_t ranks = 1, batch = 0;
  /// Seconds of a forward and a backward by the samples of a micro-batch.
  std::map<int64_t, double> stageSeconds;
  /// By how many micro-batches of a stage a step is longer than its tasks;
  /// nothing: ranks - 1, as for 1F1B and GPipe.
  std::optional<double> overhead;
  /// What is trained, and the most operations per second of what runs a stage;
  /// both or none.
  std::optional<TransformerShape> model;
  std::optional<double> peak;
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
