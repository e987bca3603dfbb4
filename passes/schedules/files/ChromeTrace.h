//===- ChromeTrace.h - Predicted and measured runs as events ----*- C++ -*-===//
//
// The Trace Event Format of chrome://tracing and ui.perfetto.dev, with one
// convention for what the simulator predicts and what a program measures
// (runtime/trace), so that one can be laid over the other:
//
//   - process 0 is "measured", process 1 is "predicted"; a thread of them is a
//     rank;
//   - a task is a complete event of category "task" with the task's name
//     (F0.3, U1) and the arguments kind, stage, micro_batch (of an update: its
//     number) and step;
//   - a wait is a complete event of category "wait", named for whom it waits:
//     `wait receive rank 1`;
//   - the plan of the program that was measured (plan.json) stands in the
//     arguments of a metadata event "plan".
//
// A measured trace also says how long tasks take, for predictions and for
// schedules that plan with times.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_CHROMETRACE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_CHROMETRACE_H

#include "passes/schedules/Simulator.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::schedules {

struct MeasuredTask {
  Task task;
  int32_t rank = 0;
  int64_t step = 0;
  /// Seconds from the first start of the step, over all ranks.
  TaskTime time;
};

/// A rank's part in what ranks, or replicas, did together.
struct MeasuredCollective {
  /// As the program called it: `all-reduce group 0`.
  std::string name;
  int32_t rank = 0;
  int64_t step = 0;
  /// As of tasks.
  TaskTime time;
};

/// Of which program a trace is.
struct TracedProgram {
  /// As plan.json has them.
  std::string target, precision;
  int64_t microBatchSize = 0;
  /// By stage.
  std::vector<std::string> layers;
};

struct MeasuredTrace {
  /// Of the first file that says so; none where no file does.
  std::optional<TracedProgram> program;
  /// Sorted by step, then by rank, then by time; never empty.
  std::vector<MeasuredTask> tasks;
  /// Sorted in the same way.
  std::vector<MeasuredCollective> collectives;

  int32_t ranks() const;
  int64_t lastStep() const { return tasks.back().step; }
  /// The tasks and the collectives of the last step.
  llvm::ArrayRef<MeasuredTask> last() const;
  llvm::ArrayRef<MeasuredCollective> lastCollectives() const;
};

/// Writes a predicted run, and the last step of a measured one beside it.
void writeChromeTrace(llvm::raw_ostream &os, const Schedule &schedule,
                      const Simulation &simulation,
                      const MeasuredTrace *measured = nullptr);

/// Reads tasks and collectives of the measured process, or of the only one that
/// there is.
llvm::Expected<MeasuredTrace> parseChromeTrace(llvm::StringRef text);
/// The same, of a file, which errors name, or of several with commas between
/// them: what each rank of one machine wrote.
llvm::Expected<MeasuredTrace> readChromeTrace(llvm::StringRef paths);

/// Fails if tasks run on other ranks than in `schedule`, or are not in it.
llvm::Error checkTrace(const MeasuredTrace &trace, const Schedule &schedule);

/// Seconds of a stage's tasks, by kind; negative where nothing is known.
using MeasuredTimes = std::array<double, numTaskKinds>;

/// The medians over all steps and micro-batches, for each stage. Fails on a
/// trace of other stages.
llvm::Expected<std::vector<MeasuredTimes>>
medianTimes(const MeasuredTrace &trace, int64_t stages);

/// Replaces what is known. Of the backward and its two halves, what is not
/// known follows from what is, halves in their old proportion; a recompute
/// that is not known takes a forward's time.
void applyTimes(const MeasuredTimes &times, StageCosts &costs);

/// `costs` with the medians of what was measured.
llvm::Expected<TaskCosts> costsFromTrace(const MeasuredTrace &trace,
                                         TaskCosts costs);

/// The same for stages of which nothing else is known.
llvm::Expected<TaskCosts> costsFromTrace(const MeasuredTrace &trace,
                                         int64_t stages);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_CHROMETRACE_H
