//===- Replay.cpp - Steps that are run twice to be believed ---------------===//

#include "runtime/train/Replay.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/Findings.h"

using namespace pipewright::runtime;

bool Replay::isDue(int64_t done) const {
  const int64_t every = options.replayEvery,
                together = rank.wholeProgram().updates;
  return every > 0 && done / every != (done - together) / every;
}

/// What this replica has of a tensor that outlasts steps.
static Buffer keptOf(const Worker &rank, const TensorInfo &tensor) {
  return tensor.outlastsStep() ? tensor.partOf(rank.replica()).buffer
                               : Buffer();
}

void Replay::copy() {
  int64_t bytes = 0;
  for (const TensorInfo &tensor : rank.program().tensors)
    bytes += keptOf(rank, tensor).bytes;
  before.resize(bytes);
  char *to = before.data();
  for (const TensorInfo &tensor : rank.program().tensors) {
    const Buffer kept = keptOf(rank, tensor);
    rank.read(kept, to);
    to += kept.bytes;
  }
}

void Replay::takeBack() {
  const char *from = before.data();
  for (const TensorInfo &tensor : rank.program().tensors) {
    const Buffer kept = keptOf(rank, tensor);
    rank.write(kept, from);
    from += kept.bytes;
  }
}

bool Replay::check(const Run &run) {
  copy();
  Transport &transport = rank.transport();
  const StepDigest first = digestOf(rank, [&] { run(false); });
  takeBack();
  factory.moveToCoresOf(transport, 1);
  const StepDigest second = digestOf(rank, [&] { run(true); });
  factory.moveToCoresOf(transport, 0);
  if (agree(rank, first, second))
    return true;
  takeBack();
  const StepDigest third = digestOf(rank, [&] { run(false); });
  takeBack();
  const bool asFirst = agree(rank, first, third),
             asSecond = agree(rank, second, third);
  text = firstDifferenceOfAll(rank, first, second);
  text += asFirst || asSecond
              ? std::string("; a third run agrees with the ") +
                    (asFirst ? "first" : "second") +
                    ": a fault of the machine that does not repeat itself"
              : "; a third run differs from both: a fault that repeats itself, "
                "of the program or of the machine";
  return false;
}
