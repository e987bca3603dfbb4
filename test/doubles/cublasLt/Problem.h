//===- Problem.h - One call of cublasLtMatmul ------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUBLASLT_PROBLEM_H
#define PIPEWRIGHT_TEST_DOUBLES_CUBLASLT_PROBLEM_H

#include "test/doubles/cuda/Device.h"

#include <cublasLt.h>

#include <cstdint>

namespace pipewright::doubles {

int64_t elementBytes(cudaDataType type);

struct Layout {
  cudaDataType type = CUDA_R_32F;
  int64_t rows = 0, columns = 0, ld = 0;
  int32_t order = CUBLASLT_ORDER_COL;
  int32_t batch = 1;
  int64_t stride = 0;

  /// Elements from the first to behind the last, of one matrix.
  int64_t extent() const;
  /// Index of an element.
  int64_t at(int64_t row, int64_t column) const {
    return order == CUBLASLT_ORDER_COL ? column * ld + row : row * ld + column;
  }
};

/// What a cublasLtMatmulDesc_t says.
struct Operands {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  int32_t pointerMode = CUBLASLT_POINTER_MODE_HOST;
  cublasOperation_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr;
  cudaDataType biasType = static_cast<cudaDataType>(-1);
  void *aux = nullptr;
  int64_t auxLd = 0;
  cudaDataType auxType = static_cast<cudaDataType>(-1);
  /// 0: all.
  int32_t multiprocessors = 0;
};

/// What is in a cublasLtMatmulAlgo_t.
struct Algorithm {
  uint64_t mark;
  uint64_t problem;
  uint64_t workspaceBytes;
  /// The alignments of a, b, c, d, the bias and the aux.
  uint32_t alignments[6];
};

/// What the heuristic may take an address to be a multiple of.
inline uint32_t alignmentOf(const void *address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | 16;
  return static_cast<uint32_t>(bits & -bits);
}
inline constexpr uint64_t algorithmMark = 0x50495045444F5542;

struct Problem {
  Operands operands;
  /// The layouts of a, b, c, d.
  Layout layouts[4];
  const void *data[4] = {};
  float alpha = 1, beta = 0;
  void *workspace = nullptr;
  uint64_t workspaceBytes = 0;

  /// What the library would say before it runs anything.
  cublasStatus_t check() const;
  /// Differs where an algorithm for one problem may not run another.
  uint64_t fingerprint() const;
  uint64_t wantedWorkspace() const;
  /// Takes the workspace that the algorithm needs.
  cublasStatus_t use(const Algorithm &algorithm, void *memory, size_t bytes);

  std::string name() const;
  std::vector<Access> accesses() const;
  /// Within an operation.
  void run() const;

  int64_t m() const { return layouts[3].rows; }
  int64_t n() const { return layouts[3].columns; }
  int64_t k() const {
    return operands.transposeA == CUBLAS_OP_N ? layouts[0].columns
                                              : layouts[0].rows;
  }

private:
  cublasStatus_t checkTypes() const;
  cublasStatus_t checkShapes() const;
  cublasStatus_t checkEpilogue() const;
};

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUBLASLT_PROBLEM_H
