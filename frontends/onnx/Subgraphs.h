//===- Subgraphs.h - Graphs within nodes -----------------------*- C++ -*-===//
//
// What If, Loop, Scan and SequenceMap run is a graph in an attribute. A name in
// it means the innermost graph that defines it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_SUBGRAPHS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_SUBGRAPHS_H

#include "frontends/onnx/ModelFile.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <vector>

namespace pipewright::frontend {

struct Subgraph {
  llvm::StringRef attribute;
  const onnx::GraphProto *graph;
};

/// The graphs of a node, in the order of its attributes.
llvm::SmallVector<Subgraph, 2> subgraphsOf(const onnx::NodeProto &node);
llvm::SmallVector<onnx::GraphProto *, 2>
mutableSubgraphsOf(onnx::NodeProto &node);

/// The nodes of a graph and of all subgraphs, in the file's order.
std::vector<const onnx::NodeProto *> allNodesOf(const onnx::GraphProto &graph);

/// The names that a graph's inputs, initializers and nodes define.
llvm::StringSet<> namesDefinedIn(const onnx::GraphProto &graph);

/// A name behind the place where it is: "loop[3]/x"; "" is the model's graph.
std::string nameWithin(llvm::StringRef place, llvm::StringRef name);

/// What a message calls a subgraph of a node: "loop.body".
std::string subgraphLabel(llvm::StringRef node, llvm::StringRef attribute);

/// What precedes the names of one iteration: "loop[3]".
std::string iterationLabel(llvm::StringRef node, int64_t iteration);

/// Moves the initializers of subgraphs to the model's graph, under other names
/// where theirs are taken: a weight of a loop's body is one weight. Fails on
/// sparse ones, on one that is an input as well or defined twice, and where
/// subgraphs are nested too deep.
llvm::LogicalResult hoistInitializers(ModelFile &file,
                                      mlir::MLIRContext &context);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_SUBGRAPHS_H
