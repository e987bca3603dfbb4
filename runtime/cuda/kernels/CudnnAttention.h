//===- CudnnAttention.h - Attention on the GPU by cuDNN --------*- C++ -*-===//
//
// Which shapes cuDNN takes is decided in setUp, by the shape, the GPU and the
// library's version alone, for both directions at once.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CUDNNATTENTION_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CUDNNATTENTION_H

#include "runtime/calls/Attention.h"
#include "runtime/cuda/CudnnGraph.h"
#include "runtime/cuda/DeviceRank.h"

#include <string>

namespace pipewright::runtime {

/// Plans of both directions, or why there are none.
struct AttentionPlans {
  CudnnPlan forward, backward;
  /// Backward runs once for each of so many equal parts of the heads, all in
  /// the same workspace.
  int64_t parts = 1;
  std::string reason;

  explicit operator bool() const { return bool(forward.plan); }
  /// What a backward needs before the workspace of its plan, and in all.
  int64_t meansBytes(const AttentionShape &shape) const;
  int64_t workspaceBytes(const AttentionShape &shape) const;
};

/// Plans that need at most `limit` bytes of workspace each.
AttentionPlans planAttention(const CudnnTarget &target,
                             const AttentionShape &shape, int64_t limit);

/// "9.19.0".
std::string cudnnVersionText();
/// "2x12x1024x64 bf16", for users.
std::string attentionText(const AttentionShape &shape);

/// In setUp: whether cuDNN computes this shape from now on. Throws an Error
/// where the user insists on it (`--attention cudnn`) and it cannot.
bool prepareCudnnAttention(DeviceRank &rank, const AttentionShape &shape);

/// False, and nothing is done, for shapes that cuDNN does not take.
bool cudnnAttention(DeviceRank &rank, const AttentionShape &shape, Buffer q,
                    Buffer k, Buffer v, Buffer o, Buffer stats);
bool cudnnAttentionBackward(DeviceRank &rank, const AttentionShape &shape,
                            Buffer dO, Buffer q, Buffer k, Buffer v, Buffer o,
                            Buffer stats, Buffer dq, Buffer dk, Buffer dv);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CUDNNATTENTION_H
