//===- Functions.h - Functions that a model brings along -------*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_FUNCTIONS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_FUNCTIONS_H

#include "frontends/onnx/ModelFile.h"

namespace pipewright::frontend {

/// Replaces each node that calls a function of the model by the function's
/// nodes, in subgraphs and in functions as well. Names of values and nodes
/// begin with the label of the node that calls. Fails on functions that call
/// themselves, are of another opset than the model, or become too many nodes.
llvm::LogicalResult inlineFunctions(ModelFile &file,
                                    mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_FUNCTIONS_H
