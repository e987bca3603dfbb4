//===- MatmulPlan.h - How cuBLASLt computes a product ----------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMULPLAN_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMULPLAN_H

#include "runtime/calls/Matmul.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/DeviceRank.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

namespace pipewright::runtime {

/// The alignment of operands, unless a part of a buffer begins at an odd place.
inline constexpr uint32_t usualMatmulAlignment = 16;

struct DestroyMatmulDescriptor {
  void operator()(cublasLtMatmulDesc_t descriptor) const {
    cublasLt().cublasLtMatmulDescDestroy(descriptor);
  }
  void operator()(cublasLtMatrixLayout_t layout) const {
    cublasLt().cublasLtMatrixLayoutDestroy(layout);
  }
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLt().cublasLtMatmulPreferenceDestroy(preference);
  }
};
template <class T>
using OwnedByMatmul =
    std::unique_ptr<std::remove_pointer_t<T>, DestroyMatmulDescriptor>;

/// One shape, with the algorithm that was chosen for it.
struct MatmulPlan {
  OwnedByMatmul<cublasLtMatmulDesc_t> operation;
  OwnedByMatmul<cublasLtMatrixLayout_t> a, b, y;
  cublasLtMatmulAlgo_t algorithm = {};
  int64_t workspaceBytes = 0;
};

/// Says what the epilogue works on. While an algorithm is chosen, addresses
/// only tell their alignment.
void describeEpilogue(const MatmulPlan &plan, const MatmulShape &shape,
                      MatmulEpilogue epilogue, const void *bias,
                      const void *aux);

/// In setUp, with the algorithm that the heuristic or --algorithms names; none
/// if cuBLASLt has no algorithm. `aligned`: operands begin as usual.
std::optional<MatmulPlan> planMatmul(DeviceRank &rank, cublasLtHandle_t handle,
                                     const MatmulShape &shape,
                                     MatmulEpilogue epilogue, bool aligned);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMULPLAN_H
