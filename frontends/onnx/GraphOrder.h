//===- GraphOrder.h - Nodes in an order that can be imported ---*- C++ -*-===//
//
// ONNX asks for sorted nodes, but files exist that are not. This finds an
// order that keeps the file's where it can, checks that every name is defined
// once and before use, and names the cycle where there is one. Subgraphs of If,
// Loop, Scan and SequenceMap see the names of the graphs around them, and are
// put in order with them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_GRAPHORDER_H
#define PIPEWRIGHT_FRONTENDS_ONNX_GRAPHORDER_H

#include "frontends/onnx/ModelFile.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace pipewright::frontend {

/// What a message calls a node: its name, or that of its first output.
std::string nodeLabel(const onnx::NodeProto &node);

/// Whether a node reads an input as a running statistic, which it writes too.
bool isRunningStatistic(const onnx::NodeProto &node, int input);

/// A name that subgraphs of a node read from the graphs around them.
struct CapturedName {
  std::string name;
  /// Somewhere it is read as something else than a running statistic.
  bool asValue;
};

using NodeList = std::vector<const onnx::NodeProto *>;

/// The nodes that outputs depend on, producers first.
struct NodeOrder {
  /// Of the model's graph.
  NodeList nodes;
  /// Of each subgraph of the file.
  llvm::DenseMap<const onnx::GraphProto *, NodeList> subgraphs;
  llvm::DenseMap<const onnx::NodeProto *, std::vector<CapturedName>> captured;

  /// Calls `visit` for each node, those of subgraphs behind the node that has
  /// them. `place` is what precedes its label in messages: "",
  /// "if.then_branch/".
  void
  walk(llvm::function_ref<void(const onnx::NodeProto &, llvm::StringRef place)>
           visit) const;
};

/// Fails with one error on a name that is defined twice or nowhere, a cycle, or
/// subgraphs that are nested too deep.
llvm::FailureOr<NodeOrder> orderNodes(const ModelFile &file,
                                      mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_GRAPHORDER_H
