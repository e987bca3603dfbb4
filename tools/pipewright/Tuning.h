//===- Tuning.h - Measures what a search has found --------------*- C++ -*-===//
//
// `--tune N`: predictions that differ by little may come out the other way
// round, so programs of the best are run for some steps.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_TUNING_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_TUNING_H

#include "tools/pipewright/ConfigurationSearch.h"

namespace pipewright::tool {

/// Compiles the first `count` of a search to a temporary folder, trains each
/// for some steps on random data, on this machine, and says what they took.
/// Returns the number of the one whose median step was the shortest. Fails
/// where a program does not run to its end.
llvm::Expected<size_t> tune(const ConfigurationSearch &search, size_t count,
                            llvm::raw_ostream &os);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_TUNING_H
