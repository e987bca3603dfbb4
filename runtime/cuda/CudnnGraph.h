//===- CudnnGraph.h - Operation graphs of cuDNN ----------------*- C++ -*-===//
//
// Nodes between tensors, written down as an expression, and the plan of the
// first engine that computes a graph as our programs want it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_CUDNNGRAPH_H
#define PIPEWRIGHT_RUNTIME_CUDA_CUDNNGRAPH_H

#include "runtime/core/ElementType.h"
#include "runtime/cuda/Cudnn.h"

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// What a plan is made for: the GPU of a handle, or one that is described only
/// (from cuDNN 9.8 on). Plans of the second kind cannot be executed.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor *device = nullptr;
};

using CudnnSizes = std::vector<int64_t>;

inline cudnnDataType_t cudnnType(ElementType type) {
  return type == ElementType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/// Strides of a tensor without gaps.
CudnnSizes denseStrides(const CudnnSizes &sizes);
/// The last two swapped: of sizes or strides, that of the transposed matrices.
CudnnSizes transposed(CudnnSizes ofMatrices);

class CudnnGraph {
public:
  /// What every tensor in memory must be a multiple of.
  static constexpr int64_t alignment = 16;

  /// A tensor of the graph; lives as long as the graph.
  struct Tensor {
    CudnnDescriptor descriptor;
    cudnnDataType_t type;
    CudnnSizes sizes;
  };
  using Value = const Tensor *;

  CudnnGraph() = default;
  CudnnGraph(const CudnnGraph &) = delete;
  CudnnGraph &operator=(const CudnnGraph &) = delete;

  /// A tensor in memory, that variant packs call `id`.
  Value inMemory(int64_t id, cudnnDataType_t type, const CudnnSizes &sizes,
                 const CudnnSizes &strides);
  /// An f32 that variant packs point to on the host.
  Value number(int64_t id);
  /// What exists between two nodes only; dense.
  Value between(cudnnDataType_t type, const CudnnSizes &sizes);
  Value between(cudnnDataType_t type, const CudnnSizes &sizes,
                const CudnnSizes &strides);

  // Nodes: to = function of the others.

  /// Operands x, b, t as cuDNN names them, as many as the mode takes.
  Value pointwise(cudnnPointwiseMode_t mode,
                  std::initializer_list<Value> operands, Value to,
                  cudnnDataType_t precision = CUDNN_DATA_FLOAT);
  /// The index along `axis` of each element of a tensor like `like`.
  Value index(Value like, int64_t axis);
  Value matmul(Value a, Value b, Value to);
  /// Over the dimensions that `to` has one of.
  Value reduce(cudnnReduceTensorOp_t operation, Value x, Value to);
  /// The same elements by other strides.
  Value reshape(Value x, Value to);
  /// A node of another kind, all of whose attributes are set.
  Value add(CudnnDescriptor &&node, Value to);

  /// The finished graph. The object is not used any more.
  CudnnDescriptor finish(const CudnnTarget &target);

private:
  Value add(int64_t id, cudnnDataType_t type, const CudnnSizes &sizes,
            const CudnnSizes &strides, bool isVirtual, bool isByValue);

  /// Ids of tensors that no variant pack names.
  int64_t nextId = int64_t{1} << 32;
  std::deque<Tensor> tensors;
  std::vector<CudnnDescriptor> nodes;
};

/// An engine's plan for one graph.
struct CudnnPlan {
  CudnnDescriptor plan;
  int64_t workspaceBytes = 0;
  /// The engine's number among all that know the graph.
  int64_t engine = 0;
  /// What it says about its numbers.
  std::vector<cudnnBackendNumericalNote_t> notes;

  /// On the tensors that the graph calls by these ids.
  void run(cudnnHandle_t handle, const std::vector<int64_t> &ids,
           const std::vector<const void *> &addresses, void *workspace) const;
};

/// What was found for a graph: a plan, or why there is none.
struct CudnnChoice {
  std::optional<CudnnPlan> plan;
  std::string reason;
  /// It is workspace that stands against the last engine.
  bool isTooLarge = false;
};

/// The plan of the first engine that cuDNN's heuristic proposes that gives the
/// same bits on every run, notes nothing else that is `unwanted` about itself,
/// and wants no more workspace than `limit`. Chosen by what is asked and the
/// library alone, never by timing.
CudnnChoice
choosePlan(const CudnnTarget &target, CudnnDescriptor &&graph, int64_t limit,
           const std::vector<cudnnBackendNumericalNote_t> &unwanted = {});

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_CUDNNGRAPH_H
