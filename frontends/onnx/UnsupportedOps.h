//===- UnsupportedOps.h - All that a model has and we have not -*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_UNSUPPORTEDOPS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_UNSUPPORTEDOPS_H

#include "frontends/onnx/GraphOrder.h"

namespace pipewright::frontend {

/// Fails with one error that names every kind of operator of ONNX's own domain
/// which is not supported, in subgraphs as well, a node of each with its module
/// where the exporter noted it, and the way out where there is one.
llvm::LogicalResult checkSupported(const ModelFile &file,
                                   const NodeOrder &order,
                                   mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_UNSUPPORTEDOPS_H
