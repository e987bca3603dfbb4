//===- Runtime.h - All that a generated program calls ----------*- C++ -*-===//
//
// The one include of generated code.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_RUNTIME_H
#define PIPEWRIGHT_RUNTIME_RUNTIME_H

#include "runtime/calls/Calls.h"
#include "runtime/core/Program.h"
#include "runtime/cpu/Rank.h"

#endif // PIPEWRIGHT_RUNTIME_RUNTIME_H
