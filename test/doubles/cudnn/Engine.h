//===- Engine.h - What computes in cuDNN's double --------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDNN_ENGINE_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDNN_ENGINE_H

#include "test/doubles/cudnn/Graph.h"
#include "test/doubles/cudnn/NodeGraph.h"

#include <variant>

namespace pipewright::doubles {

/// Engines differ in what they note about themselves, and keep to it. The
/// numbers are those that descriptors carry.
enum Engine {
  /// Rounds f32 operands to TF32.
  TensorCores,
  /// Adds in another order each time.
  Hasty,
  /// Adds in order, in full precision.
  Careful
};

std::vector<cudnnBackendNumericalNote_t> notesOf(int engine);

/// What a finalized operation graph asks for.
struct Work {
  std::variant<ConvolutionGraph, NodeGraph> graph;
};
Work workOf(const Descriptor &graph);

/// What the heuristic proposes, best first.
std::vector<int> enginesFor(const Work &work, cudnnBackendHeurMode_t mode);

/// Each engine needs some, writes to it, and counts on nobody else doing so.
int64_t workspaceBytes(const Work &work, int engine);

/// Whether this run of the engine adds from the last to the first.
bool addsBackwards(int engine);

/// Addresses on the host.
struct Operands {
  const void *x = nullptr, *w = nullptr, *y = nullptr, *bias = nullptr;
  void *result = nullptr;
};

void computeConvolution(const ConvolutionGraph &graph, int engine,
                        const Operands &operands);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDNN_ENGINE_H
