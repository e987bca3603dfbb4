//===- BestWeights.h - The weights that did best on held-out data -*- C++ -*-=//
//
// A file beside the final weights, TRAINED.best.safetensors, written anew after
// each evaluation that is better than all before. What they reached, and at
// which step, is in the file, so that a run that goes on compares with it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_BESTWEIGHTS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_BESTWEIGHTS_H

#include "runtime/rank/Worker.h"
#include "runtime/train/Options.h"

#include <optional>
#include <string>

namespace pipewright::runtime {

/// Every rank calls every function, at the same place.
class BestWeights {
public:
  /// Reads what a run has reached that this one goes on with: `resumes`. Throws
  /// an Error where it was compared by something else.
  BestWeights(const Options &options, Worker &rank, bool resumes);

  /// Saves the weights where an evaluation, which rank 0 knows, is the best.
  /// The first of equal ones stays. Returns why they could not be saved, on
  /// rank 0.
  std::string compare(int64_t step, const Evaluation &evaluation);

  /// For people: "trained.best.safetensors (accuracy 0.91 after step 40)";
  /// empty if there are none.
  std::string summary() const;

private:
  bool isBetter(double value) const;

  const Options &options;
  Worker &rank;
  const std::string path;
  /// Of the best; on rank 0.
  std::optional<double> value;
  int64_t step = 0;
};

/// Where they are: "trained.best.safetensors" beside "trained.safetensors".
std::string pathOfBest(const std::string &save);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_BESTWEIGHTS_H
