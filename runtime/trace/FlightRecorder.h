//===- FlightRecorder.h - What a rank did last ------------------*- C++ -*-===//
//
// Always on: a ring of the last operations of a rank. Written when a run fails,
// as a Chrome trace like that of `--trace`, so that it can be laid over the
// timetable; and told to other ranks, in a few words, while the run goes on.
// The ring itself may be a file that is mapped (FlightFile.h): whatever ends
// the process, the file says where it stood.
//
// One thread writes, any thread may read. An operation that is overwritten
// while somebody reads it is left out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRACE_FLIGHTRECORDER_H
#define PIPEWRIGHT_RUNTIME_TRACE_FLIGHTRECORDER_H

#include "runtime/trace/FlightFile.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pipewright::runtime {

class FlightRecorder {
public:
  static constexpr uint64_t capacity = FlightRing::capacity;

  /// What a rank does besides tasks, whose kind is their letter.
  enum Kind : char {
    PostSend = 's',
    PostReceive = 'r',
    WaitSend = 'x',
    WaitReceive = 'w',
    PostCollective = 'c',
    WaitCollective = 'g',
    /// All ranks of the replica meet to add up the norm of the gradients.
    Norm = 'n',
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
  FlightRecorder(const FlightRecorder &) = delete;
  FlightRecorder &operator=(const FlightRecorder &) = delete;

  /// Goes on in a file from here, which stays there unless `removeFile` is
  /// called. Does without one where it cannot be made, or is another run's.
  /// The recording thread calls both.
  void keepIn(const std::string &path, const FlightRing::Owner &owner);
  void removeFile();

  void beginStep(int64_t step) {
    end();
    ring.load(std::memory_order_relaxed)
        ->step.store(step, std::memory_order_relaxed);
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
  int64_t step() const { return ring.load()->step.load(); }
  /// Those that are still there, oldest first, and no more than `most`.
  std::vector<Operation> last(uint64_t most = capacity) const;
  /// The last ones in a few words: "F0.1 F0.2 receive<1".
  std::string lastText(uint64_t most) const;
  bool isEmpty() const { return ring.load()->count.load() == 0; }

  /// A file for `plan --html --measured`. Throws an Error if it cannot be
  /// written, or would replace what is no such file.
  void write(const std::string &path, int64_t rank) const;

private:
  void begin(char kind, int64_t place, int64_t microBatch);
  FlightRing::Slot &add(char kind, int64_t place, int64_t microBatch,
                        int64_t now);

  /// Before there is a file; readers may still be in it.
  const std::unique_ptr<FlightRing> own;
  FlightFile file;
  std::atomic<FlightRing *> ring;
  /// The one that has not ended; null if all have.
  std::atomic<int64_t> *running = nullptr;
};

/// Those of a ring that are still there, oldest first, and no more than `most`.
std::vector<FlightRecorder::Operation> lastOperations(const FlightRing &ring,
                                                      uint64_t most);

/// "F0.1", "receive<1" (a wait), "send>1!" (a moment).
std::string nameOf(const FlightRecorder::Operation &operation);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRACE_FLIGHTRECORDER_H
