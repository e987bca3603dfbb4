//===- Tables.h - Lists without a pattern as tables -------------*- C++ -*-===//
//
// Where memory is tight, transfers and events of hundreds of micro-batches
// follow no pattern that would be a loop. Such a list is data: one row for each
// call, and one loop over the rows.
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
