//===- StepRecord.h - A step on disk, to be run again ----------*- C++ -*-===//
//
//   DIR/record.json          numbers of the step, and what it gave
//   DIR/input-0.npy          what an input was, samples in the batch's order
//   DIR/step-4               a checkpoint of what was there before step 5
//
// The first record.json is written before the step runs and has no results, so
// that a step that crashes can be run again, too.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_STEPRECORD_H
#define PIPEWRIGHT_RUNTIME_TRAIN_STEPRECORD_H

#include "runtime/rank/StepDigest.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// What a process took and gave in a step.
struct StepResults {
  /// Hashes of what it gives whatever the plan, by what messages call it.
  std::map<std::string, uint64_t> named;
  std::vector<StepDigest::Entry> entries;
};

struct StepRecord {
  struct Input {
    std::string name;
    /// Beside record.json.
    std::string file;
  };

  std::string model;
  /// Steps that were done before.
  int64_t step = 0;
  uint64_t seed = 0;
  /// One for each step that the program runs together.
  std::vector<float> learningRates;
  /// The largest norm of all gradients; 0 where the program does not clip them.
  double clipNorm = 0;
  /// Whether gradients that are no finite numbers make it skip its update, and
  /// how many steps before it did.
  bool skipsNan = false;
  int64_t skipped = 0;
  /// Samples of a micro-batch, and of all of them.
  int64_t microBatchSize = 0;
  int64_t samples = 0;
  /// 0: it was not given.
  int64_t threadsPerRank = 0;
  /// A hash of the program's plan: the entries of two runs can be compared
  /// where it is the same.
  uint64_t plan = 0;
  std::vector<Input> inputs;

  // Empty until the step has run.
  /// The mean loss of each step that ran together.
  std::vector<double> losses;
  /// By process.
  std::vector<StepResults> results;

  bool hasResults() const { return !results.empty(); }
};

/// For other ranks, and back. Throws an Error where the text is none.
std::string textOf(const StepResults &results);
StepResults stepResultsOf(const std::string &text);

/// Throws an Error that names the file where it is no record.
StepRecord readStepRecord(const std::string &folder);

/// Writes record.json, all or nothing.
void writeStepRecord(const std::string &folder, const StepRecord &record);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_STEPRECORD_H
