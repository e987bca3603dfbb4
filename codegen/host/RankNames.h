//===- RankNames.h - What a rank's values are called ------------*- C++ -*-===//
//
// Names of buffers in a rank's program, and what comments say of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_RANKNAMES_H
#define PIPEWRIGHT_CODEGEN_HOST_RANKNAMES_H

#include "codegen/host/ProgramLayout.h"
#include "codegen/host/Statements.h"

namespace pipewright::codegen {

/// By what the value is, or, where it was received, by what it is used for.
std::string nameOfResult(const ProgramLayout &layout, mlir::OpResult value);

/// What is true of a collective's range when it is over: `d_wte_0 is whole`.
Tokens textWhenOver(pipe::CollectiveOp op, const Local &range);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_RANKNAMES_H
