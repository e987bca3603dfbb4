//===- CublasLtConformanceTests.cpp - What cuBLASLt does ------------------===//
//
// Of the double and of the real library. What is true of the double alone is in
// test/unit/doubles.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/libraries/CublasLtTest.h"

#include <cmath>

using namespace pipewright::runtime;

using CublasLtConformance = CublasLtTest;

TEST_F(CublasLtConformance, TransposesAndLeadingDimensions) {
  constexpr int m = 37, n = 9, k = 20, ld = 40;
  const std::vector<float> a = someValues(ld * m), b = someValues(ld * k);
  const CUdeviceptr aData = allocate(a), bData = allocate(b);
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const CUdeviceptr d = allocate(std::vector<float>(m * n, 1.0f));
      set(CUBLASLT_MATMUL_DESC_TRANSA, ta ? CUBLAS_OP_T : CUBLAS_OP_N);
      set(CUBLASLT_MATMUL_DESC_TRANSB, tb ? CUBLAS_OP_T : CUBLAS_OP_N);
      SUCCEED_BLAS(
          multiply(aData, layout(ta ? k : m, ta ? m : k, CUDA_R_32F, ld), bData,
                   layout(tb ? n : k, tb ? k : n, CUDA_R_32F, ld), d,
                   layout(m, n), 2, 3));
      const std::vector<float> result = read(d, m * n);
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
          float sum = 0;
          for (int p = 0; p < k; ++p)
            sum += a[ta ? i * ld + p : p * ld + i] *
                   b[tb ? p * ld + j : j * ld + p];
          EXPECT_NEAR(result[j * m + i], 2 * sum + 3, 1e-4f);
        }
    }
}

TEST_F(CublasLtConformance, Batches) {
  // The second operand is the same for all.
  const CUdeviceptr a = allocate({1, 2, 3, 4, 5, 6, 7, 8});
  const CUdeviceptr b = allocate({1, 10});
  const CUdeviceptr d = allocate(std::vector<float>(4));
  SUCCEED_BLAS(multiply(a, layout(2, 2, CUDA_R_32F, 2, 2, 4), b,
                        layout(2, 1, CUDA_R_32F, 2, 2, 0), d,
                        layout(2, 1, CUDA_R_32F, 2, 2, 2)));
  EXPECT_EQ(read(d, 4), (std::vector<float>{31, 42, 75, 86}));
}

TEST_F(CublasLtConformance, Bf16WithFloatSums) {
  const CUdeviceptr a = allocate({1, 1.0078125f}, CUDA_R_16BF);
  const CUdeviceptr b = allocate({256, 1}, CUDA_R_16BF);
  const CUdeviceptr d = allocate({0});
  SUCCEED_BLAS(multiply(a, layout(1, 2, CUDA_R_16BF), b,
                        layout(2, 1, CUDA_R_16BF), d, layout(1, 1)));
  EXPECT_EQ(read(d, 1)[0], 257.0078125f);
}

TEST_F(CublasLtConformance, Tf32RoundsOperands) {
  // A product of this size goes to tensor cores.
  constexpr int size = 64;
  const float precise = 1.0f + 0x1p-14f;
  const CUdeviceptr a = allocate(std::vector<float>(size * size, precise));
  const CUdeviceptr b = allocate(std::vector<float>(size * size, 1));
  const CUdeviceptr d = allocate(std::vector<float>(size * size));
  const auto square = layout(size, size);
  SUCCEED_BLAS(multiply(a, square, b, square, d, square));
  EXPECT_EQ(read(d, 1)[0], size * precise);
  describe(CUBLAS_COMPUTE_32F_FAST_TF32);
  SUCCEED_BLAS(multiply(a, square, b, square, d, square));
  EXPECT_EQ(read(d, 1)[0], size);
}

/// Rows of matrices beside a result come by eights in the real library.
constexpr int kRows = 8;

TEST_F(CublasLtConformance, BiasAndGelu) {
  const std::vector<float> column = someValues(kRows);
  const std::vector<float> shift = someValues(kRows, 0.5f);
  const CUdeviceptr a = allocate(column), b = allocate({1, -1});
  const CUdeviceptr bias = allocate(shift);
  const CUdeviceptr d = allocate(std::vector<float>(2 * kRows));
  const CUdeviceptr aux = allocate(std::vector<float>(2 * kRows));
  const auto tall = layout(kRows, 2);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  EXPECT_EQ(multiply(a, layout(kRows, 1), b, layout(1, 2), d, tall),
            CUBLAS_STATUS_NOT_SUPPORTED);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(kRows));
  SUCCEED_BLAS(multiply(a, layout(kRows, 1), b, layout(1, 2), d, tall));
  const std::vector<float> before = read(aux, 2 * kRows);
  const std::vector<float> after = read(d, 2 * kRows);
  for (int i = 0; i < 2 * kRows; ++i) {
    const float x = (i < kRows ? 1 : -1) * column[i % kRows] + shift[i % kRows];
    EXPECT_EQ(before[i], x);
    EXPECT_NEAR(after[i], 0.5f * x * (1 + std::erf(x / std::sqrt(2.0f))),
                2e-3f);
  }
}

