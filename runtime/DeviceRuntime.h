//===- DeviceRuntime.h - All that a generated GPU program calls -*- C++ -*-===//
//
// The one include of code that was generated with --target cuda.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H
#define PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H

#include "runtime/calls/Calls.h"
#include "runtime/core/Program.h"
#include "runtime/cuda/DeviceKernel.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/Stream.h"

#endif // PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H
