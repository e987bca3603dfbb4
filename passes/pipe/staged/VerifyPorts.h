//===- VerifyPorts.h - Names and types of a module with stages --*- C++ -*-===//
//
// What a program is told by name, and what it allocates: inputs, outputs,
// weights, and the tensors that stages compute.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_VERIFYPORTS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_VERIFYPORTS_H

#include "mlir/IR/BuiltinOps.h"

namespace pipewright::pipe {

/// Names can be read by people and files, an input has one type wherever it is
/// used, tensors have elements, and labels that are counted are there. Reports
/// every violation.
mlir::LogicalResult verifyPorts(mlir::ModuleOp module);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_VERIFYPORTS_H
