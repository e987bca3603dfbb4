//===- Findings.h - Where two runs of a step differ ------------*- C++ -*-===//
//
// Hashes of all that a rank takes and gives in a step, of all ranks, tell where
// a difference between two runs began: at the rank that got nothing else and
// gave something else.
//
// Every rank calls every function, at the same place.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_FINDINGS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_FINDINGS_H

#include "runtime/core/Mesh.h"
#include "runtime/rank/StepDigest.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace pipewright::runtime {

class Worker;

/// Runs a step and returns what this rank took and gave.
StepDigest digestOf(Worker &rank, const std::function<void()> &run);

/// Whether two runs are the same on all ranks.
bool agree(Worker &rank, const StepDigest &first, const StepDigest &second);

/// What a rank tells of the first thing that differs.
struct Finding {
  bool differs = false;
  StepDigest::Kind kind = StepDigest::Kind::Input;
  /// Of its entry.
  int64_t place = 0, number = 0;
  /// The first message to each peer that differs, by the peer's position.
  std::map<int64_t, int64_t> sends;
  std::string words;
};

/// The processes at which a difference began: those that got nothing else and
/// gave something else. Where only what came from a sum differs, and nobody
/// gave anything else to it, those that got it.
std::vector<int64_t> originsAmong(const std::vector<Finding> &findings,
                                  const Mesh &mesh);

/// On rank 0: where the difference began, as "rank 0: what it computed in F0.2
/// and sends to rank 1".
std::string firstDifferenceOfAll(Worker &rank, const StepDigest &first,
                                 const StepDigest &second);

/// What a step gives whatever the plan: hashes of losses, gradients, weights
/// and states of this rank by what messages call them.
std::map<std::string, uint64_t> resultsOf(const Worker &rank,
                                          const StepDigest &digest);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_FINDINGS_H
