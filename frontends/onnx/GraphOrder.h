//===- GraphOrder.h - Nodes in an order that can be imported ---*- C++ -*-===//
//
// ONNX asks for sorted nodes, but files exist that are not. This finds an
// order that keeps the file's where it can, checks that every name is defined
// once and before use, and names the cycle where there is one.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_GRAPHORDER_H
#define PIPEWRIGHT_FRONTENDS_ONNX_GRAPHORDER_H

#include "frontends/onnx/ModelFile.h"

#include <vector>

namespace pipewright::frontend {

/// What a message calls a node: its name, or that of its first output.
std::string nodeLabel(const onnx::NodeProto &node);

/// The nodes that the graph's outputs depend on, producers first.
llvm::FailureOr<std::vector<const onnx::NodeProto *>>
orderNodes(const ModelFile &file, mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_GRAPHORDER_H
