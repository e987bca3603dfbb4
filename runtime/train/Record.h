//===- Record.h - A step that is kept, to be run again ---------*- C++ -*-===//
//
// Of one step a folder keeps all that it takes (weights and states, inputs,
// seed, learning rates) and hashes of all that it gives. A program of the same
// model runs it again from there, and says where the numbers first differ.
//
// Every rank calls every function, at the same place.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_RECORD_H
#define PIPEWRIGHT_RUNTIME_TRAIN_RECORD_H

#include "runtime/train/Batches.h"
#include "runtime/train/Checkpoints.h"
#include "runtime/train/Options.h"
#include "runtime/train/StepRecord.h"

#include <functional>
#include <optional>
#include <string>

namespace pipewright::runtime {

class Record {
public:
  Record(const Options &options, Worker &rank, RankFactory &factory)
      : options(options), rank(rank), factory(factory) {}

  /// Whether the call of the program's step after which `done` steps are done
  /// is the one that is asked for.
  bool isDue(int64_t done) const;

  /// Writes what the step takes; `skipped` of those before changed nothing. No
  /// checkpoint may be being made.
  void begin(int64_t stepsBefore, int64_t skipped, const Dataset &data,
             const Batches &batches, const std::vector<float> &learningRates);
  /// Runs the step.
  void run(const std::function<void()> &step);
  /// Adds what it gave. Returns a line for people, on rank 0.
  std::string finish(const std::vector<double> &losses);

private:
  void writeInputs(const Dataset &data, const Batches &batches);
  bool anyFailed();

  const Options &options;
  Worker &rank;
  RankFactory &factory;
  std::string folder;
  StepRecord record;
  std::optional<StepDigest> digest;
  /// Why it could not be written, on rank 0.
  std::string failure;
};

/// Takes from the record of `options.replay` what the command line says of
/// other runs. Throws an Error where an option does not go with it.
void followRecord(Options &options, const Program &program);

/// Runs the step of `options.replay`, and says on rank 0 whether it gave the
/// same. Returns the exit code.
int replayRecord(const Options &options, Worker &rank,
                 const std::function<void(const std::string &)> &say);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_RECORD_H
