//===- CublasLt.h - NVIDIA's library of matrix products --------*- C++ -*-===//
//
// The only file that names functions of libcublasLt.so. It is opened when a
// program has a matrix product, at the first call.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_CUBLASLT_H
#define PIPEWRIGHT_RUNTIME_CUDA_CUBLASLT_H

#include <cublasLt.h>

// clang-format off
#define PIPEWRIGHT_CUBLASLT_FUNCTIONS(F)                                       \
  F(cublasLtCreate) F(cublasLtDestroy) F(cublasLtGetStatusString)              \
  F(cublasLtGetVersion) F(cublasLtMatmulAlgoCheck)                             \
  F(cublasLtMatmulDescCreate) F(cublasLtMatmulDescDestroy)                     \
  F(cublasLtMatmulDescSetAttribute)                                            \
  F(cublasLtMatrixLayoutCreate) F(cublasLtMatrixLayoutDestroy)                 \
  F(cublasLtMatrixLayoutSetAttribute)                                          \
  F(cublasLtMatmulPreferenceCreate) F(cublasLtMatmulPreferenceDestroy)         \
  F(cublasLtMatmulPreferenceSetAttribute)                                      \
  F(cublasLtMatmulAlgoGetHeuristic) F(cublasLtMatmul)
// clang-format on

namespace pipewright::runtime {

/// Pointers to the library's functions, of the types that its header declares.
struct CublasLt {
#define PIPEWRIGHT_CUBLASLT_POINTER(name) decltype(&::name) name = nullptr;
  PIPEWRIGHT_CUBLASLT_FUNCTIONS(PIPEWRIGHT_CUBLASLT_POINTER)
#undef PIPEWRIGHT_CUBLASLT_POINTER
};

/// Opens the library at the first call. Throws an Error when there is none.
const CublasLt &cublasLt();

/// Throws an Error with the name of the call and the library's own words.
void checkCublasLt(cublasStatus_t status, const char *call);

} // namespace pipewright::runtime

/// Calls a function of the library: PIPEWRIGHT_CUBLASLT(cublasLtCreate(&h)).
#define PIPEWRIGHT_CUBLASLT(call)                                              \
  ::pipewright::runtime::checkCublasLt(::pipewright::runtime::cublasLt().call, \
                                       #call)

#endif // PIPEWRIGHT_RUNTIME_CUDA_CUBLASLT_H
