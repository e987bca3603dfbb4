//===- Preflight.h - A run that measures where others train ----*- C++ -*-===//
//
// `--preflight FILE`: the ranks of a program, with their threads and links,
// measure themselves before a long run trusts them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRAIN_PREFLIGHT_H
#define PIPEWRIGHT_RUNTIME_TRAIN_PREFLIGHT_H

#include "runtime/core/Platform.h"
#include "runtime/net/Transport.h"
#include "runtime/train/Options.h"

#include <string>

namespace pipewright::runtime {

/// What --preflight and --preflight-tolerance say. Throw an Error that names
/// the option.
void parsePreflight(Options &options, const std::string &text);
void parseTolerance(Options &options, const std::string &text);

/// Whether the command line asks for it; what it says of other runs does not
/// matter then. Throws an Error where ranks of the program cannot be measured.
bool followPreflight(Options &options, const Program &program);
/// Throws an Error where the file cannot be written.
void checkPreflight(const Options &options);

/// A program with as many ranks and replicas, whose steps are what is measured.
/// For agreement between processes it is the same as the other.
Program preflightProgram(const Program &program);

/// Measures one rank and its links; rank 0 prints tables and a verdict and
/// writes the file. `factory` makes ranks of a preflightProgram. Returns the
/// exit code, the same on all ranks: 1 where one is behind the others. Throws
/// an Error when it fails, which all other ranks are told before.
int runPreflight(const Options &options, RankFactory &factory, bool processes,
                 Transport &transport);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_TRAIN_PREFLIGHT_H
