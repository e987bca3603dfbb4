//===- Replay.h - Steps that are run twice to be believed ------*- C++ -*-===//
//
// A step of a plan has one result, to the bit, so it can be checked: all that
// it may change is copied, it is run, taken back and run again, on other cores
// where ranks have some of their own. What differs is a fault of the machine,
// or of the program; a third run tells which.
//
// Every rank calls every function, at the same place.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_REPLAY_H
#define PIPEWRIGHT_RUNTIME_TRAIN_REPLAY_H

#include "runtime/core/Platform.h"
#include "runtime/train/Options.h"

#include <functional>
#include <string>
#include <vector>

namespace pipewright::runtime {

class Worker;
struct TensorInfo;

class Replay {
public:
  Replay(const Options &options, Worker &rank, RankFactory &factory)
      : options(options), rank(rank), factory(factory) {}

  /// Whether the call of the program's step after which `done` steps are done
  /// is checked.
  bool isDue(int64_t done) const;

  /// One run of the step: `isLast` says that none follows that has the same
  /// result. It must be possible to call it again.
  using Run = std::function<void(bool isLast)>;

  /// Runs the step twice. True where both runs agree on all ranks; otherwise
  /// everything is as it was before the step, and on rank 0 there is a message.
  bool check(const Run &run);
  const std::string &message() const { return text; }

private:
  void copy();
  void takeBack();

  const Options &options;
  Worker &rank;
  RankFactory &factory;
  std::vector<char> before;
  std::string text;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_REPLAY_H
