//===- Report.h - Predicted beside measured --------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_REPORT_H
#define PIPEWRIGHT_RUNTIME_TRAIN_REPORT_H

#include "runtime/io/JsonLines.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/Options.h"
#include "runtime/train/StepTimes.h"

#include <string>
#include <vector>

namespace pipewright::runtime {

/// How the ranks of this run were started.
struct Launch {
  bool processes = false;
  /// What the ranks compute on.
  std::string platform;
};

/// Of one call of the program: the longest that any rank takes.
double predictedSeconds(const Program &program);

/// What calls of the program have taken on this rank.
struct MeasuredTimes {
  const StepTimes &steps;
  /// Of that, how long the rank stood still for what its groups do; negative:
  /// not measured.
  const StepTimes &collectiveWaits;
  /// What the rank sent in the last one; negative: not counted.
  Traffic sent;
};

/// What is known before the first step.
std::string headerText(const Program &program, const Options &options,
                       const Launch &launch);

/// Step time and memory, measured beside predicted. Every rank calls it; the
/// text is for rank 0, which also logs the numbers. `evaluated`: the plan
/// covers evaluation, but only what ran can be measured.
std::string summaryText(Worker &rank, const Options &options,
                        const Launch &launch, const MeasuredTimes &times,
                        bool evaluated, JsonLines &log);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_REPORT_H
