//===- Loops.h - Lists that repeat themselves as loops ----------*- C++ -*-===//
//
// A step of hundreds of micro-batches is a list of thousands of lines, most of
// them the same but for numbers. Here they become loops.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_LOOPS_H
#define PIPEWRIGHT_CODEGEN_HOST_LOOPS_H

#include "codegen/host/Statements.h"

namespace pipewright::codegen {

/// Replaces calls that repeat themselves by loops that make the same calls in
/// the same order. In a loop counters advance by the same number each time, and
/// buffers of one family follow each other in any order: they become elements
/// of an array. Returns whether there are loops now.
bool foldLoops(Function &function);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_LOOPS_H
