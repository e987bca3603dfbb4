//===- Trace.h - What a rank did when --------------------------*- C++ -*-===//
//
// Records tasks and waits of some steps in memory; written afterwards as a
// Chrome trace (chrome://tracing, ui.perfetto.dev), one row per rank. Events
// are named as the compiler names those of its predictions
// (passes/schedules/files/ChromeTrace.h), so that both can be read together:
// a task is `F0.3` (kind, stage, micro-batch) or `U0`, a wait is
// `wait receive rank 1`; process 0 is the measured one.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRACE_TRACE_H
#define PIPEWRIGHT_RUNTIME_TRACE_TRACE_H

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::runtime {

class Trace {
public:
  using Clock = std::chrono::steady_clock;

  /// What follows belongs to this step. The first call takes memory, so that
  /// `expected` events of a step need no further.
  void beginStep(int64_t step, int64_t expected = 4096);
  /// Ends the running task and begins the next. `microBatch` of an update is
  /// its number among the step's.
  void task(const char *kind, int64_t stage, int64_t microBatch);
  /// Ends the running task.
  void stop();
  /// A wait for a peer that began at `since` and ends now. Whoever waits does
  /// not work: the running task ended with its begin.
  void wait(const char *verb, int64_t peer, Clock::time_point since);

  /// The events as JSON objects, each followed by a comma, for one rank.
  std::string toJson(int64_t rank) const;

private:
  struct Event {
    const char *kind;
    /// A task's stage and micro-batch; a wait's peer and -1.
    int64_t first, second;
    int64_t step;
    Clock::time_point begin, end;
  };
  std::vector<Event> events;
  bool running = false;
  size_t current = 0;
  int64_t currentStep = 0;
};

/// Writes the rows that Trace::toJson gave as one file.
void writeTrace(const std::string &path, const std::vector<std::string> &rows);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRACE_TRACE_H
