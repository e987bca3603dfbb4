//===- Names.h - Names of a model, settled once ----------------*- C++ -*-===//
//
// What a name of a model may be is decided here; behind the import, names are
// text that people can see.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_NAMES_H
#define PIPEWRIGHT_FRONTENDS_ONNX_NAMES_H

#include "frontends/onnx/ModelFile.h"

namespace pipewright::frontend {

/// Checks and repairs the names of a model that has been parsed. Inputs,
/// outputs, initializers and dimensions of inputs keep the name by which people
/// and files know them, or are refused; names of nodes, and of values between
/// them, are made printable.
llvm::LogicalResult settleNames(ModelFile &file, mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_NAMES_H
