//===- CublasLtDoubleTests.cpp - The double of cuBLASLt -------------------===//

#include "test/doubles/cuda/Device.h"

#include <bit>
#include <cmath>
#include <cublasLt.h>
#include <gtest/gtest.h>

#define SUCCEED_CUDA(call) ASSERT_EQ(call, CUDA_SUCCESS)
#define SUCCEED_BLAS(call) ASSERT_EQ(call, CUBLAS_STATUS_SUCCESS)

static float toBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

class CublasLtDouble : public testing::Test {
protected:
  void SetUp() override {
    SUCCEED_CUDA(cuInit(0));
    SUCCEED_CUDA(cuDevicePrimaryCtxRetain(&context, 0));
    SUCCEED_CUDA(cuCtxSetCurrent(context));
    SUCCEED_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    SUCCEED_BLAS(cublasLtCreate(&handle));
    describe(CUBLAS_COMPUTE_32F);
  }
  void TearDown() override {
    cublasLtDestroy(handle);
    cuDevicePrimaryCtxReset(0);
  }

  void describe(cublasComputeType_t compute) {
    SUCCEED_BLAS(cublasLtMatmulDescCreate(&descriptor, compute, CUDA_R_32F));
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T &value) {
    SUCCEED_BLAS(cublasLtMatmulDescSetAttribute(descriptor, attribute, &value,
                                                sizeof value));
  }
  cublasLtMatrixLayout_t layout(uint64_t rows, uint64_t columns,
                                cudaDataType type = CUDA_R_32F, int64_t ld = 0,
                                int32_t batch = 1, int64_t stride = 0) {
    cublasLtMatrixLayout_t made = nullptr;
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&made, type, rows, columns,
                                         ld ? ld : int64_t(rows)),
              CUBLAS_STATUS_SUCCESS);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                     &batch, sizeof batch);
    cublasLtMatrixLayoutSetAttribute(
        made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
        sizeof stride);
    return made;
  }
  CUdeviceptr allocate(const std::vector<float> &values,
                       cudaDataType type = CUDA_R_32F) {
    std::vector<uint16_t> halves;
    for (float value : values)
      halves.push_back(std::bit_cast<uint32_t>(toBf16(value)) >> 16);
    const bool half = type == CUDA_R_16BF;
    const size_t bytes = values.size() * (half ? 2 : 4);
    const void *from = half ? static_cast<const void *>(halves.data())
                            : static_cast<const void *>(values.data());
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address, from, bytes), CUDA_SUCCESS);
    return address;
  }
  std::vector<float> read(CUdeviceptr address, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(values.data(), address, count * 4), CUDA_SUCCESS);
    return values;
  }
  cublasStatus_t multiply(CUdeviceptr a, cublasLtMatrixLayout_t aLayout,
                          CUdeviceptr b, cublasLtMatrixLayout_t bLayout,
                          CUdeviceptr d, cublasLtMatrixLayout_t dLayout,
                          float alpha = 1, float beta = 0) {
    return cublasLtMatmul(
        handle, descriptor, &alpha, reinterpret_cast<void *>(a), aLayout,
        reinterpret_cast<void *>(b), bLayout, &beta,
        reinterpret_cast<void *>(d), dLayout, reinterpret_cast<void *>(d),
        dLayout, nullptr, nullptr, 0, reinterpret_cast<cudaStream_t>(stream));
  }
  cublasStatus_t findAlgorithm(cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t d, uint64_t workspace,
                               uint32_t alignment,
                               cublasLtMatmulHeuristicResult_t &result) {
    cublasLtMatmulPreference_t preference = nullptr;
    int found = 0;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
        sizeof workspace);
    for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment,
                                           sizeof alignment);
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, descriptor, a, b, d, d, preference, 1, &result, &found);
    EXPECT_EQ(found, status == CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulPreferenceDestroy(preference);
    return status;
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t descriptor = nullptr;
};

/// Small numbers that differ.
static std::vector<float> someValues(size_t count, float scale = 0.25f) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = scale * (static_cast<float>(i * 7 % 11) - 5);
  return values;
}

