//===- DeviceRuntime.h - All that a generated GPU program calls -*- C++ -*-===//
//
// The one include of code that was generated with --target cuda.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H
#define PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H

#include "runtime/core/Program.h"
#include "runtime/cuda/DeviceKernel.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/Stream.h"
#include "runtime/cuda/kernels/Attention.h"
#include "runtime/cuda/kernels/Convolution.h"
#include "runtime/cuda/kernels/Dropout.h"
#include "runtime/cuda/kernels/Embedding.h"
#include "runtime/cuda/kernels/Matmul.h"
#include "runtime/cuda/kernels/Memory.h"
#include "runtime/cuda/kernels/Pooling.h"

#endif // PIPEWRIGHT_RUNTIME_DEVICERUNTIME_H
