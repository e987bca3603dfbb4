//===- Checkpoints.h - What a run needs to go on ---------------*- C++ -*-===//
//
// All that a step reads and an earlier one has written: weights, running
// statistics, states of the optimizer, older versions of weights. A thread of
// each rank copies its part while the next step runs, whose first update waits
// for the copy, and writes it while training goes on. Tensors are known by the
// names of weights, so whatever the ranks, cut and schedule of a program are,
// it takes over the checkpoint of another one. When all ranks have written, a
// thread of rank 0 makes the checkpoint whole and removes old ones.
//
// Every rank calls every function, at the same place.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_CHECKPOINTS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_CHECKPOINTS_H

#include "runtime/core/Platform.h"
#include "runtime/io/CheckpointFolder.h"
#include "runtime/train/Options.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace pipewright::runtime {

class Worker;

/// Bytes that each replica of a position of the pipeline copies for a
/// checkpoint. Of what all replicas have, the first one does it.
std::vector<int64_t> checkpointBytes(const Program &program, int64_t position);

/// Throws an Error unless each tensor of a checkpoint is one of the rank's
/// program, and there; then the rank has them.
void loadCheckpoint(Worker &rank, const std::string &folder);

class Checkpoints {
public:
  /// Takes the folder, on rank 0.
  Checkpoints(const Options &options, Worker &rank, RankFactory &factory);
  /// Waits until the thread has ended.
  ~Checkpoints();

  /// Where the run stands.
  struct Position {
    int64_t step = 0;
    int64_t samples = 0;
    /// Of the steps, those that changed nothing.
    int64_t skipped = 0;
  };

  /// Loads what `--resume` asks for; the position is 0 where it asks for
  /// nothing, or for the newest one and there is none. `say` gets lines for
  /// people, on rank 0. Throws an Error where there are checkpoints, and none
  /// that can be used, or that nobody asks for.
  Position resume(const std::function<void(const std::string &)> &say);

  /// What a rank has to say at the end of a step, and what it learns from the
  /// sum over all ranks.
  struct Votes {
    /// For the one that is being made: this rank's thread has ended.
    double done = 0;
    /// For a new one.
    double due = 0;
  };
  /// When `step` steps are done, `before` of which had been before this call
  /// of the program's function. `--checkpoint-every` counts times from the
  /// last one.
  Votes votes(int64_t step, int64_t before) const;

  // These return what went wrong, for people, on rank 0; empty if nothing did.

  /// Between two steps: goes on with the one that is being made where all
  /// threads have ended, and begins one if it is due, for which it waits until
  /// the one before is whole.
  std::string keep(const Votes &sum, Position now);
  /// Waits until the one that is being made is whole.
  std::string finish();
  /// Makes one while training waits. None is being made.
  std::string keepNow(Position now);

  /// The newest one of this plan that this run has made, or resumed from; 0:
  /// none.
  int64_t last() const { return made; }
  /// Those that could not be made, and why the latest could not; on rank 0.
  int64_t failures() const { return failed; }
  const std::string &latestFailure() const { return message; }

private:
  struct Part;
  /// What is done of the one that is being made.
  enum class Phase {
    None,
    /// All ranks write.
    Writing,
    /// Rank 0 makes a checkpoint of the files.
    Committing
  };

  bool isOwn(const Part &part) const;
  bool isDue(int64_t step, int64_t before) const;
  void begin(Position now);
  /// To the next phase, when all threads have ended; waits for them.
  std::string advance();
  void beginCommit();
  void copy(const Part &part);
  void collect(const Part &part);
  void waitForCopy();
  void write(int64_t step);
  CheckpointManifest manifest(Position at) const;
  /// On rank 0: of what all have written, and why some have not.
  void commit(const CheckpointManifest &manifest,
              const std::vector<std::string> &failures);
  void prune();

  const Options &options;
  Worker &rank;
  RankFactory &factory;
  CheckpointFolder folder;
  static std::vector<Part> partsOf(const Program &program, int64_t position);
  friend std::vector<int64_t> checkpointBytes(const Program &program,
                                              int64_t position);

  /// What all replicas of this rank write, and this one's copy of its own.
  std::vector<Part> parts;
  std::vector<char> shadow;

  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  bool copied = false;
  Phase phase = Phase::None;
  std::atomic<bool> done = false;
  Position current;
  /// What the thread that writes leaves behind.
  CheckpointFile file;
  std::string failure;
  /// What the one that commits leaves behind.
  bool isWhole = false;
  std::string remark;

  int64_t made = 0;
  int64_t failed = 0;
  std::string message;
  std::chrono::steady_clock::time_point lastTime;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_CHECKPOINTS_H