TEST_F(CublasLtDouble, TransposesAndLeadingDimensions) {
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

TEST_F(CublasLtDouble, Batches) {
  // The second operand is the same for all.
  const CUdeviceptr a = allocate({1, 2, 3, 4, 5, 6, 7, 8});
  const CUdeviceptr b = allocate({1, 10});
  const CUdeviceptr d = allocate(std::vector<float>(4));
  SUCCEED_BLAS(multiply(a, layout(2, 2, CUDA_R_32F, 2, 2, 4), b,
                        layout(2, 1, CUDA_R_32F, 2, 2, 0), d,
                        layout(2, 1, CUDA_R_32F, 2, 2, 2)));
  EXPECT_EQ(read(d, 4), (std::vector<float>{31, 42, 75, 86}));
}

TEST_F(CublasLtDouble, Bf16WithFloatSums) {
  const CUdeviceptr a = allocate({1, 1.0078125f}, CUDA_R_16BF);
  const CUdeviceptr b = allocate({256, 1}, CUDA_R_16BF);
  const CUdeviceptr d = allocate({0});
  SUCCEED_BLAS(multiply(a, layout(1, 2, CUDA_R_16BF), b,
                        layout(2, 1, CUDA_R_16BF), d, layout(1, 1)));
  EXPECT_EQ(read(d, 1)[0], 257.0078125f);
}

TEST_F(CublasLtDouble, Tf32RoundsOperands) {
  const float precise = 1.0f + 0x1p-14f;
  const CUdeviceptr a = allocate({precise}), b = allocate({1});
  const CUdeviceptr d = allocate({0});
  SUCCEED_BLAS(multiply(a, layout(1, 1), b, layout(1, 1), d, layout(1, 1)));
  EXPECT_EQ(read(d, 1)[0], precise);
  describe(CUBLAS_COMPUTE_32F_FAST_TF32);
  SUCCEED_BLAS(multiply(a, layout(1, 1), b, layout(1, 1), d, layout(1, 1)));
  EXPECT_EQ(read(d, 1)[0], 1.0f);
}

TEST_F(CublasLtDouble, BiasAndGelu) {
  const CUdeviceptr a = allocate({1, 2}), b = allocate({1, -1});
  const CUdeviceptr d = allocate(std::vector<float>(4));
  const CUdeviceptr bias = allocate({0.5f, -0.5f}),
                    aux = allocate(someValues(4));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  EXPECT_EQ(multiply(a, layout(2, 1), b, layout(1, 2), d, layout(2, 2)),
            CUBLAS_STATUS_INVALID_VALUE);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(2));
  SUCCEED_BLAS(multiply(a, layout(2, 1), b, layout(1, 2), d, layout(2, 2)));
  const std::vector<float> before = {1.5f, 1.5f, -0.5f, -2.5f};
  const std::vector<float> after = read(d, 4);
  EXPECT_EQ(read(aux, 4), before);
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(after[i],
                0.5f * before[i] * (1 + std::erf(before[i] / std::sqrt(2.0f))),
                2e-3f);
}

TEST_F(CublasLtDouble, GeluGradientAndBiasGradient) {
  const CUdeviceptr a = allocate({1, 2}), b = allocate({1, -1});
  const CUdeviceptr d = allocate(std::vector<float>(4));
  const CUdeviceptr sums = allocate({0, 0}), aux = allocate({10, 10, 10, -10});
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU_BGRAD);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, sums);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(2));
  SUCCEED_BLAS(multiply(a, layout(2, 1), b, layout(1, 2), d, layout(2, 2)));
  // The slope is 1 far to the right and 0 far to the left.
  EXPECT_EQ(read(d, 4), (std::vector<float>{1, 2, -1, -0.0f}));
  EXPECT_EQ(read(sums, 2), (std::vector<float>{0, 2}));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  SUCCEED_BLAS(multiply(a, layout(2, 1), b, layout(1, 2), d, layout(2, 2)));
  EXPECT_EQ(read(sums, 2), (std::vector<float>{1, -1}));
}

TEST_F(CublasLtDouble, WhatIsRefused) {
  const CUdeviceptr a = allocate(someValues(64)), d = allocate(someValues(64));
  const auto square = [&](cudaDataType type) { return layout(4, 4, type); };
  EXPECT_EQ(multiply(a, layout(4, 3), a, layout(4, 4), d, layout(4, 4)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(a, layout(4, 4, CUDA_R_32F, 3), a, layout(4, 4), d,
                     layout(4, 4)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(a, square(CUDA_R_16BF), a, square(CUDA_R_32F), d,
                     square(CUDA_R_32F)),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(multiply(a, square(CUDA_R_32F), a, square(CUDA_R_32F), d,
                     square(CUDA_R_16BF)),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(multiply(a, square(CUDA_R_64F), a, square(CUDA_R_64F), d,
                     square(CUDA_R_64F)),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cublasLtMatmulDescDestroy(nullptr), CUBLAS_STATUS_INVALID_VALUE);
}

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
    return cublasLtMatmul(
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
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}
