//===- NodeGraph.h - Graphs of products, sums and functions ----*- C++ -*-===//
//
// Any acyclic graph of matrix products, pointwise functions, reductions and
// reshapes, over tensors of four dimensions. It is computed node by node.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDNN_NODEGRAPH_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDNN_NODEGRAPH_H

#include "test/doubles/cudnn/Graph.h"

#include <map>
#include <vector>

namespace pipewright::doubles {

struct GraphNode {
  enum class Kind { Pointwise, Product, Reduction, Reshape } kind;
  /// Ids of tensors.
  std::vector<int64_t> operands;
  int64_t result = 0;
  cudnnPointwiseMode_t function = CUDNN_POINTWISE_IDENTITY;
  /// The axis that a generated index counts along.
  int64_t axis = 0;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
};

struct NodeGraph {
  std::map<int64_t, Tensor> tensors;
  /// Each behind those whose results it reads.
  std::vector<GraphNode> nodes;

  const Tensor &tensor(int64_t id) const { return tensors.at(id); }
  /// Whether a node writes the tensor.
  bool isResult(int64_t id) const;
};

/// Understands the nodes of a graph; a Refusal where cuDNN would refuse.
NodeGraph nodeGraphOf(const Descriptor &graph);

/// What engines of cuDNN 9.19 ask of matrices in memory, as far as programs
/// come across it: bf16, in rows of a multiple of 8 elements, at most 256.
bool isKnownToEngines(const NodeGraph &graph);

/// Bytes of the scores that an engine without atomics keeps in workspace.
int64_t keptBytes(const NodeGraph &graph);

/// Computes the graph on addresses of the host by tensor; numbers that a
/// variant pack gives by value are among them. Sums go backwards if asked to.
void computeNodes(const NodeGraph &graph, bool backwards,
                  const std::map<int64_t, void *> &addresses);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDNN_NODEGRAPH_H
