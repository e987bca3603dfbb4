//===- Target.h - What a generated program runs on --------------*- C++ -*-===//
//
// Host code of both targets is the same but for the rank's type, how kernels
// are launched and how accesses to a buffer are ordered: by waiting on CPUs, by
// streams and events on GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_TARGET_H
#define PIPEWRIGHT_CODEGEN_HOST_TARGET_H

namespace pipewright::codegen {

enum class Target { Cpu, Cuda };

/// How matrix products and convolutions of float32 may round on GPUs.
enum class Float32Rounding { Full, Tf32 };

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_TARGET_H
