//===- Tables.h - Long lists of calls as tables -----------------*- C++ -*-===//
//
// A rank's list of thousands of calls is data: one row for each call, and one
// loop over the rows. As statements it would take a C++ compiler minutes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_TABLES_H
#define PIPEWRIGHT_CODEGEN_HOST_TABLES_H

#include "codegen/host/Statements.h"

namespace pipewright::codegen {

/// Replaces all calls by a table and a loop that makes the same calls in the
/// same order. A row has the number of a case, then what differs between the
/// calls of that case: counters, and indices of buffers.
void makeTable(Function &function);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_TABLES_H
