//===- Fingerprints.h - What files of a run hold --------------*- C++ -*-===//
//
// Processes of one run may read files of their own, under the same names. What
// tells copies of a file apart is found from samples, in a moment, however long
// the file is.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_FINGERPRINTS_H
#define PIPEWRIGHT_RUNTIME_TRAIN_FINGERPRINTS_H

#include "runtime/net/Transport.h"
#include "runtime/train/Options.h"

namespace pipewright::runtime {

/// Throws an Error on every rank unless all processes would read the same
/// initial weights and the same data. It names the option, the file and the
/// ranks whose copy differs from rank 0's. Every process calls it.
void checkSameFiles(const Program &program, const Options &options,
                    Transport &transport);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_FINGERPRINTS_H
