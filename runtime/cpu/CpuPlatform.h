//===- CpuPlatform.h - Ranks that are threads of CPUs ----------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_CPUPLATFORM_H
#define PIPEWRIGHT_RUNTIME_CPU_CPUPLATFORM_H

#include "runtime/core/Platform.h"

namespace pipewright::runtime {

/// Ranks share out the host's cores.
const Platform &cpuPlatform();

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_CPUPLATFORM_H
