//===- Probes.h - Library calls to be measured -----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_PROBES_H
#define PIPEWRIGHT_RUNTIME_CPU_PROBES_H

#include "runtime/core/Platform.h"

namespace pipewright::runtime {

/// The calls that generated code spends its time in, in f32, and in bf16 where
/// oneDNN has it here.
ProbeProgram cpuProbes();

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_PROBES_H
