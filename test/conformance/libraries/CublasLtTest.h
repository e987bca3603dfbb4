//===- CublasLtTest.h - What tests of cuBLASLt begin with ------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_LIBRARIES_CUBLASLTTEST_H
#define PIPEWRIGHT_TEST_CONFORMANCE_LIBRARIES_CUBLASLTTEST_H

#include "runtime/cuda/CublasLt.h"
#include "test/conformance/libraries/DriverTest.h"

#include <bit>

#define SUCCEED_BLAS(call) ASSERT_EQ(call, CUBLAS_STATUS_SUCCESS)

namespace pipewright::runtime {

inline float toBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

class CublasLtTest : public testing::Test {
protected:
  void SetUp() override {
    SUCCEED_CUDA(cudaDriver().cuDevicePrimaryCtxRetain(&context, 0));
    SUCCEED_CUDA(cudaDriver().cuCtxSetCurrent(context));
    SUCCEED_CUDA(cudaDriver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    SUCCEED_BLAS(cublasLt().cublasLtCreate(&handle));
    describe(CUBLAS_COMPUTE_32F);
  }
  void TearDown() override {
    cublasLt().cublasLtDestroy(handle);
    driver().cuDevicePrimaryCtxReset(0);
  }

  void describe(cublasComputeType_t compute) {
    SUCCEED_BLAS(
        cublasLt().cublasLtMatmulDescCreate(&descriptor, compute, CUDA_R_32F));
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T &value) {
    SUCCEED_BLAS(cublasLt().cublasLtMatmulDescSetAttribute(
        descriptor, attribute, &value, sizeof value));
  }
  cublasLtMatrixLayout_t layout(uint64_t rows, uint64_t columns,
                                cudaDataType type = CUDA_R_32F, int64_t ld = 0,
                                int32_t batch = 1, int64_t stride = 0) {
    cublasLtMatrixLayout_t made = nullptr;
    EXPECT_EQ(cublasLt().cublasLtMatrixLayoutCreate(&made, type, rows, columns,
                                                    ld ? ld : int64_t(rows)),
              CUBLAS_STATUS_SUCCESS);
    cublasLt().cublasLtMatrixLayoutSetAttribute(
        made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    cublasLt().cublasLtMatrixLayoutSetAttribute(
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
    EXPECT_EQ(cudaDriver().cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cudaDriver().cuMemcpyHtoD(address, from, bytes), CUDA_SUCCESS);
    return address;
  }
  std::vector<float> read(CUdeviceptr address, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(cudaDriver().cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cudaDriver().cuMemcpyDtoH(values.data(), address, count * 4),
              CUDA_SUCCESS);
    return values;
  }
  cublasStatus_t multiply(CUdeviceptr a, cublasLtMatrixLayout_t aLayout,
                          CUdeviceptr b, cublasLtMatrixLayout_t bLayout,
                          CUdeviceptr d, cublasLtMatrixLayout_t dLayout,
                          float alpha = 1, float beta = 0) {
    return cublasLt().cublasLtMatmul(
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
    cublasLt().cublasLtMatmulPreferenceCreate(&preference);
    cublasLt().cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
        sizeof workspace);
    for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLt().cublasLtMatmulPreferenceSetAttribute(
          preference, which, &alignment, sizeof alignment);
    const cublasStatus_t status = cublasLt().cublasLtMatmulAlgoGetHeuristic(
        handle, descriptor, a, b, d, d, preference, 1, &result, &found);
    EXPECT_EQ(found, status == CUBLAS_STATUS_SUCCESS);
    cublasLt().cublasLtMatmulPreferenceDestroy(preference);
    return status;
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t descriptor = nullptr;
};

/// Small numbers that differ.
inline std::vector<float> someValues(size_t count, float scale = 0.25f) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = scale * (static_cast<float>(i * 7 % 11) - 5);
  return values;
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_LIBRARIES_CUBLASLTTEST_H
