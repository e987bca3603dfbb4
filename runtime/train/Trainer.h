//===- Trainer.h - The life of one rank ------------------------*- C++ -*-===//
//
// The same code for every rank, whether thread or process; rank 0 also speaks
// to the user.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_TRAINER_H
#define PIPEWRIGHT_RUNTIME_TRAIN_TRAINER_H

#include "runtime/core/Rank.h"
#include "runtime/train/Options.h"
#include "runtime/train/Report.h"
#include "runtime/train/Threads.h"
#include "runtime/transport/Transport.h"

namespace pipewright::runtime {

/// Throws an Error for whatever is wrong with options, data, weights or output
/// files, before any work is done.
void checkRun(const Program &program, const Options &options);

/// Runs one rank from set-up to report. Throws an Error when it fails.
void runRank(const Program &program, const Options &options,
             const Placement &placement, bool processes, Transport &transport);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_TRAINER_H
