//===- Trainer.h - The life of one rank ------------------------*- C++ -*-===//
//
// The same code for every rank, whether thread or process; rank 0 also speaks
// to the user.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_TRAINER_H
#define PIPEWRIGHT_RUNTIME_TRAIN_TRAINER_H

#include "runtime/core/ExitCode.h"
#include "runtime/core/Platform.h"
#include "runtime/net/Transport.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/Options.h"

namespace pipewright::runtime {

/// Runs one rank from set-up to report, and returns the exit code, the same on
/// all ranks. Throws an Error when it fails, which all other ranks are told
/// before.
int runRank(const Options &options, RankFactory &factory, bool processes,
            Transport &transport);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_TRAINER_H
