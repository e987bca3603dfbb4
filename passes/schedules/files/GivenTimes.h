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

/// The times of one micro-batch, in any unit.
struct GivenTimes {
  /// Of consecutive parts of the model; one row stands for each rank's share
  /// where no file says otherwise.
  std::vector<StageCosts> rows;
  /// The file that has them; empty: they are of a rank's share.
  std::string file;

  /// Forwards, input gradients and weight gradients of a rank take 1 each.
  static GivenTimes units();

  /// For the placed stages of a schedule, whose order need not be there yet.
  /// Fails if neither the stages divide the rows nor the rows the stages.
  llvm::Expected<TaskCosts> costsOf(const Schedule &shape) const;

  /// Over how many stages a row of a file is spread.
  int64_t stagesPerRow(const Schedule &shape) const;

  /// `F=1 B=2 I=1 W=1`, or the name of the file without its folder.
  std::string describe() const;
};

/// A finite number that is not negative and small enough to add up.
std::optional<double> parseTime(llvm::StringRef text);

/// `F=1,B=2` or `F=1,I=.9,W=1.1`, with R and U where they are wanted. Fails
/// with what is expected, and what was found.
llvm::Expected<GivenTimes> parseTimes(llvm::StringRef text);

/// A `.csv` with a header of letters, or a `.json` with a list of objects; one
/// row for each stage. A column `stage` counts them from 0.
llvm::Expected<GivenTimes> readStageTimes(llvm::StringRef path);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_GIVENTIMES_H
