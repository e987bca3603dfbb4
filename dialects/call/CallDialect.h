//===- CallDialect.h - The call dialect -------------------------*- C++ -*-===//
//
// The dialect and its ops: forms of nn ops that the libraries of some targets
// have.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_CALL_CALLDIALECT_H
#define PIPEWRIGHT_DIALECTS_CALL_CALLDIALECT_H

#include "dialects/nn/NNOps.h"

#include "dialects/call/CallDialect.h.inc"
#include "dialects/call/CallEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/call/CallAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/call/CallOps.h.inc"

namespace pipewright::call {

/// The elements of a vector that attention on GPUs goes to.
int64_t longestAttention();

} // namespace pipewright::call

#endif // PIPEWRIGHT_DIALECTS_CALL_CALLDIALECT_H
