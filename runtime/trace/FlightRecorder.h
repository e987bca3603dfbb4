//===- FlightRecorder.h - What a rank did last ------------------*- C++ -*-===//
//
// Always on: a ring of the last operations of a rank. Written when a run fails,
// as a Chrome trace like that of `--trace`, so that it can be laid over the
// timetable; and told to other ranks, in a few words, while the run goes on.
//
// One thread writes, any thread may read. An operation that is overwritten
// while somebody reads it is left out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRACE_FLIGHTRECORDER_H
#define PIPEWRIGHT_RUNTIME_TRACE_FLIGHTRECORDER_H

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pipewright::runtime {

class FlightRecorder {
public:
  static constexpr uint64_t capacity = 4096;

  /// What a rank does besides tasks, whose kind is their letter.
  enum Kind : char {
    PostSend = 's',
    PostReceive = 'r',
    WaitSend = 'x',
    WaitReceive = 'w',
    PostCollective = 'c',
    WaitCollective = 'g',
    EndOfStep = 'e'
  };

  struct Operation {
    char kind = 0;
    bool isTask() const { return kind >= 'A' && kind <= 'Z'; }
    bool isPost() const {
      return kind == PostSend || kind == PostReceive || kind == PostCollective;
    }
    /// The stage of a task, the peer of a transfer, the group of a collective.
    int64_t place = 0;
    int64_t microBatch = 0;
    int64_t step = 0;
    /// Nanoseconds of the steady clock; an end of 0: it has not ended.
    int64_t start = 0, end = 0;
  };

  FlightRecorder();

  void beginStep(int64_t step) {
    end();
    currentStep.store(step, std::memory_order_relaxed);
  }
  /// Begins a task; it ends where the next operation begins.
  void task(char kind, int64_t stage, int64_t microBatch) {
    begin(kind, stage, microBatch);
  }
  /// Begins a wait, which `end` ends.
  void wait(Kind kind, int64_t peer) { begin(kind, peer, 0); }
  /// A moment; what runs goes on.
  void post(Kind kind, int64_t peer);
  /// Ends what runs.
  void end();

  /// -1 before the first.
  int64_t step() const { return currentStep.load(std::memory_order_relaxed); }
  /// Those that are still there, oldest first, and no more than `most`.
  std::vector<Operation> last(uint64_t most = capacity) const;
  /// The last ones in a few words: "F0.1 F0.2 receive<1".
  std::string lastText(uint64_t most) const;
  bool isEmpty() const { return count.load() == 0; }

  /// A file for `plan --html --measured`. Throws an Error if it cannot be
  /// written, or would replace what is no such file.
  void write(const std::string &path, int64_t rank) const;

private:
  /// Kind, place and micro-batch in one word, step, start, end. Relaxed atomic
  /// words: as cheap as plain ones, and torn by no reader.
  struct Slot {
    std::array<std::atomic<int64_t>, 4> words;
  };
  void begin(char kind, int64_t place, int64_t microBatch);
  Slot &add(char kind, int64_t place, int64_t microBatch, int64_t now);

  std::unique_ptr<Slot[]> slots;
  /// How many were ever begun.
  std::atomic<uint64_t> count{0};
  /// The one that has not ended; null if all have.
  std::atomic<int64_t> *running = nullptr;
  std::atomic<int64_t> currentStep{-1};
};

/// "F0.1", "receive<1" (a wait), "send>1!" (a moment).
std::string nameOf(const FlightRecorder::Operation &operation);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRACE_FLIGHTRECORDER_H
