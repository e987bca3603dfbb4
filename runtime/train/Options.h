//===- Options.h - The command line of a generated program -----*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_OPTIONS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_OPTIONS_H

#include "runtime/core/Platform.h"
#include "runtime/io/Dataset.h"
#include "runtime/io/WeightSource.h"
#include "runtime/train/Metrics.h"

#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

struct Options : RunSettings {
  enum class Schedule { Constant, Cosine };

  std::vector<DataSpec> data;
  std::vector<DataSpec> evalData;
  /// -1: not given.
  int64_t steps = -1;
  /// What `steps` was before it was rounded up to what the schedule can run.
  int64_t stepsGiven = 0;
  int64_t evalEvery = 0;
  /// Steps between two comparisons of weights that several ranks hold; 0: none
  /// but before the first step and after the last one.
  int64_t compareEvery = 1000;
  int64_t evalBatches = 16;
  /// Of held-out data and predictions, beside the loss.
  std::vector<Metric> metrics;
  bool evaluateOnly = false;
  /// By what the best weights are chosen and kept.
  enum class Best { None, Loss, Metric } keepBest = Best::None;
  Metric bestMetric = Metric::Accuracy;
  /// Passes over the data; 0: not given.
  int64_t epochs = 0;
  double learningRate = 0;
  int64_t warmup = 0;
  /// The largest norm of all gradients; 0 where the program does not clip them.
  double clipNorm = 0;
  /// Whether steps are skipped whose gradients are no finite numbers; else they
  /// end the run.
  bool skipsNan = false;
  Schedule schedule = Schedule::Constant;
  uint64_t seed = 0;
  bool shuffle = true;
  double rendezvousTimeout = 300;
  /// The folder for what ranks did before a failure; empty: nowhere.
  std::string flight;
  std::string log;
  WeightRequest weights;
  std::string save;
  /// The folder of checkpoints; empty: none are made.
  std::string checkpoint;
  /// Steps or seconds between two; 0: that is not what counts.
  int64_t checkpointEvery = 0;
  double checkpointSeconds = 0;
  /// How many are kept.
  int64_t keep = 2;
  bool resumes = false;
  static constexpr int64_t newest = INT64_MAX;
  /// The step of the checkpoint to go on from.
  int64_t resumeStep = newest;
  /// Steps between two that are run twice; 0: none is.
  int64_t replayEvery = 0;
  /// The step that is kept to be run again; 0: none is.
  int64_t recordStep = 0;
  /// Where its own folder goes.
  std::string recordFolder;
  /// The folder of a step that is run again; empty: none is.
  std::string replay;
  std::string trace;
  int64_t traceSteps = 1;
  /// How many steps at the end are profiled.
  int64_t profileSteps = 0;
  std::string dumpGradients;
  std::string guess;
  std::vector<DataSpec> predict;
  std::vector<DataSpec> outputs;

  /// What was given for options that all ranks must agree on: name, value.
  std::vector<std::pair<std::string, std::string>> shared;

  /// The machine file that a run writes which measures and does not train;
  /// empty: it trains.
  std::string preflight;
  /// The share of a median that one may be behind; 0: not given.
  double preflightTolerance = 0;

  // Print something and end.
  bool help = false;
  bool timetable = false;
  bool plan = false;
  bool dryRun = false;
  /// Print what the memory of each rank holds, after training.
  bool memory = false;

  /// Throws an Error that names the option.
  static Options parse(int argc, char **argv, const Program &program);

  /// The learning rate of a step: warm-up rises in a line, cosine falls to a
  /// tenth.
  float learningRateAt(int64_t step) const;
};

/// "loss", or the metric's name.
std::string nameOfBest(const Options &options);

/// All values given for each option on which the ranks must agree, by name; an
/// empty text where none was.
std::vector<std::pair<std::string, std::string>>
sharedOptions(const Program &program, const Options &options);

/// The text of --dry-run.
std::string dryRunText(const Program &program, const Options &options);

/// The text of --help.
std::string helpText(const Program &program);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_OPTIONS_H
