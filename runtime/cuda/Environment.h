//===- Environment.h - What CUDA's libraries read at the start -*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_ENVIRONMENT_H
#define PIPEWRIGHT_RUNTIME_CUDA_ENVIRONMENT_H

namespace pipewright::runtime {

/// Sets what the driver and NCCL read when they start; a setting of the user's
/// own is kept. To be called before anything else, MPI among it, may start
/// them. `overNccl`: transfers may go over NCCL.
void setGpuEnvironment(bool overNccl);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_ENVIRONMENT_H
