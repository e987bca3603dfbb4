//===- ProgramTable.h - The constant Program of main.cpp --------*- C++ -*-===//
//
// Everything that the runtime must know beside the functions: weights, inputs,
// outputs, arenas, and the texts that the program shows.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_PROGRAMTABLE_H
#define PIPEWRIGHT_CODEGEN_HOST_PROGRAMTABLE_H

#include "codegen/host/EmitHost.h"
#include "codegen/host/ProgramLayout.h"

namespace pipewright::codegen {

/// Writes the Program and `main`.
mlir::LogicalResult writeProgramTable(llvm::raw_ostream &os,
                                      const ProgramLayout &layout,
                                      const HostOptions &options);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_PROGRAMTABLE_H
