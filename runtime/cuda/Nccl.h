//===- Nccl.h - NCCL, opened when needed -----------------------*- C++ -*-===//
//
// The only file that names functions of libnccl.so.2.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_NCCL_H
#define PIPEWRIGHT_RUNTIME_CUDA_NCCL_H

#include <nccl.h>

#include <string>

/// All functions of NCCL that the runtime calls.
// clang-format off
#define PIPEWRIGHT_NCCL_FUNCTIONS(F)                                           \
  F(ncclGetVersion) F(ncclGetErrorString) F(ncclGetLastError)                  \
  F(ncclGetUniqueId) F(ncclCommInitRankConfig) F(ncclCommGetAsyncError)        \
  F(ncclCommFinalize) F(ncclCommDestroy) F(ncclCommAbort)                      \
  F(ncclGroupStart) F(ncclGroupEnd) F(ncclSend) F(ncclRecv) F(ncclCommSplit)   \
  F(ncclAllReduce) F(ncclReduceScatter) F(ncclAllGather) F(ncclBroadcast)      \
  F(ncclReduce)
// clang-format on

namespace pipewright::runtime {

/// Pointers to NCCL's functions, of the types that its header declares.
struct Nccl {
#define PIPEWRIGHT_NCCL_POINTER(name) decltype(&::name) name = nullptr;
  PIPEWRIGHT_NCCL_FUNCTIONS(PIPEWRIGHT_NCCL_POINTER)
#undef PIPEWRIGHT_NCCL_POINTER
};

/// Opens NCCL at the first call. Throws an Error when there is none, or when it
/// is too old: found, and needed.
const Nccl &nccl();

/// Of the open library: 22809.
int ncclVersion();

/// What a person should know of the version where ranks are threads of one
/// process: a line, mostly empty.
std::string ncclRemark(int version);

/// "2.28.9" of 22809.
std::string ncclVersionText(int version);

/// "remote process exited or there was a network error (ncclRemoteError)".
std::string ncclErrorText(ncclResult_t result);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_NCCL_H
