//===- DeviceRuntime.h - All that a generated GPU program calls -*- C++ -*-===//
//
// The one include of code that was generated with --target cuda.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H
#define PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H

#include "runtime/core/Program.h"
#include "runtime/device/DeviceKernel.h"
#include "runtime/device/DeviceRank.h"
#include "runtime/device/Stream.h"
#include "runtime/device/kernels/Attention.h"
#include "runtime/device/kernels/Convolution.h"
#include "runtime/device/kernels/Dropout.h"
#include "runtime/device/kernels/Embedding.h"
#include "runtime/device/kernels/Matmul.h"
#include "runtime/device/kernels/Memory.h"
#include "runtime/device/kernels/Pooling.h"

#endif // PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H
