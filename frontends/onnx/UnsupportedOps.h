//===- UnsupportedOps.h - All that a model has and we have not -*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_UNSUPPORTEDOPS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_UNSUPPORTEDOPS_H

#include "frontends/onnx/ModelFile.h"

#include "llvm/ADT/ArrayRef.h"

namespace pipewright::frontend {

/// Fails with one error that names every kind of operator of ONNX's own domain
/// which is not supported, a node of each with its module where the exporter
/// noted it, and the way out where there is one.
llvm::LogicalResult
checkSupported(const ModelFile &file,
               llvm::ArrayRef<const onnx::NodeProto *> nodes,
               mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_UNSUPPORTEDOPS_H
