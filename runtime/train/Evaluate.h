//===- Evaluate.h - Forward-only runs of the model -------------*- C++ -*-===//
//
// Held-out loss, predictions and guesses. Every rank calls these together.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_EVALUATE_H
#define PIPEWRIGHT_RUNTIME_TRAIN_EVALUATE_H

#include "runtime/io/Dataset.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/Options.h"

#include <string>

namespace pipewright::runtime {

/// The mean loss over the held-out data, and the metrics, on every rank.
Evaluation evaluateData(Worker &rank, const Dataset &dataset,
                        const Options &options);

/// Runs the model over all samples of --predict and writes --output files.
/// Returns a line about it, on rank 0; with the loss, where labels are given.
std::string predict(Worker &rank, const Options &options);

/// The line `text` and the model's most likely byte for each place, on rank 0.
std::string guess(Worker &rank, const Options &options);

/// Throws an Error when program and options do not go together.
void checkEvaluation(const Program &program, const Options &options);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_EVALUATE_H
