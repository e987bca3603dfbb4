//===- CheckRun.h - What is wrong before any work is done ------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_CHECKRUN_H
#define PIPEWRIGHT_RUNTIME_TRAIN_CHECKRUN_H

#include "runtime/train/Options.h"

namespace pipewright::runtime {

/// Throws an Error for whatever is wrong with options, data, weights or output
/// files, before any work is done.
void checkRun(const Program &program, const Options &options);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_CHECKRUN_H
