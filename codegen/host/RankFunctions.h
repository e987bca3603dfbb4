//===- RankFunctions.h - One program per rank -------------------*- C++ -*-===//
//
// Turns `pipe.rank` into functions of generated code: a table of named
// buffers, then one line for each task and transfer; loops over micro-batches,
// or a table, where these lines would be too many.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_RANKFUNCTIONS_H
#define PIPEWRIGHT_CODEGEN_HOST_RANKFUNCTIONS_H

#include "codegen/host/EmitHost.h"
#include "codegen/host/ProgramLayout.h"
#include "codegen/host/StageFunctions.h"

namespace pipewright::codegen {

enum class RankFunction { Step, Evaluate, SetUp };

/// `rank0_step`.
std::string rankFunctionName(int64_t rank, RankFunction function);

/// Writes `rank<N>_step`, `rank<N>_evaluate` and `rank<N>_setUp`.
mlir::LogicalResult writeRankFunctions(llvm::raw_ostream &os,
                                       const ProgramLayout &layout,
                                       const RankLayout &rank,
                                       const Preparations &preparations,
                                       int64_t tableAbove);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_RANKFUNCTIONS_H
