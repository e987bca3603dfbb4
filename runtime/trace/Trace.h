//===- Trace.h - What a rank did when --------------------------*- C++ -*-===//
//
// Records tasks and waits of some steps in memory; written afterwards as a
// Chrome trace (chrome://tracing, ui.perfetto.dev), one row per rank. Events
// are named as the compiler names those of its predictions
// (passes/schedules/files/ChromeTrace.h), so that both can be read together:
// a task is `F0.3` (kind, stage, micro-batch) or `U0`, a wait is
// `wait receive rank 1` or `wait all-reduce group 0`; process 0 is the measured
// one. Collectives, and the streams of a GPU that transfer, have rows of their
// own below.
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
  /// not work: the running task ended with its start.
  void wait(const char *verb, int64_t peer, Clock::time_point since);

  /// A wait for a collective, which had begun at `begun`.
  void waitCollective(const char *kind, int64_t group, Clock::time_point begun,
                      Clock::time_point since);

  /// Transfers and collectives are from when this rank was ready for them.
  enum class Category {
    Task,
    Wait,
    Transfer,
    CollectiveWait,
    Collective,
    Copy
  };
  /// What something is and is about.
  struct Label {
    Category category;
    /// The kind of a task or a collective, "send" or "receive", or of a copy
    /// between a GPU and its host "to" or "from".
    const char *kind;
    /// A task's stage and micro-batch; else the peer, or the group; of a copy
    /// -1.
    int64_t first, second = -1;
  };
  /// What a GPU did, known afterwards.
  void add(const Label &what, Clock::time_point begin, Clock::time_point end) {
    events.push_back({what, currentStep, begin, end});
  }

  /// The events as JSON objects, each followed by a comma, for one rank.
  std::string toJson(int64_t rank) const;

private:
  void endTask(Clock::time_point since);
  struct Event : Label {
    int64_t step;
    Clock::time_point begin, end;
  };

  std::vector<Event> events;
  bool running = false;
  size_t current = 0;
  int64_t currentStep = 0;
};

/// `F0.3`, as in the timetable; the first update of a step has no number.
std::string taskName(const char *kind, int64_t stage, int64_t microBatch);

/// Writes the rows that Trace::toJson gave as one file, with the plan of the
/// program, if it has one.
void writeTrace(const std::string &path, const std::vector<std::string> &rows,
                const std::string &planJson);
/// The same to a path that the user has not said. Throws an Error when there is
/// something else there than a file that one of these has written.
void replaceTrace(const std::string &path,
                  const std::vector<std::string> &rows);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRACE_TRACE_H
