//===- Indices.h - Indices that their table has not ------------*- C++ -*-===//
//
// The words for it, which are the same on all targets. Data is refused before a
// step where a model reads it as it is; what a model has computed is seen by
// the call that uses it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_INDICES_H
#define PIPEWRIGHT_RUNTIME_CALLS_INDICES_H

#include "runtime/core/Error.h"

#include <cstdint>

namespace pipewright::runtime {

[[noreturn]] inline void failRow(int64_t row, int64_t rows) {
  fail("the model looks up row ", row, " of a table with ", rows, " rows");
}

[[noreturn]] inline void failLabel(int64_t label, int64_t classes) {
  fail("the model makes label ", label, " for a loss with ", classes,
       " classes");
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_INDICES_H
