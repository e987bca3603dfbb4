//===- CountedLabels.h - Which labels of an input a loss reads --*- C++ -*-===//
//
// What the runtime counts for a loss follows from the IR: nn-divide-by-batch
// writes it down, and nn-verify-imported compares it with what a model says.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_CLEAN_COUNTEDLABELS_H
#define PIPEWRIGHT_PASSES_NN_CLEAN_COUNTEDLABELS_H

#include "dialects/nn/NNCountedInput.h"
#include "dialects/nn/NNOps.h"

namespace pipewright::nn {

/// The first op between the labels of a loss and an input of the model that
/// computes instead of moving elements; null if there is none.
mlir::Operation *findLabelComputation(SoftmaxCrossEntropyOp loss);

/// The labels that a loss of a function reads. None if an op computes them, if
/// they are constants, if rows of the input differ, or if a label is read
/// twice.
std::optional<CountedInput> countedLabelsOf(SoftmaxCrossEntropyOp loss);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_CLEAN_COUNTEDLABELS_H
