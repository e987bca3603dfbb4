//===- SkippedSteps.h - Steps that change nothing ---------------*- C++ -*-===//
//
// With `--on-nan skip`, a step whose gradients are not all finite numbers
// leaves weights, states of the optimizer and running statistics as they were.
// Every rank calls every function, at the same place.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_SKIPPEDSTEPS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_SKIPPEDSTEPS_H

#include "runtime/rank/Worker.h"

#include <string>
#include <vector>

namespace pipewright::runtime {

class SkippedSteps {
public:
  explicit SkippedSteps(Worker &rank) : rank(rank) {}

  /// In the whole run: what a checkpoint says when it goes on.
  void setCount(int64_t steps) { skipped = steps; }
  int64_t count() const { return skipped; }

  /// Before a step that may be run several times.
  void begin();
  /// Behind it. Whether it was skipped.
  bool end();

  /// Of the one that was skipped last, for people.
  std::string message(int64_t step) const;
  /// Of the run; empty if none was.
  std::string summary() const;

private:
  Worker &rank;
  int64_t skipped = 0;
  /// In this process.
  int64_t here = 0;
  /// Running statistics of this rank, one behind the other.
  std::vector<char> statistics;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_SKIPPEDSTEPS_H