/// In f32 cuBLASLt 13.1 has it for some shapes only (`MatmulTests.cpp`).
TEST_F(CublasLtConformance, GeluGradientAndBiasGradientOfTheDouble) {
  // a times a diagonal: 1, -1, 1, -1, ...
  constexpr int size = kRows * kRows;
  const std::vector<float> columns = someValues(size);
  std::vector<float> diagonal(size);
  for (int i = 0; i < kRows; ++i)
    diagonal[i * kRows + i] = i % 2 ? -1 : 1;
  const CUdeviceptr a = allocate(columns), b = allocate(diagonal);
  const CUdeviceptr d = allocate(std::vector<float>(size));
  const CUdeviceptr sums = allocate(std::vector<float>(kRows));
  // The slope is 1 far to the right and 0 far to the left.
  std::vector<float> activation(size, 10);
  activation.back() = -10;
  const CUdeviceptr aux = allocate(activation);
  const auto square = layout(kRows, kRows);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU_BGRAD);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, sums);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(kRows));
  SUCCEED_BLAS(multiply(a, square, b, square, d, square));
  const std::vector<float> gradient = read(d, size);
  const std::vector<float> sum = read(sums, kRows);
  for (int row = 0; row < kRows; ++row) {
    float expectedSum = 0;
    for (int column = 0; column < kRows; ++column) {
      const int at = column * kRows + row;
      const float expected =
          at == size - 1 ? 0 : columns[at] * (column % 2 ? -1 : 1);
      EXPECT_NEAR(gradient[at], expected, 1e-5f);
      expectedSum += expected;
    }
    EXPECT_NEAR(sum[row], expectedSum, 1e-5f);
  }
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  SUCCEED_BLAS(multiply(a, square, b, square, d, square));
  EXPECT_EQ(read(sums, 2), (std::vector<float>{1, -1}));
}

TEST_F(CublasLtConformance, AlgorithmsThatTheHeuristicProposes) {
  constexpr uint64_t size = 32, limit = 1 << 16;
  const CUdeviceptr a = allocate(someValues(size * size));
  const CUdeviceptr plain = allocate(std::vector<float>(size * size));
  const CUdeviceptr found = allocate(std::vector<float>(size * size));
  const CUdeviceptr workspace = allocate(std::vector<float>(limit / 4));
  const auto square = layout(size, size);
  cublasLtMatmulHeuristicResult_t result = {};
  SUCCEED_BLAS(findAlgorithm(square, square, square, limit, 256, result));
  EXPECT_LE(result.workspaceSize, limit);
  SUCCEED_BLAS(multiply(a, square, a, square, plain, square));
  const float one = 1, zero = 0;
  SUCCEED_BLAS(cublasLt().cublasLtMatmul(
      handle, descriptor, &one, reinterpret_cast<void *>(a), square,
      reinterpret_cast<void *>(a), square, &zero,
      reinterpret_cast<void *>(found), square, reinterpret_cast<void *>(found),
      square, &result.algo, reinterpret_cast<void *>(workspace), limit,
      reinterpret_cast<cudaStream_t>(stream)));
  const std::vector<float> expected = read(plain, size * size);
  const std::vector<float> products = read(found, size * size);
  for (size_t i = 0; i < products.size(); ++i)
    EXPECT_NEAR(products[i], expected[i], 1e-3f);
}

TEST_F(CublasLtConformance, WhatIsRefused) {
  const CUdeviceptr a = allocate(someValues(64)), d = allocate(someValues(64));
  const auto square = [&](cudaDataType type) { return layout(4, 4, type); };
  EXPECT_EQ(multiply(a, layout(4, 3), a, layout(4, 4), d, layout(4, 4)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(a, layout(4, 4, CUDA_R_32F, 3), a, layout(4, 4), d,
                     layout(4, 4)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(a, square(CUDA_R_16BF), a, square(CUDA_R_32F), d,
                     square(CUDA_R_32F)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(a, square(CUDA_R_32F), a, square(CUDA_R_32F), d,
                     square(CUDA_R_16BF)),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(multiply(a, square(CUDA_R_64F), a, square(CUDA_R_64F), d,
                     square(CUDA_R_64F)),
            CUBLAS_STATUS_NOT_SUPPORTED);
}
