//===- CompileToFolder.h - All of the compiler behind a frontend *- C++ -*-===//
//
// `pipewright compile -o OUT --no-build`, as a function.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_FUZZ_COMPILETOFOLDER_H
#define PIPEWRIGHT_TEST_FUZZ_COMPILETOFOLDER_H

#include "frontends/common/Frontend.h"

namespace pipewright::fuzz {

/// Compiles a model for so many ranks, to a folder that the next call replaces.
/// Files of more than 64 MiB cannot be written. Returns the exit code.
int compileToFolder(const frontend::ImportOptions &model, int ranks);

} // namespace pipewright::fuzz

#endif // PIPEWRIGHT_TEST_FUZZ_COMPILETOFOLDER_H
