//===- CublasLtDoubleTests.cpp - The double of cuBLASLt -------------------===//
//
// Where the double is stricter than the library, or says more. What is true of
// both is in test/conformance/libraries.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/libraries/CublasLtTest.h"

using namespace pipewright::runtime;

using CublasLtDouble = CublasLtTest;

TEST_F(CublasLtDouble, AlgorithmsHoldWhatTheyPromise) {
  const std::vector<float> values = someValues(16);
  const CUdeviceptr a = allocate(values), d = allocate(values);
  const CUdeviceptr workspace = allocate(std::vector<float>(64));
  const auto square = layout(4, 4);
  cublasLtMatmulHeuristicResult_t result = {};
  SUCCEED_BLAS(findAlgorithm(square, square, square, 256, 16, result));
  EXPECT_EQ(result.workspaceSize, 256u);
  const float one = 1, zero = 0;
  const auto run = [&](CUdeviceptr from, cublasLtMatrixLayout_t of,
                       size_t bytes) {
    return cublasLt().cublasLtMatmul(
        handle, descriptor, &one, reinterpret_cast<void *>(from), of,
        reinterpret_cast<void *>(from), of, &zero, reinterpret_cast<void *>(d),
        of, reinterpret_cast<void *>(d), of, &result.algo,
        reinterpret_cast<void *>(workspace), bytes,
        reinterpret_cast<cudaStream_t>(stream));
  };
  EXPECT_EQ(run(a, square, 255), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(a + 4, square, 256), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(a, layout(3, 3), 256), CUBLAS_STATUS_INVALID_VALUE);
  SUCCEED_BLAS(run(a, square, 256));
  // Whoever keeps something in the workspace loses it.
  const std::vector<float> left = read(workspace, 64);
  EXPECT_NE(left[0], left[0]);
  EXPECT_NE(left[63], left[63]);
}

TEST_F(CublasLtDouble, OperandsBeyondTheirMemory) {
  const CUdeviceptr a = allocate(someValues(15)), d = allocate(someValues(16));
  const auto square = layout(4, 4);
  SUCCEED_BLAS(multiply(a, square, a, square, d, square));
  EXPECT_EQ(cudaDriver().cuStreamSynchronize(stream),
            CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(CublasLtDouble, HandlesThatAreNoneAreRefused) {
  EXPECT_EQ(cublasLt().cublasLtMatmulDescDestroy(nullptr),
            CUBLAS_STATUS_INVALID_VALUE);
}
