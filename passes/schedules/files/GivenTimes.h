//===- GivenTimes.h - What tasks take, said by hand -------------*- C++ -*-===//
//
// Times without a model: `F=1,I=.9,W=1.1` for all stages alike, or a table with
// a row for each. Keys are the letters of tasks.
//
// Schedules cut the same model into different numbers of stages. So that they
// can be compared, times belong to parts of the model: to a rank's whole share
// of it, of which each of v stages takes 1/v, or to the rows of a table: each
// stage takes as many of them, one after the other, or each row is spread
// evenly over as many stages.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_GIVENTIMES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_GIVENTIMES_H

#include "passes/schedules/Simulator.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::schedules {

/// The times of one micro-batch, in seconds or in a unit that nobody says.
struct GivenTimes {
  /// Of consecutive parts of the model; one row stands for each rank's share
  /// where no file says otherwise.
  std::vector<StageCosts> rows;
  /// The file that has them; empty: they are of a rank's share.
  std::string file;
  /// Whether they were given with units: `F=1.2ms`.
  bool inSeconds = false;

  /// Forwards, input gradients and weight gradients of a rank take 1 each.
  static GivenTimes units();

  /// For the placed stages of a schedule, whose order need not be there yet.
  /// Fails if neither the stages divide the rows nor the rows the stages.
  llvm::Expected<TaskCosts> costsOf(const Schedule &shape) const;

  /// Over how many stages a row of a file is spread.
  int64_t stagesPerRow(const Schedule &shape) const;

  /// `F=1 B=2 I=1 W=1`, `F=1.2ms ...`, or the name of the file without its
  /// folder.
  std::string describe() const;
};

/// What one text says: a finite number that is not negative and small enough to
/// add up, in seconds where a unit stands behind it (`1.5`, `12ms`, `80 us`).
struct GivenTime {
  double value = 0;
  bool hasUnit = false;

  /// Whether it may stand beside times that have units, or have none.
  bool fits(bool inSeconds) const { return hasUnit == inSeconds || value == 0; }
  std::string describe() const;
};
std::optional<GivenTime> parseTime(llvm::StringRef text);

/// Seconds in the largest unit of which there is one: 0.0125 is 12.5 `ms`.
std::pair<double, llvm::StringLiteral> scaledSeconds(double seconds);

/// `F=1,B=2` or `F=1,I=.9,W=1.1`, with R and U where they are wanted, all with
/// units or all without. Fails with what is expected, and what was found.
llvm::Expected<GivenTimes> parseTimes(llvm::StringRef text);

/// A `.csv` with a header of letters, or a `.json` with a list of objects; one
/// row for each stage. A column `stage` counts them from 0. Units are as those
/// of `parseTimes`; in JSON such a time is a string.
llvm::Expected<GivenTimes> readStageTimes(llvm::StringRef path);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_GIVENTIMES_H
